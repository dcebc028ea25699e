"""What is imported, and when: a server's front and `--version` wait for no NumPy, and nobody notices otherwise."""

import inspect
import pickle
import subprocess
import sys

import pytest
import sklearn.exceptions

import fasterce
from fasterce import errors
from fasterce.cli.commands import COMMANDS, required_commands

HEAVY = ("numpy", "pandas", "sklearn", "scipy", "torch", "xgboost", "onnxruntime", "pyarrow", "matplotlib")


def imported_by(code: str, *arguments: str) -> set[str]:
    """Which of the heavy modules a fresh Python has after running this code."""
    ending = f"import sys; print('imported', *[name for name in {HEAVY!r} if name in sys.modules])"
    program = f"try:\n  {code}\nexcept SystemExit: pass\n{ending}"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "code",
    [
        "import fasterce, fasterce.errors, fasterce.records.pseudonyms, fasterce.serve.messages, fasterce.serve.settings",
        "from fasterce.cli import main",
    ],
)
def test_the_front_needs_no_numpy(code: str) -> None:
    assert imported_by(code) == set()


def test_the_version_needs_no_numpy() -> None:
    assert imported_by("from fasterce.cli import main; main()", "--version") == set()


def test_help_of_a_command_line_lists_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fasterce", "--help"], capture_output=True, text=True, check=True, timeout=120
    )
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("│") and len(line.split()) > 2]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)


def test_one_command_is_enough_where_one_is_meant() -> None:
    assert required_commands(["explain", "--help"]) == ["explain"]
    assert required_commands(["--version"]) == []
    assert required_commands([]) == required_commands(["--help"]) == required_commands(["explian"]) == list(COMMANDS)


def test_the_first_use_imports_what_it_needs() -> None:
    code = "import fasterce; fasterce.Schema; fasterce.constraints.OnlyUp; fasterce.errors.InputError; fasterce.metrics"
    assert "pandas" in imported_by(code)


def test_names_are_the_objects_of_their_modules() -> None:
    from fasterce.explainer import FasterCE

    assert fasterce.FasterCE is FasterCE
    assert all(getattr(fasterce, name) is not None for name in fasterce.__all__)
    assert set(fasterce.__all__) <= set(dir(fasterce))


def test_names_nobody_has_are_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'fasterce' has no attribute 'FasterCEE'"):
        _ = fasterce.FasterCEE  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'fasterce\.errors' has no attribute 'numpy'"):
        _ = errors.numpy
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from fasterce import nothing  # type: ignore[attr-defined]  # noqa: F401


def test_not_fitted_is_scikit_learns_too_and_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(errors.NotFittedError("errors.not_fitted")))
    assert type(again) is errors.NotFittedError
    assert isinstance(again, sklearn.exceptions.NotFittedError)
    assert str(again) == "This FasterCE must be fitted first: call fit(X_train)."
    assert inspect.getmodule(errors.NotFittedError) is errors

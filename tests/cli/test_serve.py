from pathlib import Path

import pytest

from fasterce.cli.serve import named_folder, served
from fasterce.errors import InputError


def made(artifacts, models=(), applicants=(), titles=()):
    return list(served(list(artifacts), list(models), list(applicants), list(titles), (), None, None))


def test_an_artifact_is_called_by_its_folder_or_as_one_likes(tmp_path):
    assert named_folder(str(tmp_path / "loans")) == ("loans", tmp_path / "loans")
    assert named_folder("credit=some/folder") == ("credit", Path("some/folder"))


def test_a_folder_whose_name_has_an_equals_sign_is_that_folder(tmp_path):
    folder = tmp_path / "a=b"
    folder.mkdir()
    assert named_folder(str(folder)) == ("a=b", folder)


def test_what_goes_with_one_artifact_needs_no_name():
    (one,) = made(["a=x"], ["model.onnx"], ["people.csv"], ["Loans = money"])
    assert (one.model, one.applicants, one.title) == ("model.onnx", Path("people.csv"), "Loans = money")


def test_with_several_it_does():
    first, second = made(["a=x", "b=y"], ["b=m.onnx"], ["a=p.csv"])
    assert (first.model, second.model) == (None, "m.onnx")
    assert first.applicants == Path("p.csv")
    with pytest.raises(InputError) as error:
        made(["a=x", "b=y"], ["m.onnx"])
    problem = error.value.problem
    assert (problem.code, problem.option, problem.received) == ("cli.unknown_artifact", "model", "m.onnx")


def test_two_of_one_name():
    with pytest.raises(InputError, match="a name of its own"):
        made(["a=x", "a=y"])


def test_beyond_this_machine_keys_are_needed(run, tmp_path):
    done = run("serve", str(tmp_path), "--host", "0.0.0.0")
    assert done.exit_code == 3
    assert "--keys FILE, or --no-keys" in done.stderr

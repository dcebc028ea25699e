"""`fasterce keys`: made, listed, taken away."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fasterce.cli.app import app
from fasterce.serve.keys import Keys, WrongKey


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["keys", *words, file])
        assert done.exit_code == 0, done.output
        return done.stdout

    token = run("new", "--name", "desk 4", "--scope", "explain", "--scope", "records", "--expires", "2999-12-31").strip()
    other = run("new", "--name", "old", "--scope", "metrics", "--expires", "2998-01-01").strip()
    Path(file).write_text(Path(file).read_text().replace("2998-01-01", "2020-01-01"))
    assert Keys(file).check(token, "records").name == "desk 4"
    listed = run("list")
    assert "desk 4" in listed
    assert "2020-01-01 (expired)" in listed
    assert token not in listed
    assert other not in listed
    run("revoke", "desk 4")
    with pytest.raises(WrongKey):
        Keys(file).check(token, "records")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["new", "--name", "a", "--scope", "all"], 3, "a scope must be one of"),
        (["new", "--name", "a"], 2, "--scope"),
        (["new", "--name", "a", "--scope", "explain", "--expires", "soon"], 3, "a date such as 2030-12-31"),
        (["new", "--name", "a", "--scope", "explain", "--expires", "2020-01-01"], 3, "must not have passed"),
        (["list"], 3, "No such file or directory"),
        (["revoke", "a"], 3, "No such file or directory"),
    ],
)
def test_what_goes_wrong_is_one_sentence(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    done = CliRunner().invoke(app, ["keys", *words, str(tmp_path / "keys.json")])
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []

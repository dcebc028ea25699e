"""Files people edit: what would surprise them is refused or read as they meant it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.errors import InputError
from fasterce.io import documents

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@given(content=PLAIN)
def test_what_is_written_as_yaml_is_read_back(content: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("documents") / "one.yaml"
    path.write_bytes(documents.as_yaml(content).encode())
    assert documents.read(path, "It") == content


def test_words_stay_words(tmp_path: Path) -> None:
    text = "yes: ja\nlist: [no, yes, on, off, y, true, FALSE, 2020-01-01, 12, 1.5, null]\n"
    assert documents.read(written(tmp_path, "a.yaml", text), "It") == {
        "yes": "ja",
        "list": ["no", "yes", "on", "off", "y", True, False, "2020-01-01", 12, 1.5, None],
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "age: 1\nage: 2\n", "'age' twice"),
        ("a.yaml", "one: {age: 1, age: 2}\n", "'age' twice"),
        ("a.json", '{"age": 1, "age": 2}', "'age' twice"),
        ("a.yaml", "a: &a [1]\nb: *a\n", "an alias"),
        ("a.yaml", f"a: {'9' * 400}\n", "a number of 400 digits"),
        ("a.json", f"[{'9' * 400}]", "a number of 400 digits"),
        ("a.yaml", "!!python/object/apply:os.system [ls]", "must be YAML"),
        ("a.yaml", "[" * 3000, "must be YAML"),
        ("a.json", "[" * 100_000, "must be JSON"),
    ],
)
def test_what_would_surprise_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        documents.read(written(tmp_path, name, text), "It")


def test_a_few_lines_that_stand_for_gigabytes_are_refused_at_once(tmp_path: Path) -> None:
    levels = zip("abcdefgh", "bcdefghi", strict=True)
    bomb = "a: &a [lol,lol,lol]\n" + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in levels)
    with pytest.raises(InputError, match="an alias"):
        documents.read(written(tmp_path, "bomb.yaml", bomb), "It")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(documents.MOST_BYTES + 1)
    with pytest.raises(InputError) as error:
        documents.read(path, "It")
    assert error.value.problem.code == "io.document_too_large"
    assert error.value.problem.expected == 16

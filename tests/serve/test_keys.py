"""Who may ask, and for what."""

import json
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.serve.keys import (
    SCOPES,
    ExpiredKey,
    KeyRejected,
    Keys,
    KeysError,
    MissingScope,
    NoKey,
    WrongKey,
    new_key,
    read,
    revoke_key,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_a_key_is_good_for_its_scopes(file: Path) -> None:
    token = new_key(file, "credit app", ["explain", "records", "explain"])
    other = new_key(file, "monitor", ["metrics"])
    keys = Keys(file, check_seconds=0.0)
    assert keys.check(token, "explain").name == "credit app"
    assert keys.check(other, "metrics").name == "monitor"
    with pytest.raises(MissingScope, match="must have the scope 'admin'; it has explain, records"):
        keys.check(token, "admin")
    with pytest.raises(MissingScope):
        keys.check(other, "explain")


def test_no_key_and_wrong_keys(file: Path) -> None:
    token = new_key(file, "a", ["explain"])
    keys = Keys(file, check_seconds=0.0)
    for none in (None, ""):
        with pytest.raises(NoKey, match="Authorization"):
            keys.check(none, "explain")
    changed = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    for wrong in ("fce_", token[:-1], token + "\n", f" {token}", token.upper(), changed, "é" * 47, "\ud800"):
        with pytest.raises(WrongKey) as caught:
            keys.check(wrong, "explain")
        assert wrong.strip() not in str(caught.value)


def test_the_file_holds_no_key_and_is_the_owners_alone(file: Path) -> None:
    token = new_key(file, "a", ["explain"], "2999-12-31")
    assert len(token) == 47
    assert token[4:] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["keys.json"]
    assert len({new_key(file, f"n{k}", ["explain"]) for k in range(20)}) == 20


def test_a_key_is_good_through_its_last_day(file: Path) -> None:
    today = datetime.now(UTC).date()
    good = new_key(file, "good", ["explain"], (today + timedelta(days=1)).isoformat())
    late = new_key(file, "late", ["explain"], "2999-12-31")
    with pytest.raises(KeysError, match="must not have passed"):
        new_key(file, "past", ["explain"], (today - timedelta(days=2)).isoformat())
    file.write_text(file.read_text().replace("2999-12-31", (today - timedelta(days=2)).isoformat()))
    keys = Keys(file, check_seconds=0.0)
    assert keys.check(good, "explain").name == "good"
    with pytest.raises(ExpiredKey) as expired:
        keys.check(late, "explain")
    assert expired.value.problem.details["expires"] == (today - timedelta(days=2)).isoformat()
    [key, _] = read(file)
    assert not key.expired(today + timedelta(days=1))
    assert key.expired(today + timedelta(days=2))


def test_a_key_that_is_revoked_is_refused_without_a_restart(file: Path) -> None:
    token, other = new_key(file, "a", ["explain"]), new_key(file, "b", ["explain"])
    keys = Keys(file, check_seconds=0.0)
    keys.check(token, "explain")
    revoke_key(file, "a")
    with pytest.raises(WrongKey):
        keys.check(token, "explain")
    assert keys.check(other, "explain").name == "b"
    assert keys.check(new_key(file, "c", ["admin"]), "admin").name == "c"


def test_the_file_is_looked_at_once_a_second_at_most(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = new_key(file, "a", ["explain"])
    keys = Keys(file, check_seconds=1.0)
    revoke_key(file, "a")
    assert keys.check(token, "explain").name == "a"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 1.1)
    with pytest.raises(WrongKey):
        keys.check(token, "explain")


@pytest.mark.parametrize("broken", ["", "{", '{"format": "fasterce-keys", "version": 2, "keys": []}', None])
def test_a_broken_file_keeps_the_keys_as_they_were_and_says_so(
    file: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    token = new_key(file, "a", ["explain"])
    keys = Keys(file, check_seconds=0.0)
    whole = file.read_text()
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    with caplog.at_level(logging.ERROR):
        assert keys.check(token, "explain").name == "a"
        assert keys.check(token, "explain").name == "a"
    assert len(caplog.records) == 1
    assert "The keys are unchanged: Keys" in caplog.text
    file.write_text(whole)
    revoke_key(file, "a")
    with pytest.raises(WrongKey):
        keys.check(token, "explain")


@pytest.mark.parametrize(
    ("name", "scopes", "expires", "code", "received"),
    [
        ("", ["explain"], None, "serve.key_name", ""),
        ("a\nb", ["explain"], None, "serve.key_name", "a\nb"),
        ("a" * 101, ["explain"], None, "serve.key_name", "a" * 101),
        ("a", [], None, "serve.key_no_scope", None),
        ("a", ["explian"], None, "serve.key_scope", "explian"),
        ("a", ["explain"], "tomorrow", "serve.key_expires", "tomorrow"),
        ("taken", ["explain"], None, "serve.key_name_taken", "taken"),
    ],
)
def test_invalid_keys_are_rejected(
    file: Path, name: str, scopes: list[str], expires: str | None, code: str, received: str | None
) -> None:
    new_key(file, "taken", ["explain"])
    before = file.read_bytes()
    with pytest.raises(KeysError) as error:
        new_key(file, name, scopes, expires)
    assert (error.value.problem.code, error.value.problem.received) == (code, received)
    assert file.read_bytes() == before


def test_what_is_not_there_cannot_be_revoked_loaded_or_written(file: Path) -> None:
    for work in (lambda: revoke_key(file, "a"), lambda: Keys(file), lambda: read(file.parent)):
        with pytest.raises(KeysError, match="a file that can be read"):
            work()
    with pytest.raises(KeysError, match="a file that can be written"):
        new_key(file.parent / "no folder" / "keys.json", "a", ["explain"])
    new_key(file, "anna", ["explain"])
    with pytest.raises(KeysError, match="must be one of 'anna'"):
        revoke_key(file, "anne")


def test_a_link_stays_a_link(file: Path) -> None:
    elsewhere = file.parent / "elsewhere"
    elsewhere.mkdir()
    new_key(elsewhere / "real.json", "a", ["explain"])
    file.symlink_to(elsewhere / "real.json")
    new_key(file, "b", ["explain"])
    assert file.is_symlink()
    assert [key.name for key in read(elsewhere / "real.json")] == ["a", "b"]


def test_no_change_is_lost_when_several_change_the_file(file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda k: new_key(file, f"n{k}", ["explain"]), range(40)))
    keys = Keys(file, check_seconds=0.0)
    assert [keys.check(token, "explain").name for token in tokens] == [f"n{k}" for k in range(40)]


def test_a_write_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_key(file, "a", ["explain"])
    before = file.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeysError, match="No space left"):
        new_key(file, "b", ["explain"])
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["keys.json"]


ENTRY = {"name": "a", "sha256": "0" * 64, "scopes": ["explain"], "expires": None, "created": "2026-01-01T00:00:00Z"}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["2030-01-01", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(field=st.sampled_from(sorted(ENTRY)), value=anything, twice=st.booleans())
def test_an_entry_with_anything_in_it_is_read_or_refused(
    field: str, value: Any, twice: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("k") / "keys.json"
    entries = [ENTRY | {field: value}] * (2 if twice else 1)
    file.write_text(json.dumps({"format": "fasterce-keys", "version": 1, "keys": entries}))
    try:
        found = read(file)
    except KeysError as error:
        found, said = [], str(error)
    else:
        said = ""
    assert "\n" not in said
    assert bool(said) == (not found)
    for key in found:
        assert key.scopes
        assert set(key.scopes) <= set(SCOPES)
        assert isinstance(key.expired(datetime.now(UTC).date()), bool)


@given(content=st.binary(max_size=60) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_other_file_is_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("k") / "keys.json"
    file.write_bytes(content)
    with pytest.raises(KeysError):
        read(file)


@given(token=st.text() | st.from_regex(r"fce_[A-Za-z0-9_-]{43}", fullmatch=True), scope=st.sampled_from(SCOPES))
def test_nobody_guesses_a_key(token: str, scope: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("k") / "keys.json"
    new_key(file, "a", SCOPES)
    with pytest.raises(KeyRejected):
        Keys(file).check(token, scope)

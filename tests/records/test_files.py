"""Records in files, the published schema, and names that give nothing away."""

import hashlib
import hmac
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fasterce import FasterCE, records
from fasterce.errors import InputError, MissingExtraError
from fasterce.records.files import SharedText, encode
from tests.records.worlds import refused


@pytest.fixture(scope="module")
def found(bank: FasterCE) -> list[dict[str, Any]]:
    return records.make(bank, bank.explain(refused(bank.model, 3)))


def test_the_schema_is_a_schema_and_versioned() -> None:
    jsonschema.Draft202012Validator.check_schema(records.schema())
    assert records.schema() == records.SCHEMA
    assert records.SCHEMA["$id"] == "urn:fasterce:record:2"
    assert records.SCHEMA["properties"]["version"] == {"const": 2}


def test_the_schema_names_exactly_the_fields_of_a_record(found: list[dict[str, Any]]) -> None:
    assert list(records.SCHEMA["properties"]) == list(found[0])
    assert sorted(records.SCHEMA["required"]) == sorted(found[0])


def test_records_are_the_same_after_a_file(found: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    odd = {**found[0], "text": "zwei\u2028Zeilen – ä \ud800", "human_review": {"by": "someone"}}
    assert records.write(path, iter([*found, odd])) == 4
    assert records.read(path) == [*found, odd]
    assert path.read_bytes().count(b"\n") == 4
    assert os.listdir(tmp_path) == ["records.jsonl"]


def test_letters_stay_letters_in_a_file(found: list[dict[str, Any]]) -> None:
    assert "ü" in records.to_json({**found[0], "text": "für"})


def test_nothing_is_half_written(found: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    records.write(path, found)
    before = path.read_bytes()
    for bad, code in (({**found[0], "text": float("nan")}, "not_json"), ({"format": "x"}, "other_format")):
        with pytest.raises(InputError) as caught:
            records.write(path, [found[1], bad])
        assert caught.value.problem.code == f"records.{code}"
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["records.jsonl"]
    with pytest.raises(InputError) as caught:
        records.write(tmp_path / "none" / "records.jsonl", found)
    assert caught.value.problem.code == "io.cannot_write"
    with pytest.raises(InputError) as caught:
        records.write(path, found[0])  # type: ignore[arg-type]
    assert caught.value.problem.code == "records.single_record"


@pytest.mark.parametrize(
    ("content", "code", "line", "inner"),
    [
        (b"{}\n", "invalid_line", 1, "other_format"),
        (b"\n[1]\n", "invalid_line", 2, "not_a_record"),
        (b"{", "line_not_json", 1, None),
        (b"\xff\xfe", "unreadable_file", None, None),
        (b'\n{"format": 1, "format": 2}', "invalid_line", 2, "repeated_name"),
        (b'{"a": [{"b": 1, "c": 2, "b": 1}]}', "invalid_line", 1, "repeated_name"),
    ],
)
def test_a_file_of_something_else_is_rejected(
    tmp_path: Path, content: bytes, code: str, line: int | None, inner: str | None
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        records.read(path)
    problem = caught.value.problem
    assert (problem.code, problem.details.get("line")) == (f"records.{code}", line)
    assert problem.details["path"] == str(path)
    assert inner is None or problem.details["reason"].code == f"records.{inner}"
    with pytest.raises(InputError, match="can be read"):
        records.read(tmp_path / "none.jsonl")


def without(record: dict[str, Any], part: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != part}


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda record: {**record, "status": "perhaps"}, "$.status"),
        (lambda record: {**record, "ids": {**record["ids"], "record": 3}}, "$.ids.record"),
        (lambda record: {**record, "time": "yesterday"}, "$.time"),
        (lambda record: {**record, "counterfactuals": []}, "$.counterfactuals"),
        (lambda record: {**record, "extra": 1}, "$"),
        (lambda record: without(record, "notice"), "$"),
        (lambda record: {**record, "digests": {**record["digests"], "model": "md5:1"}}, "$.digests.model"),
        (lambda record: {**record, "replayable": False}, "$.why_not_replayable"),
        (lambda record: {**record, "retain_until": "2030"}, "$.retain_until"),
    ],
)
def test_what_does_not_fit_the_schema_is_named(found: list[dict[str, Any]], spoil: Any, field: str) -> None:
    records.validate(found[0])
    with pytest.raises(InputError) as caught:
        records.validate(spoil(found[0]))
    assert (caught.value.problem.code, caught.value.problem.details["place"]) == ("records.invalid_field", field)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) < 400


def test_validating_needs_an_extra_and_says_which(found: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    from fasterce.records import structure

    structure._validator.cache_clear()
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtraError, match=r"fasterce\[records\]"):
        records.validate(found[0])
    monkeypatch.undo()
    records.validate(found[0])


def test_records_bring_no_heavy_imports() -> None:
    code = "import sys, fasterce.records; print([m for m in ('jsonschema', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_a_pseudonym_depends_on_subject_and_key_and_cannot_be_traced() -> None:
    key = b"sixteen bytes or more"
    one = records.pseudonym("Ada Lovelace", key)
    assert one == f"hmac-sha256:{hmac.new(key, b'Ada Lovelace', hashlib.sha256).hexdigest()}"
    assert records.pseudonym("Ada Lovelace", key.decode()) == one
    assert len({one, records.pseudonym("Ada Byron", key), records.pseudonym("Ada Lovelace", key + b"!")}) == 3
    assert records.pseudonym(12, key) == records.pseudonym("12", key)


@pytest.mark.parametrize(
    ("subject", "key", "code", "received"),
    [
        ("a", b"short", "not_a_key", "5 bytes"),
        ("a", None, "not_a_key", "NoneType"),
        ("", b"k" * 16, "not_a_subject", "str"),
        (None, b"k" * 16, "not_a_subject", "NoneType"),
        (True, b"k" * 16, "not_a_subject", "bool"),
    ],
)
def test_a_pseudonym_needs_a_subject_and_a_secret(subject: Any, key: Any, code: str, received: str) -> None:
    with pytest.raises(InputError) as caught:
        records.pseudonym(subject, key)
    assert (caught.value.problem.code, caught.value.problem.received) == (f"records.{code}", received)


def test_a_files_digest(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"a model")
    assert records.file_digest(path) == f"sha256:{hashlib.sha256(b'a model').hexdigest()}"
    with pytest.raises(InputError, match="can be read"):
        records.file_digest(tmp_path / "none")


def test_a_record_is_plain_json(found: list[dict[str, Any]]) -> None:
    assert json.loads(json.dumps(found)) == found


def test_records_of_a_call_are_written_as_each_alone(found: list[dict[str, Any]]) -> None:
    shared: SharedText = {}
    changed = [record | {"constraints": record["constraints"] | {"set_by": who}} for record in found for who in ("a", "bé")]
    for record in [*found, *changed]:
        assert encode(record, shared) == json.dumps(record, ensure_ascii=False) == records.to_json(record)


def test_equal_texts_of_other_objects_are_not_confused(found: list[dict[str, Any]]) -> None:
    """An object that is gone may leave its id to another one."""
    shared: SharedText = {}
    for k in range(50):
        written = encode(found[0] | {"constraints": found[0]["constraints"] | {"set_by": f"policy {k}"}}, shared)
        assert json.loads(written)["constraints"]["set_by"] == f"policy {k}"

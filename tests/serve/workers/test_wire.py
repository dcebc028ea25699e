"""Messages between the HTTP process and a worker."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fasterce.io.processes import LENGTHS, lengths, packed
from fasterce.serve.messages import StoredRecord
from fasterce.serve.workers import wire


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), max_size=8))
def test_texts_come_back_as_they_were_sent(texts: list[str]) -> None:
    sent = packed(*wire.pack_texts({"usage": 1}, texts))
    header, body = lengths(sent[: LENGTHS.size])
    received = json.loads(sent[LENGTHS.size : LENGTHS.size + header])
    assert received["usage"] == 1
    assert list(wire.unpack_texts(received, sent[LENGTHS.size + header :])) == texts
    assert body == sum(len(text.encode()) for text in texts)


def test_the_text_of_a_record_is_not_written_twice() -> None:
    record = StoredRecord("id", "request", None, None, "credit", "found", "now", None, '{"a": "ä"}')
    assert StoredRecord(**wire.pack_record(record), body=record.body) == record

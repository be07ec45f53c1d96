"""Answers and TLS records: no answer begins in the record in which another ends.

The Java client takes one record at a time, and moves what follows an answer in it over that answer before it is looked
at: of two answers in one record it would read the second twice.
"""

from __future__ import annotations

from tests.clients.direct.frames import Direct, FrameConnection

ASKED = 50


def test_each_answer_begins_a_record_of_its_own(direct: Direct, container: list[str]) -> None:
    docs = [*container, "docs"]
    direct.send("POST", docs, {"id": "1", "pk": "a", "text": "x" * 20_000}, None, ["a"])
    connection = FrameConnection(direct.server.port)
    frames = []
    for number in range(ASKED):
        segments = [*docs, "1" if number % 3 else "none"]
        fields = {**direct.caller.headers("GET", segments), "x-ms-documentdb-partitionkey": '["a"]'}
        frames.append(direct.frame("GET", segments, None, fields))
    connection.say_all(frames)
    held, ended, records = b"", 0, 0
    while ended < ASKED:
        record = connection.record()
        records += 1
        held += record
        whole = _first_end(held)
        if whole is not None:
            assert whole == len(held), "an answer begins in the record in which another ends"
            held = b""
            ended += 1
    assert records > ASKED, "the large answers take two records each"
    connection.close()


def _first_end(held: bytes) -> int | None:
    """Where the answer that has begun ends; None while it is not all there."""
    if len(held) < 28:
        return None
    end = int.from_bytes(held[:4], "little")
    if held[27]:  # PayloadPresent, the first token
        if len(held) < end + 4:
            return None
        end += 4 + int.from_bytes(held[end : end + 4], "little")
    return end if len(held) >= end else None

"""What is remembered of requests has a bound that no client moves, however long the texts are that it sends."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from pleiad.heads.nosql import key_header, session_token
from pleiad.heads.nosql.direct import replica_path

TEXTS = 20
LONG_BYTES = 60_000
KEPT_BYTES_MAX = 200_000
FRAMES = 40


def session(number: int) -> None:
    session_token.read(f"{number}:1#1" + ",0:1#1" * (LONG_BYTES // 6))


def key(number: int) -> None:
    key_header.of({key_header.NAME: b'["%d%b"]' % (number, b"k" * LONG_BYTES)})


def path(number: int) -> None:
    written = replica_path.written(replica_path.RangeAddress("r", f"{number}" + "0" * LONG_BYTES), "1p")
    replica_path.read(written.encode())


@pytest.mark.parametrize("read", [session, key, path])
def test_long_texts_of_clients_are_not_remembered(read: Callable[[int], None]) -> None:
    tracemalloc.start(FRAMES)
    try:
        for number in range(TEXTS):
            read(number)
        assert kept_bytes() < KEPT_BYTES_MAX
    finally:
        tracemalloc.stop()


def kept_bytes() -> int:
    """What was taken by way of this file and is still held: other threads of the process work on meanwhile."""
    held = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__, all_frames=True)])
    return sum(trace.size for trace in held.traces)

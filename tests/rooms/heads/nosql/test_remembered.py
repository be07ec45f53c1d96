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
TRIES = 10


def session(number: int) -> None:
    session_token.read(f"{number}:1#1" + ",0:1#1" * (LONG_BYTES // 6))


def key(number: int) -> None:
    key_header.of({key_header.NAME: b'["%d%b"]' % (number, b"k" * LONG_BYTES)})


def path(number: int) -> None:
    written = replica_path.written(replica_path.RangeAddress("r", f"{number}" + "0" * LONG_BYTES), "1p")
    replica_path.read(written.encode())


@pytest.mark.parametrize("read", [session, key, path])
def test_long_texts_of_clients_are_not_remembered(read: Callable[[int], None]) -> None:
    # Other threads of the process may take memory meanwhile; other texts would be remembered just so.
    assert any(kept_bytes(read, turn * TEXTS) < KEPT_BYTES_MAX for turn in range(TRIES))


def kept_bytes(read: Callable[[int], None], first: int) -> int:
    """What the process holds after texts were read, and did not before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(first, first + TEXTS):
            read(number)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

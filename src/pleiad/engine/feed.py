"""Reading a container's items in pages.

A page token says what is still to be read: pieces of the hash space, each with the document number to go on after.
Everything beyond the last piece is to be read from its start. Pieces are ranges and not partitions, so a token
outlives a restart, a split and a merge.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass

import orjson

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.item.ttl import is_expired
from pleiad.keys.range import EpkRange
from pleiad.partition.partition import Partition
from pleiad.store.contract import Row

_SCAN_CHUNK = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the hash space, read up to and with document number `after`."""

    span: EpkRange
    after: int = 0


@dataclass(frozen=True, slots=True)
class FeedPage:
    """One page of rows, the partition it ended in, its charge, and the token of the next page."""

    rows: list[Row]
    partition: Partition
    charge: Charge
    token: str | None


async def page(
    container: Container, span: EpkRange, token: str, items_max: int, multiplier: int = 1
) -> FeedPage:
    """The next page of the items in a range of hashes."""
    pieces = _decode(token, span) if token else [Piece(span)]
    rows: list[Row] = []
    room_bytes = container.limits.response_bytes
    polled = 0
    partition = container.map.find(pieces[0].span.min)
    while pieces and len(rows) < items_max and room_bytes > 0:
        piece = pieces.pop(0)
        partition = container.map.find(piece.span.min)
        part = partition.span.intersect(piece.span)
        assert part is not None
        if part.max < piece.span.max:
            pieces.insert(0, Piece(EpkRange(part.max, piece.span.max), piece.after))
        wanted = min(items_max - len(rows), _SCAN_CHUNK)
        found = await partition.scan(part, piece.after, wanted)
        polled += piece.after == 0
        taken = 0
        for row in found:
            if rows and row.size_bytes > room_bytes:
                room_bytes = 0
                break
            taken += 1
            room_bytes -= row.size_bytes
            if not is_expired(row.ts, row.ttl, container.default_ttl, time.time()):
                rows.append(row)
        if taken < len(found) or len(found) == wanted:
            pieces.insert(0, Piece(part, found[taken - 1].number if taken else piece.after))
    cost = charge.feed_page([row.size_bytes for row in rows], max(polled, 1), multiplier)
    return FeedPage(rows, partition, cost, _encode(pieces) if pieces else None)


def _encode(pieces: list[Piece]) -> str:
    text = orjson.dumps([[*piece.span.to_hex(), piece.after] for piece in pieces])
    return urlsafe_b64encode(text).decode()


def _decode(token: str, span: EpkRange) -> list[Piece]:
    """The pieces a token names; a forged or foreign token is an error, never a wrong page."""
    try:
        given = orjson.loads(urlsafe_b64decode(token.encode("ascii")))
        pieces = [Piece(EpkRange.from_hex(low, high), after) for low, high, after in given]
        valid = bool(pieces) and all(isinstance(piece.after, int) and piece.after >= 0 for piece in pieces)
    except (ValueError, TypeError, Base64Error, PleiadError):
        valid = False
    if not valid or not all(span.intersect(piece.span) == piece.span for piece in pieces):
        raise errors.BAD_HEADER(name="x-ms-continuation", value=token[:100], hint="")
    return pieces

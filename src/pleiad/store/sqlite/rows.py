"""Rows of a segment as SQL and as values, with the checksum they carry: it is made here, and compared here."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from zlib import adler32, crc32

import apsw

from pleiad.store.checksum import (
    FIGURES,
    LSN_SHIFT,
    NO_TTL,
    DamagedRowError,
    created_checksum,
    fields_checksum,
)
from pleiad.store.rows import PartitionState, Row, Verb, Version

ROW = "item.number, epk, id, lsn, ts, ttl, size_bytes, terms, CAST(json(body) AS BLOB), body, checksum"
ROW_COLUMNS_COUNT = 11
STATE = "id, epoch, lsn, next_sequence, items, size_bytes, checksum"
VERSION = (
    "lsn, epk, position, verb, is_expiry, ts, number, id, size_bytes, coalesce(CAST(json(body) AS BLOB), x''), "
    "previous_lsn, previous_ts, coalesce(CAST(json(previous_body) AS BLOB), x''), body, previous_body, checksum"
)
VERSION_CHECKSUM = (
    "fields_checksum(lsn, epk, position, verb, is_expiry, ts, number, id, size_bytes, body, previous_lsn, previous_ts, "
    "previous_body)"
)
"""The checksum of a version as SQL over its columns."""

_CREATED_FIELDS = "('create', 0, 0, 0, None)"
_VERBS = {verb.value: verb for verb in Verb}
_new = tuple.__new__
_pack = FIGURES.pack
_pack_state = struct.Struct("<qqqqqq").pack
Execute = Callable[..., apsw.Cursor]


def checked_row(columns: tuple[Any, ...]) -> Row:
    """The row of the columns ROW; DamagedRowError when it is not what was written."""
    number, epk, id, lsn, ts, ttl, size_bytes, terms, _, body, checksum = columns
    if checksum is None:
        return _new(Row, columns[:9])
    try:
        # Written out here and below: `row_checksum` of `content_checksum`, for every row that is read or written.
        figures = _pack(ts, NO_TTL if ttl is None else ttl, size_bytes, terms)
        if crc32(figures + epk + id.encode(), adler32(body)) ^ number ^ lsn << LSN_SHIFT == checksum:
            return _new(Row, columns[:9])
    except (struct.error, AttributeError, TypeError):
        pass  # damage made a value of another type of one of them
    raise DamagedRowError(f"the row with number {number} is not what was written")


def checksum_of(row: Row, body: bytes) -> int:
    """The checksum of a row whose body is stored as these bytes."""
    number, epk, id, lsn, ts, ttl, size_bytes, terms, _ = row
    figures = _pack(ts, NO_TTL if ttl is None else ttl, size_bytes, terms)
    return crc32(figures + epk + id.encode(), adler32(body)) ^ number ^ lsn << LSN_SHIFT


def stored_body(execute: Execute, body: bytes) -> bytes:
    """A body as it is stored: SQLite's own form of JSON."""
    stored: Any = execute("SELECT jsonb(?1)", (body.decode(),)).get
    return bytes(stored)


def checked_state(columns: tuple[Any, ...]) -> PartitionState:
    """The counters of the columns STATE; DamagedRowError when they are not what was written."""
    *figures, checksum = columns
    try:
        is_whole = checksum is None or crc32(_pack_state(*figures)) == checksum
    except (struct.error, TypeError):
        is_whole = False
    if not is_whole:
        raise DamagedRowError(f"the counters of partition {columns[0]} are not what was written")
    return PartitionState(*figures)


def state_columns(*figures: int) -> tuple[int, ...]:
    """The counters of a partition, in the order of STATE, with their checksum."""
    return (*figures, crc32(_pack_state(*figures)))


def checked_version(columns: tuple[Any, ...]) -> Version:
    """The version of the columns VERSION; DamagedRowError when it is not what was written."""
    lsn, epk, position, verb, is_expiry, ts, number, id, size_bytes, *bodies = columns
    text, previous_lsn, previous_ts, previous_text, body, previous_body, checksum = bodies
    before = previous_lsn, previous_ts, previous_body
    if checksum is not None:
        # As texts, since damage may have made another 0 of a 0.
        if repr((verb, is_expiry, *before)) == _CREATED_FIELDS and type(epk) is type(body) is bytes:
            found = created_checksum(lsn, epk, position, ts, number, id, size_bytes, body)
        else:
            fields = lsn, epk, position, verb, is_expiry, ts, number, id, size_bytes, body
            found = fields_checksum(*fields, *before)
        if found != checksum:
            raise DamagedRowError(f"the version with LSN {lsn} is not what was written")
    change = lsn, epk, position, _VERBS[verb], bool(is_expiry), ts, number, id, size_bytes
    return _new(Version, (*change, text, previous_lsn, previous_ts, previous_text))

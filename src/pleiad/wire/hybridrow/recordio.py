"""RecordIO: a stream of rows, each behind a header with its length and checksum, all behind a segment header.

Limits: the caller says how many records it takes; one more is refused before it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from zlib import crc32

from pleiad.wire import MalformedError
from pleiad.wire.hybridrow.row import HEADER_BYTES, VERSION, RowCodec
from pleiad.wire.hybridrow.schema import RECORD, SEGMENT

_SEGMENT = RowCodec(SEGMENT)
_RECORD = RowCodec(RECORD)
_SEGMENT_START = _SEGMENT.write({"length": _SEGMENT.head_bytes})


class TooManyRecordsError(MalformedError):
    """The stream has more records than the caller takes."""


def is_stream(data: bytes) -> bool:
    """Whether a body begins as a stream does; no text in UTF-8 has this first byte."""
    return data[:1] == bytes((VERSION,))


def read_rows(data: bytes, rows_max: int) -> list[bytes]:
    """The rows of a stream, their lengths and checksums proved."""
    rows: list[bytes] = []
    place = 0
    while place < len(data):
        is_segment = _schema_id(data, place) == SEGMENT.id
        if not is_segment and place == 0:
            raise MalformedError("the stream does not begin with a segment header")
        if is_segment:
            place = _segment_end(data, place)
            continue
        if len(rows) == rows_max:
            raise TooManyRecordsError(f"the stream has more than {rows_max} records")
        row, place = _read_record(data, place)
        rows.append(row)
    return rows


def write_rows(rows: Iterable[bytes]) -> bytes:
    """A stream of one segment with these rows."""
    parts = [_SEGMENT_START]
    for row in rows:
        parts += (_RECORD.write({"length": len(row), "crc32": crc32(row)}), row)
    return b"".join(parts)


def _schema_id(data: bytes, place: int) -> int:
    if len(data) - place < HEADER_BYTES:
        raise MalformedError(f"the stream is cut off at byte {len(data)}")
    version, schema_id = struct.unpack_from("<Bi", data, place)
    if version != VERSION or schema_id not in (SEGMENT.id, RECORD.id):
        raise MalformedError(f"there is no segment or record at byte {place} of the stream")
    found: int = schema_id
    return found


def _segment_end(data: bytes, place: int) -> int:
    length = _SEGMENT.read_head(data, place)[0].get("length")
    if not isinstance(length, int) or not _SEGMENT.head_bytes <= length <= len(data) - place:
        raise MalformedError(f"the segment at byte {place} has the length {length!r}")
    return place + length


def _read_record(data: bytes, place: int) -> tuple[bytes, int]:
    head, _ = _RECORD.read_head(data, place)
    length, checksum = head["length"], head["crc32"]
    start = place + _RECORD.head_bytes
    if not isinstance(length, int) or not 0 < length <= len(data) - start:
        raise MalformedError(f"the record at byte {place} has the length {length!r}")
    row = data[start : start + length]
    if crc32(row) != checksum:
        raise MalformedError(f"the record at byte {place} does not have the checksum that its header says")
    return row, start + length

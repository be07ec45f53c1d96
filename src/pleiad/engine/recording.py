"""The workload record of one container: what its requests noted, on the way to a ring of files and back.

A line of a file is a record, or an array of a time and what many requests like most are have in common and apart: their
briefs by columns, or, as older versions wrote them, one after the other. Who reads gets every record in its documented
form, one a line, with the name of the container, which is not on the disk. The workers of a server write to one ring,
each to files of its own; who reads gets what all of them wrote, by the time of each record.

Invariants
- What waits to be written has limits, by count and by the bytes that it holds; so has each record.
- No request waits for the disk, and what cannot be written is counted as lost.
- What was noted to be hashed is written hashed, however the container is recorded by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from pleiad.limits import Limits
from pleiad.query.paths.changed import changed_paths
from pleiad.workload.hashing import Hasher
from pleiad.workload.record import line_of
from pleiad.workload.ring import PIECE_BYTES, Mark, Place, Ring

_log = logging.getLogger(__name__)

Brief = tuple[float, str, tuple[Any, ...], str, float, int]
"""A good request on one item: when it began by the clock of the process, operation, key, id, charge and size."""
LINE_BRIEFS: Final = 128
"""So many briefs make a line."""
_BRIEF_VALUES: Final = 6
_LINE_VALUES: Final = LINE_BRIEFS * _BRIEF_VALUES
_REST: Final = 100
"""After so many lines the thread that makes them lets requests have their turn."""
_EARLY_COUNT: Final = 5_000
_EARLY_BYTES: Final = 4 << 20
"""When so much waits, it is written at once."""
_ESSENTIAL: Final = ("at", "operation", "status", "partitions", "charge", "bytes")
"""What is left of a record that is too long whatever is done to it."""
_MERGED_BYTES_MIN: Final = 64 << 10
"""So much is read at a time of what each of many workers wrote."""
_COLUMNS: Final = ("at", "operation", "key", "id", "charge", "bytes")
_BRIEF_NAMES: Final = (*_COLUMNS, "hashed")

Fields = dict[str, Any]
"""A record as its line has it, without the container."""
_Noted = bytes | tuple[Fields, bool]
"""A whole line, or a record of which the thread makes one, and whether it is to be hashed."""


class Mode(StrEnum):
    """How a container is recorded."""

    OFF = "off"
    VALUES = "values"
    HASHES = "hashes"
    """Keys, ids and values of filters are replaced by hashes before they are written."""


class Recording:
    """The record of one container."""

    def __init__(
        self,
        directory: Path,
        mode: Mode,
        limits: Limits,
        hasher: Hasher,
        due: asyncio.Event,
        writer: int = 0,
        writers: int = 1,
    ) -> None:
        self.mode = mode
        self.is_own = False
        """Whether the container was switched itself; else it goes by what the server was started with."""
        self.ring = Ring(directory, limits.workload_container_bytes, writer, writers)
        self._briefs: list[Any] = []
        """The values of briefs behind one another, which costs less than to keep each of them."""
        self._pending: list[_Noted] = []
        self._pending_count = 0
        self._held_bytes = 0
        """Of whole lines, and of texts of items that wait to be compared."""
        self.lost = 0
        self._limits = limits
        self._pending_max = limits.workload_pending
        self._held_bytes_max = limits.workload_pending_bytes
        self._hasher = hasher
        self._due = due
        self.turn = asyncio.Lock()
        """Of whoever appends to the files or removes them."""

    def switch(self, mode: Mode) -> None:
        """Has requests noted in another way from now on."""
        self.end_line()
        self.mode = mode

    def add_brief(self, brief: Brief) -> None:
        """Notes a request that is like nearly all, in as few steps as can be."""
        briefs = self._briefs
        briefs.extend(brief)
        if len(briefs) >= _LINE_VALUES:
            self.end_line()

    def add(self, fields: Fields, held_bytes: int = 0) -> None:
        """Notes any other request. Its `changed` has pairs of texts of items, which are so many bytes."""
        self.end_line()
        self._keep((fields, self.mode is Mode.HASHES), 1, held_bytes)

    def end_line(self) -> None:
        """Makes a line of the briefs that there are, which costs less than to keep them for the thread."""
        briefs, self._briefs = self._briefs, []
        if briefs:
            self._keep_briefs(briefs, round(time.time() - time.perf_counter(), 6))

    def _keep_briefs(self, briefs: list[Any], ahead: float) -> None:
        """Has briefs written as one line, or as several where that would be too long."""
        columns, count = self._columns(briefs), len(briefs) // _BRIEF_VALUES
        with contextlib.suppress(orjson.JSONEncodeError):
            line = line_of([ahead, columns])
            if len(line) <= self._limits.workload_record_bytes:
                self._keep(line, count, len(line))
                return
        if count == 1:
            self._keep((_column_fields(columns, ahead)[0], False), 1, 0)
        else:
            middle = count // 2 * _BRIEF_VALUES
            self._keep_briefs(briefs[:middle], ahead)
            self._keep_briefs(briefs[middle:], ahead)

    def _columns(self, briefs: list[Any]) -> Fields:
        """Briefs as a list of values for each name, or as one value that all of them have."""
        at, operation, key, id, charge_ru, size_bytes = [
            briefs[place::_BRIEF_VALUES] for place in range(_BRIEF_VALUES)
        ]
        is_hashed = self.mode is Mode.HASHES
        columns: Fields = {
            "at": at,
            "operation": _common(operation),
            "key": self._hasher.keys(key) if is_hashed else key,
            "id": self._hasher.ids(id) if is_hashed else id,
            "charge": _common(charge_ru),
            "bytes": _common(size_bytes),
        }
        if is_hashed:
            columns["hashed"] = True
        return columns

    def _keep(self, noted: _Noted, count: int, held_bytes: int) -> None:
        """Has something written soon, unless too much waits already."""
        if self._pending_count >= self._pending_max or self._held_bytes > self._held_bytes_max:
            self.lost += count
        else:
            self._pending.append(noted)
            self._pending_count += count
            self._held_bytes += held_bytes
        if self._pending_count >= _EARLY_COUNT or self._held_bytes > _EARLY_BYTES:
            self._due.set()

    async def flush(self) -> None:
        """Writes what waits."""
        async with self.turn:
            self.end_line()
            batch, count = self._pending, self._pending_count
            self.forget_pending()
            if not batch:
                return
            try:
                self.lost += await asyncio.to_thread(self._write, batch)
            except OSError as error:
                if not self.lost:
                    _log.warning(
                        "a workload record cannot be written, and requests are missing in it: %s", error
                    )
                self.lost += count

    def append(self, records: Sequence[Fields]) -> None:
        """Puts records from elsewhere behind those in the files, hashed where the container is recorded so."""
        if self.mode is Mode.HASHES:
            records = [self._hasher.fields(fields) for fields in records]
        self.ring.append(b"".join([self._line(fields) + b"\n" for fields in records]))

    def forget_pending(self) -> None:
        """Nothing waits any more."""
        self._briefs, self._pending, self._pending_count, self._held_bytes = [], [], 0, 0

    def _write(self, batch: list[_Noted]) -> int:
        """Appends a batch to the files; how many records could not be written."""
        lines: list[bytes] = []
        for number, noted in enumerate(batch, 1):
            if isinstance(noted, bytes):
                lines.append(noted)
                continue
            fields, is_hashed = noted
            _compare(fields)
            lines.append(self._line(self._hasher.fields(fields) if is_hashed else fields))
            if number % _REST == 0:
                time.sleep(0)  # for the loop, which waits for this thread else
        self.ring.append(b"".join([line + b"\n" for line in lines if line]))
        return lines.count(b"")

    def _line(self, fields: Fields) -> bytes:
        """The line of one record, within its limit; empty when it cannot be written at all."""
        for shortened in (_as_it_is, self._hasher.fields, _without_values, _essential):
            fields = shortened(fields)
            with contextlib.suppress(orjson.JSONEncodeError):
                line = line_of(fields)
                if len(line) <= self._limits.workload_record_bytes:
                    return line
        return b""

    def count(self) -> tuple[int, int]:
        """The records in the files, and the bytes of these."""
        records = size_bytes = 0
        for writer in self.ring.writers():
            for piece in self.ring.pieces(writer):
                records += len(_records(piece.lines))
                size_bytes += len(piece.lines)
        return records, size_bytes

    def read(self, name: str, place: Place | None, hashed: bool) -> tuple[bytes, Place | None]:
        """The records of about a megabyte from a place on, a line each, and where the next begin; None at the end."""
        marks = {} if place is None else dict(place.marks)
        writers = self.ring.writers()
        piece_bytes = max(_MERGED_BYTES_MIN, PIECE_BYTES // max(1, len(writers)))
        streams = [_Stream(self.ring, each, marks.get(each, Mark()), piece_bytes) for each in writers]
        found = [{**fields, "container": name} for fields in _by_time(streams)]
        if not found:
            return b"", None
        if hashed:
            found = [self._hasher.fields(fields) for fields in found]
        behind = Place(tuple((each.writer, each.mark) for each in streams))
        return b"".join([line_of(fields) + b"\n" for fields in found]), behind


class _Stream:
    """The next records of one writer, taken one after the other."""

    def __init__(self, ring: Ring, writer: int, mark: Mark, piece_bytes: int) -> None:
        self._ring = ring
        self.writer = writer
        self._begin = self._behind = mark
        self._records: list[Fields] = []
        self._taken = 0
        for piece in ring.pieces(writer, mark, piece_bytes):
            self._records = _records(piece.lines)
            self._begin, self._behind = piece.begin, piece.behind
            goes_on = (mark.file, mark.offset) == (piece.begin.file, piece.begin.offset)
            self._taken = mark.taken if goes_on else 0
            if self.has_records:
                return

    @property
    def mark(self) -> Mark:
        """How far it was taken."""
        if self.has_records:
            return Mark(self._begin.file, self._begin.offset, self._taken)
        return self._behind

    @property
    def has_records(self) -> bool:
        return self._taken < len(self._records)

    @property
    def is_cut(self) -> bool:
        """Whether more was written than these records."""
        return self._ring.has_more(self.writer, self._behind)

    @property
    def next_at(self) -> float:
        at = self._records[self._taken].get("at")
        return at if isinstance(at, float | int) else 0.0

    def take(self) -> Fields:
        self._taken += 1
        return self._records[self._taken - 1]

    def take_all(self) -> list[Fields]:
        rest = self._records[self._taken :]
        self._taken = len(self._records)
        return rest


def _by_time(streams: Sequence[_Stream]) -> list[Fields]:
    """The records of all streams by their times, as far as none of them may have earlier ones that were not read."""
    if len(streams) == 1:
        return streams[0].take_all()
    found: list[Fields] = []
    heads = [(each.next_at, place) for place, each in enumerate(streams) if each.has_records]
    heapq.heapify(heads)
    while heads:
        _, place = heads[0]
        stream = streams[place]
        found.append(stream.take())
        if stream.has_records:
            heapq.heapreplace(heads, (stream.next_at, place))
        elif stream.is_cut:
            break
        else:
            heapq.heappop(heads)
    return found


def _records(lines: bytes) -> list[Fields]:
    """The records in lines of a file, without what a machine that stopped may have left there."""
    found: list[Fields] = []
    for line in lines.splitlines():
        with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError):
            value = orjson.loads(line)
            if isinstance(value, dict):
                found.append(value)
            elif isinstance(value, list) and value:
                ahead, *briefs = value
                if briefs and isinstance(briefs[0], dict):
                    found += _column_fields(briefs[0], ahead)
                else:
                    found += [_fields(brief, ahead) for brief in briefs]
    return found


def _common(column: list[Any]) -> Any:
    """The value that is everywhere in a column; the column where there are several."""
    return column[0] if column.count(column[0]) == len(column) else column


def _column_fields(columns: Fields, ahead: float) -> list[Fields]:
    """The fields of the briefs of a line."""
    count = len(columns["at"])
    hashed = [True] if columns.get("hashed") else []
    apart = [columns[name] for name in _COLUMNS]
    lists = [each if isinstance(each, list) else [each] * count for each in apart]
    return [_fields([*brief, *hashed], ahead) for brief in zip(*lists, strict=True)]


def _fields(brief: Sequence[Any], ahead: float) -> Fields:
    """The fields of a brief; the clock of the machine is so many seconds ahead of that of the process."""
    fields = {**dict(zip(_BRIEF_NAMES, brief, strict=False)), "partitions": 1}
    fields["at"] = round(fields["at"] + ahead, 6)
    if isinstance(fields["key"], str):
        fields["key"] = [fields["key"]]
    return fields


def _compare(fields: Fields) -> None:
    """Puts the paths that differ in the place of the pairs of texts of items."""
    paths: dict[str, None] = {}
    for old, new in fields.pop("changed", ()):
        paths.update(dict.fromkeys(changed_paths(old, new)))
    if paths:
        fields["changed"] = list(paths)


def _as_it_is(fields: Fields) -> Fields:
    return fields


def _without_values(fields: Fields) -> Fields:
    """A record whose filter names the paths alone, and whose members are their operations."""
    kept = {name: value for name, value in fields.items() if name not in ("equals", "ranges", "members")}
    paths = [*fields.get("equals", ()), *fields.get("ranges", ())]
    if paths:
        kept["ranges"] = paths
    if members := fields.get("members"):
        kept["members"] = [{"operation": member["operation"]} for member in members]
    return kept


def _essential(fields: Fields) -> Fields:
    return {name: fields[name] for name in _ESSENTIAL if name in fields}

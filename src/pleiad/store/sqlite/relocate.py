"""Splitting, fencing and copying the rows of a segment: what runs on its writer connection between two groups.

A call here is one transaction and runs in a disk thread while the segment keeps its writes waiting, so each is
short. Rows go from file to file inside SQLite: the source is attached to the connection of the target.

Invariants:
- a partition row never disappears and its epoch only grows, so a writer with an old epoch stays shut out;
- after `copy` over all numbers and `catch_up` over all changes since, the target holds the rows of the range as the
  source had them when the last `catch_up` began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import apsw

from pleiad.keys.range import EpkRange
from pleiad.store.moves import CaughtUp, Division, Totals
from pleiad.store.rows import PartitionState
from pleiad.store.sqlite import schema, statements
from pleiad.store.sqlite.mutate import Applier, Watch
from pleiad.store.sqlite.rows import checked_state, state_columns

_CHUNK_END = (
    "SELECT max(number) FROM (SELECT number FROM source.item WHERE number > ?1 ORDER BY number LIMIT ?2)"
)
_COPY_ITEMS = (
    "INSERT OR REPLACE INTO main.item SELECT * FROM source.item NOT INDEXED "
    "WHERE number > ?1 AND number <= ?2 AND epk >= ?3 AND epk < ?4"
)
_COPY_UNIQUE = (
    "INSERT OR REPLACE INTO main.unique_value SELECT * FROM source.unique_value "
    "WHERE number > ?1 AND number <= ?2 AND epk >= ?3 AND epk < ?4"
)
_COPY_VERSIONS = (
    "INSERT OR IGNORE INTO main.version SELECT * FROM source.version "
    "WHERE number > ?1 AND number <= ?2 AND epk >= ?3 AND epk < ?4"
)
_NUMBER_MAX = (1 << 63) - 1
_CHANGED = (
    "CREATE TEMP TABLE changed AS SELECT number FROM source.item INDEXED BY item_lsn "
    "WHERE lsn > ?1 AND epk >= ?2 AND epk < ?3"
)
# Tracked deletes are those of the whole source, which may hold other ranges too.
_DELETED = (
    "INSERT INTO temp.changed SELECT value FROM json_each(?1) "
    "WHERE value NOT IN (SELECT number FROM source.item WHERE number = value) "
    "AND value NOT IN (SELECT number FROM main.item WHERE number = value AND (epk < ?2 OR epk >= ?3))"
)
_FIRST_UNDELETED = (
    "SELECT min(key) FROM json_each(?1) WHERE value IN (SELECT number FROM source.item WHERE number = value)"
)
_OF_CHANGED = "WHERE number IN (SELECT number FROM temp.changed)"
_SIZE_OF_CHANGED = f"SELECT count(*), coalesce(sum(size_bytes), 0) FROM main.item {_OF_CHANGED}"
_FORGET_ITEMS = f"DELETE FROM main.item {_OF_CHANGED}"
_FORGET_UNIQUE = f"DELETE FROM main.unique_value {_OF_CHANGED}"
_REPEAT_ITEMS = f"INSERT INTO main.item SELECT * FROM source.item {_OF_CHANGED}"
_REPEAT_UNIQUE = f"INSERT INTO main.unique_value SELECT * FROM source.unique_value {_OF_CHANGED}"
_REPEAT_VERSIONS = (
    "INSERT OR IGNORE INTO main.version SELECT * FROM source.version "
    "WHERE lsn > ?1 AND epk >= ?2 AND epk < ?3"
)
_TOTALS = "SELECT count(*), coalesce(sum(size_bytes), 0) FROM item NOT INDEXED WHERE epk >= ?1 AND epk < ?2"
_KEYS = "SELECT count(DISTINCT epk) FROM item INDEXED BY item_key WHERE epk >= ?1 AND epk < ?2"
_KEY_AT = (
    "SELECT DISTINCT epk FROM item INDEXED BY item_key WHERE epk >= ?1 AND epk < ?2 "
    "ORDER BY epk LIMIT 1 OFFSET ?3"
)


class HalfCount:
    """A count of the rows of a range on a snapshot of its own, and a watch on what changes meanwhile."""

    def __init__(self, path: Path, applier: Applier, span: EpkRange) -> None:
        """Begins; to be called while no group of writes runs, so that snapshot and watch begin together."""
        self._reader = schema.connect_reader(path)
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT count(*) FROM partition").fetchall()
        self._span = span
        self._counted = Totals(0, 0)
        self.watch = applier.watch = Watch(span)

    def run(self) -> None:
        """Counts; takes a while."""
        try:
            self._counted = totals(self._reader, self._span)
        finally:
            self._reader.close()

    def now(self) -> Totals:
        """Items and bytes of the range at this moment, again while no group runs."""
        counted, watch = self._counted, self.watch
        return Totals(counted.items + watch.items, counted.size_bytes + watch.size_bytes)


def save(writer: apsw.Connection, state: PartitionState) -> None:
    """Writes the counters of a partition."""
    writer.execute(statements.SAVE_COUNTERS, state_columns(*astuple(state)))


def reopen(writer: apsw.Connection, partition: int, epoch: int) -> PartitionState:
    """Raises the epoch of a partition unless it has a later one; what it holds then."""
    with _transaction(writer):
        found: Any = writer.execute(statements.STATE, (partition,)).fetchone()
        state = PartitionState(partition, epoch, 0, 1, 0, 0) if found is None else checked_state(found)
        opened = replace(state, epoch=max(state.epoch, epoch))
        save(writer, opened)
    return opened


def fence(writer: apsw.Connection, partition: int, epoch: int) -> PartitionState | None:
    """Raises the epoch of a partition by one if it is the given one."""
    with _transaction(writer):
        return _fence(writer, partition, epoch)


def _fence(writer: apsw.Connection, partition: int, epoch: int) -> PartitionState | None:
    found: Any = writer.execute(statements.STATE, (partition,)).fetchone()
    state = PartitionState(partition, epoch, 0, 1, 0, 0) if found is None else checked_state(found)
    if state.epoch != epoch:
        return None
    fenced = PartitionState(
        partition, epoch + 1, state.lsn, state.next_sequence, state.items, state.size_bytes
    )
    save(writer, fenced)
    return fenced


def divide(
    writer: apsw.Connection, division: Division, lower: Totals
) -> tuple[PartitionState, PartitionState] | None:
    """Fences a partition and opens its halves, of which the lower one holds so much."""
    with _transaction(writer):
        whole = _fence(writer, division.partition, division.epoch)
        if whole is None:
            return None
        left = PartitionState(division.left, 1, whole.lsn, 1, lower.items, lower.size_bytes)
        right = PartitionState(
            division.right, 1, whole.lsn, 1, whole.items - lower.items, whole.size_bytes - lower.size_bytes
        )
        save(writer, left)
        save(writer, right)
    return left, right


def copy(target: apsw.Connection, source: Path, span: EpkRange, after: int, limit: int) -> int | None:
    """Copies the rows of a range with the next `limit` numbers; the last of these, or None at the end."""
    with _attached(target, source), _transaction(target):
        found: Any = target.execute(_CHUNK_END, (after, limit)).fetchone()
        if found[0] is None:
            # Rows that were deleted have left versions with numbers behind the last row.
            target.execute(_COPY_VERSIONS, (after, _NUMBER_MAX, span.min, span.max))
            return None
        bounds = (after, found[0], span.min, span.max)
        target.execute(_COPY_VERSIONS, bounds)
        target.execute(_COPY_ITEMS, bounds)
        target.execute(_COPY_UNIQUE, bounds)
    return int(found[0])


def catch_up(
    target: apsw.Connection,
    source: Path,
    span: EpkRange,
    after_lsn: int,
    after_delete: int,
    deleted: Sequence[int],
) -> CaughtUp:
    """Repeats changes, and the tracked deletes behind the last one seen.

    All rows concerned go before any comes: an id or a unique value may have passed from one to another. For the same
    reason changes and deletes are of one moment: the list, to which others append, is looked at when the snapshot of
    the source has begun, so what that has lost is in it. What it still has is not committed, and stays for next time.
    """
    with _attached(target, source), _transaction(target):
        target.execute(_CHANGED, (after_lsn, span.min, span.max))
        numbers = deleted[after_delete:]
        text = f"[{','.join(map(str, numbers))}]"
        target.execute(_DELETED, (text, span.min, span.max))
        pending: Any = target.execute(_FIRST_UNDELETED, (text,)).fetchone()
        before: Any = target.execute(_SIZE_OF_CHANGED).fetchone()
        for statement in (_FORGET_ITEMS, _FORGET_UNIQUE, _REPEAT_ITEMS, _REPEAT_UNIQUE):
            target.execute(statement)
        after: Any = target.execute(_SIZE_OF_CHANGED).fetchone()
        target.execute("DROP TABLE temp.changed")
        target.execute(_REPEAT_VERSIONS, (after_lsn, span.min, span.max))
    last_delete = after_delete + (len(numbers) if pending[0] is None else pending[0])
    return CaughtUp(after[0], last_delete, after[0] - before[0], after[1] - before[1])


def totals(reader: apsw.Connection, span: EpkRange) -> Totals:
    """Counts the rows of a range."""
    found: Any = reader.execute(_TOTALS, (span.min, span.max)).fetchone()
    return Totals(*found)


def middle(reader: apsw.Connection, span: EpkRange) -> bytes | None:
    """The first epk of the upper half of a range's logical partitions."""
    found: Any = reader.execute(_KEYS, (span.min, span.max)).fetchone()
    if found[0] < 2:
        return None
    key: Any = reader.execute(_KEY_AT, (span.min, span.max, found[0] // 2)).fetchone()
    return bytes(key[0])


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    with connection:
        yield


@contextmanager
def _attached(target: apsw.Connection, source: Path) -> Iterator[None]:
    target.execute("ATTACH DATABASE ?1 AS source", (str(source),))
    try:
        yield
    finally:
        target.execute("DETACH DATABASE source")

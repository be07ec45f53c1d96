"""Applying mutations to the tables of one segment, inside an open transaction.

Every check comes before the first change of a mutation, so a refused mutation leaves nothing behind and needs no
savepoint; an atomic write of several mutations has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from pleiad.item.ttl import is_expired
from pleiad.keys.range import EpkRange
from pleiad.store.refusal import refusal
from pleiad.store.rows import (
    APPLIED,
    Mutation,
    Outcome,
    PartitionState,
    PartitionWrite,
    Result,
    Row,
    Verb,
)
from pleiad.store.sqlite import statements
from pleiad.store.sqlite.changes import VersionLog
from pleiad.store.sqlite.kept_rows import KeptRows
from pleiad.store.sqlite.rows import ROW, checked_row, checksum_of, state_columns, stored_body

SEQUENCE_BITS = 36
"""A document number is partition << SEQUENCE_BITS | sequence, so it is unique in the container for ever."""

_FIND = f"SELECT {ROW} FROM item WHERE epk = ?1 AND id = ?2"
_FIND_WITHOUT_BODY = (
    "SELECT number, lsn, ts, ttl, size_bytes, terms, x'' FROM item WHERE epk = ?1 AND id = ?2"
)
_INSERT = "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
_INSERT_NEW = f"{_INSERT} ON CONFLICT(epk, id) DO NOTHING"
_UPDATE = (
    "UPDATE item SET lsn = ?2, ts = ?3, ttl = ?4, size_bytes = ?5, terms = ?6, body = ?7, checksum = ?8 "
    "WHERE number = ?1"
)
_RENAME = "UPDATE item SET id = ?2 WHERE number = ?1"
_DELETE = "DELETE FROM item WHERE number = ?1"
_UNIQUE_FIND = "SELECT number FROM unique_value WHERE epk = ?1 AND key = ?2 AND value = ?3"
_UNIQUE_INSERT = "INSERT INTO unique_value VALUES(?1, ?2, ?3, ?4)"
_UNIQUE_DELETE = "DELETE FROM unique_value WHERE number = ?1"
_TTL_OF = "SELECT number, epk, id, lsn, ts, ttl, size_bytes, terms FROM item WHERE number = ?1"
_LOGICAL_BYTES = "SELECT coalesce(sum(size_bytes), 0) FROM item WHERE epk = ?1"

Execute = Callable[..., apsw.Cursor]
_new = tuple.__new__
_CREATE = Verb.CREATE
_CREATED = Result.CREATED


@dataclass(slots=True)
class Counters:
    """The counters of one partition while a transaction runs; saved once per commit."""

    partition: int
    epoch: int
    lsn: int = 0
    next_sequence: int = 1
    items: int = 0
    size_bytes: int = 0

    @classmethod
    def of(cls, state: PartitionState) -> Counters:
        return cls(
            state.partition, state.epoch, state.lsn, state.next_sequence, state.items, state.size_bytes
        )

    def state(self) -> PartitionState:
        return PartitionState(
            self.partition, self.epoch, self.lsn, self.next_sequence, self.items, self.size_bytes
        )

    def columns(self) -> tuple[int, ...]:
        """What is saved of them."""
        return state_columns(
            self.partition, self.epoch, self.lsn, self.next_sequence, self.items, self.size_bytes
        )


@dataclass(slots=True)
class Watch:
    """How the rows of a range changed since a count of them began; void when something was rolled back."""

    span: EpkRange
    items: int = 0
    size_bytes: int = 0
    is_void: bool = False

    def note(self, epk: bytes, items: int, size_bytes: int) -> None:
        if self.span.contains(epk):
            self.items += items
            self.size_bytes += size_bytes


class Applier:
    """Applies writes through one connection; the caller ends the transaction."""

    def __init__(self, connection: apsw.Connection, kept: KeptRows) -> None:
        self._execute: Execute = connection.cursor().execute
        self._kept = kept
        self._changes = connection.changes
        self._versions = VersionLog(self._execute)
        self.watch: Watch | None = None
        self.deleted: list[int] | None = None
        """The numbers of rows deleted while a copy of the segment is made, a few of them perhaps rolled back."""

    def rolled_back(self) -> None:
        """Tells that the last changes did not happen."""
        if self.watch is not None:
            self.watch.is_void = True

    def begin(
        self, counters_of: dict[int, Counters], writes: Iterable[PartitionWrite]
    ) -> list[Sequence[Outcome]]:
        """Begins a transaction and runs the statements of a group in it; on any surprise the caller rolls it back."""
        self._execute("BEGIN IMMEDIATE")
        answers: list[Sequence[Outcome]] = []
        touched: dict[int, Counters] = {}
        for write in writes:
            counters = counters_of.get(write.partition)
            if counters is None:
                counters = counters_of[write.partition] = Counters(write.partition, write.epoch)
            touched[write.partition] = counters
            answers.append(self.apply(counters, write))
        for counters in touched.values():
            self._execute(statements.SAVE_COUNTERS, counters.columns())
        return answers

    def commit(self) -> None:
        """Ends the transaction."""
        self._execute("COMMIT")

    def apply(self, counters: Counters, write: PartitionWrite) -> Sequence[Outcome]:
        """Applies the mutations of a write in order and tells how each ended."""
        if counters.epoch != write.epoch:
            return [Outcome(Result.GONE)] * len(write.mutations)
        if write.keep_versions:
            self._versions.begin()
        if not write.atomic:
            return [self._apply_alone(counters, write, mutation) for mutation in write.mutations]
        return self._apply_atomically(counters, write)

    def _apply_alone(self, counters: Counters, write: PartitionWrite, mutation: Mutation) -> Outcome:
        before = counters.lsn
        outcome = self._mutate(counters, write, mutation)
        if outcome.result in APPLIED:
            counters.lsn += 1
        elif counters.lsn > before:
            outcome = outcome._replace(lsn=counters.lsn)
        return outcome

    def _apply_atomically(self, counters: Counters, write: PartitionWrite) -> list[Outcome]:
        before = (counters.lsn, counters.next_sequence, counters.items, counters.size_bytes)
        self._execute("SAVEPOINT whole")
        outcomes: list[Outcome] = []
        for index, mutation in enumerate(write.mutations):
            outcome = self._mutate(counters, write, mutation)
            if outcome.result not in APPLIED:
                self._execute("ROLLBACK TO whole")
                self._execute("RELEASE whole")
                self.rolled_back()
                counters.lsn, counters.next_sequence, counters.items, counters.size_bytes = before
                outcomes = [Outcome(Result.ABANDONED)] * len(write.mutations)
                outcomes[index] = outcome
                return outcomes
            outcomes.append(outcome)
        self._execute("RELEASE whole")
        counters.lsn = before[0] + 1
        return outcomes

    def _mutate(self, counters: Counters, write: PartitionWrite, mutation: Mutation) -> Outcome:
        """Applies one mutation under the LSN after the counters', which its caller then raises."""
        if mutation.verb is _CREATE:
            created = self._create(counters, write, mutation)
            if created is not None:
                return created
        old = self._kept.forget(mutation) or self._find(mutation)
        if old is not None and is_expired(old.ts, old.ttl, write.default_ttl, write.now):
            self._expire(counters, write, old)
            old = None
        # What every create comes to is known without asking.
        refused = None if old is None and mutation.verb is Verb.CREATE else refusal(mutation, old)
        if refused is not None:
            return Outcome(refused, old=old)
        if mutation.verb is Verb.DELETE:
            assert old is not None
            if write.keep_versions:
                self._versions.note_removal(write, old.number, counters.lsn + 1, is_expiry=False)
            self._remove(counters, old)
            return Outcome(Result.DELETED, counters.lsn + 1, old=old)
        if mutation.new_id is not None and self._is_taken(counters, write, mutation.epk, mutation.new_id):
            return Outcome(Result.EXISTS, old=old)
        for key, value in enumerate(mutation.unique_values):
            if self._unique_value_taken(counters, write, mutation.epk, key, value, old):
                return Outcome(Result.UNIQUE_CONFLICT, old=old, unique_key=key)
        if write.logical_partition_bytes and self._is_full(counters, write, mutation, old):
            return Outcome(Result.LOGICAL_PARTITION_FULL, old=old)
        growth = _growth(mutation, old)
        if write.partition_bytes and growth > 0 and counters.size_bytes + growth > write.partition_bytes:
            return Outcome(Result.PARTITION_FULL, old=old)
        return self._put(counters, write, mutation, old)

    def _create(self, counters: Counters, write: PartitionWrite, mutation: Mutation) -> Outcome | None:
        """A create as nearly all are: of an id that is new, which the index tells while the row is inserted.

        None, and nothing has changed, where an item has the id, expired or not, or where there is more to look at.
        """
        size_bytes = counters.size_bytes + mutation.size_bytes
        if (
            mutation.unique_values
            or 0 < write.logical_partition_bytes < size_bytes
            or 0 < write.partition_bytes < size_bytes
        ):
            return None
        lsn = counters.lsn + 1
        number = counters.partition << SEQUENCE_BITS | counters.next_sequence
        _, epk, id, text, own_bytes, terms, ttl, _, _, _ = mutation
        row = _new(Row, (number, epk, id, lsn, write.now, ttl, own_bytes, terms, text))
        body = stored_body(self._execute, text)
        self._execute(_INSERT_NEW, (*row[:8], body, checksum_of(row, body)))
        if not self._changes():
            return None
        if write.keep_versions:
            self._versions.note_put(write, mutation, body, lsn, number, is_new=True)
        counters.next_sequence += 1
        counters.items += 1
        counters.size_bytes = size_bytes
        if self.watch is not None:
            self.watch.note(mutation.epk, 1, mutation.size_bytes)
        return _new(Outcome, (_CREATED, lsn, row, None, 0))

    def _is_taken(self, counters: Counters, write: PartitionWrite, epk: bytes, id: str) -> bool:
        """Whether a live row has the id an item is to be renamed to."""
        holder = self._find(Mutation(Verb.DELETE, epk, id))
        if holder is None:
            return False
        if is_expired(holder.ts, holder.ttl, write.default_ttl, write.now):
            self._expire(counters, write, holder)
            return False
        return True

    def _find(self, mutation: Mutation) -> Row | None:
        wants_body = mutation.verb is Verb.UPSERT or mutation.verb is Verb.REPLACE
        statement = _FIND if wants_body else _FIND_WITHOUT_BODY
        found: tuple[Any, ...] | None = self._execute(statement, (mutation.epk, mutation.id)).fetchone()
        if found is None:
            return None
        if wants_body:
            return checked_row(found)
        number, lsn, ts, ttl, size_bytes, terms, body = found
        return Row(number, mutation.epk, mutation.id, lsn, ts, ttl, size_bytes, terms, body)

    def _put(self, counters: Counters, write: PartitionWrite, mutation: Mutation, old: Row | None) -> Outcome:
        lsn = counters.lsn + 1
        new_number = counters.partition << SEQUENCE_BITS | counters.next_sequence
        row = mutation.row_after(new_number if old is None else old.number, lsn, write.now)
        body = stored_body(self._execute, mutation.body)
        checksum = checksum_of(row, body)
        if write.keep_versions:
            self._versions.note_put(write, mutation, body, lsn, row.number, is_new=old is None)
        if old is None:
            counters.next_sequence += 1
            counters.items += 1
            counters.size_bytes += mutation.size_bytes
            if self.watch is not None:
                self.watch.note(mutation.epk, 1, mutation.size_bytes)
            self._execute(_INSERT, (*row[:8], body, checksum))
        else:
            counters.size_bytes += mutation.size_bytes - old.size_bytes
            if self.watch is not None:
                self.watch.note(mutation.epk, 0, mutation.size_bytes - old.size_bytes)
            self._execute(_UPDATE, (row.number, *row[3:8], body, checksum))
            if mutation.new_id is not None:
                self._execute(_RENAME, (row.number, mutation.new_id))
            if mutation.unique_values:
                self._execute(_UNIQUE_DELETE, (row.number,))
        for key, value in enumerate(mutation.unique_values):
            self._execute(_UNIQUE_INSERT, (mutation.epk, key, value, row.number))
        return Outcome(Result.CREATED if old is None else Result.REPLACED, lsn, row, old)

    def _expire(self, counters: Counters, write: PartitionWrite, row: Row) -> None:
        """Removes a row whose time is over: a change of its own where changes are remembered."""
        if write.keep_versions:
            self._versions.note_removal(write, row.number, counters.lsn + 1, is_expiry=True)
            if not write.atomic:
                counters.lsn += 1
        self._remove(counters, row)

    def _remove(self, counters: Counters, row: Row) -> None:
        self._execute(_DELETE, (row.number,))
        self._execute(_UNIQUE_DELETE, (row.number,))
        self._kept.note_removed(row.number)
        counters.items -= 1
        counters.size_bytes -= row.size_bytes
        if self.watch is not None:
            self.watch.note(row.epk, -1, -row.size_bytes)
        if self.deleted is not None:
            self.deleted.append(row.number)

    def _unique_value_taken(
        self, counters: Counters, write: PartitionWrite, epk: bytes, key: int, value: bytes, old: Row | None
    ) -> bool:
        found = self._execute(_UNIQUE_FIND, (epk, key, value)).fetchone()
        if found is None or (old is not None and found[0] == old.number):
            return False
        holder: Any = self._execute(_TTL_OF, (found[0],)).fetchone()
        row = Row._make((*holder, b""))
        if is_expired(row.ts, row.ttl, write.default_ttl, write.now):
            self._expire(counters, write, row)
            return False
        return True

    def _is_full(
        self, counters: Counters, write: PartitionWrite, mutation: Mutation, old: Row | None
    ) -> bool:
        """Whether the logical partition would pass its limit; shrinking is always allowed.

        A logical partition is never larger than its physical partition, so below the limit nothing is summed.
        """
        growth = _growth(mutation, old)
        if growth <= 0 or counters.size_bytes + growth <= write.logical_partition_bytes:
            return False
        found: Any = self._execute(_LOGICAL_BYTES, (mutation.epk,)).fetchone()
        return bool(found[0] + growth > write.logical_partition_bytes)


def _growth(mutation: Mutation, old: Row | None) -> int:
    return mutation.size_bytes - (old.size_bytes if old is not None else 0)

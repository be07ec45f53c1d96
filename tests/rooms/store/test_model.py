"""Random writes against a store and against a model that is only dictionaries: both must tell the same."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.keys.range import WHOLE
from pleiad.store.rows import (
    APPLIED,
    NEVER,
    NO_PRECONDITION,
    Mutation,
    PartitionWrite,
    Precondition,
    Result,
    Row,
    Verb,
)
from tests.stores import OpenStore

pytestmark = pytest.mark.every_store

Rows = dict[tuple[bytes, str], tuple[Row, tuple[bytes, ...]]]

LIMIT_BYTES = 60
PARTITION_LIMIT_BYTES = 100
DEFAULT_TTL = 40


@dataclass
class Model:
    """One partition as dictionaries, one mutation at a time."""

    rows: Rows = field(default_factory=dict)
    lsn: int = 0
    created: int = 0

    def apply(self, write: PartitionWrite) -> list[Result]:
        if not write.atomic:
            results = []
            for mutation in write.mutations:
                result = self._mutate(write, mutation, self.lsn + 1)
                self.lsn += result in APPLIED
                results.append(result)
            return results
        before = (dict(self.rows), self.created)
        results = []
        for mutation in write.mutations:
            results.append(self._mutate(write, mutation, self.lsn + 1))
            if results[-1] not in APPLIED:
                self.rows, self.created = before
                failed_at = len(results) - 1
                failure = results[-1]
                results = [Result.ABANDONED] * len(write.mutations)
                results[failed_at] = failure
                return results
        self.lsn += 1
        return results

    def is_expired(self, row: Row, now: int) -> bool:
        seconds = DEFAULT_TTL if row.ttl is None else row.ttl
        return seconds != -1 and row.ts + seconds <= now

    def _mutate(self, write: PartitionWrite, mutation: Mutation, lsn: int) -> Result:
        key = (mutation.epk, mutation.id)
        found = self.rows.get(key)
        if found is not None and self.is_expired(found[0], write.now):
            found = None
            del self.rows[key]
        old = found[0] if found is not None else None
        if mutation.verb is Verb.CREATE and old is not None:
            return Result.EXISTS
        if mutation.verb in (Verb.REPLACE, Verb.DELETE) and old is None:
            return Result.MISSING
        if mutation.verb is not Verb.CREATE and not self._holds(mutation.precondition, old):
            return Result.PRECONDITION_FAILED
        if mutation.verb is Verb.DELETE:
            del self.rows[key]
            return Result.DELETED
        return self._put(write, mutation, lsn, key, old)

    def _holds(self, wanted: Precondition, old: Row | None) -> bool:
        if old is None:
            return not wanted.must_exist
        return (
            not wanted.must_be_absent
            and wanted.lsn in (None, old.lsn)
            and (wanted.not_lsn is None or wanted.not_lsn != old.lsn)
        )

    def _put(
        self, write: PartitionWrite, mutation: Mutation, lsn: int, key: tuple[bytes, str], old: Row | None
    ) -> Result:
        if mutation.new_id is not None:
            taken = self.rows.get((mutation.epk, mutation.new_id))
            if taken is not None and not self.is_expired(taken[0], write.now):
                return Result.EXISTS
            self.rows.pop((mutation.epk, mutation.new_id), None)
        for index, value in enumerate(mutation.unique_values):
            for other, (row, unique) in list(self.rows.items()):
                if other != key and row.epk == mutation.epk and unique[index] == value:
                    if not self.is_expired(row, write.now):
                        return Result.UNIQUE_CONFLICT
                    del self.rows[other]
        growth = mutation.size_bytes - (old.size_bytes if old is not None else 0)
        logical = sum(row.size_bytes for row, _ in self.rows.values() if row.epk == mutation.epk)
        if growth > 0 and logical + growth > LIMIT_BYTES:
            return Result.LOGICAL_PARTITION_FULL
        stored = sum(row.size_bytes for row, _ in self.rows.values())
        if growth > 0 and stored + growth > PARTITION_LIMIT_BYTES:
            return Result.PARTITION_FULL
        if old is None:
            self.created += 1
        number = self.created if old is None else old.number
        if mutation.new_id is not None:
            del self.rows[key]
            key = (mutation.epk, mutation.new_id)
        row = Row(number, *key, lsn, write.now, mutation.ttl, mutation.size_bytes, 1, mutation.body)
        self.rows[key] = (row, mutation.unique_values)
        return Result.CREATED if old is None else Result.REPLACED


PRECONDITIONS = st.one_of(
    st.just(NO_PRECONDITION),
    st.builds(Precondition, lsn=st.integers(1, 20) | st.just(NEVER)),
    st.builds(Precondition, not_lsn=st.integers(1, 20)),
    st.sampled_from([Precondition(must_exist=True), Precondition(must_be_absent=True)]),
)
MUTATIONS = st.builds(
    Mutation,
    verb=st.sampled_from(Verb),
    epk=st.sampled_from([bytes(16), b"\x20" * 16]),
    id=st.sampled_from(["a", "b", "ç"]),
    body=st.integers(0, 99).map(lambda number: b'{"n":%d}' % number),
    size_bytes=st.integers(5, 45),
    terms=st.just(1),
    ttl=st.sampled_from([None, None, -1, 5]),
    unique_values=st.tuples(st.sampled_from([b"x", b"y", b"z"]), st.sampled_from([b"p", b"q", b"r", b"s"])),
    precondition=PRECONDITIONS,
    new_id=st.sampled_from([None, None, "a", "b", "ç"]),
).map(
    lambda drawn: (
        drawn if drawn.verb is Verb.REPLACE and drawn.new_id != drawn.id else drawn._replace(new_id=None)
    )
)
GROUP = st.lists(
    st.tuples(st.lists(MUTATIONS, min_size=1, max_size=4), st.booleans(), st.integers(0, 10)),
    min_size=1,
    max_size=3,
)
NUMBERS = itertools.count()
REOPEN = st.just("reopen")


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(GROUP | REOPEN, min_size=1, max_size=10))
async def test_a_store_does_what_the_model_does(
    open_store: OpenStore, tmp_path: Path, steps: list[object]
) -> None:
    await _compare(open_store, tmp_path, f"s{next(NUMBERS)}", steps)


async def _compare(open_store: OpenStore, directory: Path, name: str, steps: list[object]) -> None:
    model = Model()
    now = 1_000
    store = await open_store(directory)
    try:
        for step in steps:
            if not isinstance(step, list):
                await store.close()
                store = await open_store(directory)
                continue
            writes = []
            for mutations, atomic, seconds in step:
                now += seconds
                terms = (DEFAULT_TTL, LIMIT_BYTES, atomic, False, PARTITION_LIMIT_BYTES)
                writes.append(PartitionWrite(0, 1, now, tuple(mutations), *terms))
            segment = store.segment(name)
            answers = await asyncio.gather(*(segment.commit(write) for write in writes))
            for write, outcomes in zip(writes, answers, strict=True):
                assert [outcome.result for outcome in outcomes] == model.apply(write)
            state = await segment.state(0)
            rows = list(await segment.scan(WHOLE, 0, 1_000))
            assert rows == sorted(row for row, _ in model.rows.values())
            assert state.lsn == model.lsn
            assert (state.items, state.size_bytes) == (len(rows), sum(row.size_bytes for row in rows))
    finally:
        await store.close()

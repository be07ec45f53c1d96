"""What a store promises of mutations: each verb against an absent, a present and an expired row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pleiad.keys.range import WHOLE
from pleiad.store.rows import (
    APPLIED,
    NEVER,
    NO_PRECONDITION,
    Mutation,
    Outcome,
    PartitionWrite,
    Precondition,
    Result,
    Verb,
)
from pleiad.store.segments import Segment
from pleiad.store.store import Store

pytestmark = pytest.mark.every_store

Opened = Callable[[], AbstractAsyncContextManager[Store]]

EPK = bytes(16)
OTHER_EPK = b"\x01" * 16
NOW = 1_000


def put(
    id: str = "a",
    verb: Verb = Verb.UPSERT,
    size_bytes: int = 10,
    epk: bytes = EPK,
    ttl: int | None = None,
    unique: tuple[bytes, ...] = (),
    precondition: Precondition = NO_PRECONDITION,
    body: bytes = b'{"v":1}',
) -> Mutation:
    return Mutation(verb, epk, id, body, size_bytes, 3, ttl, unique, precondition)


async def commit(
    segment: Segment,
    *mutations: Mutation,
    now: int = NOW,
    default_ttl: int | None = None,
    limit_bytes: int = 0,
    atomic: bool = False,
    epoch: int = 1,
    partition: int = 0,
    partition_bytes: int = 0,
) -> list[Outcome]:
    write = PartitionWrite(
        partition, epoch, now, mutations, default_ttl, limit_bytes, atomic, partition_bytes=partition_bytes
    )
    return list(await segment.commit(write))


async def commit_one(
    segment: Segment, mutation: Mutation, now: int = NOW, default_ttl: int | None = None
) -> Outcome:
    (outcome,) = await commit(segment, mutation, now=now, default_ttl=default_ttl)
    return outcome


ABSENT, PRESENT, EXPIRED = "absent", "present", "expired"


@pytest.mark.parametrize(
    ("verb", "state", "expected"),
    [
        (Verb.CREATE, ABSENT, Result.CREATED),
        (Verb.CREATE, PRESENT, Result.EXISTS),
        (Verb.CREATE, EXPIRED, Result.CREATED),
        (Verb.UPSERT, ABSENT, Result.CREATED),
        (Verb.UPSERT, PRESENT, Result.REPLACED),
        (Verb.UPSERT, EXPIRED, Result.CREATED),
        (Verb.REPLACE, ABSENT, Result.MISSING),
        (Verb.REPLACE, PRESENT, Result.REPLACED),
        (Verb.REPLACE, EXPIRED, Result.MISSING),
        (Verb.DELETE, ABSENT, Result.MISSING),
        (Verb.DELETE, PRESENT, Result.DELETED),
        (Verb.DELETE, EXPIRED, Result.MISSING),
    ],
)
async def test_each_verb_ends_as_the_row_it_finds_demands(
    opened: Opened, verb: Verb, state: str, expected: Result
) -> None:
    async with opened() as store:
        segment = store.segment("s")
        first = None
        if state != ABSENT:
            first = await commit_one(segment, put(ttl=5 if state == EXPIRED else None), default_ttl=-1)
        outcome = await commit_one(segment, put(verb=verb, body=b'{"v":2}'), now=NOW + 5, default_ttl=-1)
        assert outcome.result is expected
        row = await segment.read(EPK, "a")
        if expected in (Result.CREATED, Result.REPLACED):
            assert row is not None
            assert row.body == b'{"v":2}'
            assert (row.lsn, row.ts) == (outcome.lsn, NOW + 5)
            assert outcome.row is not None
            assert outcome.row._replace(body=b"") == row._replace(body=b"")
        if expected is Result.REPLACED:
            assert row is not None
            assert first is not None
            assert first.row is not None
            assert row.number == first.row.number, "a replaced item keeps its document number"
            assert outcome.old == first.row
        if expected is Result.EXISTS:
            assert row is not None
            assert row.body == b'{"v":1}'
        if expected in (Result.DELETED, Result.MISSING):
            assert row is None


HOLDS, FAILS = True, False


@pytest.mark.parametrize("verb", [Verb.UPSERT, Verb.REPLACE, Verb.DELETE])
@pytest.mark.parametrize(
    ("precondition", "holds"),
    [
        (Precondition(lsn=1), HOLDS),
        (Precondition(lsn=2), FAILS),
        (Precondition(lsn=NEVER), FAILS),
        (Precondition(not_lsn=2), HOLDS),
        (Precondition(not_lsn=1), FAILS),
        (Precondition(must_exist=True), HOLDS),
        (Precondition(must_be_absent=True), FAILS),
    ],
)
async def test_a_precondition_is_checked_against_the_row_of_that_moment(
    opened: Opened, verb: Verb, precondition: Precondition, holds: bool
) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit_one(segment, put())
        outcome = await commit_one(segment, put(verb=verb, precondition=precondition, body=b'{"v":2}'))
        assert (outcome.result in APPLIED) is holds
        if not holds:
            assert outcome.result is Result.PRECONDITION_FAILED
            row = await segment.read(EPK, "a")
            assert row is not None
            assert (row.lsn, row.body) == (1, b'{"v":1}')
            assert (await segment.state(0)).lsn == 1


@pytest.mark.parametrize(
    ("precondition", "expected"),
    [
        (Precondition(lsn=1), Result.CREATED),
        (Precondition(lsn=NEVER), Result.CREATED),
        (Precondition(must_exist=True), Result.PRECONDITION_FAILED),
        (Precondition(not_lsn=1), Result.CREATED),
        (Precondition(must_be_absent=True), Result.CREATED),
    ],
)
@pytest.mark.parametrize("state", [ABSENT, EXPIRED])
async def test_an_upsert_of_nothing_looks_at_its_precondition_too(
    opened: Opened, precondition: Precondition, expected: Result, state: str
) -> None:
    async with opened() as store:
        segment = store.segment("s")
        if state == EXPIRED:
            await commit_one(segment, put(ttl=5), default_ttl=-1)
        outcome = await commit_one(segment, put(precondition=precondition), now=NOW + 5, default_ttl=-1)
        assert outcome.result is expected


async def test_a_time_to_live_counts_from_the_last_write_and_only_where_the_container_allows_it(
    opened: Opened,
) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("own", ttl=10), put("never", ttl=-1), put("default"))
        cases = [
            ("own", NOW + 10, None, Result.EXISTS),
            ("own", NOW + 9, 100, Result.EXISTS),
            ("default", NOW + 99, 100, Result.EXISTS),
            ("default", NOW + 1000, -1, Result.EXISTS),
            ("never", NOW + 10_000, 100, Result.EXISTS),
            ("own", NOW + 10, 100, Result.CREATED),
            ("default", NOW + 100, 100, Result.CREATED),
        ]
        for id, now, default_ttl, expected in cases:
            outcome = await commit_one(segment, put(id, Verb.CREATE), now=now, default_ttl=default_ttl)
            assert outcome.result is expected, (id, now, default_ttl)
        # Created anew at NOW + 10 without a time to live of its own, so it lives on.
        assert (await segment.state(0)).items == 3


async def test_a_unique_value_occurs_once_in_its_logical_partition(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        assert (await commit_one(segment, put("a", unique=(b"x", b"p")))).result is Result.CREATED
        clash = await commit_one(segment, put("b", unique=(b"y", b"p")))
        assert (clash.result, clash.unique_key) == (Result.UNIQUE_CONFLICT, 1)
        assert await segment.read(EPK, "b") is None
        same_value_of_another_key = await commit_one(segment, put("b", unique=(b"p", b"x")))
        assert same_value_of_another_key.result is Result.CREATED
        another_partition = await commit_one(segment, put("a", epk=OTHER_EPK, unique=(b"x", b"p")))
        assert another_partition.result is Result.CREATED


async def test_a_unique_value_is_free_again_when_its_holder_lets_go(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("a", unique=(b"x",)))
        assert (await commit_one(segment, put("a", unique=(b"x",)))).result is Result.REPLACED
        assert (await commit_one(segment, put("a", unique=(b"y",)))).result is Result.REPLACED
        assert (await commit_one(segment, put("b", unique=(b"x",)))).result is Result.CREATED
        assert (await commit_one(segment, put("a", unique=(b"x",)))).result is Result.UNIQUE_CONFLICT
        await commit(segment, Mutation(Verb.DELETE, EPK, "b"))
        assert (await commit_one(segment, put("a", unique=(b"x",)))).result is Result.REPLACED


async def test_an_expired_holder_of_a_unique_value_counts_as_absent(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit_one(segment, put("a", ttl=5, unique=(b"x",)), default_ttl=-1)
        early = await commit_one(segment, put("b", unique=(b"x",)), now=NOW + 4, default_ttl=-1)
        late = await commit_one(segment, put("b", unique=(b"x",)), now=NOW + 5, default_ttl=-1)
        assert (early.result, late.result) == (Result.UNIQUE_CONFLICT, Result.CREATED)
        state = await segment.state(0)
        assert (state.items, state.size_bytes) == (1, 10)


async def test_mutations_of_one_write_are_applied_in_order_and_each_for_itself(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        outcomes = await commit(
            segment,
            put("a", Verb.CREATE),
            put("a", Verb.CREATE),
            put("a", Verb.REPLACE, body=b'{"v":2}'),
            put("b", Verb.REPLACE),
            Mutation(Verb.DELETE, EPK, "a"),
            put("c", Verb.CREATE),
        )
        results = [outcome.result for outcome in outcomes]
        assert results == [
            Result.CREATED,
            Result.EXISTS,
            Result.REPLACED,
            Result.MISSING,
            Result.DELETED,
            Result.CREATED,
        ]
        assert [outcome.lsn for outcome in outcomes if outcome.result in APPLIED] == [1, 2, 3, 4]
        assert [row.id for row in await segment.scan(WHOLE, 0, 10)] == ["c"]


async def test_an_atomic_write_is_applied_whole_with_one_lsn(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("old"))
        outcomes = await commit(
            segment,
            put("a"),
            put("b"),
            Mutation(Verb.DELETE, EPK, "old"),
            put("a", Verb.REPLACE),
            atomic=True,
        )
        assert [outcome.lsn for outcome in outcomes] == [2, 2, 2, 2]
        assert [row.id for row in await segment.scan(WHOLE, 0, 10)] == ["a", "b"]
        assert (await segment.state(0)).lsn == 2


async def test_an_atomic_write_with_one_failure_leaves_nothing_behind(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("old", unique=(b"u",)), put("short", ttl=1))
        before = (await segment.scan(WHOLE, 0, 10), await segment.state(0))
        outcomes = await commit(
            segment,
            put("a", unique=(b"x",)),
            put("short", unique=(b"z",)),
            Mutation(Verb.DELETE, EPK, "old"),
            put("a", Verb.CREATE),
            put("b"),
            now=NOW + 60,
            default_ttl=-1,
            atomic=True,
        )
        results = [outcome.result for outcome in outcomes]
        abandoned = Result.ABANDONED
        assert results == [abandoned, abandoned, abandoned, Result.EXISTS, abandoned]
        assert (await segment.scan(WHOLE, 0, 10), await segment.state(0)) == before
        assert (await commit_one(segment, put("c", unique=(b"x",)))).result is Result.CREATED
        assert (await commit_one(segment, put("d", unique=(b"u",)))).result is Result.UNIQUE_CONFLICT
        applied = await commit_one(segment, put("e"))
        assert applied.lsn == before[1].lsn + 2, "a refused write uses no LSN"


async def test_a_write_of_another_epoch_is_refused_whole(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("a"), epoch=2)
        outcomes = await commit(segment, put("a"), put("b"), epoch=1)
        assert [outcome.result for outcome in outcomes] == [Result.GONE, Result.GONE]
        assert (await segment.state(0)).lsn == 1


async def test_a_logical_partition_takes_its_limit_exactly_and_not_a_byte_more(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")

        async def put_sized(id: str, size_bytes: int, epk: bytes = EPK) -> Result:
            (outcome,) = await commit(segment, put(id, size_bytes=size_bytes, epk=epk), limit_bytes=100)
            return outcome.result

        assert await put_sized("far", 90, OTHER_EPK) is Result.CREATED
        assert await put_sized("a", 60) is Result.CREATED
        assert await put_sized("b", 41) is Result.LOGICAL_PARTITION_FULL
        assert await put_sized("b", 40) is Result.CREATED
        assert await put_sized("c", 1) is Result.LOGICAL_PARTITION_FULL
        assert await put_sized("b", 41) is Result.LOGICAL_PARTITION_FULL
        assert await put_sized("b", 40) is Result.REPLACED, "the same size is no growth"
        assert await put_sized("b", 30) is Result.REPLACED
        assert await put_sized("c", 10) is Result.CREATED
        await commit(segment, Mutation(Verb.DELETE, EPK, "a"))
        assert await put_sized("d", 60) is Result.CREATED
        assert await put_sized("far2", 10, OTHER_EPK) is Result.CREATED


async def test_a_full_logical_partition_may_still_shrink(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("a", size_bytes=500))
        (shrunk,) = await commit(segment, put("a", size_bytes=400), limit_bytes=100)
        (grown,) = await commit(segment, put("a", size_bytes=401), limit_bytes=100)
        assert (shrunk.result, grown.result) == (Result.REPLACED, Result.LOGICAL_PARTITION_FULL)


@pytest.mark.parametrize("atomic", [False, True])
async def test_a_physical_partition_with_a_limit_takes_it_exactly_and_may_shrink(
    opened: Opened, atomic: bool
) -> None:
    async with opened() as store:
        segment = store.segment("s")

        async def put_sized(id: str, size_bytes: int, epk: bytes = EPK) -> Result:
            mutation = put(id, size_bytes=size_bytes, epk=epk)
            (outcome,) = await commit(segment, mutation, limit_bytes=80, partition_bytes=100, atomic=atomic)
            return outcome.result

        assert await put_sized("a", 81) is Result.LOGICAL_PARTITION_FULL
        assert await put_sized("a", 60) is Result.CREATED
        assert await put_sized("b", 41, OTHER_EPK) is Result.PARTITION_FULL
        assert await put_sized("b", 40, OTHER_EPK) is Result.CREATED
        assert await put_sized("c", 1, b"\x02" * 16) is Result.PARTITION_FULL
        assert await put_sized("a", 61) is Result.PARTITION_FULL
        assert (await segment.state(0)).size_bytes == 100
        assert await put_sized("a", 59) is Result.REPLACED
        assert await put_sized("c", 1, b"\x02" * 16) is Result.CREATED


async def test_lsns_and_numbers_are_never_used_twice_over_deletes_and_a_restart(opened: Opened) -> None:
    seen_lsns: list[int] = []
    seen_numbers: list[int] = []
    for _ in range(3):
        async with opened() as store:
            segment = store.segment("s")
            created = await commit(segment, *(put(f"i{n}", Verb.CREATE) for n in range(5)))
            deleted = await commit(segment, *(Mutation(Verb.DELETE, EPK, f"i{n}") for n in range(5)))
            seen_lsns += [outcome.lsn for outcome in created + deleted]
            seen_numbers += [outcome.row.number for outcome in created if outcome.row is not None]
    assert seen_lsns == list(range(1, 31)), "LSNs grow by one with every applied write"
    assert seen_numbers == sorted(set(seen_numbers))
    assert len(seen_numbers) == 15


async def test_partitions_of_one_segment_count_apart(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("a", epk=EPK), partition=1)
        await commit(segment, put("b", epk=OTHER_EPK), put("c", epk=OTHER_EPK), partition=2)
        one, two = await segment.state(1), await segment.state(2)
        assert (one.lsn, one.items, two.lsn, two.items) == (1, 1, 2, 2)
        numbers = [row.number for row in await segment.scan(WHOLE, 0, 10)]
        assert len(set(numbers)) == 3


async def test_writes_at_the_same_moment_have_the_end_some_order_of_them_has(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        outcomes = await asyncio.gather(*(commit_one(segment, put("a", Verb.CREATE)) for _ in range(20)))
        assert sorted(outcome.result.value for outcome in outcomes) == ["created"] + ["exists"] * 19
        at_lsn_1 = Precondition(lsn=1)
        swaps = await asyncio.gather(
            *(commit_one(segment, put("a", Verb.REPLACE, precondition=at_lsn_1)) for _ in range(20))
        )
        assert sum(outcome.result is Result.REPLACED for outcome in swaps) == 1


async def test_a_replace_may_give_an_item_another_id_that_nobody_living_has(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("a", unique=(b"u",)), put("taken"), put("short", ttl=5))
        rename = put("a", Verb.REPLACE, unique=(b"u",), body=b'{"v":2}')
        refused = await commit_one(segment, rename._replace(new_id="taken"))
        assert refused.result is Result.EXISTS
        renamed = await commit_one(segment, rename._replace(new_id="short"), now=NOW + 5, default_ttl=-1)
        assert renamed.result is Result.REPLACED
        assert await segment.read(EPK, "a") is None
        row = await segment.read(EPK, "short")
        assert row == renamed.row
        assert row is not None
        assert (row.number, row.body) == (1, b'{"v":2}')
        state = await segment.state(0)
        assert (state.items, state.size_bytes) == (2, 20)
        assert (await commit_one(segment, put("b", unique=(b"u",)))).result is Result.UNIQUE_CONFLICT

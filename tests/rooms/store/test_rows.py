"""What a store promises of reads: exact bodies, odd ids, scans in pages, counters, catalog records."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.catalog import Record
from pleiad.store.rows import Mutation, PartitionWrite, Row, Verb
from pleiad.store.segments import Segment
from pleiad.store.store import Store

pytestmark = pytest.mark.every_store

Opened = Callable[[], AbstractAsyncContextManager[Store]]

EPK = bytes(16)


def epk_of(number: int) -> bytes:
    return number.to_bytes(2, "big") + bytes(14)


async def upsert(
    segment: Segment,
    *rows: tuple[bytes, str],
    body: bytes = b"{}",
    size_bytes: int = 10,
    ttl: int | None = None,
    now: int = 1_000,
    partition: int = 0,
) -> None:
    mutations = tuple(Mutation(Verb.UPSERT, epk, id, body, size_bytes, 1, ttl) for epk, id in rows)
    await segment.commit(PartitionWrite(partition, 1, now, mutations))


async def delete(segment: Segment, *rows: tuple[bytes, str]) -> None:
    mutations = tuple(Mutation(Verb.DELETE, epk, id) for epk, id in rows)
    await segment.commit(PartitionWrite(0, 1, 1_000, mutations))


async def read(segment: Segment, epk: bytes, id: str) -> Row:
    row = await segment.read(epk, id)
    assert row is not None
    return row


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"n":1.10}',
        b'{"n":[1e5,1E+5,-0.0,-0,0.1e1,1e-7]}',
        b'{"n":12345678901234567890,"m":-9223372036854775809,"f":123456789012345678901234567890.5}',
        rb'{"s":"\u00e9\/\n\u0000\ud83d\ude00\\\"","\u0061":"b"}',
        '{"s":"é\u2028\x7f😀\'","é":{"":[]}}'.encode(),
        b'{"deep":' + b"[" * 127 + b"]" * 127 + b"}",
        b'{"t":true,"f":false,"z":null,"o":{"a":{"b":[{},[],""]}}}',
    ],
)
async def test_a_body_comes_back_byte_for_byte(opened: Opened, body: bytes) -> None:
    async with opened() as store:
        await upsert(store.segment("s"), (EPK, "a"), body=body)
        assert (await read(store.segment("s"), EPK, "a")).body == body
    async with opened() as store:
        segment = store.segment("s")
        row = await read(segment, EPK, "a")
        assert row.body == body
        assert await segment.find(row.number) == row
        assert list(await segment.find_many([row.number])) == [row]
        assert list(await segment.scan(WHOLE, 0, 10)) == [row]
        (logical,) = await segment.logical_partitions(WHOLE)
        assert logical.sample_body == body


async def test_a_body_of_two_megabytes_is_kept_whole(opened: Opened) -> None:
    text = os.urandom(1024 * 1024).hex()
    body = b'{"text":"' + text.encode() + b'"}'
    async with opened() as store:
        await upsert(store.segment("s"), (EPK, "a"), body=body, size_bytes=len(body))
    async with opened() as store:
        row = await read(store.segment("s"), EPK, "a")
        assert row.body == body
        assert row.size_bytes == len(body)


async def test_any_text_is_an_id_and_no_two_are_mixed_up(opened: Opened) -> None:
    ids = [
        "a",
        "A",
        "ä",
        "a\u0308",
        "'",
        '"',
        "a'; DROP TABLE item; --",
        "%",
        "a\x00b",
        "a\x00",
        "日本語",
        "😀",
        " ",
    ]
    ids += ["x" * 1023, "x" * 1022 + "y", "é" * 511, "1", "01", "1.0", "null"]
    async with opened() as store:
        segment = store.segment("s")
        for index, id in enumerate(ids):
            await upsert(segment, (EPK, id), body=b'{"n":%d}' % index)
    async with opened() as store:
        segment = store.segment("s")
        for index, id in enumerate(ids):
            row = await read(segment, EPK, id)
            assert (row.id, row.body) == (id, b'{"n":%d}' % index)
        assert [row.id for row in await segment.scan(WHOLE, 0, 100)] == ids


async def test_a_row_keeps_every_field(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        mutation = Mutation(Verb.CREATE, EPK, "a", b'{"v":1}', 77, 9, 60)
        (outcome,) = await segment.commit(PartitionWrite(3, 1, 1_234, (mutation,)))
        row = await read(segment, EPK, "a")
        assert row == outcome.row
        assert row[1:] == (EPK, "a", 1, 1_234, 60, 77, 9, b'{"v":1}')


async def test_rows_are_found_by_their_numbers_as_far_as_they_are_there(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        for index in range(5):
            await upsert(segment, (EPK, f"i{index}"), body=b'{"n":%d}' % index)
        rows = await segment.scan(WHOLE, 0, 10)
        wanted = [rows[3].number, rows[0].number, rows[-1].number + 1, rows[4].number]
        found = await segment.find_many(wanted)
        assert sorted(found) == [rows[0], rows[3], rows[4]]
        assert list(await segment.find_many([])) == []


async def test_what_was_never_written_reads_as_nothing(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("empty")
        assert await segment.read(EPK, "a") is None
        assert await segment.find(1) is None
        assert list(await segment.find_many([1, 2])) == []
        assert list(await segment.scan(WHOLE, 0, 10)) == []
        assert list(await segment.logical_partitions(WHOLE)) == []
        assert list(await segment.expired(WHOLE, 10_000, 1, 10)) == []
        state = await segment.state(7)
        assert (state.partition, state.lsn, state.items, state.size_bytes) == (7, 0, 0, 0)


async def test_a_scan_gives_rows_in_insertion_order_page_by_page(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        keys = [(epk_of(n * 7919 % 100), f"i{n}") for n in range(100)]
        await upsert(segment, *keys)
        await upsert(segment, *keys[:10])
        whole = list(await segment.scan(WHOLE, 0, 1_000))
        assert [row.id for row in whole] == [id for _, id in keys], "a new version keeps its place"
        paged: list[Row] = []
        while page := await segment.scan(WHOLE, paged[-1].number if paged else 0, 7):
            assert len(page) <= 7
            paged += page
        assert paged == whole


@pytest.mark.parametrize("low", [b"", epk_of(10), epk_of(40), epk_of(99), epk_of(5) + b"\x01"])
@pytest.mark.parametrize("high", [b"\xff", epk_of(41), epk_of(99), epk_of(99) + b"\x00"])
async def test_a_scan_of_a_range_gives_just_the_rows_in_it(opened: Opened, low: bytes, high: bytes) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, *((epk_of(n * 7919 % 100), f"i{n}") for n in range(100)))
        whole = await segment.scan(WHOLE, 0, 1_000)
        if low < high:
            expected = [row for row in whole if low <= row.epk < high]
            assert list(await segment.scan(EpkRange(low, high), 0, 1_000)) == expected
            for after in (row.number for row in expected[::20]):
                beyond = [row for row in expected if row.number > after][:3]
                assert list(await segment.scan(EpkRange(low, high), after, 3)) == beyond


async def test_a_scan_of_one_key_or_of_a_prefix_of_keys_goes_in_pages_too(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        prefix = b"\x05" * 16
        await upsert(segment, *((prefix + bytes([n % 3]), f"i{n}") for n in range(30)), (b"\x06" * 16, "x"))
        one_key = EpkRange(prefix + b"\x01", prefix + b"\x01\x00")
        found = [row.id for row in await segment.scan(one_key, 0, 100)]
        assert found == [f"i{n}" for n in range(30) if n % 3 == 1]
        all_keys = EpkRange(prefix, prefix + b"\xff")
        first = list(await segment.scan(all_keys, 0, 20))
        rest = list(await segment.scan(all_keys, first[-1].number, 20))
        assert [row.id for row in first + rest] == [f"i{n}" for n in range(30)]


async def test_logical_partitions_appear_with_their_first_item_and_vanish_with_their_last(
    opened: Opened,
) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, (epk_of(2), "a"), (epk_of(2), "b"), (epk_of(1), "c"), size_bytes=5)
        found = await segment.logical_partitions(WHOLE)
        assert [(each.epk, each.items, each.size_bytes) for each in found] == [
            (epk_of(1), 1, 5),
            (epk_of(2), 2, 10),
        ]
        (part,) = await segment.logical_partitions(EpkRange(b"", epk_of(2)))
        assert part.epk == epk_of(1)
        await delete(segment, (epk_of(1), "c"), (epk_of(2), "a"))
        (left,) = await segment.logical_partitions(WHOLE)
        assert (left.epk, left.items) == (epk_of(2), 1)
        await delete(segment, (epk_of(2), "b"))
        assert list(await segment.logical_partitions(WHOLE)) == []


async def test_the_largest_logical_partitions_come_first_and_small_ones_are_left_out(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        assert list(await segment.largest_logical_partitions(WHOLE, 5)) == []
        for number in range(1, 8):
            rows = [(epk_of(number), f"i{index}") for index in range(number)]
            await upsert(segment, *rows, body=b'{"n":%d}' % number)
        found = await segment.largest_logical_partitions(WHOLE, 3)
        assert [(each.epk, each.items, each.size_bytes) for each in found] == [
            (epk_of(number), number, 10 * number) for number in (7, 6, 5)
        ]
        assert found[0].sample_body == b'{"n":7}'
        above = await segment.largest_logical_partitions(WHOLE, 10, 50)
        assert [each.items for each in above] == [7, 6, 5]
        inside = await segment.largest_logical_partitions(EpkRange(epk_of(2), epk_of(4)), 10)
        assert [each.items for each in inside] == [3, 2]


async def test_commits_and_the_writes_that_share_them_are_counted(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, (EPK, "first"))
        assert (store.commits.commits, store.commits.writes) == (1, 1)
        await asyncio.gather(*(upsert(segment, (EPK, f"i{index}")) for index in range(5)))
        assert store.commits.writes == 6
        assert store.commits.commits < 6
        assert sum(store.commits.buckets) == store.commits.commits


async def test_expired_names_the_rows_whose_time_is_over(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, (EPK, "short"), ttl=5)
        await upsert(segment, (EPK, "never"), ttl=-1)
        await upsert(segment, (EPK, "default"))

        async def ids(now: int, default_ttl: int | None, limit: int = 10) -> list[str]:
            return sorted(row.id for row in await segment.expired(WHOLE, now, default_ttl, limit))

        for _ in range(2):
            assert await ids(1_004, 100) == []
            assert await ids(1_005, 100) == ["short"]
            assert await ids(1_005, -1) == ["short"]
            assert await ids(1_100, 100) == ["default", "short"]
            assert await ids(1_100, -1) == ["short"]
            assert await ids(9_999, None) == []
            assert len(await ids(1_100, 100, limit=1)) == 1
            # The second round may use an index that the first one asked for and this commit made.
            await upsert(segment, (epk_of(3), "late"), now=9_000)


async def test_counters_tell_items_bytes_and_lsn_of_what_is_committed(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, (EPK, "a"), (EPK, "b"), size_bytes=10)
        await upsert(segment, (EPK, "a"), size_bytes=25)
        await delete(segment, (EPK, "b"))
        state = await segment.state(0)
        assert (state.items, state.size_bytes, state.lsn, state.epoch) == (1, 25, 4, 1)
    async with opened() as store:
        assert await store.segment("s").state(0) == state


async def test_counters_and_reads_never_run_ahead_of_the_commit(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, (EPK, "a"))
        for number in range(50):
            writing = asyncio.ensure_future(upsert(segment, (EPK, f"b{number}")))
            while not writing.done():
                state = await segment.state(0)
                rows = await segment.scan(WHOLE, 0, 1_000)
                assert state.lsn == state.items <= len(rows)
                await asyncio.sleep(0)
            assert (await segment.state(0)).items == number + 2


async def test_an_acknowledged_write_is_seen_by_every_read_after_it(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await upsert(segment, *((EPK, f"w{worker}") for worker in range(8)), body=b'{"n":0}')
        acknowledged = [0] * 8

        async def write(worker: int) -> None:
            for number in range(1, 60):
                await upsert(segment, (EPK, f"w{worker}"), body=b'{"n":%d}' % number)
                acknowledged[worker] = number
                row = await read(segment, EPK, f"w{worker}")
                assert row.body == b'{"n":%d}' % number

        async def watch() -> None:
            while min(acknowledged) < 59:
                for worker in range(8):
                    floor = acknowledged[worker]
                    row = await read(segment, EPK, f"w{worker}")
                    assert int(row.body[5:-1]) >= floor
                await asyncio.sleep(0)

        await asyncio.gather(watch(), watch(), *(write(worker) for worker in range(8)))


async def test_catalog_records_are_saved_replaced_deleted_and_survive(opened: Opened) -> None:
    one = Record("dbs", "r1", "", "db", {"a": [1, "é", None]})
    two = Record("colls", "r2", "r1", "c", {})
    async with opened() as store:
        assert list(await store.load_records()) == []
        await store.save_records([one, two], [])
        newer = Record("dbs", "r1", "", "db", {"a": 2})
        await store.save_records([newer], [one])
    async with opened() as store:
        loaded = sorted(await store.load_records(), key=lambda record: record.rid)
        assert loaded == [newer, two]
        renamed = Record("colls", "r2", "r1", "c2", {})
        taking_its_name = Record("colls", "r3", "r1", "c", {})
        await store.save_records([renamed, taking_its_name], [two])
        await store.save_records([], [newer])
    async with opened() as store:
        loaded = sorted(await store.load_records(), key=lambda record: record.rid)
        assert loaded == [renamed, taking_its_name]


async def test_catalog_changes_at_the_same_moment_are_all_kept(opened: Opened) -> None:
    async with opened() as store:
        records = [Record("dbs", f"r{n}", "", f"db{n}", {"n": n}) for n in range(20)]
        await asyncio.gather(*(store.save_records([record], []) for record in records))
    async with opened() as store:
        assert {record.rid for record in await store.load_records()} == {record.rid for record in records}


async def test_dropped_segments_are_empty_and_others_stay(opened: Opened) -> None:
    async with opened() as store:
        await store.save_records([Record("dbs", "r1", "", "db", {})], [])
        for name in ("a", "b", "c", "d"):
            await upsert(store.segment(name), (EPK, name))
        await store.drop_segments(["a"])
        assert await store.segment("a").read(EPK, "a") is None
        assert await store.segment("b").read(EPK, "b") is not None
    async with opened() as store:
        await store.reconcile(["b", "not made yet"])
        for name in ("a", "c", "d"):
            assert await store.segment(name).read(EPK, name) is None
        assert await store.segment("b").read(EPK, "b") is not None
        await upsert(store.segment("a"), (EPK, "anew"))
        assert (await store.segment("a").state(0)).lsn == 1

"""Items over physical partitions: each key whole on the one its hash says, and there after a restart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from pleiad.catalog.throughput import Throughput
from pleiad.engine import items, reading
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.errors import PleiadError
from pleiad.keys.range import WHOLE
from pleiad.limits import PROFILES
from pleiad.server.http.failures import status_of

Opened = Callable[..., AbstractAsyncContextManager[Engine]]


async def new_container(
    engine: Engine, ru: int = 30_000, id: str = "c", paths: tuple[str, ...] = ("/pk",), version: int = 2
) -> Container:
    kind = "MultiHash" if len(paths) > 1 else "Hash"
    database = await engine.create_database({"id": f"db-{id}"}, None)
    body = {"id": id, "partitionKey": {"paths": list(paths), "kind": kind, "version": version}}
    await engine.create_container(database, body, Throughput(ru))
    return await engine.container(f"db-{id}", id)


async def fill(container: Container, keys: int, items_per_key: int) -> None:
    for key in range(keys):
        for number in range(items_per_key):
            raw = json.dumps({"id": f"i{number}", "pk": f"user{key}", "n": number}).encode()
            await items.create(container, raw, (f"user{key}",))


@pytest.mark.requirement("R27", "R57", "R58", "R59")
@pytest.mark.parametrize("version", [1, 2])
async def test_every_item_is_on_the_partition_its_hash_says_and_a_logical_partition_is_never_on_two(
    engine: Opened, version: int
) -> None:
    async with engine() as opened:
        container = await new_container(opened, version=version)
        await fill(container, keys=60, items_per_key=3)
        places: dict[bytes, set[str]] = {}
        total = 0
        for partition in container.map.partitions:
            rows = await partition.scan(WHOLE, 0, 1_000)
            assert (await partition.state()).items == len(rows)
            total += len(rows)
            for row in rows:
                assert partition.span.contains(row.epk)
                assert row.epk == container.epk_of((json.loads(row.body)["pk"],))
                places.setdefault(row.epk, set()).add(partition.range_id)
        assert total == 180
        assert len(places) == 60
        assert all(len(range_ids) == 1 for range_ids in places.values())
        logical = [each for p in container.map.partitions for each in await p.logical_partitions()]
        assert [each.items for each in logical] == [3] * 60
        found = await reading.read(container, "i2", ("user17",))
        assert found.row is not None
        assert json.loads(found.row.body)["pk"] == "user17"


@pytest.mark.requirement("R29", "R47", "R48")
async def test_each_of_n_partitions_holds_about_one_nth_of_the_key_values(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened, ru=30_000)
        keys = 20_000
        hosts = Counter(
            container.map.find(container.epk_of((f"key{number}",))).range_id for number in range(keys)
        )
        assert len(hosts) == 5
        for count in hosts.values():
            assert abs(count - keys / 5) < keys / 5 * 0.07


@pytest.mark.requirement("R46", "R130")
async def test_in_the_2018_profile_twenty_thousand_request_units_make_two_partitions(engine: Opened) -> None:
    async with engine(PROFILES["2018"]) as opened:
        container = await new_container(opened, ru=20_000, id="coll", paths=("/deviceId",))
        assert [partition.range_id for partition in container.map.partitions] == ["0", "1"]


async def test_hierarchical_keys_with_one_first_level_lie_together(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened, paths=("/tenant", "/user"))
        for number in range(50):
            raw = json.dumps({"id": "i", "tenant": "t", "user": f"u{number}"}).encode()
            await items.create(container, raw, ("t", f"u{number}"))
        span = container.span_of(("t",))
        (partition,) = container.map.overlapping(span)
        assert len(await partition.scan(span, 0, 100)) == 50
        with pytest.raises(PleiadError) as caught:
            await reading.read(container, "i", ("t",))
        assert status_of(caught.value) == 400


async def test_items_without_a_key_value_have_a_logical_partition_of_their_own(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        await items.create(container, b'{"id":"none"}', ())
        await items.create(container, b'{"id":"null","pk":null}', (None,))
        await items.create(container, b'{"id":"empty","pk":""}', ("",))
        await items.create(container, b'{"id":"false","pk":false}', (False,))
        await items.create(container, b'{"id":"zero","pk":0}', (0,))
        logical = [each for p in container.map.partitions for each in await p.logical_partitions()]
        assert [each.items for each in logical] == [1] * 5
        assert (await reading.read(container, "none", ())).row is not None
        assert (await reading.read(container, "zero", (0.0,))).row is not None


async def test_everything_is_found_again_after_a_restart_and_lsns_go_on(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened, ru=12_000)
        await fill(container, keys=20, items_per_key=2)
        lsns = [partition.lsn for partition in container.map.partitions]
    async with engine() as opened:
        container = await opened.container("db-c", "c")
        assert [partition.lsn for partition in container.map.partitions] == lsns
        assert sum(lsns) == 40
        for key in range(20):
            answer = await reading.read(container, "i1", (f"user{key}",))
            assert answer.row is not None
        deleted = await items.delete(container, "i1", ("user0",), NO_CONDITIONS)
        assert deleted.partition.lsn == lsns[deleted.partition.id] + 1


def segment_files(directory: Path) -> set[str]:
    return {path.name for path in (directory / "data" / "segments").iterdir()}


@pytest.mark.parametrize("store_kind", ["sqlite"])
async def test_deleting_a_container_removes_its_files_and_only_those(engine: Opened, tmp_path: Path) -> None:
    async with engine() as opened:
        kept = await new_container(opened, ru=400, id="kept")
        await fill(kept, keys=3, items_per_key=1)
        before = segment_files(tmp_path)
        doomed = await new_container(opened, id="doomed")
        await fill(doomed, keys=20, items_per_key=1)
        assert len(segment_files(tmp_path)) > len(before) + 4
        await opened.delete(doomed.resource)
        assert segment_files(tmp_path) == before
        with pytest.raises(PleiadError) as caught:
            await items.create(doomed, b'{"id":"late","pk":"p"}', ("p",))
        assert status_of(caught.value) == 503
        assert segment_files(tmp_path) == before


async def test_a_container_made_anew_under_the_same_name_is_empty(engine: Opened) -> None:
    async with engine() as opened:
        old = await new_container(opened, ru=400)
        await fill(old, keys=2, items_per_key=1)
        etag = container_etag(old, await reading.read(old, "i0", ("user0",)))
        await opened.delete(old.database)
        new = await new_container(opened, ru=400)
        assert new is not old
        with pytest.raises(PleiadError) as caught:
            await reading.read(new, "i0", ("user0",))
        assert status_of(caught.value) == 404
        await fill(new, keys=1, items_per_key=1)
        assert container_etag(new, await reading.read(new, "i0", ("user0",))) != etag


def container_etag(container: Container, answer: Any) -> str:
    return container.etag(answer.row)


@pytest.mark.parametrize("store_kind", ["sqlite"])
async def test_what_a_crash_left_of_a_deleted_container_is_removed_at_the_next_start(
    engine: Opened, tmp_path: Path
) -> None:
    async with engine() as opened:
        await fill(await new_container(opened, ru=400), keys=2, items_per_key=1)
        kept = {name for name in segment_files(tmp_path) if name.endswith(".sqlite")}
    leftover = tmp_path / "data" / "segments" / "c99-p0.sqlite"
    source = tmp_path / "data" / "segments" / min(kept)
    leftover.write_bytes(source.read_bytes())
    async with engine() as opened:
        assert "c99-p0.sqlite" not in segment_files(tmp_path)
        container = await opened.container("db-c", "c")
        assert (await reading.read(container, "i0", ("user1",))).row is not None

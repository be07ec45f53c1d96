"""The catalog over restarts: what exists stays as it was, and what is gone is never mistaken for the new."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.heads.nosql.failures import substatus_of
from pleiad.heads.nosql.resource_json import to_json
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from tests.stores import OpenStore

LIMITS = Limits()
Lives = Callable[..., list[Any]]


@pytest.fixture
def with_engine(tmp_path: Path, open_store: OpenStore) -> Lives:
    """Runs each step in a server life of its own on the same data."""

    def lives(*steps: Callable[[Engine], Awaitable[Any]], limits: Limits = LIMITS) -> list[Any]:
        async def live(step: Callable[[Engine], Awaitable[Any]]) -> Any:
            engine = Engine(await open_store(tmp_path), limits)
            await engine.open()
            try:
                return await step(engine)
            finally:
                await engine.close()

        return [asyncio.run(live(step)) for step in steps]

    return lives


def container_body(id: str = "c", **more: Any) -> dict[str, Any]:
    return {"id": id, "partitionKey": {"paths": ["/pk"], "version": 2}, **more}


def everything(catalog: Catalog) -> list[dict[str, Any]]:
    return [to_json(catalog, resource) for kind in Kind for resource in catalog.all(kind)]


def failure(caught: pytest.ExceptionInfo[PleiadError]) -> tuple[int, int]:
    return status_of(caught.value), substatus_of(caught.value)


def test_all_resources_survive_a_restart_with_their_rids_and_etags(with_engine: Lives) -> None:
    async def make(engine: Engine) -> tuple[list[dict[str, Any]], set[str]]:
        database = await engine.create_database({"id": "db"}, Throughput(1000, autoscale=True))
        await engine.create_container(database, container_body("shared"), None)
        await engine.create_container(database, container_body("own", defaultTtl=9), Throughput(30_000))
        user, _ = await engine.create_child(Kind.USER, database, "ann", {})
        await engine.create_child(Kind.PERMISSION, user, "p", {"permissionMode": "Read"})
        await engine.create_child(Kind.ENCRYPTION_KEY, database, "k", {"wrapped": "x"})
        await engine.replace_container(database, "own", container_body("own", defaultTtl=7), None)
        return everything(engine.catalog), engine.catalog.segment_names()

    async def look(engine: Engine) -> tuple[list[dict[str, Any]], set[str]]:
        container = await engine.container("db", "own")
        assert container.default_ttl == 7
        assert [partition.range_id for partition in container.map.partitions] == ["0", "1", "2", "3", "4"]
        return everything(engine.catalog), engine.catalog.segment_names()

    before, after = with_engine(make, look)
    assert after == before
    resources, segments = before
    assert len(resources) == 1 + 2 + 1 + 1 + 2 + 1
    assert len({resource["_rid"] for resource in resources}) == len(resources)
    assert len(segments) == 6


@pytest.mark.every_store
def test_the_secret_of_tokens_comes_with_the_first_resource_and_stays(with_engine: Lives) -> None:
    async def make(engine: Engine) -> bytes:
        assert await engine.store.load_records() == []
        await engine.create_database({"id": "db"}, None)
        return engine.catalog.secret

    async def look(engine: Engine) -> bytes:
        await engine.create_database({"id": "another"}, None)
        return engine.catalog.secret

    assert len(set(with_engine(make, look, look_only))) == 1


async def look_only(engine: Engine) -> bytes:
    return engine.catalog.secret


@pytest.mark.every_store
def test_an_account_of_an_older_version_gets_a_secret_that_lasts(with_engine: Lives) -> None:
    async def make_without(engine: Engine) -> bytes:
        await engine.create_database({"id": "db"}, None)
        found = [record for record in await engine.store.load_records() if record.kind == "secret"]
        assert await engine.store.save_records([], found)
        return engine.catalog.secret

    first, second, third = with_engine(make_without, look_only, look_only)
    assert first != second == third


def test_a_rid_is_never_used_again_after_a_delete_and_a_restart(with_engine: Lives) -> None:
    async def make_and_delete(engine: Engine) -> set[str]:
        database = await engine.create_database({"id": "db"}, None)
        container = await engine.create_container(database, container_body(), None)
        offer = engine.catalog.offer_of(container.rid)
        assert offer is not None
        segments = engine.catalog.segment_names()
        await engine.delete(database)
        assert everything(engine.catalog) == []
        assert not segments & engine.catalog.segment_names()
        return {database.rid, container.rid, offer.rid} | segments

    lives = with_engine(*[make_and_delete] * 4)
    assert len(set().union(*lives)) == 4 * 4


def test_deleting_a_database_takes_everything_beneath_it_and_nothing_else(with_engine: Lives) -> None:
    async def make(engine: Engine) -> list[dict[str, Any]]:
        kept = await engine.create_database({"id": "kept"}, Throughput(400))
        await engine.create_container(kept, container_body(), Throughput(400))
        left = everything(engine.catalog)
        doomed = await engine.create_database({"id": "doomed"}, Throughput(400))
        await engine.create_container(doomed, container_body(), Throughput(400))
        user, _ = await engine.create_child(Kind.USER, doomed, "u", {})
        await engine.create_child(Kind.PERMISSION, user, "p", {})
        await engine.delete(doomed)
        assert everything(engine.catalog) == left
        return left

    async def look(engine: Engine) -> list[dict[str, Any]]:
        return everything(engine.catalog)

    before, after = with_engine(make, look)
    assert after == before


def test_names_are_taken_once_and_missing_owners_have_their_own_substatus(with_engine: Lives) -> None:
    async def life(engine: Engine) -> None:
        database = await engine.create_database({"id": "db"}, None)
        await engine.create_container(database, container_body(), None)
        with pytest.raises(PleiadError) as caught:
            await engine.create_database({"id": "db"}, None)
        assert failure(caught) == (409, 0)
        with pytest.raises(PleiadError) as caught:
            await engine.create_container(database, container_body(), None)
        assert failure(caught) == (409, 0)
        with pytest.raises(PleiadError) as caught:
            engine.database("none")
        assert failure(caught) == (404, 0)
        with pytest.raises(PleiadError) as caught:
            await engine.container("none", "c")
        assert failure(caught) == (404, 1003)
        await engine.delete(database)
        with pytest.raises(PleiadError) as caught:
            await engine.delete(database)
        assert failure(caught) == (404, 0)
        with pytest.raises(PleiadError) as caught:
            await engine.create_container(database, container_body(), None)
        assert failure(caught) == (404, 1003)

    with_engine(life)


def test_of_many_creates_of_one_name_at_one_moment_one_succeeds(with_engine: Lives) -> None:
    async def life(engine: Engine) -> None:
        answers = await asyncio.gather(
            *(engine.create_database({"id": "db"}, Throughput(400)) for _ in range(10)),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, Resource) for answer in answers) == 1
        assert {status_of(answer) for answer in answers if isinstance(answer, PleiadError)} == {409}
        assert len(engine.catalog.all(Kind.OFFER)) == 1

    with_engine(life)


def test_a_change_with_an_old_etag_is_refused(with_engine: Lives) -> None:
    async def life(engine: Engine) -> None:
        database = await engine.create_database({"id": "db"}, Throughput(400))
        old = await engine.create_container(database, container_body(), None)
        new = await engine.replace_container(database, "c", container_body(defaultTtl=5), old.etag)
        offer = engine.catalog.offer_of(database.rid)
        assert offer is not None
        assert new.etag != old.etag
        assert (new.rid, new.number) == (old.rid, old.number)
        content = {"content": {"offerThroughput": 500}}
        changed = await engine.replace_offer(offer.rid, content, offer.etag)
        refused: list[Awaitable[Any]] = [
            engine.replace_container(database, "c", container_body(), old.etag),
            engine.delete(new, old.etag),
            engine.delete(old, old.etag),
            engine.replace_offer(offer.rid, content, offer.etag),
        ]
        for change in refused:
            with pytest.raises(PleiadError) as caught:
                await change
            assert failure(caught) == (412, 0)
        assert changed.properties["content"]["offerThroughput"] == 500
        await engine.delete(old, new.etag)

    with_engine(life)


def test_a_user_that_was_renamed_meanwhile_can_be_deleted(with_engine: Lives) -> None:
    async def life(engine: Engine) -> None:
        database = await engine.create_database({"id": "db"}, None)
        user, _ = await engine.create_child(Kind.USER, database, "ann", {})
        await engine.replace_child(user, "anna", {}, None)
        await engine.delete(user)
        assert engine.catalog.all(Kind.USER) == []
        await engine.create_child(Kind.USER, database, "anna", {})

    with_engine(life)


@pytest.mark.parametrize("turns", range(4))
def test_a_change_whose_caller_went_away_ends_the_same_in_memory_and_on_disk(
    with_engine: Lives, turns: int
) -> None:
    async def cancelled(change: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(change)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def life(engine: Engine) -> list[dict[str, Any]]:
        database = await engine.create_database({"id": "db"}, None)
        await engine.create_container(database, container_body("kept"), None)
        doomed = await engine.create_container(database, container_body("doomed"), None)
        await cancelled(engine.create_container(database, container_body("new"), None))
        await cancelled(
            engine.replace_container(database, "kept", container_body("kept", defaultTtl=3), None)
        )
        await cancelled(engine.delete(doomed))
        async with engine.catalog.lock:
            return everything(engine.catalog)

    async def look(engine: Engine) -> list[dict[str, Any]]:
        return everything(engine.catalog)

    before, after = with_engine(life, look)
    assert after == before


def test_databases_and_containers_share_one_quota(with_engine: Lives) -> None:
    async def life(engine: Engine) -> None:
        database = await engine.create_database({"id": "db"}, None)
        for number in range(2):
            await engine.create_container(database, container_body(f"c{number}"), None)
        for change in (
            engine.create_database({"id": "more"}, None),
            engine.create_container(database, container_body("more"), None),
        ):
            with pytest.raises(PleiadError) as caught:
                await change
            assert failure(caught) == (403, 1005)

    with_engine(life, limits=Limits(databases_and_containers=3))


def test_a_shared_database_takes_its_number_of_containers_and_then_only_ones_with_their_own(
    with_engine: Lives,
) -> None:
    async def life(engine: Engine) -> None:
        database = await engine.create_database({"id": "db"}, Throughput(400))
        await engine.create_container(database, container_body("own"), Throughput(400))
        for number in range(2):
            shared = await engine.create_container(database, container_body(f"c{number}"), None)
            assert engine.catalog.offer_of(shared.rid) is None
        with pytest.raises(PleiadError) as caught:
            await engine.create_container(database, container_body("c2"), None)
        assert failure(caught) == (403, 1019)
        await engine.create_container(database, container_body("c2"), Throughput(400))

    with_engine(life, limits=Limits(shared_database_containers=2))


@pytest.mark.requirement("R45", "R46", "R47")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("ru", "count"), [(400, 1), (12_000, 2), (30_000, 5)])
def test_a_new_container_gets_the_partitions_its_throughput_asks_for_with_even_ranges(
    with_engine: Lives, ru: int, count: int, version: int
) -> None:
    async def life(engine: Engine) -> None:
        database = await engine.create_database({"id": "db"}, None)
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": version}}
        resource = await engine.create_container(database, body, Throughput(ru))
        placed = engine.catalog.placements(resource.rid)
        assert [placement.id for placement in placed] == list(range(count))
        assert len({placement.segment for placement in placed}) == count
        edges = [placed[0].span.min, *(placement.span.max for placement in placed)]
        assert [placement.span.min for placement in placed] == edges[:-1]
        assert (edges[0], edges[-1]) == (WHOLE.min, WHOLE.max)

    with_engine(life)

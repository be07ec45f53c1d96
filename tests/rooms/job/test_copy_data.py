"""A copied account is the account: the official client finds every ETag, token and rule as it was."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosResourceExistsError

from pleiad.catalog import placement as placements
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.job.copy_data import Copied, CopyProgress, CopyStage, copy_account
from pleiad.job.digest import compact
from pleiad.job.place import CopyError, opened_alone, parse_place
from pleiad.job.progress_record import CopyRecords
from pleiad.keys.range import WHOLE
from pleiad.store.rows import Row, WholeRow
from pleiad.store.segments import Segment
from pleiad.store.store import Store
from tests.rooms.job.conftest import NewPlace, Server, Serving

LONG = "x" * 3_000
SPROC = "function () { getContext().getResponse().setBody('hello'); }"


def copy(source: str, target: str, tell: Callable[[CopyProgress], None] = lambda step: None) -> Copied:
    async def run() -> Copied:
        async with (
            opened_alone(parse_place(source), must_exist=True) as origin,
            opened_alone(parse_place(target), must_exist=False) as goal,
        ):
            return await copy_account(origin, goal, tell)

    return asyncio.run(run())


def fill(server: Server) -> None:
    """An account with something of everything."""
    client = server.client
    database = client.create_database("db", offer_throughput=500)
    many = database.create_container("many", PartitionKey("/pk"), offer_throughput=20_000)
    for number in range(60):
        many.create_item({"id": f"i{number}", "pk": f"k{number % 9}", "n": number, "text": "a b  c"})
    many.upsert_item({"id": "i3", "pk": "k3", "n": -3})
    many.delete_item("i4", "k4")
    policy = {"uniqueKeys": [{"paths": ["/mail"]}, {"paths": ["/a", "/b"]}]}
    unique = database.create_container("unique", PartitionKey("/pk"), unique_key_policy=policy)
    unique.create_item({"id": "short", "pk": "k", "mail": "m@example", "a": 1, "b": 2})
    unique.create_item({"id": "long", "pk": "k", "mail": LONG, "a": 2, "b": 2})
    brief = database.create_container("brief", PartitionKey("/pk"), default_ttl=-1)
    brief.create_item({"id": "mortal", "pk": "k", "ttl": 5_000})
    brief.scripts.create_stored_procedure({"id": "greet", "body": SPROC})
    database.create_user({"id": "reader"}).create_permission(
        {"id": "may", "permissionMode": "Read", "resource": many.read()["_self"]}
    )
    server.ask(_fill_inside(server))


async def _fill_inside(server: Server) -> None:
    """What the client cannot do: keep versions, send white space and controls, stop in the middle of a split."""
    engine = server.node.engine
    definition = {
        "id": "history",
        "partitionKey": {"paths": ["/pk"], "version": 2},
        "changeFeedPolicy": {"retentionDuration": 10},
    }
    await engine.create_container(engine.database("db"), definition, None)
    history = await engine.container("db", "history")
    raw = b'{ "id" : "odd", "pk":\t"k", "text": "a \\" b\\u0000\\u0001", "n": 1.50e+02,\n "big": 1e300 }'
    await items.create(history, raw, ("k",))
    await items.create(history, b'{"id":"gone","pk":"k"}', ("k",))
    await items.delete(history, "gone", ("k",), items.NO_CONDITIONS)
    many = await engine.container("db", "many")
    await engine.reshaper.split(many, many.map.partitions[0].range_id)


def containers(client: CosmosClient) -> list[ContainerProxy]:
    database = client.get_database_client("db")
    return [database.get_container_client(each["id"]) for each in database.list_containers()]


def everything(client: CosmosClient) -> dict[str, Any]:
    """All that a client can read, with system properties."""
    database = client.get_database_client("db")
    found: dict[str, Any] = {"database": database.read(), "users": list(database.list_users())}
    found["throughput"] = [
        database.get_throughput().properties,
        database.get_container_client("many").get_throughput().properties,
    ]
    for container in containers(client):
        found[container.id] = (
            container.read(),
            sorted(container.read_all_items(), key=lambda item: item["id"]),
        )
        found[f"{container.id} ranges"] = list(container.read_feed_ranges())
        found[f"{container.id} scripts"] = list(container.scripts.list_stored_procedures())
    return found


def test_a_server_on_the_copy_answers_as_the_one_on_the_source(
    direction: tuple[str, str], serving: Serving
) -> None:
    source, target = direction
    with serving(source) as server:
        fill(server)
        before = everything(server.client)
        many = server.client.get_database_client("db").get_container_client("many")
        pager = many.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=10)
        pages: Any = pager.by_page()
        first = [item["id"] for item in next(pages)]
        token = pages.continuation_token
        etag = many.read_item("i5", "k5")["_etag"]
        list(many.query_items_change_feed(is_start_from_beginning=True))
        place = many.client_connection.last_response_headers["etag"]
        session = many.client_connection.last_response_headers["x-ms-session-token"]
    done = copy(source, target)
    assert (done.items, done.resumed_items) == (59 + 2 + 1 + 1, 0)
    assert done.versions == 3
    with serving(target) as server:
        assert everything(server.client) == before
        many = server.client.get_database_client("db").get_container_client("many")
        rest = many.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=10)
        found = [item["id"] for page in rest.by_page(token) for item in page]
        assert sorted(first + found) == sorted(f"i{number}" for number in range(60) if number != 4)
        assert list(many.query_items_change_feed(continuation=place)) == []
        item = many.read_item("i5", "k5", session_token=session)
        changed = many.replace_item(
            "i5", {**item, "n": 55}, etag=etag, match_condition=MatchConditions.IfNotModified
        )
        assert changed["_rid"] == item["_rid"]
        with pytest.raises(CosmosAccessConditionFailedError):
            many.replace_item(
                "i5", {**item, "n": 56}, etag=etag, match_condition=MatchConditions.IfNotModified
            )
        fed = list(many.query_items_change_feed(continuation=place))
        assert [(each["id"], each["n"]) for each in fed] == [("i5", 55)]


def test_rules_scripts_and_versions_hold_on_the_copy(direction: tuple[str, str], serving: Serving) -> None:
    source, target = direction
    with serving(source) as server:
        fill(server)
    copy(source, target)
    with serving(target) as server:
        database = server.client.get_database_client("db")
        unique = database.get_container_client("unique")
        for taken in (
            {"mail": "m@example", "a": 7, "b": 7},
            {"mail": LONG, "a": 8, "b": 8},
            {"a": 1, "b": 2.0},
        ):
            with pytest.raises(CosmosResourceExistsError):
                unique.create_item({"id": "new", "pk": "k", **taken})
        unique.delete_item("long", "k")
        unique.create_item({"id": "new", "pk": "k", "mail": LONG, "a": 2, "b": 2})
        brief = database.get_container_client("brief")
        assert brief.scripts.execute_stored_procedure("greet", partition_key="k") == "hello"
        assert brief.read_item("mortal", "k")["ttl"] == 5_000
        history = server.ask(server.node.engine.container("db", "history"))
        assert server.ask(_version_ids(history)) == [
            ("create", "odd"),
            ("create", "gone"),
            ("delete", "gone"),
        ]
        odd = database.get_container_client("history").read_item("odd", "k")
        assert (odd["text"], odd["n"], odd["big"]) == ('a " b\0\x01', 150, 1e300)
        server.ask(_settle(server))
        made = database.create_container("later", PartitionKey("/pk"))
        assert made.read()["_rid"] not in {
            each["_rid"] for each in database.list_containers() if each["id"] != "later"
        }


async def _version_ids(history: Container) -> list[tuple[str, str]]:
    found = [version for p in history.map.partitions for version in await p.segment.versions(WHOLE, 0, 100)]
    return [(version.verb.value, version.id) for version in found]


async def _settle(server: Server) -> None:
    """The split that was under way ends on the target as it would have on the source."""
    engine = server.node.engine
    many = await engine.container("db", "many")
    for partition in list(many.map.partitions):
        if not engine.catalog.is_unfinished(many.resource.rid):
            break
        await engine.reshaper.rehome(many, partition.range_id)


class Crash(Exception):
    """The process is gone."""


def test_a_copy_interrupted_at_every_step_ends_as_one_that_was_not(
    direction: tuple[str, str], serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = direction
    with serving(source) as server:
        fill(server)
    monkeypatch.setattr("pleiad.store.move.PAGE_ROWS_FIRST", 7)
    monkeypatch.setattr("pleiad.store.move._PAGE_ROWS_MAX", 7)
    note = CopyRecords.note
    runs = 0

    async def crash_before_every_other_note(self: CopyRecords, *arguments: Any) -> None:
        if runs % 2:
            raise Crash
        await note(self, *arguments)

    monkeypatch.setattr(CopyRecords, "note", crash_before_every_other_note)

    async def run() -> Copied:
        nonlocal runs
        async with (
            opened_alone(parse_place(source), must_exist=True) as origin,
            opened_alone(parse_place(target), must_exist=False) as goal,
        ):
            while True:
                runs += 1
                assert runs < 100
                with contextlib.suppress(Crash):
                    done = await copy_account(origin, goal, crash_after_one_page())
                    await compare(origin, goal)
                    return done

    done = asyncio.run(run())
    assert runs > 10
    assert done.resumed_items == done.items == 63


def crash_after_one_page() -> Callable[[CopyProgress], None]:
    steps: list[CopyProgress] = []

    def tell(step: CopyProgress) -> None:
        steps.append(step)
        if step.phase is CopyStage.COPYING and len(steps) > 1:
            raise Crash

    return tell


async def compare(origin: Store, goal: Store) -> None:
    """Records, counters, rows and versions are equal, but for the white space of bodies."""
    records, copied = [
        sorted(await store.load_records(), key=lambda record: (record.kind, record.rid))
        for store in (origin, goal)
    ]
    assert copied == records
    for record in records:
        if record.kind == placements.KIND:
            placement = placements.from_record(record)
            here, there = origin.segment(placement.segment), goal.segment(placement.segment)
            assert await there.state(placement.id) == await here.state(placement.id)
            assert await contents(there) == await contents(here)


async def contents(segment: Segment) -> list[Any]:
    rows, versions = await segment.scan(WHOLE, 0, 10_000), await segment.versions(WHOLE, 0, 10_000)
    return [
        [(row[:-1], json.loads(row.body)) for row in rows],
        [version._replace(body=compact(version.body)) for version in versions],
    ]


def test_a_source_that_was_written_to_between_two_runs_is_copied_anew(
    direction: tuple[str, str], serving: Serving
) -> None:
    source, target = direction
    with serving(source) as server:
        fill(server)

    def crash(step: CopyProgress) -> None:
        if step.phase is CopyStage.VERIFYING:
            raise Crash

    with pytest.raises(Crash):
        copy(source, target, crash)
    with serving(source) as server:
        many = server.client.get_database_client("db").get_container_client("many")
        many.delete_item("i7", "k7")
        many.upsert_item({"id": "i8", "pk": "k8", "n": "new"})
        before = everything(server.client)
    done = copy(source, target)
    assert done.resumed_items == 0
    with serving(target) as server:
        assert everything(server.client) == before


def test_a_copy_that_differs_never_appears_and_is_made_anew(
    new_place: NewPlace, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = new_place("sqlite"), new_place("sqlite")
    with serving(source) as server:
        fill(server)

    def spoilt(row: Row, values: tuple[bytes, ...]) -> WholeRow:
        return WholeRow(row._replace(body=b'{"n":0}') if row.id == "i9" else row, values)

    monkeypatch.setattr("pleiad.store.move.WholeRow", spoilt)
    with pytest.raises(CopyError, match="differs"):
        copy(source, target)
    monkeypatch.undo()
    with pytest.raises(Exception, match="a copy into this store has not ended"), serving(target):
        pass
    assert copy(source, target).resumed_items == 0
    with serving(target) as server:
        many = server.client.get_database_client("db").get_container_client("many")
        assert many.read_item("i9", "k0")["n"] == 9


def test_a_copied_account_is_not_overwritten(direction: tuple[str, str], serving: Serving) -> None:
    source, target = direction
    with serving(source) as server:
        fill(server)
    copy(source, target)
    with pytest.raises(CopyError, match="not empty"):
        copy(source, target)

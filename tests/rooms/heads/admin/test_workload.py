"""The workload record of a container: what requests of a real client leave in it, and who may have it."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.recording import Mode
from pleiad.heads.nosql import point_write
from pleiad.limits import KB, Limits
from pleiad.settings import Settings
from pleiad.store.rows import Mutation, Verb
from pleiad.testing.start import RunningServer
from pleiad.workload.record import Member, Operation, Request, read
from tests.rooms.heads.admin.conftest import Running
from tests.waiting import SECONDS_MAX, Latch

_ARGUMENTS: Any = ["made"]
_PROCEDURE = """
function put(id) {
    var made = { id: id, pk: 'a', n: 1 };
    __.createDocument(__.getSelfLink(), made, function (error) { if (error) throw error; });
}
"""


def _names(container: ContainerProxy) -> tuple[str, str]:
    parts = container.container_link.split("/")
    return parts[1], parts[3]


def _recorded(admin: Admin, container: ContainerProxy, hashed: bool = False) -> list[Request]:
    pieces = admin.workload_lines(*_names(container), hashed=hashed)
    return list(read(io.BytesIO(b"".join(pieces))))


@pytest.fixture
def recorded(admin: Admin, container: ContainerProxy) -> ContainerProxy:
    """A container that is recorded."""
    admin.switch_workload(*_names(container), "values")
    return container


def test_nothing_is_recorded_before_it_is_switched_on(admin: Admin, container: ContainerProxy) -> None:
    container.read_item("1", "a")
    assert admin.workload(*_names(container)) == {
        "record": "off",
        "switched": False,
        "records": 0,
        "bytes": 0,
        "limitBytes": Limits().workload_container_bytes,
        "lost": 0,
    }
    assert _recorded(admin, container) == []


def test_a_create_that_began_before_it_is_switched_on_is_recorded_when_it_ends_after(
    admin: Admin, server: RunningServer, container: ContainerProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, name = _names(container)
    link = ("dbs", database, "colls", name)
    headers = {"x-ms-documentdb-partitionkey": '["b"]', "Content-Type": "application/json"}
    latch, is_at_work = Latch(), Event()

    def begin_later(at: Container, verb: Verb, raw: bytes, key: items.Key, _: bool) -> items.Begun:
        async def create(_: items.Begun) -> items.ItemAnswer:
            is_at_work.set()
            await latch.passed()
            return await items.create(at, raw, key)

        epk, partition = at.place_of(key)
        return items.Begun(at, partition, None, Mutation(verb, epk, ""), None, create, 0)

    monkeypatch.setattr(point_write, "begin_put", begin_later)
    with ThreadPoolExecutor(1) as pool, Connection(server.endpoint, server.key) as connection:
        body = b'{"id":"on its way","pk":"b"}'
        created = pool.submit(connection.request, "POST", (*link, "docs"), "docs", link, headers, body)
        assert is_at_work.wait(SECONDS_MAX)
        admin.switch_workload(database, name, "values")
        latch.open()
        assert created.result().status == 201
    (found,) = _recorded(admin, container)
    assert (found.operation, found.status, found.id, found.key) == (
        Operation.CREATE,
        201,
        "on its way",
        ("b",),
    )
    assert found.charge > 0
    assert found.bytes > 0


@pytest.mark.every_store
def test_operations_on_one_item_are_recorded_with_key_id_charge_and_size(
    admin: Admin, recorded: ContainerProxy
) -> None:
    recorded.create_item({"id": "2", "pk": "b", "state": "open", "by": {"name": "anna", "age": 7}})
    recorded.read_item("2", "b")
    recorded.replace_item("2", {"id": "2", "pk": "b", "state": "done", "by": {"name": "berta", "age": 7}})
    recorded.upsert_item({"id": "2", "pk": "b", "state": "done", "by": {"name": "berta"}, "a b": 1})
    recorded.patch_item("2", "b", [{"op": "set", "path": "/state", "value": "late"}])
    recorded.delete_item("2", "b")
    found = _recorded(admin, recorded)
    assert [each.operation for each in found] == [
        Operation.CREATE,
        Operation.READ,
        Operation.REPLACE,
        Operation.UPSERT,
        Operation.PATCH,
        Operation.DELETE,
    ]
    assert [each.status for each in found] == [201, 200, 200, 200, 200, 204]
    for each in found:
        assert each.container == "/".join(_names(recorded))
        assert each.key == ("b",)
        assert each.id == "2"
        assert each.partitions == 1
        assert each.charge > 0
        assert each.bytes > 0
    assert [sorted(each.changed) for each in found] == [
        [],
        [],
        ["/by/name", "/state"],
        ['/"a b"', "/by/age"],
        ["/state"],
        [],
    ]
    assert found == sorted(found, key=lambda each: each.at)


def test_operations_on_items_without_a_key_are_recorded(admin: Admin, server: RunningServer) -> None:
    database = CosmosClient(server.endpoint, server.key).create_database_if_not_exists("keyless")
    link = ("dbs", database.id, "colls", "things")
    headers = {"x-ms-version": "2018-06-18"}
    with Connection(server.endpoint, server.key) as connection:

        def ask(method: str, path: tuple[str, ...], body: bytes | None = None) -> int:
            of_one = len(path) % 2 == 0
            kind = path[-2] if of_one else path[-1]
            return connection.request(method, path, kind, path if of_one else path[:-1], headers, body).status

        assert ask("POST", link[:3], b'{"id":"things"}') == 201
        admin.switch_workload(database.id, "things", "values")
        assert ask("POST", (*link, "docs"), b'{"id":"1"}') == 201
        assert ask("PUT", (*link, "docs", "1"), b'{"id":"1","n":1}') == 200
        assert ask("GET", (*link, "docs", "1")) == 200
        assert ask("DELETE", (*link, "docs", "1")) == 204
        # One that nobody has read or changed before.
        assert ask("POST", (*link, "docs"), b'{"id":"2"}') == 201
        assert ask("DELETE", (*link, "docs", "2")) == 204
    found = _recorded(admin, database.get_container_client("things"))
    kinds = [Operation.CREATE, Operation.REPLACE, Operation.READ, Operation.DELETE]
    assert [each.operation for each in found] == [*kinds, Operation.CREATE, Operation.DELETE]
    assert [(each.key, each.id) for each in found] == [*[(({},), "1")] * 4, *[(({},), "2")] * 2]


def test_the_charge_in_the_record_is_the_one_the_client_was_told(
    admin: Admin, recorded: ContainerProxy
) -> None:
    told: list[float] = []

    def hook(headers: Any, _: Any) -> None:
        told.append(float(headers["x-ms-request-charge"]))

    recorded.read_item("1", "a", response_hook=hook)
    recorded.create_item({"id": "x", "pk": "a", "text": "x" * 5_000}, response_hook=hook)
    assert [each.charge for each in _recorded(admin, recorded)] == told


def test_a_refused_request_is_recorded_with_its_status(admin: Admin, recorded: ContainerProxy) -> None:
    with pytest.raises(CosmosHttpResponseError):
        recorded.read_item("nobody", "z")
    with pytest.raises(CosmosHttpResponseError):
        recorded.create_item({"id": "1", "pk": "a"})
    missing, taken = _recorded(admin, recorded)
    assert (missing.status, missing.key, missing.id, missing.partitions) == (404, ("z",), "nobody", 1)
    assert (taken.status, taken.operation, taken.key) == (409, Operation.CREATE, ("a",))


@pytest.mark.every_store
def test_queries_are_recorded_with_the_paths_and_values_of_their_filter(
    admin: Admin, recorded: ContainerProxy
) -> None:
    text = (
        "SELECT * FROM c WHERE c.pk = @pk AND c.state IN ('open', @state) AND c.n > 3 "
        "AND (c.kind = 1 OR c.kind = 2) AND STARTSWITH(c.name, 'a') AND c.isNew AND (c.x = 1 OR c.y = 2)"
    )
    parameters: list[dict[str, object]] = [{"name": "@pk", "value": "a"}, {"name": "@state", "value": None}]
    list(recorded.query_items(text, parameters=parameters, partition_key="a"))
    (found,) = _recorded(admin, recorded)
    assert found.operation is Operation.QUERY
    assert found.key == ("a",)
    assert found.equals == {
        "/pk": ("a",),
        "/state": ("open", None),
        "/kind": (1, 2),
        "/isNew": (True,),
    }
    assert sorted(found.ranges) == ["/n", "/name", "/x", "/y"]
    assert found.partitions == 1


def test_a_query_without_a_key_is_recorded_as_one_that_asks_everywhere(
    admin: Admin, recorded: ContainerProxy
) -> None:
    for number in range(20):
        recorded.create_item({"id": "1", "pk": f"k{number}", "n": 1})
    admin.split(*_names(recorded), {"partition": "0"})
    list(recorded.query_items("SELECT * FROM c WHERE c.n = 1", enable_cross_partition_query=True))
    found = [each for each in _recorded(admin, recorded) if each.operation is Operation.QUERY]
    assert {each.key for each in found} == {None}
    assert all(each.equals == {"/n": (1,)} for each in found)
    assert [each.continued for each in found] == [False, True]
    assert {each.partitions for each in found} == {2}
    assert all(each.bytes > 100 for each in found)


@pytest.mark.every_store
def test_a_batch_is_recorded_with_its_members(admin: Admin, recorded: ContainerProxy) -> None:
    recorded.execute_item_batch(
        [
            ("create", ({"id": "3", "pk": "a", "n": 1},)),
            ("read", ("1",)),
            ("replace", ("1", {"id": "1", "pk": "a", "n": 2})),
            ("delete", ("3",)),
        ],
        partition_key="a",
    )
    (found,) = _recorded(admin, recorded)
    assert found.operation is Operation.BATCH
    assert found.key == ("a",)
    assert [(each.operation, each.id) for each in found.members] == [
        (Operation.CREATE, "3"),
        (Operation.READ, "1"),
        (Operation.REPLACE, "1"),
        (Operation.DELETE, "3"),
    ]
    assert all(each.bytes > 0 for each in found.members)
    assert found.changed == ("/n",)


def test_a_stored_procedure_is_recorded_with_what_it_did(admin: Admin, recorded: ContainerProxy) -> None:
    recorded.scripts.create_stored_procedure({"id": "put", "body": _PROCEDURE})
    recorded.scripts.execute_stored_procedure("put", partition_key="a", params=_ARGUMENTS)
    (found,) = [each for each in _recorded(admin, recorded) if each.operation is Operation.SCRIPT]
    assert found.key == ("a",)
    assert [(each.operation, each.id) for each in found.members] == [(Operation.CREATE, "made")]


def test_feeds_are_recorded(admin: Admin, recorded: ContainerProxy) -> None:
    list(recorded.read_all_items())
    list(recorded.query_items_change_feed(is_start_from_beginning=True))
    found = [each.operation for each in _recorded(admin, recorded)]
    assert Operation.READ_FEED in found
    assert Operation.CHANGE_FEED in found


def test_another_container_is_not_recorded(
    admin: Admin, recorded: ContainerProxy, client: CosmosClient
) -> None:
    other = client.get_database_client(_names(recorded)[0]).create_container("other", PartitionKey("/pk"))
    other.create_item({"id": "1", "pk": "a"})
    assert _recorded(admin, other) == []
    assert _recorded(admin, recorded) == []


def test_hashes_at_recording_leave_no_value_on_the_disk(tmp_path: Path) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (_, admin, container):
        admin.switch_workload("db", "things", "hashes")
        container.create_item({"id": "anna-1", "pk": "anna"})
        container.read_item("anna-1", "anna")
        list(container.query_items("SELECT * FROM c WHERE c.pk = 'anna'", partition_key="anna"))
        one, two, three = _recorded(admin, container)
    assert one.hashed
    assert one.key == two.key == three.key == three.equals["/pk"]
    files = [path for path in (tmp_path / "workload").rglob("*") if path.is_file()]
    assert not any(b"anna" in path.read_bytes() for path in files)
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


@pytest.mark.parametrize("end", ["stop", "off", "values"])
def test_what_was_noted_to_be_hashed_is_hashed_when_recording_ends_before_it_is_written(
    tmp_path: Path, end: str
) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (_, admin, container):
        admin.switch_workload("db", "things", "hashes")
        container.create_item({"id": "anna-1", "pk": "anna"})
        container.read_item("anna-1", "anna")
        if end != "stop":
            admin.switch_workload("db", "things", end)
    files = list((tmp_path / "workload").rglob("*.jsonl"))
    assert files
    assert not any(b"anna" in path.read_bytes() for path in files)


def test_lines_from_elsewhere_are_hashed_where_the_container_is_recorded_so(tmp_path: Path) -> None:
    line = (
        b'{"at":1.5,"operation":"query","key":["secret-key"],"id":"secret-id","equals":{"/a":["secret-value",7]}}\n'
        b'{"at":2.5,"operation":"batch","members":[{"operation":"create","id":"secret-member","key":["secret-key"]}]}\n'
        b'{"at":3.5,"operation":"read","key":["0123456789abcdef"],"id":"x","hashed":true}\n'
    )
    with _running(Settings(port=0, data=tmp_path)) as (_, admin, container):
        admin.switch_workload("db", "things", "hashes")
        assert admin.add_workload("db", "things", line) == 3
        first, second, third = _recorded(admin, container)
    assert first.hashed
    assert second.hashed
    assert second.members[0].key == first.key, "equal values stay equal"
    assert third.key == ("0123456789abcdef",), "what is hashed already stays as it is"
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"secret-" not in kept


def test_hashes_at_the_export_leave_the_record_as_it_is(admin: Admin, recorded: ContainerProxy) -> None:
    recorded.read_item("1", "a")
    (hidden,), (plain,) = _recorded(admin, recorded, hashed=True), _recorded(admin, recorded)
    assert hidden.hashed
    assert hidden.key != plain.key
    assert plain.key == ("a",)


def test_switched_off_it_ends_and_what_was_recorded_stays(admin: Admin, recorded: ContainerProxy) -> None:
    recorded.read_item("1", "a")
    assert admin.switch_workload(*_names(recorded), "off")["record"] == "off"
    recorded.read_item("1", "a")
    assert len(_recorded(admin, recorded)) == 1
    admin.forget_workload(*_names(recorded))
    assert _recorded(admin, recorded) == []
    assert not admin.workload(*_names(recorded))["switched"]


def test_lines_from_elsewhere_are_added_as_those_of_the_container(
    admin: Admin, recorded: ContainerProxy
) -> None:
    lines = b'{"at":1,"operation":"read","key":["a"],"container":"their/own"}\n{"at":2,"operation":"query"}\n'
    assert admin.add_workload(*_names(recorded), lines) == 2
    first, second = _recorded(admin, recorded)
    assert first.container == second.container == "/".join(_names(recorded))
    with pytest.raises(RequestRefusedError, match="line 2: it is not valid JSON"):
        admin.add_workload(*_names(recorded), b'{"at":1,"operation":"read"}\nnonsense\n')
    assert len(_recorded(admin, recorded)) == 2


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"record": "everything"}, "'record' must be one of off, values, hashes"),
        ({"record": ["values"]}, "'record' must be one of"),
        ({}, "'record' must be one of"),
        ({"recording": True}, "Unknown in the body: recording"),
    ],
)
def test_a_wrong_switch_is_refused(
    admin: Admin, container: ContainerProxy, body: dict[str, Any], sentence: str
) -> None:
    names = ("dbs", _names(container)[0], "colls", _names(container)[1], "workload")
    with pytest.raises(RequestRefusedError, match=sentence):
        admin._ask("PUT", *names, body=body)


def test_a_wrong_place_and_a_wrong_name_are_refused(admin: Admin, container: ContainerProxy) -> None:
    path = ("dbs", _names(container)[0], "colls", _names(container)[1], "workload")
    with pytest.raises(RequestRefusedError, match="no place in a record"):
        admin._answer("GET", (*path, "records"), None, None, {"x-ms-continuation": "1.x"})
    with pytest.raises(RequestRefusedError) as raised:
        admin._answer("GET", (*path, "secret"), None)
    assert raised.value.status == 404
    with pytest.raises(RequestRefusedError) as raised:
        admin.workload("nobody", "things")
    assert raised.value.status == 404


class _Life:
    """A node with one container, and what talks to it."""

    def __init__(self, settings: Settings) -> None:
        self._running = Running(settings)
        server = self._running.server
        self._connection = Connection(server.endpoint, server.key)
        database = CosmosClient(server.endpoint, server.key).create_database_if_not_exists("db")
        self.container = database.create_container_if_not_exists("things", PartitionKey("/pk"))

    def __enter__(self) -> tuple[Running, Admin, ContainerProxy]:
        return self._running, Admin(self._connection), self.container

    def __exit__(self, *_: object) -> None:
        self._connection.__exit__(None, None, None)
        self._running.close()


def _running(settings: Settings) -> _Life:
    return _Life(settings)


def test_the_switch_and_the_record_are_there_after_a_restart(tmp_path: Path) -> None:
    settings = Settings(port=0, data=tmp_path)
    with _running(settings) as (_, admin, container):
        admin.switch_workload("db", "things", "values")
        container.create_item({"id": "1", "pk": "a"})
    with _running(settings) as (_, admin, container):
        container.read_item("1", "a")
        assert [each.operation for each in _recorded(admin, container)] == [Operation.CREATE, Operation.READ]
        assert admin.workload("db", "things")["switched"]


def test_a_server_that_records_all_has_containers_that_it_does_not(tmp_path: Path) -> None:
    settings = Settings(port=0, data=tmp_path, record_workload=Mode.VALUES)
    with _running(settings) as (_, admin, container):
        container.create_item({"id": "1", "pk": "a"})
        assert len(_recorded(admin, container)) == 1
        admin.switch_workload("db", "things", "off")
        container.read_item("1", "a")
        assert len(_recorded(admin, container)) == 1
    with _running(settings) as (_, admin, container):
        container.read_item("1", "a")
        assert len(_recorded(admin, container)) == 1
        admin.forget_workload("db", "things")
        container.read_item("1", "a")
        assert len(_recorded(admin, container)) == 1


def test_the_record_of_a_deleted_container_is_removed(tmp_path: Path) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (running, admin, container):
        admin.switch_workload("db", "things", "values")
        container.create_item({"id": "1", "pk": "a"})
        assert len(_recorded(admin, container)) == 1
        client = CosmosClient(running.server.endpoint, running.server.key)
        client.get_database_client("db").delete_container("things")
        running.ask(running.node.engine.workload.flush())
        assert [path.name for path in (tmp_path / "workload").iterdir()] == ["secret"]


@pytest.fixture
def read_only_key() -> str:
    return base64.b64encode(os.urandom(64)).decode()


@pytest.fixture
def reader(tmp_path: Path, read_only_key: str) -> Iterator[tuple[Admin, Admin]]:
    """The admin API by the master key and by the read-only key."""
    settings = Settings(port=0, data=tmp_path, read_only_key=read_only_key)
    with (
        _running(settings) as (running, admin, _),
        Connection(running.server.endpoint, read_only_key) as connection,
    ):
        yield admin, Admin(connection)


def test_the_read_only_key_reads_a_record_and_changes_none(reader: tuple[Admin, Admin]) -> None:
    master, read_only = reader
    for change in (
        lambda: read_only.switch_workload("db", "things", "values"),
        lambda: read_only.forget_workload("db", "things"),
        lambda: read_only.add_workload("db", "things", b""),
    ):
        with pytest.raises(RequestRefusedError) as raised:
            change()
        assert raised.value.status == 403
    assert read_only.workload("db", "things")["record"] == "off"
    master.add_workload("db", "things", b'{"at":1,"operation":"read"}\n')
    assert b"".join(read_only.workload_lines("db", "things")) == (
        b'{"at":1.0,"operation":"read","container":"db/things"}\n'
    )


def test_a_stranger_leaves_no_trace_and_learns_nothing(tmp_path: Path) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (running, admin, container):
        admin.switch_workload("db", "things", "values")
        stranger = base64.b64encode(os.urandom(64)).decode()
        with Connection(running.server.endpoint, stranger) as connection:
            with pytest.raises(RequestRefusedError) as raised:
                list(Admin(connection).workload_lines("db", "things"))
            assert raised.value.status == 401
            link = ("dbs", "db", "colls", "things", "docs", "1")
            answer = connection.request("GET", link, "docs", link, {"x-ms-documentdb-partitionkey": '["a"]'})
            assert answer.status == 401
        assert _recorded(admin, container) == []


def test_long_keys_long_filters_and_large_batches_leave_short_lines(tmp_path: Path) -> None:
    limits = Limits(workload_record_bytes=2 * KB)
    with _running(Settings(port=0, data=tmp_path, limits=limits)) as (_, admin, container):
        admin.switch_workload("db", "things", "values")
        for key in ("x" * 2_000, "y" * 20_000):
            with pytest.raises(CosmosHttpResponseError):
                container.read_item("1", key)
        names = ", ".join(f"'{number}{'v' * 90}'" for number in range(90))
        list(container.query_items(f"SELECT * FROM c WHERE c.name IN ({names})", partition_key="a"))
        too_long = " OR ".join(f"c.p{number} = {number}" for number in range(200_000))
        with pytest.raises(CosmosHttpResponseError):
            list(container.query_items(f"SELECT * FROM c WHERE {too_long}", partition_key="a"))
        members = [("upsert", ({"id": f"{number}{'i' * 200}", "pk": "a"},)) for number in range(100)]
        container.execute_item_batch(members, partition_key="a")
        found = _recorded(admin, container)
        lines = b"".join(admin.workload_lines("db", "things")).splitlines()
    short, long, filtered, refused, batch = found
    assert max(map(len, lines)) <= 2 * KB
    assert short.key == ("x" * 2_000,)[:1] or short.hashed
    assert long.hashed
    assert long.key is not None
    assert filtered.hashed
    assert len(set(filtered.equals["/name"])) == 90
    assert refused.status == 400
    assert not refused.equals
    assert batch.members == (Member(operation=Operation.UPSERT),) * len(batch.members) or not batch.members


def test_the_oldest_requests_go_when_the_record_is_full(tmp_path: Path) -> None:
    limits = Limits(workload_container_bytes=16 * KB)
    with _running(Settings(port=0, data=tmp_path, limits=limits, throttle="observe")) as (
        running,
        admin,
        container,
    ):
        admin.switch_workload("db", "things", "values")
        for number in range(300):
            container.upsert_item({"id": str(number), "pk": "a"})
            if number % 20 == 0:
                running.ask(running.node.engine.workload.flush())
        found = _recorded(admin, container)
        assert admin.workload("db", "things")["bytes"] <= 18 * KB
    assert found[-1].id == "299"
    ids = [int(each.id) for each in found]
    assert ids == list(range(ids[0], 300))
    assert 20 < len(ids) < 300


def test_throttled_requests_are_recorded(tmp_path: Path) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (running, admin, container):
        admin.switch_workload("db", "things", "values")
        for number in range(3):
            container.create_item({"id": str(number), "pk": "hot"})
        with running.server.throttled("db", "things", count=1):
            container.read_item("1", "hot")
        refused, served = _recorded(admin, container)[-2:]
    assert (refused.status, refused.operation, refused.key) == (429, Operation.READ, ("hot",))
    assert served.status == 200


def test_too_much_at_once_is_lost_and_told_and_no_request_fails(tmp_path: Path) -> None:
    limits = Limits(workload_pending=1)
    with _running(Settings(port=0, data=tmp_path, limits=limits)) as (running, admin, container):
        admin.switch_workload("db", "things", "values")
        container.create_item({"id": "0", "pk": "a"})
        found = running.node.engine.open_container("db", "things")
        assert found is not None
        assert found.recording is not None
        for _ in range(5):
            found.recording.add({"at": 1.0, "operation": "query"})
        state = admin.workload("db", "things")
        container.create_item({"id": "1", "pk": "a"})
    assert state["records"] + state["lost"] == 6
    assert state["lost"] >= 1


def test_a_record_that_cannot_be_written_fails_no_request(tmp_path: Path) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (_, admin, container):
        admin.switch_workload("db", "things", "values")
        (folder,) = [path for path in (tmp_path / "workload").iterdir() if path.is_dir()]
        (folder / "switch.json").unlink()
        folder.rmdir()
        folder.write_text("in the way")
        container.create_item({"id": "1", "pk": "a"})
        assert admin.workload("db", "things")["lost"] == 1
        folder.unlink()
        container.read_item("1", "a")
        assert [each.operation for each in _recorded(admin, container)] == [Operation.READ]


@pytest.mark.parametrize("asked", ["switch", "add"])
def test_who_asks_for_what_the_disk_does_not_take_is_told(tmp_path: Path, asked: str) -> None:
    with _running(Settings(port=0, data=tmp_path)) as (_, admin, container):
        rid = container.read()["_rid"]
        admin.workload("db", "things")
        (tmp_path / "workload" / rid).write_text("in the way")
        ask: dict[str, Callable[[], Any]] = {
            "switch": lambda: admin.switch_workload("db", "things", "values"),
            "add": lambda: admin.add_workload("db", "things", b'{"at":1,"operation":"read"}\n'),
        }
        with pytest.raises(RequestRefusedError, match="The disk does not take the workload record") as raised:
            ask[asked]()
        assert raised.value.status == 503
        assert admin.workload("db", "things")["record"] == "off"

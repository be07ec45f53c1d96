"""Who may do what does not depend on how it is asked: every frame proves who sends it, and the desk decides."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from attack.callers import Bearer, Caller, Key, identity
from pleiad.node import Node
from pleiad.settings import Settings
from pleiad.testing.start import RunningServer
from tests.clients.direct.conftest import make_container
from tests.clients.direct.frames import Direct, Https
from tests.clients.direct.operations import QUERY
from tests.coroutines import LoopThread

READ_ONLY_KEY = "cmVhZHMgb25seSwgYW5kIG5ldmVyIHdyaXRlcw=="
WRONG_KEY = "d3Jvbmc="
ITEM = {"id": "1", "pk": "a"}


@contextlib.contextmanager
def served(settings: Settings) -> Iterator[RunningServer]:
    node, thread = Node(settings), LoopThread()
    try:
        thread.ask(node.start())
        port = node.server.port
        yield RunningServer(f"http://localhost:{port}", settings.key, port, os.getpid())
        thread.ask(node.stop())
    finally:
        thread.close()


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(Settings(port=0, read_only_key=READ_ONLY_KEY)) as server:
        yield server


@pytest.fixture(scope="module")
def container(server: RunningServer) -> list[str]:
    https = Https(server)
    made = make_container(https)
    assert https.send("POST", [*made, "docs"], ITEM, None, ["a"]).status == 201
    return made


def statuses(server: RunningServer, container: list[str], caller: Caller) -> dict[str, int]:
    """What a caller is told in frames; what it asks for changes nothing."""
    direct = Direct(server, caller)
    docs = [*container, "docs"]
    told = {
        "read": direct.send("GET", [*docs, "1"], None, None, ["a"]),
        "read other key": direct.send("GET", [*docs, "1"], None, None, ["b"]),
        "query": direct.send("POST", docs, {"query": "SELECT * FROM c"}, QUERY, ["a"]),
        "query all": direct.send(
            "POST", docs, {"query": "SELECT * FROM c"}, {**QUERY, "x-ms-documentdb-partitionkeyrangeid": "0"}
        ),
        "replace": direct.send("PUT", [*docs, "1"], ITEM, None, ["a"]),
        "create": direct.send("POST", docs, ITEM, None, ["a"]),
        "barrier": direct.send("HEAD", container, None, None, ["a"]),
        "databases": direct.send("GET", ["dbs"]),
        "users": direct.send("GET", [*container[:2], "users"]),
    }
    direct.close()
    return {label: answer.status for label, answer in told.items()}


def token(server: RunningServer, container: list[str], name: str, mode: str, **more: object) -> Bearer:
    https = Https(server)
    users = [*container[:2], "users"]
    assert https.send("POST", users, {"id": name}).status == 201
    grant = {"id": "p", "permissionMode": mode, "resource": "/".join(container), **more}
    return Bearer(name, https.send("POST", [*users, name, "permissions"], grant).json["_token"])


def test_the_master_key_may_do_all_of_it(server: RunningServer, container: list[str]) -> None:
    told = statuses(server, container, Key("master", server.key))
    assert told["read other key"] == 404
    assert told["create"] == 409
    assert {told[label] for label in told if label not in ("read other key", "create")} == {200}


@pytest.mark.parametrize(
    "caller",
    [Bearer("nobody", ""), Key("wrong", WRONG_KEY), Bearer("forged", "type=resource&ver=1&sig=x;e30=;")],
)
def test_who_proves_nothing_may_do_nothing(
    caller: Caller, server: RunningServer, container: list[str]
) -> None:
    assert set(statuses(server, container, caller).values()) == {401}


def test_the_read_only_key_reads_and_never_writes(server: RunningServer, container: list[str]) -> None:
    told = statuses(server, container, Key("read-only", READ_ONLY_KEY))
    assert (told.pop("replace"), told.pop("create"), told.pop("read other key")) == (403, 403, 404)
    assert set(told.values()) == {200}


def test_an_identity_may_read_and_write_items(server: RunningServer, container: list[str]) -> None:
    told = statuses(server, container, identity(server.key))
    assert (told.pop("create"), told.pop("read other key")) == (409, 404)
    assert set(told.values()) == {200}


def test_a_token_to_read_a_container_reads_its_items(server: RunningServer, container: list[str]) -> None:
    told = statuses(server, container, token(server, container, "reader", "Read"))
    assert told == {
        "read": 200,
        "read other key": 404,
        "query": 200,
        "query all": 200,
        "replace": 403,
        "create": 403,
        "barrier": 200,
        "databases": 403,
        "users": 403,
    }


def test_a_token_for_a_key_reaches_no_other(server: RunningServer, container: list[str]) -> None:
    told = statuses(server, container, token(server, container, "one", "All", resourcePartitionKey=["a"]))
    assert (told["read"], told["replace"], told["create"]) == (200, 200, 409)
    assert (told["read other key"], told["query all"], told["databases"]) == (403, 403, 403)


def test_a_signature_is_for_one_operation_on_one_item(server: RunningServer, container: list[str]) -> None:
    direct = Direct(server)
    docs = [*container, "docs"]
    for method, segments in (("PUT", [*docs, "1"]), ("GET", [*docs, "2"]), ("GET", docs)):
        fields = Key("master", server.key).headers(method, segments)
        answer = direct.send("GET", [*docs, "1"], None, fields, ["a"])
        assert answer.status == 401


def test_a_fault_cuts_the_connection_of_a_frame_and_no_other(direct: Direct) -> None:
    docs = [*make_container(direct.https), "docs"]
    other = Direct(direct.server)
    with direct.server.faults.add("cut-after", operation="create", count=1):
        with pytest.raises(OSError):
            direct.send("POST", docs, ITEM, None, ["a"])
        assert other.send("GET", [*docs, "1"], None, None, ["a"]).status == 200
    other.close()


def test_a_fault_on_demand_is_answered_in_frames_too(direct: Direct) -> None:
    docs = [*make_container(direct.https), "docs"]
    with direct.server.faults.add(429, operation="read", count=1, retry_after_ms=7):
        answer = direct.send("GET", [*docs, "1"], None, None, ["a"])
        assert (answer.status, answer.substatus) == (429, 3200)
        assert answer.headers["x-ms-retry-after-ms"] == "7"
    assert direct.send("GET", [*docs, "1"], None, None, ["a"]).status == 404

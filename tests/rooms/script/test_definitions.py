"""Scripts as resources: created, read, listed, queried, replaced and deleted, by name and by rid."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.testing.start import RunningServer
from tests.rooms.script.conftest import Refused, Scripted
from tests.stores import StartServer

BODY = "function () { return 1; }"
KINDS = {
    "stored_procedure": ({}, 8),
    "trigger": ({"triggerType": "Pre", "triggerOperation": "All"}, 7),
    "user_defined_function": ({}, 6),
}


def call(scripted: Scripted, verb: str, kind: str, *arguments: Any) -> Any:
    plural = kind + "s" if verb in ("list", "query") else kind
    return getattr(scripted.scripts, f"{verb}_{plural}")(*arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_lives_from_create_to_delete(scripted: Scripted, refused: Refused, kind: str) -> None:
    extra, nibble = KINDS[kind]
    made = call(scripted, "create", kind, {"id": "s", "body": BODY, **extra})
    assert {name: made[name] for name in ("id", "body", *extra)} == {"id": "s", "body": BODY, **extra}
    raw = base64.b64decode(made["_rid"].replace("-", "/"))
    assert len(raw) == 16
    assert raw[15] >> 4 == nibble
    container = scripted.container.read()
    assert made["_self"].startswith(container["_self"])
    with refused(409):
        call(scripted, "create", kind, {"id": "s", "body": BODY, **extra})
    assert call(scripted, "get", kind, "s") == made
    assert list(call(scripted, "list", kind)) == [made]
    assert list(call(scripted, "query", kind, "SELECT VALUE s.id FROM s WHERE s.id = 's'")) == ["s"]
    changed = call(scripted, "replace", kind, "s", {"id": "s", "body": "function () { return 2; }", **extra})
    assert changed["body"] == "function () { return 2; }"
    assert changed["_rid"] == made["_rid"]
    assert changed["_etag"] != made["_etag"]
    call(scripted, "delete", kind, "s")
    with refused(404):
        call(scripted, "get", kind, "s")
    assert list(call(scripted, "list", kind)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_are_reached_by_rid_too(scripted: Scripted, kind: str) -> None:
    made = call(scripted, "create", kind, {"id": "s", "body": BODY, **KINDS[kind][0]})
    readers: dict[str, Callable[[str], Any]] = {
        "stored_procedure": scripted.container.client_connection.ReadStoredProcedure,
        "trigger": scripted.container.client_connection.ReadTrigger,
        "user_defined_function": scripted.container.client_connection.ReadUserDefinedFunction,
    }
    assert readers[kind](made["_self"]) == made


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        ("stored_procedure", {"id": "s"}),
        ("stored_procedure", {"id": "s", "body": ""}),
        ("stored_procedure", {"body": BODY}),
        ("stored_procedure", {"id": 5, "body": BODY}),
        ("stored_procedure", {"id": "x" * 300, "body": BODY}),
        ("trigger", {"id": "s", "body": BODY}),
        ("trigger", {"id": "s", "body": BODY, "triggerType": "Never", "triggerOperation": "All"}),
        ("trigger", {"id": "s", "body": BODY, "triggerType": "Pre", "triggerOperation": 3}),
        ("user_defined_function", {"id": "s", "body": " "}),
    ],
)
def test_definitions_that_make_no_sense_are_refused(
    scripted: Scripted, kind: str, definition: dict[str, Any]
) -> None:
    connection = scripted.container.client_connection
    creators: dict[str, Callable[[str, dict[str, Any]], Any]] = {
        "stored_procedure": connection.CreateStoredProcedure,
        "trigger": connection.CreateTrigger,
        "user_defined_function": connection.CreateUserDefinedFunction,
    }
    with pytest.raises(Exception) as caught:
        creators[kind](scripted.container.container_link, definition)
    assert getattr(caught.value, "status_code", 400) == 400
    assert list(call(scripted, "list", kind)) == []


def test_scripts_go_with_their_container(pleiad_client: CosmosClient, refused: Refused) -> None:
    database = pleiad_client.create_database("scripts-go")
    try:
        first = Scripted(database.create_container("c", PartitionKey("/pk")))
        first.scripts.create_stored_procedure({"id": "s", "body": BODY})
        database.delete_container("c")
        second = Scripted(database.create_container("c", PartitionKey("/pk")))
        assert list(second.scripts.list_stored_procedures()) == []
        with refused(404):
            second.scripts.execute_stored_procedure("s", "a")
    finally:
        pleiad_client.delete_database("scripts-go")


def test_scripts_outlive_a_restart(tmp_path: Path, start_server: StartServer) -> None:
    answer = "function () { __.response.setBody('still here'); }"
    with start_server(data=tmp_path) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("d")
        container = database.create_container("c", PartitionKey("/pk"))
        made = container.scripts.create_stored_procedure({"id": "s", "body": answer})
    with start_server(data=tmp_path) as server:
        client = CosmosClient(server.endpoint, server.key)
        scripts = client.get_database_client("d").get_container_client("c").scripts
        assert scripts.get_stored_procedure("s") == made
        assert scripts.execute_stored_procedure("s", "a") == "still here"


def test_who_may_not_write_may_not_run_scripts(
    pleiad_server: RunningServer, scripted: Scripted, refused: Refused
) -> None:
    scripted.scripts.create_stored_procedure({"id": "s", "body": "function () { __.response.setBody(1); }"})
    link = scripted.container.container_link
    database = CosmosClient(pleiad_server.endpoint, pleiad_server.key).get_database_client(link.split("/")[1])
    user = database.create_user({"id": "u"})

    def scripts_of(mode: str, key: list[Any] | None = None) -> Any:
        wanted: dict[str, Any] = {"id": f"p-{uuid.uuid4()}", "permissionMode": mode, "resource": link}
        if key is not None:
            wanted["resourcePartitionKey"] = key
        token = user.create_permission(wanted).properties["_token"]
        client = CosmosClient(pleiad_server.endpoint, {link: token})
        return client.get_database_client(database.id).get_container_client("scripted").scripts

    with refused(403):
        scripts_of("read").execute_stored_procedure("s", "a")
    assert scripts_of("all").execute_stored_procedure("s", "a") == 1
    scripts_of("all").create_stored_procedure({"id": "t", "body": BODY})
    with refused(403):
        scripts_of("read").create_stored_procedure({"id": "u", "body": BODY})
    with refused(403):
        scripts_of("all", ["a"]).create_stored_procedure({"id": "u", "body": BODY})
    narrow = scripts_of("all", ["a"])
    assert narrow.execute_stored_procedure("s", "a") == 1
    with refused(403):
        narrow.execute_stored_procedure("s", "b")

"""Users, permissions, resource tokens and identity tokens through the official client."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey

from pleiad.testing.start import RunningServer


def client_with(
    server: RunningServer, database: DatabaseProxy, resource: str, mode: str, key: list[Any] | None = None
) -> CosmosClient:
    """A client whose only right is a new permission on a resource."""
    user = database.upsert_user({"id": "somebody"})
    wanted: dict[str, Any] = {"id": "permission", "permissionMode": mode, "resource": resource}
    if key is not None:
        wanted["resourcePartitionKey"] = key
    permission = user.upsert_permission(wanted)
    return CosmosClient(server.endpoint, {resource: permission.properties["_token"]})


def container_of(client: CosmosClient, database: DatabaseProxy, container: ContainerProxy) -> ContainerProxy:
    return client.get_database_client(database.id).get_container_client(container.id)


def test_users_and_permissions_are_created_changed_listed_and_deleted(
    pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    user = pleiad_database.create_user({"id": "u"})
    with refused(409):
        pleiad_database.create_user({"id": "u"})
    assert [found["id"] for found in pleiad_database.list_users()] == ["u"]
    wanted = {"id": "p", "permissionMode": "read", "resource": container.container_link}
    permission = user.create_permission(wanted)
    assert permission.permission_mode.lower() == "read"
    assert permission.resource_link == container.container_link
    assert permission.properties["_token"].startswith("type=resource&ver=1&sig=")
    changed = user.replace_permission("p", {**wanted, "permissionMode": "all"})
    assert changed.permission_mode.lower() == "all"
    assert [found["id"] for found in user.list_permissions()] == ["p"]
    assert len(list(user.query_permissions("SELECT * FROM p WHERE p.id = 'p'"))) == 1
    user.delete_permission("p")
    with refused(404):
        user.get_permission("p")
    pleiad_database.replace_user("u", {"id": "renamed"})
    pleiad_database.delete_user("renamed")
    assert list(pleiad_database.list_users()) == []


def test_a_read_token_reads_the_container_and_its_items_and_changes_nothing(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    container.create_item({"id": "1", "pk": "a"})
    client = client_with(pleiad_server, pleiad_database, container.container_link, "read")
    reader = container_of(client, pleiad_database, container)
    assert reader.read()["id"] == container.id
    assert reader.read_item("1", "a")["id"] == "1"
    assert [item["id"] for item in reader.read_all_items()] == ["1"]
    for write in (
        lambda: reader.create_item({"id": "2", "pk": "a"}),
        lambda: reader.upsert_item({"id": "1", "pk": "a"}),
        lambda: reader.replace_item("1", {"id": "1", "pk": "a"}),
        lambda: reader.delete_item("1", "a"),
        lambda: reader.patch_item("1", "a", [{"op": "set", "path": "/n", "value": 1}]),
        lambda: reader.delete_all_items_by_partition_key("a"),
    ):
        with refused(403):
            write()


def test_an_all_token_changes_items_and_deletes_the_container_but_does_not_change_it(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    client = client_with(pleiad_server, pleiad_database, container.container_link, "all")
    writer = container_of(client, pleiad_database, container)
    writer.create_item({"id": "1", "pk": "a"})
    writer.replace_item("1", {"id": "1", "pk": "a", "n": 1})
    writer.delete_item("1", "a")
    database = client.get_database_client(pleiad_database.id)
    with refused(403):
        database.replace_container(container.id, PartitionKey("/pk"), default_ttl=1)
    database.delete_container(container.id)
    assert not list(pleiad_database.list_containers())


def test_a_token_is_for_its_own_container(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    other = pleiad_database.create_container("other", PartitionKey("/pk"))
    other.create_item({"id": "1", "pk": "a"})
    user = pleiad_database.create_user({"id": "u"})
    wanted = {"id": "p", "permissionMode": "all", "resource": container.container_link}
    token = user.create_permission(wanted).properties["_token"]
    client = CosmosClient(pleiad_server.endpoint, {other.container_link: token})
    with refused(403):
        container_of(client, pleiad_database, other).read_item("1", "a")


def test_a_token_for_one_partition_key_reaches_no_other(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    for key in ("a", "b"):
        container.create_item({"id": "1", "pk": key})
    client = client_with(pleiad_server, pleiad_database, container.container_link, "all", ["a"])
    mine = container_of(client, pleiad_database, container)
    assert mine.read_item("1", "a")["pk"] == "a"
    mine.create_item({"id": "2", "pk": "a"})
    with refused(403):
        mine.read_item("1", "b")
    with refused(403):
        mine.create_item({"id": "2", "pk": "b"})
    with refused(403):
        list(mine.read_all_items())


@pytest.mark.parametrize("by", ["name", "rid"])
def test_a_token_for_one_item_reaches_no_other(
    by: str,
    pleiad_server: RunningServer,
    pleiad_database: DatabaseProxy,
    container: ContainerProxy,
    refused: Any,
) -> None:
    item = container.create_item({"id": "1", "pk": "a"})
    container.create_item({"id": "2", "pk": "a"})
    user = pleiad_database.create_user({"id": "u"})
    link = f"{container.container_link}/docs/1"
    wanted = {"id": "p", "permissionMode": "read", "resource": link if by == "name" else item["_self"]}
    token = user.create_permission(wanted).properties["_token"]
    tokens = {link: token, f"{container.container_link}/docs/2": token, container.container_link: token}
    client = CosmosClient(pleiad_server.endpoint, tokens)
    mine = container_of(client, pleiad_database, container)
    assert mine.read_item("1", "a") == item
    with refused(403):
        mine.read_item("2", "a")


def test_a_token_ends_with_its_permission(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    container.create_item({"id": "1", "pk": "a"})
    client = client_with(pleiad_server, pleiad_database, container.container_link, "read")
    reader = container_of(client, pleiad_database, container)
    assert reader.read_item("1", "a")["id"] == "1"
    pleiad_database.get_user_client("somebody").delete_permission("permission")
    with refused(403):
        reader.read_item("1", "a")


class EmulatorCredential:
    """The identity token of the emulators: its signature is the master key."""

    def __init__(self, key: str, seconds: float = 3600) -> None:
        self._key = key
        self._seconds = seconds

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        now = int(time.time())
        head = {
            "typ": "JWT",
            "alg": "RS256",
            "x5t": "CosmosEmulatorPrimaryMaster",
            "kid": "CosmosEmulatorPrimaryMaster",
        }
        claims = {"aud": "https://localhost.localhost", "iat": now, "nbf": now, "exp": now + self._seconds}
        parts = (json.dumps(head).encode(), json.dumps(claims).encode(), self._key.encode())
        return AccessToken(
            ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), now + 3600
        )


def test_an_identity_token_works_with_items_but_not_with_containers(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    endpoint = f"https://localhost:{pleiad_server.port}"
    client = CosmosClient(endpoint, EmulatorCredential(pleiad_server.key))
    mine = container_of(client, pleiad_database, container)
    mine.create_item({"id": "1", "pk": "a"})
    assert mine.read_item("1", "a")["id"] == "1"
    mine.delete_item("1", "a")
    with refused(403, 5300):
        client.create_database("mine")
    with refused(403, 5300):
        client.get_database_client(pleiad_database.id).delete_container(container.id)


@pytest.mark.parametrize("credential", [EmulatorCredential("d3Jvbmc="), EmulatorCredential("", -3600)])
def test_an_identity_token_of_somebody_else_is_refused(
    credential: EmulatorCredential, pleiad_server: RunningServer, refused: Any
) -> None:
    with refused(401):
        CosmosClient(f"https://localhost:{pleiad_server.port}", credential).get_database_client("x").read()

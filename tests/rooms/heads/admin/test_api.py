"""The admin API: physical partitions, throughput, and who may ask."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
from collections.abc import Callable
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection
from pleiad.testing.start import RunningServer
from tests.waiting import SECONDS_MAX


def names(container: ContainerProxy) -> tuple[str, str]:
    _, database, _, name = container.container_link.split("/")
    return database, name


def send(
    server: RunningServer,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    key: str | None = None,
) -> tuple[int, Any]:
    """A signed request by the rule the documentation states."""
    date = formatdate(usegmt=True)
    parts = path.strip("/").partition("?")[0].split("/")
    kind, link = (parts[-1], parts[:-1]) if len(parts) % 2 else (parts[-2], parts)
    text = f"{method.lower()}\n{kind}\n{'/'.join(link)}\n{date.lower()}\n\n"
    proof = base64.b64encode(
        hmac.digest(base64.b64decode(key or server.key), text.encode(), "sha256")
    ).decode()
    fields = {"x-ms-date": date, "authorization": quote(f"type=master&ver=1.0&sig={proof}", safe="")}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
    try:
        connection.request(method, path, body, fields if headers is None else headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()


# -- physical partitions -------------------------------------------------------------------------------


def test_the_partitions_tile_the_hash_space_and_tell_what_they_hold(
    admin: Admin, client: CosmosClient, container: ContainerProxy
) -> None:
    database, _ = names(container)
    spread: Any = client.get_database_client(database).create_container(
        "spread", PartitionKey("/pk"), offer_throughput=30_000
    )
    for number in range(60):
        spread.create_item({"id": "1", "pk": f"k{number}"})
    answer = admin.partitions(database, "spread", largest=0, hottest=0)
    partitions = answer["partitions"]
    assert [each["id"] for each in partitions] == ["0", "1", "2", "3", "4"]
    assert [each["minInclusive"] for each in partitions[1:]] == [
        each["maxExclusive"] for each in partitions[:-1]
    ]
    assert (partitions[0]["minInclusive"], partitions[-1]["maxExclusive"]) == ("", "FF")
    assert sum(each["items"] for each in partitions) == 60
    assert all((each["bytes"] > 0) == (each["items"] > 0) == (each["lsn"] > 0) for each in partitions)
    assert answer["partitionKey"] == ["/pk"]
    assert answer["throughput"] == {"ru": 30_000, "autoscale": False, "shared": False}
    assert answer["limits"]["logicalPartitionBytes"] == 20 * 1024**3
    assert (answer["largest"], answer["hottest"], answer["history"]) == ([], [], [])


@pytest.mark.requirement("R151")
def test_the_largest_logical_partitions_show_a_bad_key(admin: Admin, container: ContainerProxy) -> None:
    for number in range(10):
        container.create_item({"id": f"big-{number}", "pk": "big", "text": "x" * 1000})
        container.create_item({"id": "1", "pk": f"small-{number}"})
    largest = admin.partitions(*names(container), largest=3, hottest=0)["largest"]
    assert len(largest) == 3
    assert largest[0]["key"] == ["big"]
    assert (largest[0]["items"], largest[0]["partition"]) == (10, "0")
    assert largest[0]["bytes"] > 10_000 > 10 * largest[1]["bytes"]


def test_the_hottest_logical_partitions_are_those_asked_most(admin: Admin, container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": "b"})
    for _ in range(20):
        container.read_item("1", "a")
    hottest = admin.partitions(*names(container), largest=0, hottest=2)["hottest"]
    assert [each["key"] for each in hottest] == [["a"], ["b"]]
    assert hottest[0]["partitions"] == ["0"]
    assert hottest[0]["ruPerSecond"] > hottest[1]["ruPerSecond"] > 0


def test_keys_of_every_type_are_shown(admin: Admin, container: ContainerProxy) -> None:
    for id, value in enumerate(("text", 5, True, None)):
        container.upsert_item({"id": str(id), "pk": value})
    container.upsert_item({"id": "none"})
    answer = admin.partitions(*names(container), largest=10, hottest=10)
    keys: list[object] = ["text", 5, True, None, {}]
    for shown in (answer["largest"], answer["hottest"]):
        assert all([key] in [each["key"] for each in shown] for key in keys)


@pytest.mark.parametrize("value", ["-1", "101", "many", "1.5", "99999999999999999999", ""])
def test_a_count_that_makes_no_sense_is_refused(
    server: RunningServer, container: ContainerProxy, value: str
) -> None:
    path = f"/_pleiad/v1/{container.container_link}/partitions?largest={value}"
    status, answer = send(server, "GET", path)
    assert status == 400
    assert "'largest' must be a whole number from 0 to 100" in answer["message"]


def test_a_container_that_does_not_exist_is_not_found(admin: Admin, container: ContainerProxy) -> None:
    database, _ = names(container)
    for place, text in (((database, "none"), "no container 'none'"), (("none", "c"), "no database 'none'")):
        with pytest.raises(RequestRefusedError, match=text) as caught:
            admin.partitions(*place, largest=0, hottest=0)
        assert caught.value.status == 404


def test_the_load_of_a_partition_is_told_and_a_busy_one_is_seen(run: Callable[..., Any]) -> None:
    running = run(throttle="enforce")
    client = CosmosClient(running.server.endpoint, running.server.key)
    container: Any = client.create_database("d").create_container(
        "c", PartitionKey("/pk"), offer_throughput=18_000
    )
    with Connection(running.server.endpoint, running.server.key) as connection:
        admin = Admin(connection)
        before = admin.partitions("d", "c", largest=0, hottest=0)["partitions"]
        assert [each["ru"]["allowed"] for each in before] == [6_000, 6_000, 6_000]
        assert all(each["ru"]["total"] == 0 for each in before)
        charges = []
        for _ in range(20):
            container.upsert_item(
                {"id": "1", "pk": "hot"}, response_hook=lambda headers, _: charges.append(headers)
            )
        hot = charges[0]["x-ms-documentdb-partitionkeyrangeid"]
        after = {each["id"]: each["ru"] for each in admin.partitions("d", "c", 0, 0)["partitions"]}
    spent = sum(float(headers["x-ms-request-charge"]) for headers in charges)
    assert after[hot]["total"] == pytest.approx(spent, abs=0.01)
    assert 0 < after[hot]["normalizedPercent"] <= 100 * spent / 6_000 + 0.1
    assert all(load["total"] == 0 and load["throttled"] == 0 for id, load in after.items() if id != hot)


def test_the_throughput_of_the_account_and_its_metadata_is_told(
    admin: Admin, client: CosmosClient, container: ContainerProxy
) -> None:
    before = admin.account_throughput()
    database = client.create_database("more-by-admin", offer_throughput=1_100)
    database.create_container("c", PartitionKey("/pk"), offer_throughput=500)
    after = admin.account_throughput()
    assert after["ru"] - before["ru"] == 1_600
    assert after["limitRu"] is None
    assert after["metadata"]["limitRu"] == 24_000
    assert after["metadata"]["throttled"] == 0
    spent = after["metadata"]["total"] - before["metadata"]["total"]
    container.read_item("1", "a")
    client.get_database_client("more-by-admin").read()
    assert spent == pytest.approx(2 * 4.95)
    assert admin.account_throughput()["metadata"]["total"] > after["metadata"]["total"]


def test_throughput_is_shared_out_by_hand_and_evened_out_again(admin: Admin, client: CosmosClient) -> None:
    database = client.create_database("uneven-by-admin")
    database.create_container("c", PartitionKey("/pk"), offer_throughput=12_000)
    place = ("uneven-by-admin", "c")
    assert admin.redistribute(*place, {"0": 9_000, "1": 3_000}) == {"0": 9_000, "1": 3_000}
    shown = admin.partitions(*place, largest=0, hottest=0)["partitions"]
    assert [each["ru"]["allowed"] for each in shown] == [9_000, 3_000]
    assert admin.redistribute(*place, None) == {"0": 6_000, "1": 6_000}
    for first in (5_000, 5_500, 5_900):
        admin.redistribute(*place, {"0": first, "1": 12_000 - first})
    with pytest.raises(RequestRefusedError, match="5 times in a minute") as caught:
        admin.redistribute(*place, None)
    assert caught.value.status == 429


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 400, "'ru' must be an object"),
        ({"ru": [400]}, 400, "'ru' must be an object"),
        ({"ru": {"0": "400"}}, 400, "number of RU/s"),
        ({"ru": {"0": True}}, 400, "number of RU/s"),
        ({"ru": {"7": 400}}, 404, "no physical partition '7'"),
        ({"ru": {"0": 300}}, 400, "sum up to 300"),
        ({"ru": {}}, 400, "over all physical partitions"),
        ({"ru": {"0": 400}, "more": 1}, 400, "Unknown in the body: more"),
    ],
)
def test_shares_that_make_no_sense_are_refused(
    server: RunningServer, container: ContainerProxy, body: dict[str, Any], status: int, text: str
) -> None:
    path = f"/_pleiad/v1/{container.container_link}/partitions"
    found, answer = send(server, "PUT", path, json.dumps(body).encode())
    assert (found, text in answer["message"]) == (status, True), answer


# -- throughput ---------------------------------------------------------------------------------------


def test_throughput_is_read_and_set_as_the_client_does(admin: Admin, container: ContainerProxy) -> None:
    place = names(container)
    assert admin.throughput(*place) == {"ru": 400}
    assert admin.set_throughput(*place, {"ru": 900}) == {"ru": 900}
    assert container.get_throughput().offer_throughput == 900


def test_the_throughput_of_a_database_is_shared(admin: Admin, client: CosmosClient) -> None:
    database = client.create_database("shared-by-admin", offer_throughput=500)
    database.create_container("c", PartitionKey("/pk"))
    assert admin.throughput("shared-by-admin", None) == {"ru": 500}
    assert admin.set_throughput("shared-by-admin", None, {"ru": 700}) == {"ru": 700}
    shown = admin.partitions("shared-by-admin", "c", largest=0, hottest=0)["throughput"]
    assert shown == {"ru": 700, "autoscale": False, "shared": True}
    with pytest.raises(RequestRefusedError, match="shares that of its database"):
        admin.throughput("shared-by-admin", "c")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "Give either"),
        ({"ru": 400, "autoscaleMaximumRu": 1000}, "Give either"),
        ({"ru": "400"}, "must be a whole number"),
        ({"ru": True}, "must be a whole number"),
        ({"ru": 1}, "minimum"),
        ({"throughput": 400}, "Unknown in the body: throughput"),
    ],
)
def test_throughput_that_makes_no_sense_is_refused(
    admin: Admin, container: ContainerProxy, body: dict[str, Any], text: str
) -> None:
    with pytest.raises(RequestRefusedError, match=text) as caught:
        admin.set_throughput(*names(container), body)
    assert caught.value.status == 400
    assert admin.throughput(*names(container)) == {"ru": 400}


# -- who may ask, and what ------------------------------------------------------------------------------

PATHS = ("/_pleiad/v1/faults", "/_pleiad/v1/warnings", "/_pleiad/v1/dbs/d/colls/c/partitions")


@pytest.mark.parametrize("path", PATHS)
def test_without_a_signature_nobody_is_answered(server: RunningServer, path: str) -> None:
    assert send(server, "GET", path, headers={})[0] == 401
    status, answer = send(server, "GET", path, key=base64.b64encode(b"another key of 16").decode())
    assert status == 401
    assert server.key not in json.dumps(answer)


def test_the_read_only_key_may_read_and_not_change(run: Callable[..., Any]) -> None:
    read_only = base64.b64encode(b"read-only read-only").decode()
    server = run(read_only_key=read_only).server
    assert send(server, "GET", "/_pleiad/v1/faults", key=read_only) == (200, {"faults": []})
    for method in ("POST", "DELETE"):
        status, answer = send(server, method, "/_pleiad/v1/faults", b'{"fault":"429"}', key=read_only)
        assert status == 403
        assert "read-only" in answer["message"]


def test_a_resource_token_opens_nothing_here(
    server: RunningServer, client: CosmosClient, container: Any
) -> None:
    database = client.get_database_client(names(container)[0])
    user = database.create_user({"id": "ada"})
    permission = user.create_permission(
        {"id": "all", "permissionMode": "All", "resource": container.container_link}
    )
    headers = {
        "authorization": quote(permission.properties["_token"], safe=""),
        "x-ms-date": formatdate(usegmt=True),
    }
    path = f"/_pleiad/v1/{container.container_link}/partitions"
    status, answer = send(server, "GET", path, headers=headers)
    assert status == 403
    assert "master key" in answer["message"]


@pytest.mark.parametrize(
    "path", ["/_pleiad/v2/faults", "/_pleiad/v1", "/_pleiad/v1/nothing", "/_pleiad/v1/dbs/d"]
)
def test_what_is_not_there_is_not_found(server: RunningServer, path: str) -> None:
    assert send(server, "GET", path)[0] == 404


def test_methods_that_mean_nothing_are_not_allowed(server: RunningServer) -> None:
    assert send(server, "PUT", "/_pleiad/v1/faults", b"{}")[0] == 405
    assert send(server, "POST", "/metrics", b"{}")[0] == 405


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"text"', b"\xff", b'{"fault":"429","fault":"449"}'])
def test_a_body_that_is_no_object_is_refused(server: RunningServer, body: bytes) -> None:
    assert send(server, "POST", "/_pleiad/v1/faults", body)[0] == 400


@pytest.mark.parametrize("blanks", [0, 100_000])
def test_a_large_body_is_answered_like_a_small_one(
    server: RunningServer, admin: Admin, container: ContainerProxy, blanks: int
) -> None:
    """Large ones are read beside the loop; the lines of a workload record, which are no JSON object, are not."""
    database, name = names(container)
    path, filling = f"/_pleiad/v1/dbs/{database}/colls/{name}", b" " * blanks
    assert send(server, "POST", "/_pleiad/v1/faults", b'{"fault":"429"}' + filling)[0] == 201
    server.faults.clear()
    for body in (b"[]", b"{", b'{"fault":[]}'):
        assert send(server, "POST", "/_pleiad/v1/faults", body + filling)[0] == 400
    query = b'{"query":"SELECT * FROM c"}'
    assert send(server, "POST", f"{path}/explain", query + filling)[0] == 200
    lines = b'{"at":1,"operation":"read"}\n' * (1 + blanks // 20)
    assert admin.add_workload(database, name, lines) == 1 + blanks // 20


def test_names_with_blanks_and_slashes_are_signed_as_they_are(
    server: RunningServer, client: CosmosClient
) -> None:
    client.create_database("my data").create_container("the things", PartitionKey("/pk"))
    with Connection(server.endpoint, server.key) as connection:
        answer = Admin(connection).partitions("my data", "the things", largest=1, hottest=1)
    assert answer["container"] == "the things"

"""Where Pleiad answers otherwise than the service, on purpose: one test each, its reason in the docstring."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection
from pleiad.testing.start import RunningServer
from pleiad.wire.hybridrow.recordio import write_rows
from pleiad.wire.hybridrow.row import RowCodec
from pleiad.wire.hybridrow.schema import BATCH_OPERATION
from tests.waiting import SECONDS_MAX


@pytest.fixture
def container(pleiad_database: DatabaseProxy) -> ContainerProxy:
    return pleiad_database.create_container("things", PartitionKey("/pk"))


def post_item(
    server: RunningServer, link: str, body: bytes, key: str, **more: str
) -> tuple[int, dict[str, Any]]:
    """Creates an item from exactly these bytes, which no client library would send."""
    date = formatdate(usegmt=True)
    text = f"post\ndocs\n{link}\n{date.lower()}\n\n"
    proof = base64.b64encode(hmac.digest(base64.b64decode(server.key), text.encode(), "sha256")).decode()
    headers = {
        "x-ms-date": date,
        "authorization": quote(f"type=master&ver=1.0&sig={proof}", safe=""),
        "x-ms-documentdb-partitionkey": key,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
    try:
        connection.request("POST", f"/{link}/docs", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_a_property_named_twice_is_answered_once_with_its_last_value(
    pleiad_server: RunningServer, container: ContainerProxy
) -> None:
    """The service answers with both, of which most parsers take the last; some, as the Java client's own, refuse such
    an answer, and then one item makes every page unreadable that it is on."""
    body = b'{"id":"0","id":"1","pk":"a","n":1,"n":2,"o":{"p":[1],"p":{"q":0,"q":7}}}'
    status, answer = post_item(pleiad_server, container.container_link, body, '["a"]')
    assert (status, answer["id"], answer["n"], answer["o"]) == (201, "1", 2, {"p": {"q": 7}})
    texts: list[str] = []
    container.read_item("1", "a", raw_response_hook=lambda reply: texts.append(reply.http_response.text()))
    assert texts[0].count('"n"') == texts[0].count('"p"') == texts[0].count('"q"') == 1
    found: Iterable[Any] = container.query_items(
        "SELECT VALUE c.o.p.q FROM c WHERE c.n = 2 AND c.id = '1'", partition_key="a"
    )
    assert list(found) == [7]
    assert list(container.query_items("SELECT * FROM c WHERE c.n = 1", partition_key="a")) == []


def test_what_time_to_live_counts_from_is_changed_only_while_a_container_is_empty(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy
) -> None:
    """The service counts anew for the items there are. Only the .NET client has the setting, and it is obsolete."""
    body = {"id": "t", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, "defaultTtl": 10}
    link = ["dbs", pleiad_database.id]
    container = [*link, "colls", "t"]
    with Connection(pleiad_server.endpoint, pleiad_server.key) as connection:

        def put(more: dict[str, Any]) -> tuple[int, Any]:
            text = json.dumps({**body, **more}).encode()
            answer = connection.request("PUT", container, "colls", container, {}, text)
            return answer.status, answer.json()

        made = connection.request("POST", [*link, "colls"], "colls", link, {}, json.dumps(body).encode())
        assert made.status == 201
        assert put({"ttlPropertyPath": "/made"})[1]["ttlPropertyPath"] == "/made"
        pleiad_database.get_container_client("t").create_item({"id": "1", "pk": "a"})
        for more in ({}, {"ttlPropertyPath": "/other"}, {"ttlPropertyPath": "/made", "defaultTtl": 20}):
            status, answer = put(more)
            assert status == 400
            assert "while the container is empty" in answer["message"]
        assert put({"ttlPropertyPath": "/made", "indexingPolicy": {"indexingMode": "consistent"}})[0] == 200
        pleiad_database.get_container_client("t").delete_item("1", "a")
        assert "ttlPropertyPath" not in put({})[1]


def test_a_lone_surrogate_is_refused(pleiad_server: RunningServer, container: ContainerProxy) -> None:
    """A lone surrogate is no character and has no UTF-8 form, so no answer could carry it back unchanged."""
    body = rb'{"id":"1","pk":"a","s":"\ud800"}'
    status, answer = post_item(pleiad_server, container.container_link, body, '["a"]')
    assert status == 400
    assert "surrogate" in answer["message"]


@pytest.mark.every_store
def test_a_name_with_the_character_0_is_refused(
    pleiad_server: RunningServer, container: ContainerProxy
) -> None:
    """SQLite takes it for the end of the name: `v` would be found where an item has `v` with that character behind it,
    and an item would answer a query by the wrong one of two properties. In values it is a character like any other."""
    body = rb'{"id":"1","pk":"a","v\u0000":"other","v":"one"}'
    status, answer = post_item(pleiad_server, container.container_link, body, '["a"]')
    assert (status, "U+0000" in answer["message"]) == (400, True)
    container.create_item({"id": "2", "pk": "a", "v": "one\0"})
    patch = [{"op": "set", "path": "/w", "value": {"v\0": 1}}]
    with pytest.raises(CosmosHttpResponseError, match="U\\+0000"):
        container.patch_item("2", "a", patch)
    found: Iterable[Any] = container.query_items(
        "SELECT VALUE c.id FROM c WHERE c.v = 'one\\u0000'", partition_key="a"
    )
    assert list(found) == ["2"]
    none = container.query_items("SELECT * FROM c WHERE IS_DEFINED(c['v\\u0000'])", partition_key="a")
    assert list(none) == []


def test_integers_of_64_bits_keep_all_their_digits(
    pleiad_server: RunningServer, container: ContainerProxy
) -> None:
    """The service rounds every number to a double. Counters and ids of 64 bits are common and lose their last digits
    by that; they come back as they were written, so that a copy of a container is a copy."""
    texts: list[str] = []
    container.create_item({"id": "1", "pk": "a", "n": 12345678901234567891})
    container.read_item("1", "a", raw_response_hook=lambda found: texts.append(found.http_response.text()))
    assert '"n":12345678901234567891,' in texts[0].replace(" ", "")


def test_a_number_no_double_holds_is_refused_as_key(container: ContainerProxy) -> None:
    """The service hashes the nearest double, and two such keys become one logical partition without a word.
    A partition key cannot be corrected in place, so the mistake is told when it is made."""
    with pytest.raises(CosmosHttpResponseError) as caught:
        container.create_item({"id": "1", "pk": 2**53 + 1})
    assert caught.value.status_code == 400
    assert "store such keys as strings" in str(caught.value)


def test_deleting_a_partition_key_is_done_when_it_is_answered(container: ContainerProxy) -> None:
    """The service deletes in the background with spare throughput. Tests that clean up with this call want
    to go on at once, and the work of one logical partition is small here."""
    for number in range(20):
        container.create_item({"id": str(number), "pk": "a"})
    container.delete_all_items_by_partition_key("a")
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize(
    "field", [{"effectivePartitionKey": b"\x01"}, {"binaryId": b"\x01"}, {"timeToLiveInSeconds": 5}]
)
def test_a_batch_of_rows_may_not_name_what_only_the_service_knows(
    pleiad_server: RunningServer, container: ContainerProxy, field: dict[str, bytes | int]
) -> None:
    """The service also takes an effective partition key, a binary id and a time to live for one operation of a
    batch in HybridRow. No client sends them unless an application sets them by hand; passing over them would do
    something else than was asked."""
    row = RowCodec(BATCH_OPERATION).write({"operationType": 2, "resourceType": 2, "id": "x", **field})
    status, answer = post_item(
        pleiad_server,
        container.container_link,
        write_rows([row]),
        '["a"]',
        x_ms_cosmos_is_batch_request="True",
        x_ms_cosmos_batch_atomic="True",
    )
    assert status == 400
    assert f"'{next(iter(field))}' is not supported" in answer["message"]


def test_a_permission_is_for_a_container_or_an_item(pleiad_database: DatabaseProxy) -> None:
    """The service also takes links of scripts and users. A token is checked by container, item and partition
    key here, and a link that none of these can narrow would grant more than it says."""
    user = pleiad_database.create_user({"id": "u"})
    with pytest.raises(CosmosHttpResponseError) as caught:
        user.create_permission(
            {"id": "p", "permissionMode": "all", "resource": pleiad_database.database_link}
        )
    assert caught.value.status_code == 400


def test_a_resource_token_ends_with_its_permission_and_follows_its_mode(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy, container: ContainerProxy
) -> None:
    """On the service a token that was given out is good until it expires, whatever becomes of its permission. Here
    whoever takes a right away has taken it away: every request asks whether the permission is still there."""
    container.create_item({"id": "1", "pk": "a"})
    user = pleiad_database.create_user({"id": "u"})
    wanted = {"id": "p", "permissionMode": "all", "resource": container.container_link}
    token = user.create_permission(wanted).properties["_token"]
    client = CosmosClient(pleiad_server.endpoint, {container.container_link: token})
    theirs = client.get_database_client(pleiad_database.id).get_container_client(container.id)
    theirs.upsert_item({"id": "1", "pk": "a"})
    user.replace_permission("p", {**wanted, "permissionMode": "read"})
    with pytest.raises(CosmosHttpResponseError, match="does not allow this change"):
        theirs.upsert_item({"id": "1", "pk": "a"})
    assert theirs.read_item("1", "a")["id"] == "1"
    user.delete_permission("p")
    with pytest.raises(CosmosHttpResponseError, match="does not exist any more"):
        theirs.read_item("1", "a")


def test_plain_http_is_answered_too(pleiad_server: RunningServer) -> None:
    """The service answers https only. On the loopback address a certificate protects nothing and costs every
    new user an evening; both are answered on one port."""
    connection = http.client.HTTPConnection("127.0.0.1", pleiad_server.port, timeout=SECONDS_MAX)
    connection.request("GET", "/_pleiad/health")
    assert connection.getresponse().status == 200
    connection.close()


def test_a_replacement_that_does_not_name_the_change_feed_policy_keeps_it(
    pleiad_database: DatabaseProxy,
) -> None:
    """A replacement is the whole definition elsewhere, and what it leaves out is switched off. The Python client never
    sends this policy with a replacement, so changing the time to live would delete the history of a container."""
    kept = pleiad_database.create_container(
        "kept", PartitionKey("/pk"), change_feed_policy={"retentionDuration": 5}
    )
    pleiad_database.replace_container(kept, PartitionKey("/pk"), default_ttl=60)
    properties = kept.read()
    assert properties["defaultTtl"] == 60
    assert properties["changeFeedPolicy"] == {"retentionDuration": 5}


def test_links_to_what_a_script_has_just_written_are_right_in_its_answer_only(
    container: ContainerProxy,
) -> None:
    """The service gives an item its names when the script writes it. Here the commit does, so that a script holds no
    numbers of its partition while it runs; a link that a script keeps in another item leads nowhere."""
    body = """function () {
      __.createDocument(__.getSelfLink(), { id: "first", pk: "a" }, function (error, first) {
        __.createDocument(__.getSelfLink(), { id: "second", pk: "a", first: first._self });
        __.response.setBody(first._self);
      });
    }"""
    container.scripts.create_stored_procedure({"id": "link", "body": body})
    link = container.scripts.execute_stored_procedure("link", "a")
    assert link == container.read_item("first", "a")["_self"]
    assert container.read_item("second", "a")["first"] != link


def test_a_unique_key_that_a_script_violates_fails_the_script_at_its_end(
    pleiad_database: DatabaseProxy,
) -> None:
    """The service tells the callback of the write. Here unique keys are looked at by the commit, which is the one
    place that knows all writers; the script fails as a whole with the same 409."""
    unique = pleiad_database.create_container(
        "unique", PartitionKey("/pk"), unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]}
    )
    unique.create_item({"id": "1", "pk": "a", "email": "x"})
    body = """function () {
      __.createDocument(__.getSelfLink(), { id: "2", pk: "a", email: "x" }, function (error) {
        if (error) throw error;
      });
    }"""
    unique.scripts.create_stored_procedure({"id": "violate", "body": body})
    with pytest.raises(CosmosHttpResponseError) as caught:
        unique.scripts.execute_stored_procedure("violate", "a")
    assert caught.value.status_code == 409
    assert [item["id"] for item in unique.read_all_items()] == ["1"]


def test_scripts_have_no_attachments(container: ContainerProxy) -> None:
    """The service's API still has their functions, for accounts of an age that Pleiad has none of."""
    body = "function () { __.response.setBody(Object.keys(Object.getPrototypeOf(__)).filter(n => /ttach/.test(n))); }"
    container.scripts.create_stored_procedure({"id": "look", "body": body})
    assert container.scripts.execute_stored_procedure("look", "a") == []


def test_a_redistributed_throughput_may_be_changed_and_keeps_its_proportions(
    pleiad_server: RunningServer, pleiad_database: DatabaseProxy
) -> None:
    """The service tells of both: shares that keep their proportions, and a change that is refused until they are even
    again. Keeping them loses nothing that the user asked for, so there is no reason to refuse."""
    container: Any = pleiad_database.create_container("uneven", PartitionKey("/pk"), offer_throughput=12_000)
    with Connection(pleiad_server.endpoint, pleiad_server.key) as connection:
        admin = Admin(connection)
        admin.redistribute(pleiad_database.id, "uneven", {"0": 9_000, "1": 3_000})
        container.replace_throughput(6_000)
        shown = admin.partitions(pleiad_database.id, "uneven", largest=0, hottest=0)["partitions"]
    assert [each["ru"]["allowed"] for each in shown] == [4_500, 1_500]


def test_the_shared_throughput_of_a_database_is_not_redistributed(
    pleiad_server: RunningServer, pleiad_client: Any
) -> None:
    """The containers of a database lie on its places side by side, each with partitions of its own, so there are no
    physical partitions of the database to name."""
    database = pleiad_client.create_database("shared-evenly", offer_throughput=12_000)
    database.create_container("member", PartitionKey("/pk"))
    with (
        Connection(pleiad_server.endpoint, pleiad_server.key) as connection,
        pytest.raises(RequestRefusedError, match="Only a container's own throughput") as caught,
    ):
        Admin(connection).redistribute("shared-evenly", "member", {"0": 9_000, "1": 3_000})
    assert caught.value.status == 400
    pleiad_client.delete_database("shared-evenly")

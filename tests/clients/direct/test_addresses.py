"""The address call: who is told where the replicas of a range are, and what is told of what is not there."""

from __future__ import annotations

import pytest

from attack.callers import Bearer, Key, identity
from pleiad.testing.start import RunningServer
from tests.clients.direct.conftest import make_container
from tests.clients.direct.frames import Direct, FrameConnection, Https
from tests.stores import StartServer

WRONG_KEY = "d3Jvbmc="


def rid_of(https: Https, container: list[str]) -> str:
    return str(https.send("GET", container).json["_rid"])


def test_a_range_has_a_primary_and_a_secondary_where_the_client_reached_the_server(
    https: Https, container: list[str]
) -> None:
    rid = rid_of(https, container)
    told = https.addresses(rid, "0")
    assert told.status == 200
    assert (told.json["_rid"], told.json["_count"]) == ("", 2)
    primary, secondary = told.json["Addresss"]
    assert (primary["isPrimary"], secondary["isPrimary"]) == (True, False)
    for address in (primary, secondary):
        assert (address["protocol"], address["partitionKeyRangeId"]) == ("rntbd", "0")
        assert address["physcialUri"] == address["logicalUri"]
        assert address["physcialUri"].startswith(f"rntbd://localhost:{https.server.port}/apps/")
        assert address["physcialUri"].endswith("/")
        assert f"/partitions/{rid}_0/" in address["physcialUri"]
    assert primary["physcialUri"] != secondary["physcialUri"]


@pytest.mark.parametrize("slashes", ["/", "//"])
def test_the_call_is_taken_with_one_slash_and_with_two(
    slashes: str, https: Https, container: list[str]
) -> None:
    assert https.addresses(rid_of(https, container), "0", slashes=slashes).json["_count"] == 2


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("127.0.0.1:9999", "127.0.0.1:9999"),
        ("localhost", "localhost:443"),
        ("[::1]:9999", "localhost:9999"),
        ("[::1]", "localhost:443"),
    ],
)
def test_the_host_is_the_one_the_client_knows(host: str, told: str, direct_server: RunningServer) -> None:
    answer = Https(direct_server, host=host).addresses()
    assert all(each["physcialUri"].startswith(f"rntbd://{told}/") for each in answer.json["Addresss"])


def test_a_host_that_is_none_of_the_server_s_is_refused(direct_server: RunningServer) -> None:
    assert Https(direct_server, host="elsewhere.example:443").addresses().status == 400


def test_the_master_has_addresses_too(https: Https) -> None:
    told = https.addresses()
    assert told.status == 200
    assert [each["isPrimary"] for each in told.json["Addresss"]] == [True, False]


def test_several_ranges_are_told_at_once_and_those_that_are_not_there_are_left_out(https: Https) -> None:
    rid = rid_of(https, make_container(https, ru=20_000))
    found = https.addresses(rid, "0", "77", "1").json["Addresss"]
    assert [each["partitionKeyRangeId"] for each in found] == ["0", "0", "1", "1"]
    assert https.addresses(rid, "77").json["Addresss"] == []


def test_an_unknown_container_is_not_found(https: Https) -> None:
    assert https.addresses("AAAAF4AAABg=", "0").status == 404


@pytest.mark.parametrize(
    "query",
    [
        "",
        "$resolveFor=docs",
        "$resolveFor=dbs%2fx%2fcolls%2fy%2fdocs",
        "$resolveFor=dbs&$filter=protocol%20eq%20https",
        "$resolveFor=%ff%fe&$partitionKeyRangeIds=%00",
    ],
)
def test_a_call_that_asks_for_nothing_is_refused(query: str, https: Https) -> None:
    # An identity token covers whatever is asked for, so that what is asked is looked at.
    proof = identity(https.server.key).headers("GET", [])
    assert https.send_raw("GET", f"/addresses/?{query}", b"", proof).status == 400


def test_who_proves_nothing_is_told_nothing(direct: Direct, container: list[str]) -> None:
    rid = rid_of(direct.https, container)
    for caller in (Bearer("nobody", ""), Key("wrong", WRONG_KEY)):
        https = Https(direct.server, caller)
        assert (https.addresses(rid, "0").status, https.addresses().status) == (401, 401)


def test_a_signature_for_one_container_opens_no_other(https: Https) -> None:
    one, other = (rid_of(https, make_container(https)) for _ in range(2))
    proof = Key("master", https.server.key).headers_for("GET", "docs", one.lower())
    link = f"dbs%2f{other[:5]}A%3d%3d%2fcolls%2f{other}%2fdocs"
    path = f"//addresses/?$resolveFor={link}&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0"
    assert https.send_raw("GET", path, b"", proof).status == 401


def test_an_identity_and_a_resource_token_for_the_container_are_told(direct: Direct) -> None:
    https = direct.https
    container, other = make_container(https), make_container(https)
    rid, other_rid = rid_of(https, container), rid_of(https, other)
    assert Https(direct.server, identity(https.server.key)).addresses(rid, "0").status == 200
    users = [*container[:2], "users"]
    assert https.send("POST", users, {"id": "u"}).status == 201
    grant = {"id": "p", "permissionMode": "Read", "resource": "/".join(container)}
    token = https.send("POST", [*users, "u", "permissions"], grant).json["_token"]
    holder = Https(direct.server, Bearer("holder", token))
    assert holder.addresses(rid, "0").status == 200
    assert holder.addresses(other_rid, "0").status == 403
    assert holder.addresses().status == 403


def test_the_account_says_that_one_replica_is_a_quorum(https: Https) -> None:
    account = https.send("GET", []).json
    policies = (account["userReplicationPolicy"], account["systemReplicationPolicy"])
    assert [policy["maxReplicasetSize"] for policy in policies] == [1, 1]


@pytest.mark.parametrize("child_process", [False, True])
def test_without_direct_mode_clients_are_told_to_use_gateway_mode_and_no_frame_is_heard(
    child_process: bool, start_server: StartServer
) -> None:
    with start_server(direct=False, child_process=child_process) as server:
        https = Https(server)
        container = make_container(https)
        for told in (https.addresses(), https.addresses(rid_of(https, container), "0")):
            assert told.status == 400
            assert "use gateway mode" in told.json["message"]
            assert "ConnectionMode.Gateway" in told.json["message"]
            assert "gatewayMode()" in told.json["message"]
        with pytest.raises(OSError):
            FrameConnection(server.port)

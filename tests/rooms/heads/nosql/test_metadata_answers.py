"""What answers about databases, containers, users, scripts and offers carry beside the resource."""

from __future__ import annotations

from typing import Any

import pytest

SCRIPT = {"sprocs": "function () {}", "udfs": "function () {}", "triggers": "function () {}"}
TRIGGER = {"triggerType": "Pre", "triggerOperation": "All"}
KEY = {"encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AA=="}


def resources(place: Any) -> list[tuple[list[str], dict[str, Any], str]]:
    """The path, the body and the owner's path of one resource of every kind."""
    database, container = ["dbs", place.database], place.path
    owner, inner = "/".join(database), "/".join(container)
    user = [*database, "users", "u"]
    permission = {"permissionMode": "Read", "resource": inner}
    kinds = [
        (user, {}, owner),
        ([*user, "permissions", "p"], permission, "/".join(user)),
        ([*database, "clientencryptionkeys", "k"], KEY, owner),
    ]
    for segment, body in SCRIPT.items():
        kinds.append(
            ([*container, segment, "s"], {"body": body, **(TRIGGER if segment == "triggers" else {})}, inner)
        )
    return kinds


def test_every_resource_is_answered_with_the_path_of_its_owner(place: Any, wire: Any) -> None:
    for path, body, owner in resources(place):
        created = wire.send("POST", path[:-1], {"id": path[-1], **body})
        read = wire.send("GET", path)
        replaced = wire.send("PUT", path, {"id": path[-1], **body})
        assert [answer.status for answer in (created, read, replaced)] == [201, 200, 200], path
        rid = wire.send("GET", owner.split("/")).json["_rid"]
        for answer in (created, read, replaced):
            assert answer.headers["x-ms-alt-content-path"] == owner, path
            assert answer.headers["x-ms-content-path"] == rid, path


@pytest.mark.parametrize("segment", SCRIPT)
def test_a_script_is_answered_with_how_many_its_container_may_have_and_has(
    segment: str, place: Any, wire: Any
) -> None:
    body = {"id": "s", "body": SCRIPT[segment], **(TRIGGER if segment == "triggers" else {})}
    name = {"sprocs": "storedProcedures", "udfs": "functions", "triggers": "triggers"}[segment]
    path = [*place.path, segment]
    answers = [
        wire.send("POST", path, body),
        wire.send("GET", [*path, "s"]),
        wire.send("PUT", [*path, "s"], body),
    ]
    for answer in answers:
        usage = dict(each.split("=") for each in answer.headers["x-ms-resource-usage"].strip(";").split(";"))
        quota = dict(each.split("=") for each in answer.headers["x-ms-resource-quota"].strip(";").split(";"))
        assert usage.pop(name) == "1"
        assert set(usage.values()) == {"0"}
        assert int(quota[name]) >= 25


def test_a_container_is_answered_with_the_path_of_its_database(place: Any, wire: Any) -> None:
    read = wire.send("GET", place.path)
    body = {"id": place.container, "partitionKey": read.json["partitionKey"]}
    by_rid = ["dbs", place.self_link.split("/")[1], "colls", place.rid]
    for answer in (read, wire.send("PUT", place.path, body), wire.send("GET", by_rid)):
        assert answer.status == 200
        assert answer.headers["x-ms-alt-content-path"] == f"dbs/{place.database}"
        assert answer.headers["x-ms-content-path"] == place.self_link.split("/")[1]


def test_a_resource_that_the_client_has_already_is_304(place: Any, wire: Any) -> None:
    paths = [["dbs", place.database], place.path]
    for path, body, _ in resources(place):
        assert wire.send("POST", path[:-1], {"id": path[-1], **body}).status == 201
        paths.append(path)
    offer = wire.send("GET", ["offers"]).json["Offers"][0]
    paths.append(["offers", offer["_rid"]])
    for path in paths:
        etag = wire.send("GET", path).headers["etag"]
        same = wire.send("GET", path, headers={"If-None-Match": etag})
        assert (same.status, same.body, same.headers["etag"]) == (304, b"", etag), path
        other = wire.send("GET", path, headers={"If-None-Match": '"another"'})
        assert other.status == 200, path


def test_a_key_of_version_1_is_read_back_with_a_version_where_one_was_named(wire: Any, place: Any) -> None:
    for given, shown in ((None, None), (1, 1), ("V1", 1), (2, 2), ("V2", 2)):
        key = {"paths": ["/pk"], "kind": "Hash"} | ({} if given is None else {"version": given})
        body = {"id": f"v-{given}", "partitionKey": key}
        answer = wire.send("POST", place.path[:3], body)
        assert (answer.status, answer.json["partitionKey"].get("version")) == (201, shown)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_an_item_that_is_not_there_is_answered_with_the_lsn(method: str, place: Any, wire: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    body = {"id": "none", "pk": "a"} if method == "PUT" else None
    missing = wire.send(method, [*place.path, "docs", "none"], body, key=["a"])
    assert missing.status == 404
    assert int(missing.headers["lsn"]) >= 1
    assert "x-ms-substatus" not in missing.headers


def test_what_is_missing_comes_before_what_is_wrong_with_its_replacement(place: Any, wire: Any) -> None:
    path = [*place.path, "docs", "none"]
    for body in (b"", b"{", b'{"id":"none","pk":"other"}', b'{"pk":"a"}'):
        assert wire.send("PUT", path, body, key=["a"]).status == 404
    place.create({"id": "none", "pk": "a"}, ["a"])
    for body in (b"", b"{", b'{"id":"none","pk":"other"}', b'{"pk":"a"}'):
        assert wire.send("PUT", path, body, key=["a"]).status == 400


@pytest.mark.parametrize("token", ["invalidtoken", "0", ":1#2", "0:x", "0:1#y", "0:1#2,rest"])
def test_what_is_no_session_token_is_refused_before_the_item_is_looked_for(
    token: str, place: Any, wire: Any
) -> None:
    headers = {"x-ms-session-token": token}
    docs, item = [*place.path, "docs"], [*place.path, "docs", "1"]
    body = {"id": "1", "pk": "a"}
    batch = {**headers, "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    answers = [
        wire.send("POST", docs, body, headers, ["a"]),
        wire.send("PUT", item, body, headers, ["a"]),
        wire.send("PATCH", item, {"operations": [{"op": "set", "path": "/n", "value": 1}]}, headers, ["a"]),
        wire.send("DELETE", item, None, headers, ["a"]),
        wire.send("GET", item, None, headers, ["a"]),
        wire.send("GET", docs, None, headers, ["a"]),
        wire.send("POST", docs, [{"operationType": "Create", "resourceBody": body}], batch, ["a"]),
    ]
    for answer in answers:
        assert answer.status == 400, answer.body
        assert f"The session token provided '{token}' is invalid." in answer.message


def test_an_empty_intended_rid_counts_as_absent(place: Any) -> None:
    headers = {"x_ms_cosmos_intended_collection_rid": ""}
    assert place.create({"id": "1", "pk": "a"}, ["a"], **headers).status == 201
    assert place.read("1", ["a"], **headers).status == 200


def test_an_item_answer_says_how_long_it_took_and_what_its_partition_holds(place: Any) -> None:
    for answer in (place.create({"id": "1", "pk": "a"}, ["a"]), place.read("1", ["a"])):
        assert float(answer.headers["x-ms-request-duration-ms"]) > 0
        assert "documentsCount=" in answer.headers["x-ms-resource-usage"]
        room = "documentSize=51200;documentsSize=52428800;documentsCount=-1;collectionSize=52428800;"
        assert answer.headers["x-ms-resource-quota"] == room
        assert int(answer.headers["x-ms-current-write-quorum"]) > 0
        assert int(answer.headers["x-ms-current-replica-set-size"]) > 0


def test_a_query_over_partitions_answers_a_session_token_of_one_range(spread_place: Any, wire: Any) -> None:
    for number in range(20):
        spread_place.create({"id": "1", "pk": str(number)}, [str(number)])
    query = {"query": "SELECT * FROM c", "parameters": []}
    flags = {
        "x-ms-documentdb-isquery": "True",
        "content-type": "application/query+json",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "x-ms-max-item-count": "100",
    }
    answer = wire.send("POST", [*spread_place.path, "docs"], query, flags)
    assert len(answer.json["Documents"]) == 20
    assert answer.headers["x-ms-session-token"].count(":") == 1


def test_a_permission_for_a_key_that_shares_its_hash_with_others_is_refused(wire: Any, place: Any) -> None:
    body = {"id": "first", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}
    assert wire.send("POST", place.path[:3], body).status == 201
    user = ["dbs", place.database, "users"]
    assert wire.send("POST", user, {"id": "u"}).status == 201
    for container, size, status in (("first", 100, 201), ("first", 101, 400), (place.container, 200, 201)):
        permission = {
            "id": f"{container}-{size}",
            "permissionMode": "Read",
            "resource": f"dbs/{place.database}/colls/{container}",
            "resourcePartitionKey": ["x" * size],
        }
        assert wire.send("POST", [*user, "u", "permissions"], permission).status == status


def test_the_account_is_told_for_versions_of_the_protocol_only(wire: Any) -> None:
    for version in ("2014-08-21", "2018-12-31", "2020-07-15", "2020-11-05", "2031-01-01"):
        assert wire.send("GET", [], headers={"x-ms-version": version}).status == 200
    for version in ("2015-01-01", "2018-12-30", "latest", "20200715", "1"):
        answer = wire.send("GET", [], headers={"x-ms-version": version})
        assert (answer.status, "x-ms-version" in answer.message) == (400, True)


def test_the_head_of_a_container_is_what_a_read_tells_without_the_body(place: Any, wire: Any) -> None:
    read, asked = wire.send("GET", place.path), wire.send("HEAD", place.path)
    assert (asked.status, asked.body) == (200, b"")
    for name in ("etag", "x-ms-content-path", "x-ms-alt-content-path", "x-ms-request-charge"):
        assert asked.headers[name] == read.headers[name]
    assert wire.send("HEAD", [*place.path[:-1], "nothing"]).status == 404


def test_the_account_is_in_the_region_that_programs_for_the_emulator_name(wire: Any) -> None:
    account = wire.send("GET", []).json
    assert [each["name"] for each in account["writableLocations"]] == ["South Central US"]
    assert account["readableLocations"] == account["writableLocations"]


def test_a_container_is_answered_with_the_session_that_begins_with_it(place: Any, wire: Any) -> None:
    body = {"id": "fresh", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    path = ["dbs", place.database, "colls", "fresh"]
    created = wire.send("POST", path[:-1], body).headers["x-ms-session-token"]
    item = wire.send("POST", [*path, "docs"], {"id": "1", "pk": "a"}, key=["a"])
    written = item.headers["x-ms-session-token"]
    read = wire.send("GET", path).headers["x-ms-session-token"]
    replaced = wire.send("PUT", path, body).headers["x-ms-session-token"]
    assert created.startswith("0:")
    assert created.endswith("#0")
    assert [read, replaced] == [written, written]
    assert written.rpartition("#")[0] == created.rpartition("#")[0]

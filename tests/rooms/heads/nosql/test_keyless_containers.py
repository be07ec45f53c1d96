"""Containers without a partition key, as clients of versions before 2018-12-31 of the protocol create them."""

import pytest

from .conftest import Place, Wire

BEFORE_KEYS = {"x-ms-version": "2018-06-18"}
SINCE_KEYS = {"x-ms-version": "2018-12-31"}


@pytest.fixture
def keyless(place: Place) -> Place:
    """A container beside the one of `place`, created without a key."""
    path = ["dbs", place.database, "colls"]
    answer = place.wire.send("POST", path, {"id": "keyless"}, BEFORE_KEYS)
    assert answer.status == 201, answer.body
    assert "partitionKey" not in answer.json
    return Place(place.wire, place.database, "keyless", answer.json["_rid"], answer.json["_self"])


def test_an_older_client_neither_gives_nor_sees_a_key(wire: Wire, keyless: Place) -> None:
    docs = [*keyless.path, "docs"]
    assert "partitionKey" not in wire.send("GET", keyless.path, None, BEFORE_KEYS).json
    assert wire.send("POST", docs, {"id": "a", "n": 1}, BEFORE_KEYS).status == 201
    assert wire.send("POST", docs, {"id": "a"}, BEFORE_KEYS).status == 409
    assert wire.send("PUT", [*docs, "a"], {"id": "a", "n": 2}, BEFORE_KEYS).status == 200
    assert wire.send("GET", [*docs, "a"], None, BEFORE_KEYS).json["n"] == 2
    query = {**BEFORE_KEYS, "x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
    found = wire.send("POST", docs, {"query": "SELECT * FROM c ORDER BY c.n", "parameters": []}, query)
    assert [item["id"] for item in found.json["Documents"]] == ["a"]
    assert wire.send("DELETE", [*docs, "a"], None, BEFORE_KEYS).status == 204


def test_a_newer_client_finds_its_items_without_a_value_for_the_key_of_the_system(keyless: Place) -> None:
    shown = keyless.wire.send("GET", keyless.path, None, SINCE_KEYS).json["partitionKey"]
    assert (shown["paths"], shown["systemKey"]) == (["/_partitionKey"], True)
    keyless.wire.send("POST", [*keyless.path, "docs"], {"id": "old"}, BEFORE_KEYS)
    assert keyless.read("old", [{}]).status == 200
    assert keyless.create({"id": "new"}, [{}]).status == 201
    assert keyless.read("new", [{}]).status == 200


def test_a_query_for_the_items_without_a_value_leaves_out_those_with_one(keyless: Place) -> None:
    assert keyless.create({"id": "without"}, [{}]).status == 201
    assert keyless.create({"id": "with", "_partitionKey": "v"}, ["v"]).status == 201
    headers = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
    body = {"query": "SELECT VALUE c.id FROM c", "parameters": []}
    for key, found in ([], ["without"]), ([{}], ["without"]), (["v"], ["with"]), (None, ["without", "with"]):
        answer = keyless.wire.send("POST", [*keyless.path, "docs"], body, headers, key)
        assert sorted(answer.json["Documents"]) == sorted(found), key


def test_a_newer_client_must_name_a_key(place: Place) -> None:
    path = ["dbs", place.database, "colls"]
    for headers in (SINCE_KEYS, {"x-ms-version": "2020-07-15"}):
        assert place.wire.send("POST", path, {"id": "keyless"}, headers).status == 400

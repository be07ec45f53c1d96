"""Clients keep containers, ranges and addresses: the refusal that makes them look again at what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from tests.clients.direct.conftest import make_container
from tests.clients.direct.frames import RANGE, Direct
from tests.clients.direct.operations import QUERY
from tests.stores import StartServer

ITEM = {"id": "1", "pk": "a"}
SPLITTING, RANGE_GONE, CONTAINER_GONE = (410, 1007), (410, 1002), (410, 1000)


@pytest.fixture
def split_container(direct: Direct, container: list[str]) -> list[str]:
    """A container whose range 0, which the client knows, is gone."""
    answer = direct.send("POST", [*container, "docs"], ITEM, None, ["a"])
    assert answer.status == 201
    for number in range(8):
        direct.send("POST", [*container, "docs"], {"id": "x", "pk": str(number)}, None, [str(number)])
    direct.send("GET", [*container, "docs"], None, {RANGE: "0"})
    with Connection(direct.server.endpoint, direct.server.key) as connection:
        Admin(connection).split(container[1], container[3], {"partition": "0"})
    return container


def ranges(direct: Direct, container: list[str]) -> list[str]:
    found = direct.https.send("GET", [*container, "pkranges"]).json["PartitionKeyRanges"]
    return [each["id"] for each in found]


def test_a_request_by_key_to_a_range_that_is_gone_is_told_of_a_split(
    direct: Direct, split_container: list[str]
) -> None:
    docs = [*split_container, "docs"]
    asked = (
        ("GET", [*docs, "1"], None, None),
        ("POST", docs, {"id": "2", "pk": "a"}, None),
        ("PUT", [*docs, "1"], ITEM, None),
        ("DELETE", [*docs, "1"], None, None),
        ("POST", docs, {"query": "SELECT * FROM c"}, QUERY),
        ("HEAD", split_container, None, None),
    )
    for method, segments, body, headers in asked:
        answer = direct.send(method, segments, body, headers, ["a"])
        assert (answer.status, answer.substatus) == SPLITTING, (method, segments)
    direct.forget()
    assert direct.send("GET", [*docs, "1"], None, None, ["a"]).status == 200
    assert direct.send("GET", [*docs, "2"], None, None, ["a"]).status == 404


def test_a_request_by_range_to_a_range_that_is_gone_is_told_so(
    direct: Direct, split_container: list[str]
) -> None:
    docs = [*split_container, "docs"]
    for method, body, headers in (
        ("GET", None, {}),
        ("GET", None, {"A-IM": "Incremental Feed"}),
        ("POST", {"query": "SELECT * FROM c"}, QUERY),
    ):
        answer = direct.send(method, docs, body, {**headers, RANGE: "0"})
        assert (answer.status, answer.substatus) == RANGE_GONE
    direct.forget()
    found = [
        item["id"]
        for range_id in ranges(direct, split_container)
        for item in direct.send("GET", docs, None, {RANGE: range_id}).json["Documents"]
    ]
    assert sorted(found) == ["1", *"xxxxxxxx"]


def test_ranges_that_were_merged_are_told_as_those_that_were_split(
    direct: Direct, split_container: list[str]
) -> None:
    direct.forget()
    docs = [*split_container, "docs"]
    old = ranges(direct, split_container)
    for range_id in old:
        assert direct.send("GET", docs, None, {RANGE: range_id}).status == 200
    with Connection(direct.server.endpoint, direct.server.key) as connection:
        Admin(connection).merge(split_container[1], split_container[3], {"partitions": old})
    for range_id in old:
        answer = direct.send("GET", docs, None, {RANGE: range_id})
        assert (answer.status, answer.substatus) == RANGE_GONE
    by_key = direct.send("GET", [*docs, "1"], None, None, ["a"])
    assert (by_key.status, by_key.substatus) in ((200, 0), SPLITTING)
    direct.forget()
    assert direct.send("GET", [*docs, "1"], None, None, ["a"]).status == 200


@pytest.mark.parametrize("sends_rid", [True, False])
def test_a_container_that_was_created_anew_is_told_by_its_rid(sends_rid: bool, direct: Direct) -> None:
    direct.sends_collection_rid = sends_rid
    container = make_container(direct.https)
    docs = [*container, "docs"]
    assert direct.send("POST", docs, ITEM, None, ["a"]).status == 201
    assert direct.https.send("DELETE", container).status == 204
    deleted = direct.send("GET", [*docs, "1"], None, None, ["a"])
    assert (deleted.status, deleted.substatus) == CONTAINER_GONE
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert direct.https.send("POST", container[:3], body).status == 201
    for method, segments, sent, headers in (
        ("GET", [*docs, "1"], None, None),
        ("POST", docs, ITEM, None),
        ("POST", docs, {"query": "SELECT * FROM c"}, QUERY),
    ):
        answer = direct.send(method, segments, sent, headers, ["a"])
        assert (answer.status, answer.substatus) == CONTAINER_GONE
    direct.forget()
    assert direct.send("GET", [*docs, "1"], None, None, ["a"]).status == 404


def test_a_refusal_tells_nobody_of_a_container_that_may_not_ask(
    direct: Direct, split_container: list[str]
) -> None:
    fields = {"x-ms-date": "Tue, 17 Nov 2026 14:00:00 GMT", "x-ms-documentdb-partitionkey": '["a"]'}
    frame = direct.frame("GET", [*split_container, "docs", "1"], None, fields)
    assert direct.connection.ask(*frame).status == 401


def test_an_empty_range_is_at_one_and_not_at_nothing(direct: Direct, container: list[str]) -> None:
    """A client takes an answer at 0 for that of a replica that is behind, and asks again for seconds."""
    missing = direct.send("GET", [*container, "docs", "none"], None, None, ["a"])
    assert (missing.status, missing.headers["lsn"]) == (404, "1")
    assert missing.headers["x-ms-session-token"].startswith("0:")


def test_a_part_of_a_range_may_begin_at_its_minimum(direct: Direct, container: list[str]) -> None:
    docs = [*container, "docs"]
    for number in range(8):
        direct.send("POST", docs, {"id": str(number), "pk": str(number)}, None, [str(number)])
    whole = direct.send("GET", docs, None, {RANGE: "0"}).json["Documents"]
    first = direct.send("GET", docs, None, {RANGE: "0", "x-ms-end-epk": "20" + "00" * 15}).json["Documents"]
    rest = direct.send("GET", docs, None, {RANGE: "0", "x-ms-start-epk": "20" + "00" * 15}).json["Documents"]
    assert (len(whole), first and rest and len(first) + len(rest)) == (8, 8)


def test_several_requests_of_one_connection_run_at_once(direct: Direct, container: list[str]) -> None:
    docs = [*container, "docs"]
    frames = []
    for number in range(60):
        segments = docs if number % 2 else [*docs, "0"]
        method, body = ("POST", {"id": str(number), "pk": "a"}) if number % 2 else ("GET", None)
        fields = {**direct.caller.headers(method, segments), "x-ms-documentdb-partitionkey": '["a"]'}
        frames.append(direct.frame(method, segments, body, fields))
    asked = {direct.connection.say(*frame): frame[1] for frame in frames}
    heard = [direct.connection.hear() for _ in asked]
    assert {answer.tokens[0x35] for answer in heard} == set(asked)
    for answer in heard:
        created = asked[int(answer.tokens[0x35])] == 0x01
        assert answer.status == (201 if created else 404)


@pytest.mark.parametrize("store_kind", ["postgres"], scope="session")
def test_a_server_serves_a_range_that_another_server_has_just_made(
    tmp_path: Path, start_server: StartServer
) -> None:
    with start_server(data=tmp_path) as one, start_server(data=tmp_path) as other:
        here, there = Direct(one), Direct(other)
        docs = [*make_container(here.https), "docs"]
        container = docs[:4]
        for number in range(8):
            item = {"id": str(number), "pk": str(number)}
            assert here.send("POST", docs, item, None, [str(number)]).status == 201
            assert there.send("GET", [*docs, str(number)], None, None, [str(number)]).status == 200
        with Connection(one.endpoint, one.key) as connection:
            Admin(connection).split(container[1], container[3], {"partition": "0"})
        here.forget()
        for range_id in ranges(here, container):
            fields = {**here.caller.headers("GET", docs), RANGE: range_id}
            asked = here.frame("GET", docs, None, fields)  # with the address that the one server tells
            assert there.connection.ask(*asked).status == 200
            assert (
                there.https.addresses(here.https.send("GET", container).json["_rid"], range_id).json["_count"]
                == 2
            )
        here.close()
        there.close()

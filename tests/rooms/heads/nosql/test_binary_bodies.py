"""Binary JSON over the wire: read wherever a request has a body, answered where a client offers to read it."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

import pytest

from attack.hostile import binary
from pleiad.limits import MB, Limits
from pleiad.settings import Settings
from pleiad.wire.binary_json.read import to_value
from pleiad.wire.binary_json.write import to_binary
from pleiad.wire.hybridrow.recordio import read_rows, write_rows
from pleiad.wire.hybridrow.row import RowCodec
from pleiad.wire.hybridrow.schema import BATCH_OPERATION, BATCH_RESULT
from tests.rooms.heads.nosql.conftest import make_place

OFFER = "x-ms-cosmos-supported-serialization-formats"
WISH = "x-ms-documentdb-content-serialization-format"
BINARY = {OFFER: "CosmosBinary"}
QUERY = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "True"}
ITEM = {
    "id": "1",
    "pk": "a",
    "n": 7,
    "d": 1.5,
    "whole": 3.0,
    "big": 2**63,
    "s": 'é"\n',
    "l": [None, True, {}],
}


def value_of(body: bytes) -> Any:
    """The value of an answer that must be binary."""
    assert body[:1] == b"\x80", body[:40]
    return to_value(body, 10 * MB)


def without_system(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if not name.startswith("_")}


@pytest.mark.every_store
def test_an_item_written_in_binary_is_the_item_written_in_text(place: Any) -> None:
    assert place.create(to_binary(ITEM), ["a"]).status == 201
    in_text = place.read("1", ["a"])
    assert in_text.headers["content-type"] == "application/json"
    assert without_system(in_text.json) == ITEM
    assert b'"whole":3,' in in_text.body
    assert place.create(json.dumps({**ITEM, "id": "2"}).encode(), ["a"]).status == 201
    charges = [place.read(id, ["a"]).headers["x-ms-request-charge"] for id in ("1", "2")]
    assert charges[0] == charges[1]


@pytest.mark.every_store
def test_point_operations_are_answered_in_binary_where_it_is_offered(place: Any, wire: Any) -> None:
    docs = [*place.path, "docs"]
    created = wire.send("POST", docs, to_binary(ITEM), BINARY, ["a"])
    assert created.status == 201
    assert created.headers["content-type"] == "application/json"
    assert without_system(value_of(created.body)) == ITEM
    assert value_of(created.body)["_etag"] == created.headers["etag"]
    upserted = wire.send(
        "POST", docs, to_binary(ITEM), {**BINARY, "x-ms-documentdb-is-upsert": "True"}, ["a"]
    )
    assert upserted.status == 200
    assert without_system(value_of(upserted.body)) == ITEM
    replaced = wire.send("PUT", [*docs, "1"], to_binary({**ITEM, "n": 8}), BINARY, ["a"])
    assert value_of(replaced.body)["n"] == 8
    read = place.read("1", ["a"], **{OFFER: "CosmosBinary"})
    assert value_of(read.body) == value_of(replaced.body) == place.read("1", ["a"]).json


@pytest.mark.parametrize(
    ("offer", "is_binary"),
    [
        ("CosmosBinary", True),
        ("JsonText,CosmosBinary", True),
        ("jsontext, COSMOSBINARY", True),
        ("CosmosBinary+UInt64", True),
        ("CosmosBinary,HybridRow", True),
        ("JsonText", False),
        ("HybridRow", False),
        ("", False),
        ("CosmosBinary,Nonsense", False),
        ("Binary", False),
    ],
)
def test_an_offer_without_binary_or_with_nonsense_means_text(place: Any, offer: str, is_binary: bool) -> None:
    place.create(json.dumps(ITEM).encode(), ["a"])
    body = place.read("1", ["a"], **{OFFER: offer}).body
    assert (body[:1] == b"\x80") == is_binary
    assert without_system(value_of(body) if is_binary else json.loads(body)) == ITEM


@pytest.mark.every_store
def test_a_page_of_a_query_is_one_binary_body(place: Any, wire: Any) -> None:
    for number in range(5):
        place.create(to_binary({**ITEM, "id": str(number), "n": number}), ["a"])
    headers = {**QUERY, OFFER: "JsonText,CosmosBinary", "x-ms-max-item-count": "3"}
    body = {"query": "SELECT c.id, c.d FROM c ORDER BY c.n DESC"}
    answer = wire.send("POST", [*place.path, "docs"], body, headers, ["a"])
    page = value_of(answer.body)
    assert page == {
        "_rid": place.rid,
        "Documents": [{"id": i, "d": 1.5} for i in ("4", "3", "2")],
        "_count": 3,
    }
    headers["x-ms-continuation"] = answer.headers["x-ms-continuation"]
    rest = wire.send("POST", [*place.path, "docs"], to_binary(body), headers, ["a"])
    assert [row["id"] for row in value_of(rest.body)["Documents"]] == ["1", "0"]


def test_a_large_page_in_binary_is_whole(place: Any, wire: Any) -> None:
    for number in range(30):
        place.create(to_binary({"id": str(number), "pk": "a", "pad": "x" * 5_000}), ["a"])
    headers = {**QUERY, **BINARY}
    answer = wire.send("POST", [*place.path, "docs"], {"query": "SELECT * FROM c"}, headers, ["a"])
    assert len(value_of(answer.body)["Documents"]) == 30
    headers[OFFER] = "JsonText, CosmosBinary"
    answer = wire.send("POST", [*place.path, "docs"], {"query": "SELECT * FROM c"}, headers, ["a"])
    assert answer.json["_count"] == 30, "a large page is text for who reads both"


def test_what_the_service_answers_in_text_stays_text(place: Any, wire: Any) -> None:
    place.create(to_binary(ITEM), ["a"])
    docs = [*place.path, "docs"]
    steps = {"operations": [{"op": "set", "path": "/n", "value": 9}]}
    assert wire.send("PATCH", [*docs, "1"], steps, BINARY, ["a"]).json["n"] == 9
    assert wire.send("GET", docs, None, BINARY, ["a"]).json["_count"] == 1
    assert wire.send("GET", docs, None, {**BINARY, "a-im": "Incremental Feed"}, ["a"]).json["_count"] == 1
    assert wire.send("GET", place.path, None, BINARY).json["id"] == place.container
    plan = {**QUERY, **BINARY, "x-ms-cosmos-is-query-plan-request": "True"}
    assert "queryInfo" in wire.send("POST", docs, {"query": "SELECT * FROM c"}, plan).json


def test_errors_are_text_whatever_is_offered(place: Any, wire: Any) -> None:
    assert place.read("missing", ["a"], **{OFFER: "CosmosBinary"}).json["code"] == "NotFound"
    place.create(to_binary(ITEM), ["a"])
    assert wire.send("POST", [*place.path, "docs"], to_binary(ITEM), BINARY, ["a"]).json["code"] == "Conflict"


def test_a_feed_is_binary_where_the_older_header_asks_for_it(place: Any, wire: Any) -> None:
    place.create(to_binary(ITEM), ["a"])
    docs = [*place.path, "docs"]
    wish = {WISH: "CosmosBinary"}
    assert value_of(wire.send("GET", docs, None, wish, ["a"]).body)["_count"] == 1
    changes = wire.send("GET", docs, None, {**wish, "a-im": "Incremental Feed"}, ["a"])
    assert without_system(value_of(changes.body)["Documents"][0]) == ITEM
    assert place.read("1", ["a"], **{WISH: "JsonText"}).json["id"] == "1"


def test_a_wish_for_a_form_that_there_is_not_is_refused_before_anything_is_done(place: Any) -> None:
    refused = place.create(to_binary(ITEM), ["a"], **{WISH: "Not a valid value"})
    assert refused.status == 400
    assert WISH in refused.message
    assert place.read("1", ["a"]).status == 404


def test_an_answer_without_a_body_has_none_in_binary_either(place: Any, wire: Any) -> None:
    created = wire.send(
        "POST", [*place.path, "docs"], to_binary(ITEM), {**BINARY, "prefer": "return=minimal"}, ["a"]
    )
    assert (created.status, created.body) == (201, b"")
    same = {**BINARY, "if-none-match": created.headers["etag"]}
    read = wire.send("GET", [*place.path, "docs", "1"], None, same, ["a"])
    assert (read.status, read.body) == (304, b"")
    gone = wire.send("DELETE", [*place.path, "docs", "1"], None, BINARY, ["a"])
    assert (gone.status, gone.body) == (204, b"")


def test_every_body_may_be_binary(place: Any, wire: Any) -> None:
    """Metadata, patches, batches, scripts: the first byte decides, whatever is asked."""
    procedure = {"id": "p", "body": "function p(a, b) { getContext().getResponse().setBody(a + b); }"}
    assert wire.send("POST", [*place.path, "sprocs"], to_binary(procedure)).status == 201
    run = wire.send("POST", [*place.path, "sprocs", "p"], to_binary([1, 2]), None, ["a"])
    assert run.json == 3
    place.create(to_binary(ITEM), ["a"])
    steps = {"operations": [{"op": "incr", "path": "/n", "value": 1}]}
    assert wire.send("PATCH", [*place.path, "docs", "1"], to_binary(steps), None, ["a"]).json["n"] == 8
    batch = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    operations = [{"operationType": "Read", "id": "1"}]
    answer = wire.send("POST", [*place.path, "docs"], to_binary(operations), batch, ["a"])
    assert answer.json[0]["resourceBody"]["n"] == 8


def test_the_items_in_a_bulk_record_may_be_binary_and_come_back_in_text(place: Any, wire: Any) -> None:
    operation, result = RowCodec(BATCH_OPERATION), RowCodec(BATCH_RESULT)
    bodies = [to_binary({**ITEM, "id": "b"}), json.dumps({**ITEM, "id": "t"}).encode()]
    records = [
        operation.write(
            {"operationType": 0, "resourceType": 2, "partitionKey": '["a"]', "resourceBody": body}
        )
        for body in bodies
    ]
    headers = {
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-continue-on-error": "True",
        **BINARY,
    }
    answer = wire.send("POST", [*place.path, "docs"], write_rows(records), headers)
    assert answer.status == 200
    for row in map(result.read, read_rows(answer.body, 2)):
        assert isinstance(row["resourceBody"], bytes)
        assert {**without_system(json.loads(row["resourceBody"])), "id": "1"} == ITEM
    broken = operation.write({"operationType": 0, "resourceType": 2, "resourceBody": b"\x80\xff"})
    assert wire.send("POST", [*place.path, "docs"], write_rows([broken]), headers).status == 400


@pytest.mark.parametrize(
    "body", [b"\x80", b"\x80\xff", b"\x80\xe8\x00", b"\x80\x40", to_binary(ITEM)[:-1], b"\x80\xcf\x00\x00"]
)
def test_binary_that_is_malformed_is_a_bad_request_in_text(place: Any, body: bytes) -> None:
    answer = place.create(body, ["a"])
    assert answer.status == 400
    assert "binary JSON" in answer.message


@pytest.mark.parametrize("value", [[], "text", 5, None])
def test_a_binary_item_must_be_an_object_like_any_other(place: Any, value: Any) -> None:
    assert place.create(to_binary(value), ["a"]).status == 400


def test_a_binary_body_that_stands_for_too_much_text_is_too_large(place: Any) -> None:
    long = b"\xc1" + (60_000).to_bytes(2, "little") + b"x" * 60_000
    members = b"".join(
        b"\xc1" + (200).to_bytes(2, "little") + b"%0200d" % n + b"\xc4\x0a\x00" for n in range(99)
    )
    bomb = b"\x80\xec" + (len(members) + len(long) + 4).to_bytes(4, "little") + b"\x83pad" + long + members
    assert len(bomb) < 0.1 * MB
    assert place.create(bomb, ["a"]).status == 413


def test_the_items_of_a_batch_together_do_not_stand_for_much_more_text_than_a_request(
    place: Any, wire: Any
) -> None:
    headers = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False"}
    docs = [*place.path, "docs"]
    few, many = (binary.batch("a", items, 1_000_000) for items in (4, 100))
    assert len(many) < MB
    assert wire.send("POST", docs, few, headers, ["a"]).status == 200
    assert wire.send("POST", docs, many, headers, ["a"]).status == 413


def test_the_text_of_all_binary_bodies_at_work_has_an_end(wire: Any) -> None:
    settings = Settings(port=0, limits=dataclasses.replace(Limits(), bodies_bytes=100_000))
    with wire.serve(settings) as strict:
        place = make_place(strict, {"paths": ["/pk"], "kind": "Hash", "version": 2})
        for number in range(5):  # each has its room back when it is answered
            assert place.create(binary.item(f"{number}", "a", 60_000), ["a"]).status == 201
            assert place.create(binary.item(f"{number}", "a", 60_000), ["a"]).status == 409
        refused = place.create(binary.item("large", "a", 200_000), ["a"])
        assert (refused.status, refused.headers["x-ms-retry-after-ms"]) == (503, "1000")


def test_a_caller_is_known_before_its_body_is_read(place: Any, wire: Any) -> None:
    forged = {"authorization": wire.proof("post", "docs", "dbs/other/colls/other", "now")}
    assert wire.send("POST", [*place.path, "docs"], b"\x80\xff", forged, ["a"]).status == 401


def test_no_binary_body_whatever_makes_the_server_fail(place: Any, wire: Any) -> None:
    """Good bodies with bytes changed, cut and repeated, to every operation that takes one."""
    docs = [*place.path, "docs"]
    codec = RowCodec(BATCH_OPERATION)
    rows: list[dict[str, int | str | bytes]] = [
        {"operationType": kind, "resourceType": 2, "id": "1", "partitionKey": '["a"]'}
        for kind in (1, 2, 4, 5)
    ]
    rows += [{"operationType": 20, "resourceType": 2, "resourceBody": to_binary(ITEM), "ifMatch": "x"}]
    good = [
        to_binary(ITEM),
        to_binary([{"operationType": "Read", "id": "1"}]),
        write_rows(map(codec.write, rows)),
    ]
    batch = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    draw = random.Random(20)
    for turn in range(150):
        body = bytearray(draw.choice(good))
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(1, len(body))
            body[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
        if turn % 2:
            body = bytearray(as_records(body))
        headers = draw.choice([{}, batch, {**batch, "x-ms-cosmos-batch-atomic": "False"}, QUERY, BINARY])
        answer = wire.send("POST", docs, bytes(body), headers, ["a"])
        assert answer.status < 500, (headers, body.hex(), answer.body)


def as_records(body: bytes | bytearray) -> bytes:
    """The body as the one row of a stream whose checksum is right, so that the row itself is looked at."""
    return write_rows([bytes(body[23:] if body[:1] == b"\x81" else body)])

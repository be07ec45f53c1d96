"""Bulk over the wire: independent operations on many partition keys in one request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

from pleiad.limits import MB

if TYPE_CHECKING:
    from tests.clients.batch.conftest import BatchWire


def on(pk: str, kind: str, **more: Any) -> dict[str, Any]:
    """An operation as clients send it: its key is a JSON text inside the JSON."""
    return {"operationType": kind, "partitionKey": json.dumps([pk]), **more}


def create(pk: str, id: str = "x", **more: Any) -> dict[str, Any]:
    return on(pk, "Create", resourceBody={"id": id, "pk": pk, **more})


@pytest.fixture
def spread(pleiad_database: DatabaseProxy) -> ContainerProxy:
    """A container on three physical partitions."""
    return pleiad_database.create_container("spread", PartitionKey("/pk"), offer_throughput=18_000)


def test_each_operation_of_bulk_has_an_end_of_its_own(wire: BatchWire, container: ContainerProxy) -> None:
    container.create_item({"id": "old", "pk": "b", "n": 1})
    reply = wire.bulk(
        container.container_link,
        [
            create("a"),
            create("a"),
            on("b", "Read", id="old"),
            on("b", "Read", id="missing"),
            on(
                "b",
                "Patch",
                id="old",
                resourceBody={"operations": [{"op": "incr", "path": "/n", "value": 1}]},
            ),
            on("c", "Upsert", resourceBody={"id": "x", "pk": "c"}),
            on("c", "Replace", id="missing", resourceBody={"id": "missing", "pk": "c"}),
            on("c", "Create", resourceBody={"id": "y", "pk": "other"}),
            on("b", "Delete", id="old", ifMatch="stale"),
        ],
    )
    assert reply.status == 207
    assert reply.statuses == [201, 409, 200, 404, 200, 201, 404, 400, 412]
    charges = [entry["requestCharge"] for entry in reply.json]
    assert float(reply.headers["x-ms-request-charge"]) == pytest.approx(sum(charges), abs=0.001)
    assert container.read_item("old", "b")["n"] == 2
    assert sorted(each["pk"] for each in container.read_all_items()) == ["a", "b", "c"]


def test_bulk_without_failures_is_a_plain_success(wire: BatchWire, spread: ContainerProxy) -> None:
    link = spread.container_link
    reply = wire.bulk(link, [create(f"p{n}") for n in range(100)])
    assert reply.status == 200
    assert set(reply.statuses) == {201}
    assert len(list(spread.read_all_items())) == 100
    assert spread.read_item("x", "p7") == reply.json[7]["resourceBody"]


def test_the_key_decides_the_partition_and_not_the_range_a_client_names(
    wire: BatchWire, spread: ContainerProxy
) -> None:
    assert wire.bulk(spread.container_link, [create(f"p{n}") for n in range(30)], "2").status == 200
    for n in range(30):
        assert spread.read_item("x", f"p{n}")["pk"] == f"p{n}"


def test_a_range_that_is_gone_fails_the_whole_request(wire: BatchWire, container: ContainerProxy) -> None:
    reply = wire.bulk(container.container_link, [create("a")], "77")
    assert (reply.status, reply.headers["x-ms-substatus"]) == (410, "1002")
    assert list(container.read_all_items()) == []


def test_an_operation_without_a_key_fails_alone(wire: BatchWire, container: ContainerProxy) -> None:
    keyless = {"operationType": "Create", "resourceBody": {"id": "x", "pk": "a"}}
    reply = wire.bulk(container.container_link, [keyless, create("b")])
    assert reply.statuses == [400, 201]


def test_a_missing_key_value_is_a_key_too(wire: BatchWire, container: ContainerProxy) -> None:
    nothing = {"operationType": "Create", "partitionKey": "[{}]", "resourceBody": {"id": "x"}}
    assert wire.bulk(container.container_link, [nothing]).statuses == [201]


def test_a_key_in_the_header_binds_every_operation(wire: BatchWire, container: ContainerProxy) -> None:
    reply = wire.bulk(
        container.container_link, [create("a"), create("b")], x_ms_documentdb_partitionkey='["a"]'
    )
    assert reply.status == 400
    assert list(container.read_all_items()) == []


def test_bulk_that_stops_at_errors_leaves_the_rest_undone(wire: BatchWire, container: ContainerProxy) -> None:
    reply = wire.bulk(
        container.container_link,
        [create("a"), create("a"), create("b"), create("c")],
        x_ms_cosmos_batch_continue_on_error="false",
    )
    assert reply.statuses == [201, 409, 424, 424]
    assert [each["pk"] for each in container.read_all_items()] == ["a"]


def test_bulk_reads_past_the_size_of_a_response_are_to_be_sent_again(
    wire: BatchWire, container: ContainerProxy
) -> None:
    container.create_item({"id": "big", "pk": "a", "pad": "x" * int(1.5 * MB)})
    reply = wire.bulk(container.container_link, [on("a", "Read", id="big")] * 3)
    assert reply.statuses == [200, 200, 413]
    assert reply.json[2]["subStatusCode"] == 3402


def test_operations_on_one_item_in_bulk_are_done_in_order(wire: BatchWire, container: ContainerProxy) -> None:
    replace = on("a", "Replace", id="x", resourceBody={"id": "x", "pk": "a", "n": 2})
    reply = wire.bulk(container.container_link, [create("a", n=1), replace, on("a", "Delete", id="x")])
    assert reply.statuses == [201, 200, 204]


@pytest.mark.every_store
@pytest.mark.parametrize(
    ("kinds", "statuses"),
    [
        (["Create", "Read"], [201, 200]),
        (["Create", "Read", "Delete", "Read"], [201, 200, 204, 404]),
        (["Read", "Create"], [404, 201]),
        (["Create", "Patch", "Read", "Patch", "Read"], [201, 200, 200, 200, 200]),
        (["Patch", "Create", "Patch", "Delete", "Patch"], [404, 201, 200, 204, 404]),
        (["Upsert", "Delete", "Upsert", "Replace", "Read"], [201, 204, 201, 200, 200]),
        (["Delete", "Replace", "Create", "Create", "Delete"], [404, 404, 201, 409, 204]),
    ],
)
def test_every_operation_of_bulk_sees_what_those_before_it_did_to_its_item(
    wire: BatchWire, spread: ContainerProxy, kinds: list[str], statuses: list[int]
) -> None:
    def operation(kind: str, pk: str) -> dict[str, Any]:
        if kind in ("Create", "Upsert"):
            return on(pk, kind, resourceBody={"id": "x", "pk": pk, "n": 0})
        if kind == "Replace":
            return on(pk, kind, id="x", resourceBody={"id": "x", "pk": pk, "n": 10})
        if kind == "Patch":
            steps = [{"op": "incr", "path": "/n", "value": 1}]
            return on(pk, kind, id="x", resourceBody={"operations": steps})
        return on(pk, kind, id="x")

    keys = [f"p{n}" for n in range(10)]
    reply = wire.bulk(spread.container_link, [operation(kind, pk) for kind in kinds for pk in keys])
    assert reply.statuses == [status for status in statuses for _ in keys]
    if kinds[-1] == "Read" and statuses[-1] == 200:
        written = [kind for kind in kinds if kind in ("Patch", "Replace")]
        wanted = {"Patch": len(written), "Replace": 10}[written[-1]] if written else 0
        assert {entry["resourceBody"]["n"] for entry in reply.json[-10:]} == {wanted}


def test_an_item_renamed_in_bulk_is_found_by_its_new_id_and_no_longer_by_the_old(
    wire: BatchWire, container: ContainerProxy
) -> None:
    rename = on("a", "Replace", id="x", resourceBody={"id": "y", "pk": "a"})
    operations = [create("a"), rename, on("a", "Read", id="y"), on("a", "Read", id="x")]
    assert wire.bulk(container.container_link, operations).statuses == [201, 200, 200, 404]


def test_the_same_key_written_in_two_ways_is_one_item(wire: BatchWire, container: ContainerProxy) -> None:
    made = {"operationType": "Create", "partitionKey": "[6.0]", "resourceBody": {"id": "x", "pk": 6}}
    reply = wire.bulk(container.container_link, [made, {**on("", "Read", id="x"), "partitionKey": "[6]"}])
    assert reply.statuses == [201, 200]


def test_a_result_is_without_its_item_where_an_operation_asks_for_that(
    wire: BatchWire, container: ContainerProxy
) -> None:
    operations = [
        {**create("a"), "minimalReturnPreference": True},
        create("a", "y"),
        {**on("a", "Read", id="x"), "minimalReturnPreference": True},
        {**create("a", "z"), "minimalReturnPreference": False},
    ]
    reply = wire.bulk(container.container_link, operations)
    assert reply.statuses == [201, 201, 200, 201]
    assert ["resourceBody" in entry for entry in reply.json] == [False, True, False, True]
    assert all(entry["eTag"] for entry in reply.json)


def test_an_item_as_large_as_it_may_be_passes_through_bulk(
    wire: BatchWire, container: ContainerProxy
) -> None:
    around = len(json.dumps({"id": "x", "pk": "a", "pad": ""}))
    largest = create("a", pad="x" * (2 * MB - around))
    assert wire.bulk(container.container_link, [largest]).statuses == [201]


def test_bulk_is_refused_whole_where_the_request_is_larger_than_one_of_a_batch(
    wire: BatchWire, container: ContainerProxy
) -> None:
    reply = wire.bulk(container.container_link, [create("a"), create("b", pad="x" * int(2.1 * MB))])
    assert (reply.status, reply.json["code"]) == (413, "RequestEntityTooLarge")
    assert '{"Errors":["Request size is too large"]}' in reply.json["message"]
    assert list(container.read_all_items()) == []


ODD_ITEMS = [
    b'{"id":"plain","pk":"k","n":1,"list":[1,{"a":2.5}]}',
    b'{"id":"whole","pk":"k","n":1.0,"z":-0.0}',
    b'{"id":"escaped","pk":"k","t":"a\\"b\\\\u0041"}',
    b'{"id":"nul","pk":"k","a\\u0000b":1}',
    b'{"id":"twice","pk":"k","n":1,"n":2}',
    b'{"id":"long","pk":"k","n":123456789012345678901234567890,"d":0.10,"e":1e2}',
    b'{"id":"letters","pk":"k","t":"\\u00e9 \xc3\xa9"}',
    b'{"id":"system","pk":"k","_etag":"x","_ts":1,"_self":"y"}',
    b'{"id":7,"pk":"k"}',
    b'{"pk":"k"}',
    b'{"id":"elsewhere","pk":"other"}',
    b'{"id":"ttl","pk":"k","ttl":-7}',
    b'{"id":"deep","pk":"k","a":' + b"[" * 127 + b"]" * 127 + b"}",
    b'{"id":"deeper","pk":"k","a":' + b"[" * 130 + b"]" * 130 + b"}",
    b'{"id":"brackets","pk":"k","t":"' + b"[" * 200 + b'"}',
    b'{"id":"large","pk":"k","t":"' + b"x" * (40 * 1024) + b'"}',
    b"[1]",
    b"3",
]


@pytest.mark.parametrize("kind", ["Create", "Upsert", "Replace"])
@pytest.mark.parametrize("key", [b'["k"]', b'"[\\"k\\"]"', b'"k"', b"[1]", b"[]"])
def test_a_bulk_request_ends_the_same_however_its_text_is_spaced(
    wire: BatchWire, pleiad_database: DatabaseProxy, kind: str, key: bytes
) -> None:
    ends: list[list[Any]] = []
    for between in (b"", b" "):
        link = pleiad_database.create_container(f"c{len(ends)}", PartitionKey("/pk")).container_link
        told: list[Any] = []
        for items in [*([each] for each in ODD_ITEMS), ODD_ITEMS[:3], [ODD_ITEMS[0]] * 2]:
            operation = b'{"operationType":"%b","partitionKey":%b,"id":"plain","resourceBody":%b%b}'
            texts = [operation % (kind.encode(), key, between, item) for item in items]
            reply = wire.bulk(link, b"[" + b",".join(texts) + b"]")
            told.append((reply.status, [_without_marks(each) for each in _entries(reply.json)]))
        ends.append(told)
        container = pleiad_database.get_container_client(link.rsplit("/", 1)[1])
        told.append([_without_marks({"resourceBody": each}) for each in container.read_all_items()])
    assert ends[0] == ends[1]


def _entries(told: Any) -> list[dict[str, Any]]:
    return told if isinstance(told, list) else [{"refused": told["code"]}]


def _without_marks(entry: dict[str, Any]) -> dict[str, Any]:
    """What is told of an operation but for what no two writes share."""
    body = {name: value for name, value in entry.get("resourceBody", {}).items() if name[0] != "_"}
    return {name: value for name, value in entry.items() if name != "eTag"} | {"resourceBody": body}

"""Batches and bulk in the binary form of the .NET client: HybridRow records in, HybridRow records out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

from pleiad import errors
from pleiad.heads.nosql.batch import rows as batch_rows
from pleiad.heads.nosql.batch.entry import Result
from pleiad.limits import MB
from pleiad.wire.hybridrow.recordio import read_rows, write_rows
from pleiad.wire.hybridrow.row import Row, RowCodec
from pleiad.wire.hybridrow.schema import BATCH_OPERATION, BATCH_RESULT
from tests.project import REFERENCE

if TYPE_CHECKING:
    from tests.clients.batch.conftest import BatchReply, BatchWire

CAPTURED = REFERENCE / "hybridrow_captured.json"
needs_captures = pytest.mark.skipif(not CAPTURED.is_file(), reason="the captures are not beside the checkout")

OPERATION = RowCodec(BATCH_OPERATION)
RESULT = RowCodec(BATCH_RESULT)
CREATE, PATCH, READ, DELETE, REPLACE, UPSERT = 0, 1, 2, 4, 5, 20


def record(kind: int, id: str = "", item: Any = None, **more: Any) -> Row:
    """One operation as the client writes it."""
    row: Row = {"operationType": kind, "resourceType": 2, **more}
    if id:
        row["id"] = id
    if item is not None:
        row["resourceBody"] = json.dumps(item).encode()
    return row


def stream(*records: Row) -> bytes:
    return write_rows(map(OPERATION.write, records))


def results(reply: BatchReply) -> list[Row]:
    return [RESULT.read(row) for row in read_rows(reply.body, 100)]


def statuses(reply: BatchReply) -> list[Any]:
    return [row["statusCode"] for row in results(reply)]


def body(row: Row) -> Any:
    raw = row["resourceBody"]
    assert isinstance(raw, bytes)
    return json.loads(raw)


@pytest.mark.every_store
def test_a_batch_of_every_operation_is_answered_with_a_record_for_each(
    wire: BatchWire, container: ContainerProxy
) -> None:
    old = container.create_item({"id": "old", "pk": "a", "n": 1})
    container.create_item({"id": "gone", "pk": "a"})
    steps = {"operations": [{"op": "incr", "path": "/n", "value": 2}]}
    reply = wire.batch(
        container.container_link,
        stream(
            record(CREATE, item={"id": "new", "pk": "a", "n": 1}),
            record(READ, "old"),
            record(PATCH, "old", steps, ifMatch=old["_etag"]),
            record(UPSERT, item={"id": "ups", "pk": "a"}),
            record(REPLACE, "new", {"id": "new", "pk": "a", "n": 2}),
            record(DELETE, "gone"),
            record(READ, "old", ifNoneMatch="*"),
            record(UPSERT, item={"id": "ups", "pk": "a", "n": 3}, minimalReturnPreference=True),
        ),
    )
    assert reply.status == 207
    found = results(reply)
    assert [row["statusCode"] for row in found] == [201, 200, 200, 201, 200, 204, 304, 200]
    assert body(found[1])["n"] == 1
    assert body(found[2])["n"] == 3
    assert ["resourceBody" in row for row in found] == [True, True, True, True, True, False, False, False]
    assert ["eTag" in row for row in found] == [True, True, True, True, True, False, True, True]
    assert body(found[4])["_etag"] == found[4]["eTag"] == container.read_item("new", "a")["_etag"]
    charges = [row["requestCharge"] for row in found if isinstance(row["requestCharge"], float)]
    assert float(reply.headers["x-ms-request-charge"]) == pytest.approx(sum(charges), abs=0.01)
    assert container.read_item("ups", "a")["n"] == 3


def test_a_batch_that_fails_tells_its_reason_in_one_record_and_424_in_the_others(
    wire: BatchWire, container: ContainerProxy
) -> None:
    container.create_item({"id": "x", "pk": "a"})
    created = record(CREATE, item={"id": "y", "pk": "a"})
    again = record(CREATE, item={"id": "x", "pk": "a"})
    reply = wire.batch(container.container_link, stream(created, again, record(READ, "x")))
    assert reply.status == 207
    assert statuses(reply) == [424, 409, 424]
    assert body(results(reply)[1])["code"] == "Conflict"
    assert [item["id"] for item in container.read_all_items()] == ["x"]


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        (record(READ, "missing"), 404),
        (record(REPLACE, "x", {"id": "x", "pk": "a"}, ifMatch='"stale"'), 412),
        (record(CREATE, item={"id": "y", "pk": "b"}), 400),
        (record(CREATE, item={"pk": "a"}), 400),
        (record(PATCH, "x", {"operations": [{"op": "replace", "path": "/none", "value": 1}]}), 400),
    ],
)
def test_every_reason_of_failure_has_its_status(
    wire: BatchWire, container: ContainerProxy, failing: Row, status: int
) -> None:
    container.create_item({"id": "x", "pk": "a"})
    reply = wire.batch(container.container_link, stream(failing, record(READ, "x")))
    assert (reply.status, statuses(reply)) == (207, [status, 424])


def test_bulk_keeps_what_succeeds_and_tells_each_end(wire: BatchWire, pleiad_database: DatabaseProxy) -> None:
    spread = pleiad_database.create_container("spread", PartitionKey("/pk"), offer_throughput=18_000)
    made = [record(CREATE, item={"id": "x", "pk": f"p{n}"}, partitionKey=f'["p{n}"]') for n in range(30)]
    reply = wire.bulk(spread.container_link, stream(*made, made[7], record(READ, "x", partitionKey='["p9"]')))
    assert reply.status == 207
    assert statuses(reply) == [201] * 30 + [409, 200]
    assert len(list(spread.read_all_items())) == 30


def test_a_record_that_is_throttled_says_when_to_come_again() -> None:
    error = errors.TOO_MANY_REQUESTS(retry_after_ms=700)
    (row,) = read_rows(batch_rows.write([Result(429, 3200, 0.5, error=error)]), 1)
    assert RESULT.read(row) == {
        "statusCode": 429,
        "subStatusCode": 3200,
        "resourceBody": json.dumps(
            {"code": "TooManyRequests", "message": error.message}, separators=(",", ":")
        ).encode(),
        "retryAfterMilliseconds": 700,
        "requestCharge": 0.5,
    }


def test_bulk_reads_past_the_size_of_a_response_are_told_as_such(
    wire: BatchWire, container: ContainerProxy
) -> None:
    container.create_item({"id": "big", "pk": "a", "pad": "x" * int(1.5 * MB)})
    reads = [record(READ, "big", partitionKey='["a"]')] * 3
    found = results(wire.bulk(container.container_link, stream(*reads)))
    assert [(row["statusCode"], row["subStatusCode"]) for row in found] == [(200, 0), (200, 0), (413, 3402)]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (stream(), "no operations"),
        (stream(*[record(READ, "x")] * 101), "more operations than what is supported"),
        (stream(record(READ, "x"))[:-1], "HybridRow"),
        (b"\x81", "HybridRow"),
        (stream(record(3, "x")), "operationType"),
        (stream({"resourceType": 2, "id": "x"}), "operationType"),
        (stream({"operationType": READ, "resourceType": 1, "id": "x"}), "resourceType"),
        (stream(record(READ)), "needs the 'id'"),
        (stream(record(CREATE)), "needs a 'resourceBody'"),
        (stream(record(READ, "x", effectivePartitionKey=b"\x01")), "effectivePartitionKey"),
        (stream(record(READ, "x", timeToLiveInSeconds=5)), "timeToLiveInSeconds"),
        (stream(record(READ, "x", partitionKey='["b"]')), "different partition key value than the request"),
        (stream(record(READ, "x", partitionKey="nonsense")), "not a JSON array"),
    ],
)
def test_a_stream_that_cannot_be_done_is_refused_as_a_whole_in_text(
    wire: BatchWire, container: ContainerProxy, sent: bytes, words: str
) -> None:
    reply = wire.batch(container.container_link, sent)
    assert reply.status == 400
    assert reply.headers["content-type"] == "application/json"
    assert words in reply.json["message"]


def test_a_batch_over_the_limit_of_bytes_is_too_large(wire: BatchWire, container: ContainerProxy) -> None:
    half = "x" * int(1.05 * MB)
    made = [record(CREATE, item={"id": f"{n}", "pk": "a", "pad": half}) for n in range(2)]
    assert wire.batch(container.container_link, stream(*made)).status == 413


@needs_captures
def test_every_request_that_the_real_client_sent_is_done(
    wire: BatchWire, pleiad_database: DatabaseProxy
) -> None:
    """Replayed in order on one container; a batch may fail for its items, but never for its form."""
    container = pleiad_database.create_container("captured", PartitionKey("/pk"))
    deep = pleiad_database.create_container("deep", PartitionKey(["/a", "/b"], kind="MultiHash"))
    for case in json.loads(CAPTURED.read_text(encoding="utf-8"))["cases"]:
        sent = {name.replace("-", "_"): value for name, value in case["headers"].items() if value}
        target = deep if "hierarchical" in case["name"] else container
        if "p1" not in json.dumps(case["means"]):
            sent.setdefault("x_ms_documentdb_partitionkeyrangeid", "0")
        reply = wire.post(target.container_link, "docs", bytes.fromhex(case["body_hex"]), **sent)
        if "binary" in case["name"]:
            continue
        assert reply.status in (200, 207), (case["name"], reply.body)
        found = results(reply)
        assert len(found) == len(case["means"]), case["name"]
        if not any(entry.get("ifMatch") for entry in case["means"]):
            own = {row["statusCode"] for row in found} - {424}
            assert own <= {200, 201, 204, 304, 404, 409}, (case["name"], found)

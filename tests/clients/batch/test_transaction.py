"""The transactional batch as the official client and the wire see it: order, atomicity, conditions, limits, errors."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from pleiad.limits import MB
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.clients.batch.conftest import BatchReply, BatchWire


def item(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "pk": "a", **more}


def create(id: str, **more: Any) -> dict[str, Any]:
    return {"operationType": "Create", "resourceBody": item(id, **more)}


def read(id: str) -> dict[str, Any]:
    return {"operationType": "Read", "id": id}


def failure(container: ContainerProxy, operations: list[Any], key: Any = "a") -> CosmosBatchOperationError:
    with pytest.raises(CosmosBatchOperationError) as caught:
        container.execute_item_batch(operations, partition_key=key)
    return caught.value


def statuses(error: CosmosBatchOperationError) -> list[int]:
    return [each["statusCode"] for each in error.operation_responses]


def ids(container: ContainerProxy) -> list[str]:
    return sorted(each["id"] for each in container.read_all_items())


def message(reply: BatchReply) -> str:
    return str(reply.json["message"])


@pytest.mark.requirement("R20")
def test_all_six_operations_run_in_order_and_each_sees_the_ones_before(container: ContainerProxy) -> None:
    container.create_item(item("old", n=1))
    container.create_item(item("gone"))
    answers = container.execute_item_batch(
        [
            ("create", (item("new", n=1),)),
            ("patch", ("new", [{"op": "incr", "path": "/n", "value": 2}])),
            ("read", ("new",)),
            ("upsert", (item("up", n=5),)),
            ("upsert", (item("up", n=6),)),
            ("replace", ("old", item("old", n=9))),
            ("read", ("old",)),
            ("delete", ("gone",)),
            ("create", (item("gone", again=True),)),
        ],
        partition_key="a",
    )
    assert [each["statusCode"] for each in answers] == [201, 200, 200, 201, 200, 200, 200, 204, 201]
    assert [each.get("resourceBody", {}).get("n") for each in answers] == [1, 3, 3, 5, 6, 9, 9, None, None]
    assert ids(container) == ["gone", "new", "old", "up"]
    assert container.read_item("new", "a")["n"] == 3
    assert container.read_item("gone", "a")["again"] is True


def test_the_answer_shows_each_item_as_it_is_stored(container: ContainerProxy) -> None:
    answers = container.execute_item_batch(
        [("create", (item("x"),)), ("read", ("x",)), ("create", (item("y"),))], partition_key="a"
    )
    stored = container.read_item("x", "a")
    assert answers[0]["resourceBody"] == answers[1]["resourceBody"] == stored
    assert answers[0]["eTag"] == answers[1]["eTag"] == stored["_etag"]
    assert "_rid" in answers[2]["resourceBody"]
    assert answers[2]["resourceBody"]["_rid"] != stored["_rid"]


@pytest.mark.requirement("R20")
def test_one_failure_undoes_everything_and_is_the_only_one_with_its_own_status(
    container: ContainerProxy,
) -> None:
    container.create_item(item("old", n=1))
    error = failure(
        container,
        [
            ("create", (item("new"),)),
            ("replace", ("old", item("old", n=2))),
            ("delete", ("missing",)),
            ("create", (item("later"),)),
        ],
    )
    assert statuses(error) == [424, 424, 404, 424]
    assert error.error_index == 2
    assert ids(container) == ["old"]
    assert container.read_item("old", "a")["n"] == 1


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        (("create", (item("old"),)), 409),
        (("create", (item("new"),)), 409),
        (("replace", ("missing", item("missing"))), 404),
        (("replace", ("old", item("new"))), 409),
        (("read", ("missing",)), 404),
        (("delete", ("missing",)), 404),
        (("patch", ("missing", [{"op": "set", "path": "/n", "value": 1}])), 404),
        (("patch", ("old", [{"op": "remove", "path": "/missing"}])), 400),
        (("patch", ("old", [{"op": "set", "path": "/pk", "value": "b"}])), 400),
        (
            (
                "patch",
                ("old", [{"op": "set", "path": "/n", "value": 1}]),
                {"filter_predicate": "from c where c.n = 7"},
            ),
            412,
        ),
        (("create", ({"id": "other", "pk": "b"},)), 400),
        (("create", ({"id": "keyless"},)), 400),
        (("create", ({"pk": "a"},)), 400),
        (("create", ({"id": "bad\\id", "pk": "a"},)), 400),
        (("upsert", (item("old", ttl=-5),)), 400),
        (("replace", ("old", item("old")), {"if_match_etag": "stale"}), 412),
        (("replace", ("new", item("new")), {"if_match_etag": "stale"}), 412),
        (("delete", ("old",), {"if_match_etag": "stale"}), 412),
        (("upsert", (item("old"),), {"if_none_match_etag": "*"}), 412),
        (("upsert", (item("missing"),), {"if_match_etag": "*"}), 412),
    ],
)
def test_an_operation_that_cannot_be_done_fails_as_it_would_alone(
    container: ContainerProxy, operation: Any, status: int
) -> None:
    container.create_item(item("old", n=1))
    # The client takes the options out of the operation it is given.
    error = failure(container, [("create", (item("new"),)), deepcopy(operation), ("read", ("old",))])
    assert statuses(error) == [424, status, 424]
    assert ids(container) == ["old"]


def test_conditions_hold_for_the_etag_an_item_has(container: ContainerProxy) -> None:
    etag = container.create_item(item("x", n=1))["_etag"]
    operations: list[Any] = [
        ("read", ("x",), {"if_none_match_etag": etag}),
        ("replace", ("x", item("x", n=2)), {"if_match_etag": etag}),
        ("upsert", (item("y"),), {"if_none_match_etag": "*"}),
    ]
    answers = container.execute_item_batch(operations, partition_key="a")
    assert [each["statusCode"] for each in answers] == [304, 200, 201]
    assert "resourceBody" not in answers[0]
    again: list[Any] = [("delete", ("x",), {"if_match_etag": etag})]
    assert statuses(failure(container, again)) == [412]
    twice: list[Any] = [
        ("upsert", (item("x", n=3),)),
        ("delete", ("x",), {"if_match_etag": container.read_item("x", "a")["_etag"]}),
    ]
    assert statuses(failure(container, twice)) == [424, 412], "the batch itself has changed the item since"


def test_a_rename_within_a_batch_frees_the_old_id(container: ContainerProxy) -> None:
    container.create_item(item("x", n=1))
    answers = container.execute_item_batch(
        [("replace", ("x", item("y", n=2))), ("read", ("y",)), ("create", (item("x", n=3),))],
        partition_key="a",
    )
    assert [each["resourceBody"]["n"] for each in answers] == [2, 2, 3]
    assert ids(container) == ["x", "y"]


@pytest.mark.requirement("R119")
def test_a_batch_stays_in_the_logical_partition_of_its_key(container: ContainerProxy) -> None:
    container.create_item({"id": "x", "pk": "b"})
    assert statuses(failure(container, [("read", ("x",))])) == [404]
    assert statuses(failure(container, [("create", ({"id": "y", "pk": "b"},))])) == [400]
    assert statuses(failure(container, [("upsert", ({"id": "x", "pk": "b"},))])) == [400]
    container.execute_item_batch([("create", (item("x"),))], partition_key="a")
    assert sorted(each["pk"] for each in container.read_all_items()) == ["a", "b"]


@pytest.mark.requirement("R119")
def test_operations_that_name_another_key_than_the_request_are_refused(
    wire: BatchWire, container: ContainerProxy
) -> None:
    link = container.container_link
    mixed = [create("x"), {"operationType": "Delete", "id": "y", "partitionKey": '["b"]'}]
    reply = wire.batch(link, mixed)
    assert reply.status == 400
    assert "Operation 1" in message(reply)
    assert wire.batch(link, [{**create("x"), "partitionKey": '["a"]'}]).status == 200
    assert wire.post(
        link, "docs", [create("z")], x_ms_cosmos_is_batch_request="True", x_ms_cosmos_batch_atomic="True"
    ).status == (400)
    assert ids(container) == ["x"]


def test_a_hierarchical_key_must_be_complete(pleiad_database: DatabaseProxy) -> None:
    container = pleiad_database.create_container("h", PartitionKey(["/t", "/u"], kind="MultiHash"))
    new: list[Any] = [("create", ({"id": "1", "t": "x", "u": "y"},))]
    container.execute_item_batch(new, partition_key=["x", "y"])
    with pytest.raises(CosmosHttpResponseError, match="doesn't correspond to definition") as caught:
        container.execute_item_batch(new, partition_key=["x"])
    assert caught.value.status_code == 400


def test_the_charge_is_the_sum_of_the_operations_charged_alone(
    wire: BatchWire, container: ContainerProxy
) -> None:
    link = container.container_link
    operations = [
        create("x", n=1),
        {"operationType": "Upsert", "resourceBody": item("x", n=2, m=[1, 2])},
        {
            "operationType": "Patch",
            "id": "x",
            "resourceBody": {"operations": [{"op": "set", "path": "/n", "value": 1}]},
        },
        read("x"),
        {"operationType": "Delete", "id": "x"},
    ]
    together = wire.batch(link, operations)
    assert together.statuses == [201, 200, 200, 200, 204]
    charges = [entry["requestCharge"] for entry in together.json]
    alone = [wire.batch(link, [operation]) for operation in operations]
    assert charges == [float(reply.headers["x-ms-request-charge"]) for reply in alone]
    assert float(together.headers["x-ms-request-charge"]) == pytest.approx(sum(charges), abs=0.001)
    failed = wire.batch(link, [create("y"), read("missing")])
    assert float(failed.headers["x-ms-request-charge"]) == sum(e["requestCharge"] for e in failed.json) == 1.0


@pytest.mark.parametrize(
    "operation",
    [
        create("x"),
        create("a/b\\c"),
        {"operationType": "Create", "resourceBody": {"pk": "a"}},
        {"operationType": "Patch", "id": "x", "resourceBody": {"operations": [{"op": "none", "path": "/n"}]}},
        {"operationType": "Replace", "id": "x", "resourceBody": item("x"), "ifMatch": '"other"'},
    ],
    ids=["conflict", "bad id", "no id", "bad patch", "other version"],
)
def test_a_failed_batch_has_the_charge_of_the_operation_that_failed(
    wire: BatchWire, container: ContainerProxy, operation: Any
) -> None:
    container.create_item(item("x"))
    failed = wire.batch(container.container_link, [create("y"), operation])
    charges = [entry["requestCharge"] for entry in failed.json]
    assert charges[0] == 0 < charges[1] == float(failed.headers["x-ms-request-charge"])


def test_a_batch_moves_the_session_token_once_and_reading_does_not(
    wire: BatchWire, container: ContainerProxy
) -> None:
    link = container.container_link
    first = wire.batch(link, [create("x"), create("y")])
    second = wire.batch(link, [read("x"), read("y")])
    third = wire.batch(link, [create("z"), create("x")])
    assert [first.status, second.status, third.status] == [200, 200, 207]
    assert [reply.headers["lsn"] for reply in (first, second, third)] == ["1", "1", "1"]
    assert first.headers["x-ms-session-token"].endswith("#1")
    early = wire.batch(link, [read("x")], x_ms_session_token=first.headers["x-ms-session-token"] + "0")
    assert (early.status, early.headers["x-ms-substatus"]) == (404, "1002")


def test_minimal_answers_leave_out_the_items_that_were_written(
    wire: BatchWire, container: ContainerProxy
) -> None:
    reply = wire.batch(container.container_link, [create("x"), read("x")], prefer="return=minimal")
    assert ["resourceBody" in entry for entry in reply.json] == [False, True]
    assert all(entry["eTag"] for entry in reply.json)


def test_numbers_keep_their_digits_in_the_shortest_form(wire: BatchWire, container: ContainerProxy) -> None:
    body = b'[{"operationType":"Create","resourceBody":{"id":"x","pk":"a","n":1.10,"big":12345678901234567890}},\n'
    body += (
        b'{"operationType":"Patch","id":"x","resourceBody":[{"op":"set","path":"/m","value":2.50}]},'
        b'{ "id" : "x", "operationType" : "Read" }]'
    )
    reply = wire.batch(container.container_link, body)
    assert reply.statuses == [201, 200, 200]
    assert reply.body.count(b'"n":1.1,"big":12345678901234567890') == 3
    assert reply.body.count(b'"m":2.5') == 2


def test_of_a_property_named_twice_in_an_item_the_last_value_counts(
    wire: BatchWire, container: ContainerProxy
) -> None:
    create = b'{"operationType":"Create","resourceBody":{"id":"x","pk":"a","n":1,"n":2.50,"s":"a"}}'
    patch = b'{"op":"set","path":"/o","value":{"v":1,"v":2}}'
    update = b'{"operationType":"Patch","id":"x","resourceBody":{"operations":[%b]}}' % patch
    reply = wire.batch(container.container_link, b"[" + create + b"," + update + b"]")
    assert [entry["statusCode"] for entry in reply.json] == [201, 200]
    item = reply.json[1]["resourceBody"]
    assert (item["n"], item["o"]) == (2.5, {"v": 2})
    assert reply.body.count(b'"n":') == 2


def test_a_batch_has_one_to_a_hundred_operations(wire: BatchWire, container: ContainerProxy) -> None:
    link = container.container_link
    none = wire.batch(link, [])
    assert (none.status, "Batch request has no operations." in message(none)) == (400, True)
    many = wire.batch(link, [create(str(n)) for n in range(101)])
    assert many.status == 400
    assert "Batch request has more operations than what is supported." in message(many)
    assert ids(container) == []
    assert wire.batch(link, [create(str(n)) for n in range(100)]).status == 200
    assert len(ids(container)) == 100


def test_a_batch_is_refused_whole_from_the_first_byte_over_what_the_service_takes(
    wire: BatchWire, container: ContainerProxy
) -> None:
    def batch_of(size: int) -> bytes:
        halves = [create("x", pad="x" * MB), create("y", pad="y" * MB)]
        body = json.dumps(halves).encode()
        return body.replace(b"yy", b"y" * (2 + size - len(body)), 1)

    link = container.container_link
    reply = wire.batch(link, batch_of(2_202_011))
    assert (reply.status, reply.json["code"]) == (413, "RequestEntityTooLarge")
    assert ids(container) == []
    assert wire.batch(link, batch_of(2_202_010)).status == 200
    assert ids(container) == ["x", "y"]


def test_a_batch_reads_no_more_than_a_response_holds(wire: BatchWire, container: ContainerProxy) -> None:
    container.create_item(item("big", pad="x" * int(1.5 * MB)))
    link = container.container_link
    assert wire.batch(link, [read("big")] * 2).statuses == [200, 200]
    reply = wire.batch(link, [create("x"), *[read("big")] * 3])
    assert reply.statuses == [424, 424, 424, 413]
    assert reply.json[3]["subStatusCode"] == 3402
    assert wire.batch(link, [read("big")] * 5).statuses == [424, 424, 424, 424, 413]
    assert ids(container) == ["big"]


def test_a_batch_that_failed_tells_its_session_and_no_owner(
    wire: BatchWire, container: ContainerProxy
) -> None:
    link = container.container_link
    done = wire.batch(link, [create("x")])
    failed = wire.batch(link, [read("x"), read("nothing")])
    assert failed.statuses == [424, 404]
    assert failed.headers["x-ms-session-token"] == done.headers["x-ms-session-token"]
    assert failed.headers["lsn"] == done.headers["lsn"]
    assert done.headers["x-ms-content-path"]
    assert "x-ms-content-path" not in failed.headers


def test_a_read_in_a_batch_takes_if_match_for_an_item_that_is_known(
    wire: BatchWire, container: ContainerProxy
) -> None:
    etag = container.create_item(item("x"))["_etag"]
    reply = wire.batch(container.container_link, [create("y"), {**read("x"), "ifMatch": etag}])
    assert (reply.status, reply.statuses) == (207, [201, 304])
    reply = wire.batch(container.container_link, [{**read("x"), "ifMatch": '"another"'}])
    assert (reply.status, reply.statuses) == (200, [200])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        b"[null]",
        b"[{}]",
        b"[",
        b'"Create"',
        b'[{"operationType":"Destroy","id":"x"}]',
        b'[{"operationType":["Read"],"id":"x"}]',
        b'[{"operationType":"Create"}]',
        b'[{"operationType":"Read"}]',
        b'[{"operationType":"Read","id":7}]',
        b'[{"operationType":"Read","id":""}]',
        b'[{"operationType":"Read","id":"x","ifNoneMatch":7}]',
        b'[{"operationType":"Read","id":"x","id":"y"}]',
        b'[{"operationType":"Read","id":"x","partitionKey":"["}]',
        b'[{"operationType":"Read","id":"x","partitionKey":{"a":1}}]',
        b'[{"operationType":"Create","resourceBody":' + b"[" * 500 + b"]" * 500 + b"}]",
        b'[{"operationType":"Create","resourceBody":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
    ],
)
def test_what_is_no_batch_is_refused_whole(wire: BatchWire, container: ContainerProxy, body: bytes) -> None:
    reply = wire.batch(container.container_link, body)
    assert (reply.status, reply.json["code"]) == (400, "BadRequest"), reply.body


@pytest.mark.parametrize(
    "body", [b'"text"', b"7", b"[]", b"null", b'{"operations":[]}', b'{"operations":[{"op":"x"}]}']
)
def test_a_body_that_is_no_item_or_patch_fails_its_operation(
    wire: BatchWire, container: ContainerProxy, body: bytes
) -> None:
    container.create_item(item("x"))
    for kind in (b'"Create"', b'"Patch","id":"x"', b'"Replace","id":"x"'):
        reply = wire.batch(
            container.container_link, b'[{"operationType":' + kind + b',"resourceBody":' + body + b"}]"
        )
        assert (reply.status, reply.statuses) == (207, [400]), reply.body
        assert reply.json[0]["message"]


def test_unique_keys_are_kept_within_a_batch_and_against_the_rest(pleiad_database: DatabaseProxy) -> None:
    policy = {"uniqueKeys": [{"paths": ["/email"]}]}
    container = pleiad_database.create_container("u", PartitionKey("/pk"), unique_key_policy=policy)
    container.create_item(item("old", email="1"))
    error = failure(container, [("create", (item("x", email="2"),)), ("create", (item("y", email="2"),))])
    assert statuses(error) == [424, 409]
    assert error.operation_responses[1]["subStatusCode"] == 3301
    assert statuses(failure(container, [("create", (item("x", email="1"),))])) == [409]
    container.execute_item_batch(
        [("delete", ("old",)), ("create", (item("x", email="1"),))], partition_key="a"
    )
    assert ids(container) == ["x"]


@pytest.mark.parametrize("looks", [False, True])
def test_the_first_operation_that_fails_is_told_of_also_where_only_the_store_sees_it(
    pleiad_database: DatabaseProxy, looks: bool
) -> None:
    policy = {"uniqueKeys": [{"paths": ["/email"]}]}
    container = pleiad_database.create_container("first", PartitionKey("/pk"), unique_key_policy=policy)
    container.create_item(item("1", email="x"))
    first = [("read", ("1",))] if looks else [("upsert", (item("1", email="x"),))]
    error = failure(container, [*first, ("upsert", (item("2", email="x"),)), ("delete", ("none",))])
    assert statuses(error) == [424, 409, 424]
    error = failure(container, [*first, ("upsert", (item("2", email="y"),)), ("delete", ("none",))])
    assert statuses(error) == [424, 424, 404]
    error = failure(container, [*first, ("delete", ("none",)), ("upsert", (item("2", email="x"),))])
    assert statuses(error) == [424, 404, 424]
    assert ids(container) == ["1"]


def test_an_expired_item_counts_as_absent(pleiad_database: DatabaseProxy, wire: BatchWire) -> None:
    container = pleiad_database.create_container("t", PartitionKey("/pk"), default_ttl=-1)
    reply = wire.batch(container.container_link, [create("x", ttl=1), create("y")])
    assert reply.status == 200
    assert wait_until(lambda: wire.batch(container.container_link, [read("x")]).statuses == [404])
    assert wire.batch(container.container_link, [create("x", n=2), read("x")]).statuses == [201, 200]


def test_a_client_reads_the_reason_of_a_failure(wire: BatchWire, container: ContainerProxy) -> None:
    reply = wire.batch(container.container_link, [create("x"), create("x")])
    assert reply.status == 207
    first, second = json.loads(reply.body)
    assert "another operation" in first["message"]
    assert "already exists" in second["message"]

"""Bad input gets its row of the error table, in the shape clients read."""

from __future__ import annotations

from typing import Any

import pytest

NESTED = b'{"id":"1","pk":"a","x":' + b"[" * 127 + b"]" * 127 + b"}"
TOO_NESTED = b'{"id":"1","pk":"a","x":' + b"[" * 128 + b"]" * 128 + b"}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"nonsense", "not valid JSON"),
        (b'{"id":"1","pk":"a",}', "not valid JSON"),
        (b'{"id":"1","pk":"a"} x', "not valid JSON"),
        (b'{"id":"1","pk":"a","n":NaN}', "not valid JSON"),
        (b'{"id":"1","pk":"a","n":01}', "not valid JSON"),
        (b'{"id":"1","pk":"a","s":"\x01"}', "not valid JSON"),
        (b'{"id":"1","pk":"a","s":"\xff"}', "UTF-8"),
        (b'{"id":"1","pk":"a","s":"\xed\xa0\x80"}', "UTF-8"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (TOO_NESTED, "nested deeper than the limit of 128"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"pk":"a"}', "'id; '"),
        (b'{"id":5,"pk":"a"}', "must be a string"),
        (b'{"id":"","pk":"a"}', "non-empty string"),
        (b'{"id":"a\\\\b","pk":"a"}', "must not contain"),
        (b'{"id":"' + b"x" * 1024 + b'","pk":"a"}', "less than '1024'"),
    ],
)
@pytest.mark.parametrize("upsert", ["False", "True"])
def test_a_bad_item_is_400_and_says_why(body: bytes, text: str, upsert: str, place: Any) -> None:
    answer = place.create(body, ["a"], x_ms_documentdb_is_upsert=upsert)
    assert (answer.status, answer.json["code"]) == (400, "BadRequest")
    assert text in answer.message
    assert place.wire.send("GET", [*place.path, "docs"]).json["_count"] == 0


def test_an_item_at_the_limits_of_nesting_and_id_is_accepted(place: Any) -> None:
    assert place.create(NESTED, ["a"]).status == 201
    assert place.create({"id": "x" * 1023, "pk": "a"}, ["a"]).status == 201
    assert place.read("x" * 1023, ["a"]).status == 200


def test_an_error_has_code_message_and_activity_id(place: Any) -> None:
    activity = "11111111-2222-3333-4444-555555555555"
    answer = place.read("none", ["a"], x_ms_activity_id=activity)
    assert answer.status == 404
    assert answer.json["code"] == "NotFound"
    assert answer.message.endswith(f"\r\nActivityId: {activity}")
    assert answer.headers["x-ms-activity-id"] == activity
    assert "x-ms-substatus" not in answer.headers
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("size", [2 * 1024 * 1024 + 200, 4 * 1024 * 1024 + 1])
def test_an_item_over_two_megabytes_is_413(size: int, place: Any) -> None:
    answer = place.create(b'{"id":"1","pk":"a","x":"' + b"x" * size + b'"}', ["a"])
    assert (answer.status, answer.json["code"]) == (413, "RequestEntityTooLarge")
    assert place.read("1", ["a"]).status == 404


def test_an_item_of_two_megabytes_is_accepted(place: Any) -> None:
    start = b'{"id":"1","pk":"a","x":"'
    body = start + b"x" * (2 * 1024 * 1024 - len(start) - 2) + b'"}'
    assert place.create(body, ["a"]).status == 201
    assert place.read("1", ["a"]).body.startswith(body[:-1])


@pytest.mark.parametrize(
    "value", ["0", "-2", "x", "1.5", "1_0", "9" * 5000, "+1", "٣".encode().decode("latin-1")]
)
def test_a_page_size_that_is_none_is_400(value: str, place: Any, wire: Any) -> None:
    for path in (["dbs"], [*place.path, "docs"]):
        answer = wire.send("GET", path, headers={"x-ms-max-item-count": value})
        assert (answer.status, answer.json["code"]) == (400, "BadRequest")
        assert "x-ms-max-item-count" in answer.message


@pytest.mark.parametrize("value", ["-1", "1", "1000", "5000"])
def test_any_page_size_from_one_is_accepted(value: str, place: Any, wire: Any) -> None:
    assert wire.send("GET", [*place.path, "docs"], headers={"x-ms-max-item-count": value}).status == 200


@pytest.mark.parametrize(
    "value",
    ["", "a", '"a"', "5", "{}", "[", '["a"', "[[]]", '[{"a":1}]', '["a","b"]', "[1e999]",
     "[9007199254740993]", '["\\ud800"]', "\xff", "[" * 1000, '["' + "x" * 2049 + '"]'],
)  # fmt: skip
def test_a_partition_key_header_that_is_no_key_is_400(value: str, place: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    answer = place.read("1", None, x_ms_documentdb_partitionkey=value)
    assert (answer.status, answer.json["code"]) == (400, "BadRequest")


def test_an_operation_on_an_item_needs_its_partition_key(place: Any, wire: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    item = [*place.path, "docs", "1"]
    body = {"id": "1", "pk": "a"}
    patch = {"operations": [{"op": "set", "path": "/n", "value": 1}]}
    requests = [("GET", item, None), ("PUT", item, body), ("PATCH", item, patch), ("DELETE", item, None)]
    requests += [("POST", item[:-1], body), ("POST", [*place.path, "operations", "partitionkeydelete"], None)]
    for method, path, content in requests:
        answer = wire.send(method, path, content)
        assert answer.status == 400, (method, answer.body)
        assert "PartitionKey value must be supplied" in answer.message
    assert place.read("1", ["a"]).status == 200


def test_the_key_in_the_header_must_be_the_key_in_the_item(place: Any, wire: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    different: list[list[Any]] = [["b"], [1], [None], [{}]]
    for key in different:
        answer = place.create({"id": "2", "pk": "a"}, key)
        assert (answer.status, answer.substatus) == (400, 1001)
    answer = wire.send("PUT", [*place.path, "docs", "1"], {"id": "1", "pk": "b"}, key=["a"])
    assert (answer.status, answer.substatus) == (400, 1001)


def test_a_prefix_of_a_hierarchical_key_is_too_little_for_one_item(hierarchical_place: Any) -> None:
    item = {"id": "1", "tenant": "t", "user": "u", "session": "s"}
    assert hierarchical_place.create(item, ["t", "u", "s"]).status == 201
    for key in (["t"], ["t", "u"], ["t", "u", "s", "x"]):
        assert hierarchical_place.read("1", key).status == 400
        assert hierarchical_place.create({**item, "id": "2"}, key).status == 400
    assert hierarchical_place.read("1", ["t", "u", "s"]).status == 200


def test_a_missing_level_of_a_hierarchical_key_is_named_as_missing(hierarchical_place: Any) -> None:
    item = {"id": "1", "tenant": "t", "user": "u"}
    assert hierarchical_place.create(item, ["t", "u", None]).substatus == 1001
    assert hierarchical_place.create(item, ["t", "u", {}]).status == 201
    assert hierarchical_place.read("1", ["t", "u", {}]).status == 200


def test_an_object_or_list_as_key_counts_as_missing(place: Any) -> None:
    for id, value in (("1", {"a": 1}), ("2", [1]), ("3", [])):
        assert place.create({"id": id, "pk": value}, [{}]).status == 201
        assert place.read(id, [{}]).json["pk"] == value


@pytest.mark.parametrize("level", ["Strong", "BoundedStaleness", "strong"])
def test_a_consistency_level_stronger_than_the_account_is_400(level: str, place: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    answer = place.read("1", ["a"], x_ms_consistency_level=level)
    assert answer.status == 400
    assert "stronger than the account's level Session" in answer.message


def test_weaker_consistency_levels_are_accepted_and_unknown_ones_refused(place: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    for level in ("Session", "ConsistentPrefix", "Eventual", "eventual"):
        assert place.read("1", ["a"], x_ms_consistency_level=level).status == 200
    assert place.read("1", ["a"], x_ms_consistency_level="Perfect").status == 400


def test_a_container_recreated_under_its_name_is_not_taken_for_the_old_one(place: Any, wire: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    assert place.read("1", ["a"], x_ms_cosmos_intended_collection_rid=place.rid).status == 200
    answer = place.read("1", ["a"], x_ms_cosmos_intended_collection_rid="AAAAAYAAAGM=")
    assert (answer.status, answer.substatus) == (400, 1024)
    wire.send("DELETE", place.path)
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    new = wire.send("POST", place.path[:3], {"id": place.container, "partitionKey": key}).json
    assert new["_rid"] != place.rid
    for path in (["docs"], ["pkranges"]):
        headers = {"x-ms-cosmos-intended-collection-rid": place.rid}
        answer = wire.send("GET", [*place.path, *path], headers=headers)
        assert (answer.status, answer.substatus) == (400, 1024)


@pytest.mark.parametrize("token", ["x", "0", "0:x", "0:0#x", "0:0#" + "9" * 5000, ",", "0:"])
def test_a_session_token_that_is_none_is_400(token: str, place: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    assert place.read("1", ["a"], x_ms_session_token=token).status == 400


def test_a_session_token_from_the_future_is_refused(place: Any) -> None:
    written = place.create({"id": "1", "pk": "a"}, ["a"])
    assert place.read("1", ["a"], x_ms_session_token=written.headers["x-ms-session-token"]).status == 200
    ahead = place.read("1", ["a"], x_ms_session_token="0:0#1000000")
    assert (ahead.status, ahead.substatus) == (404, 1002)
    foreign = place.read("1", ["a"], x_ms_session_token="77:0#1000000")
    assert foreign.status == 200, "a range that is not this item's says nothing about it"


@pytest.mark.parametrize("token", ["x", "1", "W10=", "WzFd", "W1siRkYiLCIiLDBdXQ==", "\xe9", "A" * 10_000])
def test_a_continuation_that_this_server_did_not_give_is_400(token: str, place: Any, wire: Any) -> None:
    answer = wire.send("GET", [*place.path, "docs"], headers={"x-ms-continuation": token})
    assert (answer.status, answer.json["code"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-ms-offer-throughput", "x"),
        ("x-ms-offer-throughput", "0"),
        ("x-ms-offer-throughput", "399"),
        ("x-ms-offer-throughput", "450"),
        ("x-ms-offer-throughput", "1000100"),
        ("x-ms-offer-throughput", "-400"),
        ("x-ms-offer-throughput", "9" * 5000),
        ("x-ms-cosmos-offer-autopilot-settings", "x"),
        ("x-ms-cosmos-offer-autopilot-settings", "{}"),
        ("x-ms-cosmos-offer-autopilot-settings", '{"maxThroughput":500}'),
        ("x-ms-cosmos-offer-autopilot-settings", '{"maxThroughput":"4000"}'),
        ("x-ms-cosmos-offer-autopilot-settings", '{"maxThroughput":1500}'),
    ],
)
def test_a_throughput_that_is_not_offered_is_400(name: str, value: str, place: Any, wire: Any) -> None:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    answer = wire.send("POST", place.path[:3], {"id": "new", "partitionKey": key}, {name: value})
    assert (answer.status, answer.json["code"]) == (400, "BadRequest")
    assert wire.send("GET", [*place.path[:3], "new"]).status == 404


def test_throughput_is_manual_or_autoscale_but_not_both(wire: Any) -> None:
    both = {"x-ms-offer-throughput": "400", "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":4000}'}
    assert wire.send("POST", ["dbs"], {"id": "both"}, both).status == 400


def test_a_path_that_is_not_utf8_is_400(wire: Any) -> None:
    assert wire.send_raw("GET", "/dbs/%ff%fe", None, wire.signed("GET", ["dbs"])).status == 400


@pytest.mark.parametrize("id", ["a/b", "a\\b", "a#b", "a?b", "a ", "", "x" * 256, 5, None, ["a"], "a\nb"])
def test_a_name_that_cannot_be_addressed_is_400(id: Any, place: Any, wire: Any) -> None:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert wire.send("POST", ["dbs"], {"id": id}).status == 400
    assert wire.send("POST", place.path[:3], {"id": id, "partitionKey": key}).status == 400
    assert wire.send("POST", ["dbs", place.database, "users"], {"id": id}).status == 400


@pytest.mark.parametrize(
    "definition",
    [None, {}, [], "x", {"paths": []}, {"paths": "/pk"}, {"paths": ["pk"]}, {"paths": ["/"]},
     {"paths": ["/a", "/b"]}, {"paths": ["/pk"], "kind": "Range"}, {"paths": ["/pk"], "version": 3},
     {"paths": ["/a/"]}, {"paths": [5]}, {"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash"},
     {"paths": ["/a", "/a"], "kind": "MultiHash"}],
)  # fmt: skip
def test_a_container_needs_a_good_partition_key(definition: Any, place: Any, wire: Any) -> None:
    answer = wire.send("POST", place.path[:3], {"id": "new", "partitionKey": definition})
    assert (answer.status, answer.json["code"]) == (400, "BadRequest")


@pytest.mark.parametrize("count", [100, 50_000])
def test_a_large_body_is_answered_like_a_small_one(count: int, place: Any, wire: Any) -> None:
    numbers = list(range(count))
    item = [*place.path, "docs", "1"]
    assert place.create({"id": "1", "pk": "a", "n": numbers}, ["a"]).status == 201
    assert wire.send("PUT", item, {"id": "1", "pk": "a", "n": numbers, "m": 1}, key=["a"]).status == 200
    patch = {"operations": [{"op": "add", "path": "/o", "value": numbers}]}
    assert wire.send("PATCH", item, patch, key=["a"]).json["o"] == numbers
    entry = {"operationType": "Upsert", "resourceBody": {"id": "1", "pk": "a", "n": numbers}}
    flags = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    assert wire.send("POST", item[:-1], [entry], flags, ["a"]).json[0]["statusCode"] == 200
    asked = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
    query = {
        "query": "SELECT VALUE c.id FROM c WHERE c.n = @n",
        "parameters": [{"name": "@n", "value": numbers}],
    }
    assert wire.send("POST", item[:-1], query, asked, ["a"]).json["Documents"] == ["1"]
    double = b'{"id":"2","pk":"a","n":[%s],"x":1,"x":2}' % b",".join([b"0"] * count)
    assert place.create(double, ["a"]).json["x"] == 2
    assert wire.send("POST", ["dbs"], b'{"id":"large","x":[%s]' % b",".join([b"0"] * count)).status == 400


@pytest.mark.parametrize("distinct", ["", "DISTINCT "])
def test_a_query_that_builds_values_nested_beyond_all_bounds_is_400(
    distinct: str, place: Any, wire: Any
) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])

    def nested(inner: str) -> str:
        return "[" * 100 + inner + "]" * 100

    inner = f"SELECT VALUE {nested('y')} FROM (SELECT VALUE {nested('c.pk')} FROM c) AS y"
    query = {"query": f"SELECT {distinct}VALUE {nested('x')} FROM ({inner}) AS x"}
    asked = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
    answer = wire.send("POST", [*place.path, "docs"], query, asked, ["a"])
    assert (answer.status, "nested too deeply" in answer.message) == (400, True)

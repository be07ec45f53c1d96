"""Refusals and answers that client libraries and their users look for by the words and headers of the service."""

from __future__ import annotations

from typing import Any

import pytest

KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


def container(place: Any, id: str, **properties: Any) -> Any:
    return place.wire.send("POST", place.path[:3], {"id": id, "partitionKey": KEY, **properties})


@pytest.mark.parametrize("path", ["id", "/a/", "/a/*", "/a b"])
def test_a_bad_partition_key_path_is_refused_in_the_service_s_words(path: str, place: Any) -> None:
    answer = place.wire.send("POST", place.path[:3], {"id": "x", "partitionKey": {**KEY, "paths": [path]}})
    assert answer.status == 400
    assert f"The partition key component definition path '{path}' could not be accepted" in answer.message
    rule = (
        "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard"
    )
    assert rule in answer.message


def test_what_is_not_there_and_what_does_not_hold_have_the_service_s_words(place: Any, wire: Any) -> None:
    missing = place.read("none", ["a"]).message
    assert missing.startswith(
        "Entity with the specified id does not exist in the system. "
        "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
    )
    assert "ResourceType: Document" in missing
    nowhere = wire.send("GET", [*place.path[:3], "none", "docs", "none"], key=["a"])
    assert (nowhere.status, "ResourceType: Document" in nowhere.message) == (404, False)
    place.create({"id": "1", "pk": "a"}, ["a"])
    again = place.create({"id": "1", "pk": "a"}, ["a"])
    assert again.message.startswith("Entity with the specified id already exists in the system.")
    path = [*place.path, "docs", "1"]
    stale = wire.send("PUT", path, {"id": "1", "pk": "a"}, {"If-Match": '"other"'}, ["a"])
    words = "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"
    assert (stale.status, stale.message.startswith(words)) == (412, True)
    deep = {"operations": [{"op": "add", "path": "/none/x", "value": 1}]}
    assert (
        "'none'. Learn more: https://aka.ms/cosmosdbpatchdocs"
        in wire.send("PATCH", path, deep, key=["a"]).message
    )
    patch = {"operations": [{"op": "replace", "path": "/none", "value": 1}]}
    assert "no path found beyond:" in wire.send("PATCH", path, patch, key=["a"]).message
    unmet = wire.send("PATCH", path, {"condition": "FROM c WHERE c.n = 1", **patch}, key=["a"])
    assert (unmet.status, "One of the specified pre-condition is not met" in unmet.message) == (412, True)
    large = b'{"id":"2","pk":"a","x":"' + b"x" * (2 * 1024 * 1024) + b'"}'
    assert 'Message: {"Errors":["Request size is too large"]}\r\n' in place.create(large, ["a"]).message


def test_a_session_that_is_ahead_has_the_service_s_words(place: Any) -> None:
    written = place.create({"id": "1", "pk": "a"}, ["a"]).headers["x-ms-session-token"]
    ahead = place.read("1", ["a"], x_ms_session_token=written.split("#")[0] + "#99999999")
    assert (ahead.status, ahead.substatus) == (404, 1002)
    assert "The read session is not available for the input session token." in ahead.message
    assert "The read/write session is not available" in ahead.message


def test_a_limit_of_nothing_for_continuation_tokens_is_not_large_enough(place: Any, wire: Any) -> None:
    headers = {
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-responsecontinuationtokenlimitinkb": "0",
    }
    answer = wire.send("POST", [*place.path, "docs"], {"query": "SELECT * FROM c"}, headers, ["a"])
    assert answer.status == 400
    assert "continuation token limit specified is not large enough" in answer.message


def test_a_spatial_index_needs_types_and_is_for_all_of_them(place: Any) -> None:
    def spatial(id: str, entry: dict[str, Any], kind: str = "Geography") -> Any:
        policy = {"spatialIndexes": [{"path": "/loc/*", **entry}]}
        return container(place, id, indexingPolicy=policy, geospatialConfig={"type": kind})

    none = spatial("a", {})
    assert (none.status, "The spatial data types array cannot be empty." in none.message) == (400, True)
    one = spatial("b", {"types": ["Point"]})
    assert len(one.json["indexingPolicy"]["spatialIndexes"][0]["types"]) == 4
    box = {"xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10}
    assert spatial("c", {"types": ["Point"], "boundingBox": box}).status == 400
    assert spatial("d", {"types": ["Point"]}, "Geometry").status == 400
    assert spatial("e", {"types": ["Point"], "boundingBox": box}, "Geometry").status == 201
    for broken in ({"xmax": 0}, {"ymax": -1}, {"ymin": None}):
        answer = spatial("f", {"types": ["Point"], "boundingBox": {**box, **broken}}, "Geometry")
        assert (answer.status, "'boundingBox' for spatial path '/loc/*'" in answer.message) == (400, True)


def test_geometries_of_a_container_lie_on_the_globe_or_in_a_plane(place: Any) -> None:
    text = (
        "SELECT VALUE ST_DISTANCE({type: 'Point', coordinates: [0, 0]}, {type: 'Point', coordinates: [3, 4]})"
    )
    headers = {"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "true"}
    found = {}
    for kind in ("Geography", "Geometry"):
        assert container(place, f"in-{kind}", geospatialConfig={"type": kind}).status == 201
        path = [*place.path[:3], f"in-{kind}", "docs"]
        found[kind] = place.wire.send("POST", path, {"query": text}, headers, ["a"]).json["Documents"]
    assert found["Geometry"] == [5]
    assert 554_000 < found["Geography"][0] < 555_000


COMPUTED = "SELECT VALUE LOWER(c.a) FROM c"


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ([{"name": None, "query": COMPUTED}], "One of the specified inputs is invalid"),
        ([{"name": "", "query": COMPUTED}], "Computed property 'name' is either empty or unspecified."),
        ([{"name": "x"}], "Computed property 'query' is either empty or unspecified."),
        (
            [{"name": "id", "query": COMPUTED}],
            "The system property name 'id' cannot be used as a computed property name.",
        ),
        (
            [{"name": "x", "query": COMPUTED}] * 2,
            "Computed property name 'x' cannot be used in multiple definitions.",
        ),
        (
            [{"name": "spatial", "query": COMPUTED}],
            "Computed property 'spatial' at index (0) has a spatial index. Remove the spatial index on this path.",
        ),
        (
            [{"name": "x", "query": "SELECT LOWER(c.a) FROM c"}],
            "Required VALUE expression missing from computed property query 'SELECT LOWER(c.a) FROM c' at index (0).",
        ),
        (
            [{"name": "w", "query": COMPUTED}, {"name": "x", "query": "SELECT LOWER(c.a) FROM r"}],
            "Computed property at index (1) has a malformed query: 'SELECT LOWER(c.a) FROM r' Error details: "
            r"'{\"errors\":[{\"severity\":\"Error\",\"code\":2001,"
            r"\"message\":\"Identifier 'c' could not be resolved.\"}]}'",
        ),
    ],
)
def test_a_bad_computed_property_is_refused_in_the_service_s_words(
    properties: list[dict[str, Any]], text: str, place: Any
) -> None:
    spatial = {"spatialIndexes": [{"path": "/spatial/*", "types": ["Point"]}]}
    refused = container(place, "computed", computedProperties=properties, indexingPolicy=spatial)
    assert container(place, "computed").status == 201
    body = {
        "id": "computed",
        "partitionKey": KEY,
        "computedProperties": properties,
        "indexingPolicy": spatial,
    }
    replaced = place.wire.send("PUT", [*place.path[:3], "computed"], body)
    for answer in (refused, replaced):
        assert (answer.status, f'"Errors":["{text}"]' in answer.message) == (400, True), answer.message


@pytest.mark.parametrize(
    "query",
    [
        "SELEC",
        "SELECT VALUE 1",
        "SELECT VALUE c.a FROM c WHERE c.b = 1",
        "SELECT VALUE c.a FROM c ORDER BY c.a",
        "SELECT VALUE c.a FROM c GROUP BY c.a",
        "SELECT TOP 1 VALUE c.a FROM c",
        "SELECT DISTINCT VALUE c.a FROM c",
        "SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1",
        "SELECT VALUE d FROM c JOIN d IN c.a",
        "SELECT VALUE d FROM d IN c.a",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE RAND() FROM c",
        "SELECT VALUE GetCurrentTimestamp() FROM c",
        "SELECT VALUE ST_DISTANCE(c.a, c.b) FROM c",
        "SELECT VALUE udf.f(c.a) FROM c",
        "SELECT VALUE (SELECT VALUE 1) FROM c",
        "SELECT VALUE EXISTS(SELECT VALUE d FROM d IN c.a) FROM c",
        "SELECT VALUE c.a = @p FROM c",
    ],
)
def test_what_computes_no_value_of_one_item_is_no_computed_property(query: str, place: Any) -> None:
    answer = container(place, "computed", computedProperties=[{"name": "x", "query": query}])
    assert answer.status == 400
    assert '{"Errors":["Computed property at index (0) has a malformed query: ' in answer.message


@pytest.mark.parametrize(
    "query",
    [
        "SELECT VALUE c.a FROM c",
        "SELECT VALUE r.a + 1 FROM root r",
        "SELECT VALUE ARRAY(SELECT VALUE LOWER(y) FROM y IN x.a) FROM x",
    ],
)
def test_a_value_of_one_item_is_a_computed_property(query: str, place: Any) -> None:
    assert container(place, "computed", computedProperties=[{"name": "x", "query": query}]).status == 201


def test_a_script_without_a_body_is_missing_one(place: Any, wire: Any) -> None:
    answer = wire.send("POST", [*place.path, "udfs"], {"id": "f"})
    missing = "The input content is invalid because the required properties - 'body; ' - are missing"
    assert (answer.status, missing in answer.message) == (400, True)


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        (b"", []),
        (b'["a",1]', ["a", 1]),
        (b'{"0":"a","length":1}', ["a"]),
        (b'{"0":"a","1":"b","length":"2"}', ["a", "b"]),
        (b'{"0":"a","1":"b","length":1.5}', ["a"]),
        (b"null", []),
        (b"{}", []),
        (b'{"0":"a"}', []),
    ],
)
def test_the_arguments_of_a_procedure_are_taken_as_javascript_s_apply_takes_them(
    body: bytes, arguments: list[Any], place: Any, wire: Any
) -> None:
    script = "function () { getContext().getResponse().setBody(Array.prototype.slice.call(arguments)); }"
    assert wire.send("POST", [*place.path, "sprocs"], {"id": "s", "body": script}).status == 201
    answer = wire.send("POST", [*place.path, "sprocs", "s"], body, key=["a"])
    assert (answer.status, answer.json) == (200, arguments)


def test_an_argument_that_is_missing_is_undefined_to_a_procedure(place: Any, wire: Any) -> None:
    script = "function (a, b) { getContext().getResponse().setBody([arguments.length, typeof a, typeof b]); }"
    assert wire.send("POST", [*place.path, "sprocs"], {"id": "s", "body": script}).status == 201
    answer = wire.send("POST", [*place.path, "sprocs", "s"], b'{"1":null,"length":2}', key=["a"])
    assert answer.json == [2, "undefined", "object"]


@pytest.mark.parametrize("body", [b'"a"', b"1", b"true", b"[", b'{"length":600000}'])
def test_what_is_no_list_of_arguments_is_400(body: bytes, place: Any, wire: Any) -> None:
    script = "function () { getContext().getResponse().setBody(1); }"
    assert wire.send("POST", [*place.path, "sprocs"], {"id": "s", "body": script}).status == 201
    assert wire.send("POST", [*place.path, "sprocs", "s"], body, key=["a"]).status == 400


def test_an_autoscale_offer_names_a_tenth_of_its_maximum_and_the_policy_it_was_given(
    wire: Any, place: Any
) -> None:
    for settings, policy in (
        ('{"maxThroughput":5000}', None),
        ('{"maxThroughput":5000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":42}}}', 42),
    ):
        id = f"auto-{policy}"
        headers = {"x-ms-cosmos-offer-autopilot-settings": settings}
        created = wire.send("POST", place.path[:3], {"id": id, "partitionKey": KEY}, headers)
        offers = wire.send("GET", ["offers"]).json["Offers"]
        (content,) = [each["content"] for each in offers if each["offerResourceId"] == created.json["_rid"]]
        assert content["offerThroughput"] == 500
        shown = content["offerAutopilotSettings"].get("autoUpgradePolicy")
        assert shown == (policy and {"throughputPolicy": {"incrementPercent": policy}})


def test_an_offer_is_replaced_by_itself_only(wire: Any, place: Any) -> None:
    offers = wire.send("GET", ["offers"]).json["Offers"]
    (offer,) = [each for each in offers if each["offerResourceId"] == place.rid]
    path = ["offers", offer["_rid"]]
    assert wire.send("PUT", path, {**offer, "_rid": "other"}).status == 400
    assert wire.send("PUT", path, {"content": offer["content"]}).status == 400
    assert wire.send("PUT", path, offer).status == 200


def test_a_container_of_a_shared_database_says_so(wire: Any) -> None:
    assert wire.send("POST", ["dbs"], {"id": "sharing"}, {"x-ms-offer-throughput": "400"}).status == 201
    path = ["dbs", "sharing", "colls"]
    created = wire.send("POST", path, {"id": "c", "partitionKey": KEY})
    assert created.headers["x-ms-share-throughput"] == "true"
    own = wire.send("POST", path, {"id": "own", "partitionKey": KEY}, {"x-ms-offer-throughput": "400"})
    assert "x-ms-share-throughput" not in own.headers
    wire.send("DELETE", ["dbs", "sharing"])


def test_the_progress_of_indexing_is_told_to_those_who_ask_for_quotas(wire: Any, place: Any) -> None:
    name = "x-ms-documentdb-collection-index-transformation-progress"
    assert name not in wire.send("GET", place.path).headers
    asked = wire.send("GET", place.path, headers={"x-ms-documentdb-populatequotainfo": "True"})
    assert asked.headers[name] == "100"


def test_an_unknown_indexing_directive_is_400(place: Any) -> None:
    item = {"id": "1", "pk": "a"}
    assert place.create(item, ["a"], x_ms_indexing_directive="Invalid Value").status == 400
    assert place.create(item, ["a"], x_ms_indexing_directive="Exclude").status == 201


@pytest.mark.parametrize("number", ["0", "1", "2"])
def test_an_indexing_directive_may_be_a_number_as_the_python_client_writes_it(
    number: str, place: Any
) -> None:
    assert place.create({"id": "1", "pk": "a"}, ["a"], x_ms_indexing_directive=number).status == 201


def test_links_are_left_out_for_those_who_do_not_want_them(place: Any) -> None:
    item = {"id": "1", "pk": "a", "text": '"_self":"x","_attachments":"attachments/",'}
    headers = {"x_ms_exclude_system_properties": "True"}
    for answer in (place.create(item, ["a"], **headers), place.read("1", ["a"], **headers)):
        assert set(answer.json) == {"id", "pk", "text", "_rid", "_etag", "_ts"}
        assert answer.json["text"] == item["text"]


def test_a_path_beneath_an_offer_is_a_bad_request(wire: Any) -> None:
    answer = wire.send("PUT", ["offers", "offers", "abcd"], {"id": "abcd"})
    assert (answer.status, "There is nothing beneath an offer." in answer.message) == (400, True)

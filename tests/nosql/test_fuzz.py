"""Whatever a client with the right key sends to any route, it gets an answer: never a 500, never silence.

The number of examples follows the variable PLEIAD_FUZZ_EXAMPLES.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES_DEFAULT = 800
EXAMPLES = int(os.environ.get("PLEIAD_FUZZ_EXAMPLES", EXAMPLES_DEFAULT))

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
KINDS = ["docs", "pkranges", "sprocs", "triggers", "udfs", "conflicts", "operations", "docs", "docs"]
NAMES = [
    "fuzz",
    "things",
    "1",
    "missing",
    "partitionkeydelete",
    "AAAAAQ==",
    "AAAAAYAAAAI=",
    "x" * 1100,
    " ",
    "%",
]
ODD_TEXTS = [
    "", "true", "True", "false", "0", "-1", "1", "99999999999999999999", "9" * 5000, "1_0", "1.5", "NaN",
    "null", "*", "[]", "{}", "[{}]", "[null]", '["a"]', "[1]", "[1e999]", "[[]]", "[" * 500, '["\\ud800"]',
    '["a","b","c","d"]', "0:0#1", "0:-1#5", "0:0#99999999", "0:x", ",", "FF", "00", "zz", "0F", "1FFFFFFF",
    "abc=", "é", "\xff\xfe", "a\tb", '"00000001-0000-0000-0002-00006afa287b"', "application/query+json",
    "return=minimal", "Strong", "Eventual", "Incremental Feed", "W10=", "W1siIiwiRkYiLDBdXQ==",
    "W1siRkYiLCIiLDBdXQ==", "WzFd", '{"maxThroughput":4000}', '{"maxThroughput":1e999}', "400", "30000",
    "type=master&ver=1.0&sig=", "Mon, 01 Jan 0000 00:00:00 GMT",
]  # fmt: skip
NASTY_TEXTS = ["", "9" * 5000, "-1", "\xff\xfe", "[" * 500, '[{"a":1}]', "True"]
HEADERS = [
    "x-ms-documentdb-partitionkey", "x-ms-documentdb-isquery", "x-ms-documentdb-is-upsert",
    "x-ms-max-item-count", "x-ms-continuation", "x-ms-session-token", "x-ms-consistency-level", "if-match",
    "if-none-match", "prefer", "a-im", "x-ms-start-epk", "x-ms-end-epk", "x-ms-read-key-type",
    "x-ms-documentdb-partitionkeyrangeid", "content-type", "x-ms-cosmos-is-query-plan-request",
    "x-ms-cosmos-is-batch-request", "x-ms-cosmos-batch-atomic", "host",
    "x-ms-cosmos-intended-collection-rid", "x-ms-offer-throughput", "x-ms-cosmos-offer-autopilot-settings",
    "x-ms-documentdb-expiry-seconds", "x-ms-documentdb-populatequotainfo", "x-ms-activity-id",
    "x-ms-version", "x-ms-documentdb-query-enablecrosspartition", "x-ms-indexing-directive", "x-ms-date",
    "authorization", "x-ms-documentdb-pre-trigger-include",
    "x-ms-documentdb-responsecontinuationtokenlimitinkb", "user-agent",
]  # fmt: skip
PROPERTIES = [
    "id", "pk", "ttl", "query", "parameters", "name", "value", "operations", "op", "path", "from",
    "condition", "partitionKey", "paths", "kind", "version", "indexingPolicy", "includedPaths",
    "excludedPaths", "indexingMode", "compositeIndexes", "defaultTtl", "uniqueKeyPolicy", "uniqueKeys",
    "computedProperties", "conflictResolutionPolicy", "permissionMode", "resource", "resourcePartitionKey",
    "content", "offerThroughput", "offerAutopilotSettings", "maxThroughput", "vectorEmbeddingPolicy",
    "fullTextPolicy", "geospatialConfig", "_rid", "_etag", "mode", "order",
]  # fmt: skip
STRINGS = [
    "1", "a", "", "/pk", "/a/b", "Hash", "MultiHash", "add", "incr", "move", "/-", "/", "~",
    "SELECT * FROM c", "Read", "from c where c.pk = 'a'", "SELECT", "dbs/fuzz/colls/things", "dbs/", "/id",
    '/"x', "consistent", "none", "\ud800", "SELECT VALUE COUNT(1) FROM c",
    "SELECT * FROM c WHERE c.id = @x ORDER BY c.pk", "\x00", "ы" * 600,
]  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([10**30, -(2**63), 2**64, 1.5, -0.0, 1e308]),
    st.sampled_from(STRINGS),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(PROPERTIES), inner, max_size=5)
    ),
    max_leaves=12,
)
operations = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "set", "replace", "remove", "incr", "move", "copy", 1]),
        "path": st.sampled_from(["/a", "/a/b", "/list/-", "/list/0", "/pk", "/id", "/", "", "a", "/a~2", 5]),
        "value": values,
    }
)
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}
bodies = st.one_of(
    st.binary(max_size=30),
    values,
    st.fixed_dictionaries({"id": scalars, "pk": scalars}, optional={"ttl": scalars, "more": values}),
    st.builds(
        lambda id, more: {**more, "id": id, "partitionKey": KEY},
        st.sampled_from(["n1", "n2", "é", "a b"]),
        st.dictionaries(st.sampled_from(PROPERTIES), values, max_size=2),
    ),
    st.fixed_dictionaries({"query": st.sampled_from(STRINGS), "parameters": values}),
    st.fixed_dictionaries({"operations": st.lists(operations, max_size=11)}, optional={"condition": scalars}),
    st.sampled_from(
        [b"{", b'{"id":"1","id":"2"}', b"[" * 3000, b'{"a":' * 200 + b"1" + b"}" * 200, b"\xff{}"]
    ),
)


@st.composite
def paths(draw: st.DrawFn) -> list[str]:
    """A path of the route table with some of its parts exchanged, or garbage."""
    name = st.one_of(st.sampled_from(NAMES), st.text(max_size=6))
    container = ["dbs", "fuzz", "colls", "things"]
    start = draw(
        st.sampled_from(
            [[], ["dbs"], ["offers"], ["dbs", "fuzz"], ["dbs", "fuzz", "users"], ["dbs", "fuzz", "colls"]]
            + [container] * 8
            + [["dbs", "fuzz", "users", "u"], ["dbs", "fuzz", "users", "u", "permissions"]]
            + [["dbs", "fuzz", "clientencryptionkeys"], ["_pleiad", "health"]]
        )
    )
    if start == container:
        start = [*start, draw(st.sampled_from(KINDS))]
    tail = draw(st.sampled_from([0, 0, 1, 1, 1, 2, 3]))
    whole = [*start, *(draw(name) for _ in range(tail))]
    if draw(st.integers(0, 15)) == 0 and whole:
        whole[draw(st.integers(0, len(whole) - 1))] = draw(name)
    return [part.encode("utf-8", "replace").decode() for part in whole]


header_values = st.one_of(
    st.sampled_from(ODD_TEXTS), st.text(alphabet=st.characters(max_codepoint=255), max_size=8)
)
some_headers = st.dictionaries(
    st.sampled_from(HEADERS[:-4]) | st.sampled_from(HEADERS), header_values, max_size=4
)  # fmt: skip


QUERY = {"x-ms-documentdb-isquery": "True"}
UPSERT = {"x-ms-documentdb-is-upsert": "True"}
CONTAINER = ["dbs", "fuzz", "colls", "things"]
GOOD_REQUESTS: list[tuple[str, list[str], dict[str, str], Any]] = [
    ("GET", [], {}, b""),
    ("GET", ["dbs"], {}, b""),
    ("POST", ["dbs"], {}, {"id": "made"}),
    ("POST", ["dbs"], QUERY, {"query": "SELECT * FROM r WHERE r.id = @a", "parameters": [{"name": "@a"}]}),
    ("POST", ["dbs", "fuzz", "colls"], {}, {"id": "made", "partitionKey": KEY}),
    ("GET", CONTAINER, {}, b""),
    ("PUT", CONTAINER, {}, {"id": "things", "partitionKey": KEY}),
    ("GET", [*CONTAINER, "pkranges"], {}, b""),
    ("GET", [*CONTAINER, "docs"], {}, b""),
    ("POST", [*CONTAINER, "docs"], {}, {"id": "2", "pk": "a"}),
    ("POST", [*CONTAINER, "docs"], UPSERT, {"id": "1", "pk": "a"}),
    ("POST", [*CONTAINER, "docs"], QUERY, {"query": "SELECT * FROM c"}),
    ("GET", [*CONTAINER, "docs", "1"], {}, b""),
    ("PUT", [*CONTAINER, "docs", "1"], {}, {"id": "1", "pk": "a"}),
    ("PATCH", [*CONTAINER, "docs", "1"], {}, {"operations": [{"op": "add", "path": "/a", "value": 1}]}),
    ("DELETE", [*CONTAINER, "docs", "1"], {}, b""),
    ("POST", [*CONTAINER, "operations", "partitionkeydelete"], {}, b""),
    ("POST", ["dbs", "fuzz", "users"], {}, {"id": "v"}),
    ("POST", ["dbs", "fuzz", "users", "u", "permissions"], UPSERT,
     {"id": "p", "permissionMode": "All", "resource": "dbs/fuzz/colls/things"}),
    ("GET", ["dbs", "fuzz", "users", "u", "permissions", "p"], {}, b""),
    ("POST", ["offers"], QUERY, {"query": "SELECT * FROM root r"}),
    ("PUT", ["offers", "AAAD"], {}, {"content": {"offerThroughput": 400}}),
]  # fmt: skip


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def sendable(headers: dict[str, str]) -> dict[str, str]:
    """Without the control characters that the standard library refuses to send."""
    return {
        name: "".join(c for c in value if c == "\t" or (c >= " " and c != "\x7f"))
        for name, value in headers.items()
    }


@pytest.fixture(scope="module")
def fuzz_wire(wire: Any) -> Iterator[Any]:
    wire.send("POST", ["dbs"], {"id": "fuzz"})
    wire.send("POST", ["dbs", "fuzz", "users"], {"id": "u"})
    yield wire
    for database in wire.send("GET", ["dbs"]).json["Databases"]:
        wire.send("DELETE", ["dbs", database["id"]])


def throw(
    wire: Any, method: str, path: list[str], headers: dict[str, str], body: Any, slash: bool = False
) -> None:
    """Sends one request at a container with one item, and looks at the answer."""
    wire.send("POST", ["dbs", "fuzz", "colls"], {"id": "things", "partitionKey": KEY})
    wire.send("POST", [*CONTAINER, "docs"], {"id": "1", "pk": "a", "list": [1], "a": {"b": 1}}, key=["a"])
    answer = wire.send(method, path, as_bytes(body), sendable(headers), slash=slash)
    told = (method, path, headers, body, answer.body)
    assert answer.status < 500, told
    if answer.status >= 400 and method != "HEAD":
        assert answer.json["code"], told
        assert answer.json["message"], told


def proven(check: Any, *strategies: Any) -> None:
    """Runs a check on the examples; the same ones each time unless more are asked for than usual."""
    chosen = settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=EXAMPLES == EXAMPLES_DEFAULT,
        database=None,
    )
    decorate: Any = given(*strategies)
    decorate(chosen(check))()


@pytest.mark.parametrize("good", GOOD_REQUESTS, ids=lambda good: f"{good[0]} {'/'.join(good[1])}")
def test_no_header_of_a_good_request_can_be_so_odd_that_it_is_a_500(good: Any, fuzz_wire: Any) -> None:
    method, path, usual, body = good
    throw(fuzz_wire, method, path, {"x-ms-documentdb-partitionkey": '["a"]', **usual}, body)
    for name in HEADERS:
        for value in NASTY_TEXTS:
            fields = {"x-ms-documentdb-partitionkey": '["a"]', **usual, name: value}
            answer = fuzz_wire.send(method, path, as_bytes(body), fields)
            assert answer.status < 500, (name, value[:50], answer.body)


@pytest.mark.timeout(max(120, EXAMPLES // 10))
def test_no_request_to_any_route_is_answered_with_a_500(fuzz_wire: Any) -> None:
    def check(method: str, path: list[str], headers: dict[str, str], body: Any, slash: bool) -> None:
        if method == "DELETE" and path[:2] == ["dbs", "fuzz"] and len(path) in (2, 4):
            path = ["dbs", "nothing"]
        throw(fuzz_wire, method, path, headers, body, slash)

    proven(check, st.sampled_from(METHODS), paths(), some_headers, bodies, st.booleans())


@pytest.mark.timeout(max(120, EXAMPLES // 10))
def test_no_good_request_with_one_thing_wrong_is_answered_with_a_500(fuzz_wire: Any) -> None:
    def check(good: Any, headers: dict[str, str], body: Any, change: str) -> None:
        method, path, usual, content = good
        if change != "headers":
            content = (
                {**content, **body} if change == "merge" and isinstance(body, dict) and content else body
            )
        fields = {"x-ms-documentdb-partitionkey": '["a"]', **usual, **({} if change == "body" else headers)}
        throw(fuzz_wire, method, path, fields, content)

    changes = st.sampled_from(["headers", "headers", "body", "merge"])
    proven(check, st.sampled_from(GOOD_REQUESTS), some_headers, bodies, changes)

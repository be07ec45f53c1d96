"""Words that requests are made of, good and odd, and requests that are good as they stand."""

from __future__ import annotations

from typing import Any

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

KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}
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

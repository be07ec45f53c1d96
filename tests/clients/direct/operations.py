"""One long list of operations on an account, sent through whatever is given: each with its answer, in order.

Where an operation needs something of an answer before it, an etag or a continuation, it takes what it was told itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.clients.direct.frames import RANGE, Answer, Https

Send = Callable[..., Answer]
PLAIN = ["dbs", "d", "colls", "plain"]
MANY = ["dbs", "d", "colls", "many"]
TREE = ["dbs", "d", "colls", "tree"]
KEPT = ["dbs", "d", "colls", "kept"]
QUERY = {
    "x-ms-documentdb-isquery": "True",
    "x-ms-documentdb-query-enablecrosspartition": "True",
    "content-type": "application/query+json",
}
IDS = (
    "a b",
    "ä€",
    "per%20cent",
    "q'uote",
    "plus+sign",
    "semi;colon",
    "amp&er",
    "ends ",
    "x" * 255,
    "ask?",
    "at@",
)
BINARY = {"x-ms-documentdb-content-serialization-format": "CosmosBinary"}


class Told:
    """What was asked and answered."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.answers: list[tuple[str, Answer]] = []

    def __call__(
        self,
        label: str,
        method: str,
        segments: Sequence[str],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        key: Sequence[Any] | None = None,
    ) -> Answer:
        answer = self._send(method, list(segments), body, headers, key)
        self.answers.append((label, answer))
        return answer

    def query(
        self, text: str, container: Sequence[str], headers: Mapping[str, str], key: Any = None
    ) -> Answer:
        body = {"query": text, "parameters": []}
        return self(f"query {text}", "POST", [*container, "docs"], body, {**QUERY, **headers}, key)


def set_up(https: Https) -> None:
    """The containers: what makes them goes over HTTPS in both modes."""

    def make(segments: list[str], body: Any, headers: Mapping[str, str] | None = None) -> None:
        answer = https.send("POST", segments, body, headers)
        assert answer.status == 201, answer.body

    hashed = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    make(["dbs"], {"id": "d"})
    unique = {"uniqueKeys": [{"paths": ["/mail"]}]}
    make(["dbs", "d", "colls"], {"id": "plain", "partitionKey": hashed, "uniqueKeyPolicy": unique})
    make(["dbs", "d", "colls"], {"id": "many", "partitionKey": hashed}, {"x-ms-offer-throughput": "20000"})
    tree = {"paths": ["/t", "/u"], "kind": "MultiHash", "version": 2}
    make(["dbs", "d", "colls"], {"id": "tree", "partitionKey": tree})
    kept = {"changeFeedPolicy": {"retentionDuration": 60}, "defaultTtl": 1000}
    make(["dbs", "d", "colls"], {"id": "kept", "partitionKey": hashed, **kept})
    procedure = "function (n) { console.log('said ' + n); getContext().getResponse().setBody({n: n + 1}); }"
    make([*PLAIN, "sprocs"], {"id": "count", "body": procedure})
    make([*PLAIN, "sprocs"], {"id": "fails", "body": "function () { throw new Error(409, 'no'); }"})
    stamp = (
        "function () { var r = getContext().getRequest(); var b = r.getBody(); b.stamped = 1; r.setBody(b); }"
    )
    trigger = {"id": "stamp", "body": stamp, "triggerType": "Pre", "triggerOperation": "All"}
    make([*PLAIN, "triggers"], trigger)


def run(send: Send) -> list[tuple[str, Answer]]:
    """All operations."""
    told = Told(send)
    _items(told)
    _refusals(told)
    _ids(told)
    _queries(told)
    _feeds(told)
    _batches(told)
    _scripts(told)
    _metadata(told)
    return told.answers


def _items(told: Told) -> None:
    docs = [*PLAIN, "docs"]
    for number in range(6):
        item = {"id": f"i{number}", "pk": "a", "n": number, "mail": f"{number}@x"}
        told(f"create {number}", "POST", docs, item, None, ["a"])
    made = told(
        "create without content",
        "POST",
        docs,
        {"id": "quiet", "pk": "a"},
        {"Prefer": "return=minimal"},
        ["a"],
    )
    etag = told("read", "GET", [*docs, "i0"], None, None, ["a"]).headers["etag"]
    told("read what is known", "GET", [*docs, "i0"], None, {"If-None-Match": etag}, ["a"])
    told("read what is not known", "GET", [*docs, "i0"], None, {"If-None-Match": '"other"'}, ["a"])
    told(
        "read with a session",
        "GET",
        [*docs, "i1"],
        None,
        {"x-ms-session-token": made.headers["x-ms-session-token"]},
        ["a"],
    )
    for level in ("Session", "ConsistentPrefix", "Eventual"):
        told(f"read at {level}", "GET", [*docs, "i0"], None, {"x-ms-consistency-level": level}, ["a"])
    told("read without links", "GET", [*docs, "i0"], None, {"x-ms-exclude-system-properties": "True"}, ["a"])
    told("read in binary", "GET", [*docs, "i0"], None, BINARY, ["a"])
    told("read as one may", "GET", [*docs, "i0"], None, {"x-ms-cosmos-priority-level": "Low"}, ["a"])
    told("replace", "PUT", [*docs, "i0"], {"id": "i0", "pk": "a", "n": 10}, {"If-Match": etag}, ["a"])
    told(
        "replace too late", "PUT", [*docs, "i0"], {"id": "i0", "pk": "a", "n": 11}, {"If-Match": etag}, ["a"]
    )
    told("replace and rename", "PUT", [*docs, "i5"], {"id": "renamed", "pk": "a"}, None, ["a"])
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    told("upsert what is there", "POST", docs, {"id": "i1", "pk": "a", "n": 21}, upsert, ["a"])
    told("upsert what is new", "POST", docs, {"id": "up", "pk": "a"}, upsert, ["a"])
    told("upsert too late", "POST", docs, {"id": "i1", "pk": "a"}, {**upsert, "If-Match": etag}, ["a"])
    patch = {
        "operations": [{"op": "incr", "path": "/n", "value": 5}, {"op": "set", "path": "/x", "value": [1]}]
    }
    told("patch", "PATCH", [*docs, "i1"], patch, None, ["a"])
    told("patch without content", "PATCH", [*docs, "i1"], patch, {"Prefer": "return=minimal"}, ["a"])
    told(
        "patch of what is not so",
        "PATCH",
        [*docs, "i1"],
        {"condition": "FROM c WHERE c.n < 0", **patch},
        None,
        ["a"],
    )
    told(
        "patch of no path",
        "PATCH",
        [*docs, "i1"],
        {"operations": [{"op": "remove", "path": "/none"}]},
        None,
        ["a"],
    )
    told("delete", "DELETE", [*docs, "i4"], None, None, ["a"])
    told("delete again", "DELETE", [*docs, "i4"], None, None, ["a"])
    for label, key in (
        ("number", 5),
        ("fraction", 1.5),
        ("yes", True),
        ("null", None),
        ("empty", ""),
        ("text", "ä"),
    ):
        item = {"id": f"key-{label}", "pk": key}
        told(f"create by a key of {label}", "POST", docs, item, None, [key])
        told(f"read by a key of {label}", "GET", [*docs, f"key-{label}"], None, None, [key])
    told("create without a key", "POST", docs, {"id": "none"}, None, [{}])
    told("read without a key", "GET", [*docs, "none"], None, None, [{}])
    large = {"id": "large", "pk": "a", "text": "x" * 1_500_000}
    told("create what is large", "POST", docs, large, None, ["a"])
    told("read what is large", "GET", [*docs, "large"], None, None, ["a"])
    for tenant in ("x", "y"):
        for user in ("1", "2"):
            item = {"id": tenant + user, "t": tenant, "u": user}
            told(f"create under {tenant}/{user}", "POST", [*TREE, "docs"], item, None, [tenant, user])
    told("read under x/1", "GET", [*TREE, "docs", "x1"], None, None, ["x", "1"])
    told("read by a prefix", "GET", [*TREE, "docs", "x1"], None, None, ["x"])
    told("barrier by key", "HEAD", PLAIN, None, None, ["a"])
    told("barrier by range", "HEAD", PLAIN, None, {RANGE: "0"})
    told("barrier without a place", "HEAD", PLAIN)
    told("barrier of the master", "HEAD", ["dbs"])


def _refusals(told: Told) -> None:
    docs = [*PLAIN, "docs"]
    told("read of nothing", "GET", [*docs, "nothing"], None, None, ["a"])
    told("read of nothing in a key of nothing", "GET", [*docs, "nothing"], None, None, ["nobody"])
    told("read without a partition key", "GET", [*docs, "i0"])
    told("read with a key too long", "GET", [*docs, "i0"], None, None, ["a", "b"])
    told("replace of nothing", "PUT", [*docs, "nothing"], {"id": "nothing", "pk": "a"}, None, ["a"])
    told("create of what is there", "POST", docs, {"id": "i0", "pk": "a"}, None, ["a"])
    told(
        "create of what must be unique", "POST", docs, {"id": "twice", "pk": "a", "mail": "2@x"}, None, ["a"]
    )
    told("create under another key", "POST", docs, {"id": "z", "pk": "b"}, None, ["a"])
    told("create without an id", "POST", docs, {"pk": "a"}, None, ["a"])
    told("create of no JSON", "POST", docs, b"{nothing", None, ["a"])
    told("create of nothing", "POST", docs, b"", None, ["a"])
    told(
        "create of what is too large", "POST", docs, {"id": "b", "pk": "a", "t": "x" * 2_100_000}, None, ["a"]
    )
    told("a bad session", "GET", [*docs, "i0"], None, {"x-ms-session-token": "bad"}, ["a"])
    told("a session ahead", "GET", [*docs, "i0"], None, {"x-ms-session-token": "0:-1#99999999"}, ["a"])
    told("a bad level", "GET", [*docs, "i0"], None, {"x-ms-consistency-level": "Strong"}, ["a"])
    told("a bad bucket", "GET", [*docs, "i0"], None, {"x-ms-cosmos-throughput-bucket": "77"}, ["a"])
    told(
        "another container meant",
        "GET",
        [*docs, "i0"],
        None,
        {"x-ms-cosmos-intended-collection-rid": "AAAA"},
        ["a"],
    )
    told("no such range", "GET", [*docs], None, {RANGE: "77"})
    told("a key that is none", "GET", [*docs, "i0"], None, {"x-ms-documentdb-partitionkey": "nonsense"})


def _ids(told: Told) -> None:
    docs = [*MANY, "docs"]
    for id in IDS:
        told(f"create {id[:20]}", "POST", docs, {"id": id, "pk": id}, None, [id])
        told(f"read {id[:20]}", "GET", [*docs, id], None, None, [id])
        told(f"delete {id[:20]}", "DELETE", [*docs, id], None, None, [id])


def _queries(told: Told) -> None:
    texts = (
        "SELECT * FROM c",
        "SELECT VALUE c.id FROM c ORDER BY c.id",
        "SELECT c.id, c.n FROM c WHERE c.n > 1 ORDER BY c.n DESC",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE MAX(c.n) FROM c",
        "SELECT DISTINCT VALUE c.pk FROM c",
        "SELECT TOP 2 VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2",
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
        "SELECT VALUE ARRAY_LENGTH(c.x) FROM c WHERE IS_ARRAY(c.x)",
        "SELECT FROM",
        "SELECT VALUE NOSUCH(c.id) FROM c",
    )
    for text in texts:
        told.query(text, PLAIN, {}, ["a"])
        told.query(text, MANY, {RANGE: "0"})
    parameters = {
        "query": "SELECT VALUE c.n FROM c WHERE c.id = @id",
        "parameters": [{"name": "@id", "value": "i1"}],
    }
    told("query with parameters", "POST", [*PLAIN, "docs"], parameters, QUERY, ["a"])
    reports = {"x-ms-documentdb-populatequerymetrics": "True", "x-ms-cosmos-populateindexmetrics": "True"}
    told.query("SELECT VALUE c.id FROM c WHERE c.n = 3", PLAIN, reports, ["a"])
    told.query("SELECT VALUE c.id FROM c", PLAIN, {"x-ms-max-item-count": "-1"}, ["a"])
    told.query("SELECT VALUE c.id FROM c", TREE, {}, ["x"])
    told.query(
        "SELECT * FROM c", PLAIN, {"x-ms-cosmos-supported-serialization-formats": "CosmosBinary"}, ["a"]
    )
    told.query(
        "SELECT VALUE c.id FROM c", PLAIN, {"x-ms-documentdb-responsecontinuationtokenlimitinkb": "1"}, ["a"]
    )
    token = ""
    for _ in range(3):
        headers = {"x-ms-max-item-count": "2", **({"x-ms-continuation": token} if token else {})}
        token = told.query("SELECT VALUE c.id FROM c", PLAIN, headers, ["a"]).headers["x-ms-continuation"]
    told.query("SELECT VALUE c.id FROM c", PLAIN, {"x-ms-continuation": "nonsense"}, ["a"])


def _feeds(told: Told) -> None:
    docs = [*PLAIN, "docs"]
    page = told("feed", "GET", docs, None, {RANGE: "0", "x-ms-max-item-count": "3"})
    more = {RANGE: "0", "x-ms-max-item-count": "3", "x-ms-continuation": page.headers["x-ms-continuation"]}
    told("feed goes on", "GET", docs, None, more)
    backward = {RANGE: "0", "x-ms-max-item-count": "3", "x-ms-enumeration-direction": "Reverse"}
    page = told("feed from the end", "GET", docs, None, backward)
    more = {**backward, "x-ms-continuation": page.headers["x-ms-continuation"]}
    told("feed goes on to the beginning", "GET", docs, None, more)
    told("feed of a key", "GET", docs, None, None, ["a"])
    told("feed of a part", "GET", docs, None, {RANGE: "0", "x-ms-end-epk": "1FFFFFFF"})
    told(
        "feed of the rest",
        "GET",
        docs,
        None,
        {RANGE: "0", "x-ms-start-epk": "1FFFFFFF", "x-ms-end-epk": "FF"},
    )
    changes = {"A-IM": "Incremental Feed", RANGE: "0", "x-ms-max-item-count": "4"}
    etag = told("changes", "GET", docs, None, changes).headers["etag"]
    told("changes go on", "GET", docs, None, {**changes, "If-None-Match": etag})
    now = told("changes from now", "GET", docs, None, {**changes, "If-None-Match": "*"}).headers["etag"]
    told("no changes", "GET", docs, None, {**changes, "If-None-Match": now})
    since = {**changes, "If-Modified-Since": "Thu, 01 Jan 2015 00:00:00 GMT"}
    told("changes since", "GET", docs, None, since)
    told(
        "changes apart",
        "GET",
        docs,
        None,
        {**changes, "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"},
    )
    told("changes of a key", "GET", docs, None, {"A-IM": "Incremental Feed"}, ["a"])
    told("changes in a bad mode", "GET", docs, None, {**changes, "A-IM": "Nonsense"})
    versions = {"A-IM": "Full-Fidelity Feed", RANGE: "0"}
    told("versions where none are kept", "GET", docs, None, {**versions, "If-None-Match": "*"})
    kept = [*KEPT, "docs"]
    place = told("versions from now", "GET", kept, None, {**versions, "If-None-Match": "*"}).headers["etag"]
    for number in range(2):
        item = {"id": "v", "pk": "a", "n": number}
        told(f"version {number}", "POST", kept, item, {"x-ms-documentdb-is-upsert": "True"}, ["a"])
    told("the last version", "DELETE", [*kept, "v"], None, None, ["a"])
    told("versions", "GET", kept, None, {**versions, "If-None-Match": place})


def _batches(told: Told) -> None:
    docs = [*PLAIN, "docs"]
    batch = {
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-atomic": "True",
        "x-ms-cosmos-batch-ordered": "True",
    }
    bulk = {
        **batch,
        "x-ms-cosmos-batch-atomic": "False",
        "x-ms-cosmos-batch-continue-on-error": "True",
        RANGE: "0",
    }
    created: list[dict[str, Any]] = [
        {"operationType": "Create", "resourceBody": {"id": "b1", "pk": "a"}},
        {"operationType": "Upsert", "resourceBody": {"id": "b2", "pk": "a"}},
        {"operationType": "Read", "id": "i0"},
    ]
    told("batch", "POST", docs, created, batch, ["a"])
    told("batch that fails", "POST", docs, created, batch, ["a"])
    told("batch of nothing", "POST", docs, [], batch, ["a"])
    told("batch of nonsense", "POST", docs, [{"operationType": "Nonsense"}], batch, ["a"])
    told("batch that deletes", "POST", docs, [{"operationType": "Delete", "id": "b1"}], batch, ["a"])
    spread = [{**each, "partitionKey": '["a"]'} for each in created]
    told("bulk", "POST", docs, spread, bulk)
    told("bulk to a range that is gone", "POST", docs, spread, {**bulk, RANGE: "9"})


def _scripts(told: Told) -> None:
    count = [*PLAIN, "sprocs", "count"]
    log = {"x-ms-documentdb-script-enable-logging": "True"}
    told("execute", "POST", count, [1], None, ["a"])
    told("execute and tell", "POST", count, [1], log, ["a"])
    told("execute what fails", "POST", [*PLAIN, "sprocs", "fails"], [], None, ["a"])
    told("execute without a key", "POST", count, [1])
    told("execute nothing", "POST", [*PLAIN, "sprocs", "none"], [], None, ["a"])
    before = {"x-ms-documentdb-pre-trigger-include": "stamp"}
    told("create with a trigger", "POST", [*PLAIN, "docs"], {"id": "stamped", "pk": "a"}, before, ["a"])
    none = {"x-ms-documentdb-pre-trigger-include": "none"}
    told("create with no trigger", "POST", [*PLAIN, "docs"], {"id": "unstamped", "pk": "a"}, none, ["a"])


def _metadata(told: Told) -> None:
    told("databases", "GET", ["dbs"])
    told("query of databases", "POST", ["dbs"], {"query": "SELECT VALUE d.id FROM d"}, QUERY)
    told("database", "GET", ["dbs", "d"], None, {"x-ms-consistency-level": "Strong"})
    told("no database", "GET", ["dbs", "none"], None, {"x-ms-consistency-level": "Strong"})
    told("containers", "GET", ["dbs", "d", "colls"], None, {"x-ms-max-item-count": "2"})
    told("query of containers", "POST", ["dbs", "d", "colls"], {"query": "SELECT VALUE c.id FROM c"}, QUERY)
    told("containers of no database", "GET", ["dbs", "none", "colls"])
    users = ["dbs", "d", "users"]
    told("create a user", "POST", users, {"id": "u"})
    told("user", "GET", [*users, "u"])
    told("replace a user", "PUT", [*users, "u"], {"id": "w"})
    told("users", "GET", users)
    told("query of users", "POST", users, {"query": "SELECT VALUE u.id FROM u"}, QUERY)
    told("no permission", "GET", [*users, "w", "permissions", "p"])
    told("permissions", "GET", [*users, "w", "permissions"])
    told("delete a user", "DELETE", [*users, "w"])
    told("conflicts", "GET", [*PLAIN, "conflicts"], None, {RANGE: "0"})
    told(
        "query of conflicts",
        "POST",
        [*PLAIN, "conflicts"],
        {"query": "SELECT * FROM c"},
        {**QUERY, RANGE: "0"},
    )
    told("no conflict", "GET", [*PLAIN, "conflicts", "none"], None, None, ["a"])
    told("procedures", "GET", [*PLAIN, "sprocs"])
    told("trigger", "GET", [*PLAIN, "triggers", "stamp"])
    told("functions", "GET", [*PLAIN, "udfs"])


def read_json(text: bytes) -> Any:
    """A body as a value; as it is where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text

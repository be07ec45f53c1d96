"""Random requests on items are answered alike by the short ways and without them, and leave the same behind.

Containers of every kind, bodies and keys good and bad, paths and headers as strange clients write them, and time that
goes on between the requests: what is compared is status, headers and body of every answer, and all rows, versions and
counters at the end.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from email.utils import formatdate
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from pleiad.catalog.throughput import Throughput
from pleiad.engine import batch
from pleiad.heads.nosql import routes
from pleiad.keys.range import WHOLE
from pleiad.partition.partition import Partition
from pleiad.server.http.message import Request
from pleiad.store.rows import Row
from pleiad.store.selection import Selection
from pleiad.store.sqlite.kept_rows import KeptRows
from tests.proofs.rights import account as accounts
from tests.proofs.rights.account import KEY_HEADER, MASTER_KEY, READ_ONLY_KEY, Account, OpenAccount, signed
from tests.proofs.rights.test_short_ways import without_short_ways

REQUESTS = 1_000
BEGAN_AT = 1_800_000_000.0
_HASH = {"paths": ["/pk"], "kind": "Hash", "version": 2}
CONTAINERS: dict[str, dict[str, Any]] = {
    "plain": {"partitionKey": _HASH},
    "old": {"partitionKey": {"paths": ["/pk"], "kind": "Hash"}},
    "levels": {"partitionKey": {"paths": ["/pk", "/n"], "kind": "MultiHash", "version": 2}},
    "brief": {"partitionKey": _HASH, "defaultTtl": 3},
    "own": {"partitionKey": _HASH, "defaultTtl": 5, "ttlPropertyPath": "/when"},
    "unique": {
        "partitionKey": _HASH,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "defaultTtl": -1,
    },
    "versions": {"partitionKey": _HASH, "changeFeedPolicy": {"retentionDuration": 60}, "defaultTtl": 4},
}
IDS = ("1", "2", "a b", "ä", "x?y", "#h", "p+", "%41", "docs", "a\\b", "e/f", "t ", "L" * 200)
KEYS = ("a", "b", "", 1, 1.5, -0.0, True, None, "ü", "\0q", "z" * 140, "a\\")
VALUES = (1, "A", None, True, {"x": 1}, [1, 2], -1, 3, 1e2, 0.1, BEGAN_AT - 4, BEGAN_AT + 9, 'é"\\')
NAMES = ("u", "n", "x", "when", "ttl", "_etag", "_ts", "_other", "arr")
ENDINGS = (
    ', "id":"dup"}',
    ', "num":1E5, "m":1e400}',
    ', "k":100000000000000000000000, "z":-0.0, "o":1.50}',
    ', "d":' + "[" * 130 + "]" * 130 + "}",
    ', "d":"' + "{" * 130 + '"}',
    ', "\\u005fetag":"q"}',
    ', "pad":"' + "p" * 70_000 + '"}',
    "}  \n",
    "",
)
HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("if-match", ("*", '"none"', "")),
    ("if-none-match", ("*", '"none"', "")),
    ("x-ms-session-token", ("0:-1#1", "none", "", "0:0")),
    ("prefer", ("return=minimal", "return=Minimal", " return=minimal")),
    ("x-ms-version", ("2015-12-16", "2020-07-15", "")),
    ("content-type", ("application/query+json", "text/plain")),
    ("x-ms-indexing-directive", ("Include", "bad", "")),
    ("x-ms-documentdb-pre-trigger-include", ("none", "")),
    ("x-ms-cosmos-priority-level", ("Low", "bad", "")),
    ("x-ms-documentdb-isquery", ("True", "false", "")),
    ("x-ms-cosmos-intended-collection-rid", ("", "none")),
    ("x-ms-exclude-system-properties", ("true", "false")),
    ("x-ms-cosmos-supported-serialization-formats", ("CosmosBinary", "bad")),
    ("x-ms-documentdb-partitionkeyrangeid", ("0", "x")),
    ("host", ("localhost", "evil.example")),
)
_OF_TIME = frozenset({"x-ms-request-duration-ms", "x-ms-resource-usage", "x-ms-continuation"})


class Wanted(NamedTuple):
    """A request before it is signed."""

    method: str
    segments: list[str]
    headers: dict[str, str]
    body: bytes
    path: str


def key_of(order: Random, container: str) -> list[Any]:
    first = order.choice(KEYS if order.random() < 0.2 else ("a",))
    return [first, order.choice(("n", 1))] if container == "levels" else [first]


def item_of(order: Random, container: str, key: Sequence[Any]) -> dict[str, Any]:
    item = {"id": order.choice(IDS[:2] if order.random() < 0.85 else IDS), "pk": key[0]}
    item |= {name: order.choice(VALUES) for name in order.choices(NAMES, k=order.randint(0, 3))}
    if order.random() < 0.3:
        item["ttl"] = order.choice((1, 2, -1, 3.0, 0, "1"))
    if container == "levels":
        item["n"] = key[1]
    if order.random() < 0.03:
        item["id"] = order.choice((1, None, ["x"], "ends ", "y" * 300))
    return item


def text_of(order: Random, item: dict[str, Any]) -> bytes:
    if order.random() < 0.2:
        return (json.dumps(item)[:-1] + order.choice(ENDINGS)).encode()
    separators = order.choice([(",", ":"), (", ", ": ")])
    return (
        order.choice([b"", b"", b"", b" ", b"\xef\xbb\xbf"])
        + json.dumps(item, separators=separators).encode()
    )


def patch_of(order: Random) -> dict[str, Any]:
    operations = []
    for _ in range(order.choice((1, 1, 2, 11))):
        path = order.choice(("/x", "/u", "/n", "/arr/-", "/ttl", "/pk", "/id", "/_ts", "/when", "x"))
        operations.append(
            {"op": order.choice(("set", "add", "incr", "remove", "bad")), "path": path, "value": 1}
        )
    more = {"condition": order.choice(("from c where c.x = 1", "bad"))} if order.random() < 0.15 else {}
    return {"operations": operations, **more}


def batch_of(order: Random, container: str, key: Sequence[Any]) -> list[dict[str, Any]]:
    """A batch that only writes, or one that also looks."""
    kinds = ["Create", "Upsert", "Upsert", "Replace", "Delete"]
    kinds += ["Patch", "Read"] if order.random() < 0.4 else []
    operations = []
    for _ in range(order.randint(1, 4)):
        kind = order.choice(kinds)
        item = item_of(order, container, key) | {"id": order.choice(IDS[:4])}
        operation: dict[str, Any] = {"operationType": kind}
        if kind == "Patch":
            operation["resourceBody"] = {"operations": [{"op": "set", "path": "/x", "value": 1}]}
        elif kind not in ("Read", "Delete"):
            operation["resourceBody"] = item
        if kind not in ("Create", "Upsert"):
            operation["id"] = item["id"] if order.random() < 0.8 else order.choice(IDS[:4])
        if order.random() < 0.1:
            operation["ifMatch"] = order.choice(("*", '"none"'))
        operations.append(operation)
    return operations


def wanted(order: Random) -> Wanted:
    container = order.choice(list(CONTAINERS))
    key = key_of(order, container)
    item = item_of(order, container, key)
    headers = {KEY_HEADER: json.dumps(key)}
    if order.random() < 0.08:
        headers[KEY_HEADER] = order.choice(
            ("[]", "[{}]", '["a","b"]', "none", ' ["a"]', "[1.0]", '["a\\u0062"]')
        )
    method = order.choice(("POST", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "DELETE", "GET"))
    segments = ["dbs", "d", "colls", container, "docs"]
    body = b""
    if method != "POST":
        segments.append(item["id"] if isinstance(item["id"], str) else "1")
        body = {"PUT": text_of(order, item), "PATCH": json.dumps(patch_of(order)).encode()}.get(method, b"")
    elif order.random() < 0.3:
        headers |= {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
        separators = order.choice([(",", ":"), (", ", ": ")])
        body = json.dumps(batch_of(order, container, key), separators=separators, ensure_ascii=False).encode()
    else:
        body = text_of(order, item)
        flags = ("true", "True", "true", "false", " true", "1", "")
        if order.random() < 0.7:
            headers["x-ms-documentdb-is-upsert"] = order.choice(flags)
    if order.random() < 0.3:
        name, values = order.choice(HEADERS)
        headers[name] = order.choice(values)
    plain, quoted = "/".join(segments), "/".join(quote(segment, safe="") for segment in segments)
    path = order.choice(
        (
            *[f"/{plain}"] * 4,
            *[f"/{quoted}"] * 8,
            f"/{quoted}/",
            f"//{quoted}",
            f"/{quoted}?x=1",
            f"/{quoted}#f",
        )
    )
    return Wanted(method, segments, headers, body, path)


def proof_of(order: Random, wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The headers that sign a request, now and then with another key, another time or in another form."""
    luck = order.random()
    skew = order.choice((-3600, -1000, 800, 1000)) if luck < 0.04 else 0
    monkeypatch.setattr(accounts, "formatdate", lambda usegmt: formatdate(time.time() + skew, usegmt=usegmt))
    proof = signed(READ_ONLY_KEY if luck > 0.97 else MASTER_KEY, wanted.method, wanted.segments)
    if luck > 0.95:
        proof["authorization"] = proof["authorization"].replace("%3D", "%3d")
    elif luck > 0.94:
        proof["date"] = proof["x-ms-date"]
    return proof


async def send(account: Account, wanted: Wanted, proof: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    fields = {"x-ms-activity-id": "one", "host": "127.0.0.1", **proof, **wanted.headers}
    lines = {name.encode(): value.encode("latin-1") for name, value in fields.items()}
    answer = await account.head.handle(Request(wanted.method, wanted.path.encode(), lines, wanted.body))
    told = dict(line.split(": ", 1) for line in answer.headers.decode("latin-1").split("\r\n") if line)
    lasting = {name.lower(): value for name, value in told.items() if name.lower() not in _OF_TIME}
    return answer.status, lasting, re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}", b"", answer.body)


async def left_behind(account: Account) -> list[Any]:
    """Every row and version, and the counters of every partition."""
    left: list[Any] = []
    for name in CONTAINERS:
        container = await account.engine.container("d", name)
        for partition in container.map.partitions:
            state = await partition.state()
            left.append((name, state, partition.lsn))
            rows: Sequence[Row] = await partition.select(Selection(WHOLE, (), 0, None), 0, 10_000)
            left += sorted(rows)
            left += await partition.versions(WHOLE, 0, 10_000)
    return left


async def run(account: Account, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """Sends the requests of a seed; each with its answer, and what all of them have left."""
    now = BEGAN_AT
    monkeypatch.setattr(time, "time", lambda: now)
    for name, definition in CONTAINERS.items():
        properties = {"id": name, **definition}
        await account.engine.create_container(account.engine.database("d"), properties, Throughput(400))
        await account.engine.container("d", name)
    account.engine.faults.clear()
    order, answers = Random(seed), []
    for _ in range(REQUESTS):
        if order.random() < 0.15:
            now += order.choice((0.5, 1, 2))
        asked = wanted(order)
        answers.append((asked, await send(account, asked, proof_of(order, asked, monkeypatch))))
    return answers, await left_behind(account)


@pytest.mark.parametrize("seed", range(3))
async def test_random_requests_on_items_are_answered_alike_without_the_short_ways(
    account: OpenAccount, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    async def none_expired(*_: Any) -> Sequence[Row]:
        return ()

    # What the sweeper removes meanwhile depends on when it has its turn.
    monkeypatch.setattr(Partition, "expired", none_expired)
    async with account("short") as opened:
        short, left = await run(opened, seed, monkeypatch)
    without_short_ways(monkeypatch)
    monkeypatch.setattr(routes, "MARKS", frozenset({b"host"}))
    monkeypatch.setattr(batch, "_needs_no_look", lambda _: False)
    monkeypatch.setattr(batch, "are_whole_writes", lambda _: False)
    monkeypatch.setattr(KeptRows, "keep", lambda *_: None)
    async with account("long") as opened:
        long, left_by_long = await run(opened, seed, monkeypatch)
    for one, other in zip(short, long, strict=True):
        assert one == other
    assert left == left_by_long
    statuses = {status for _, (status, _, _) in short}
    assert {200, 201, 204, 207, 400, 401, 403, 404, 409} <= statuses
    assert 500 not in statuses

"""Every hostile request with the route it goes to, and the ground they need."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attack.callers import Caller
from attack.ground import CROSS, QUERY, key_header, make_container, must, put
from attack.hostile import binary, queries, scripts
from attack.hostile.collisions import on_the_way_of_zero
from attack.target import MASTER, READ_ONLY
from attack.wire import Body, Connection

CONTAINER = ["dbs", "ground", "colls", "hostile"]
SPREAD = ["dbs", "ground", "colls", "spread"]
ITEMS, LARGE_ITEMS = 60, 3
COMPUTED = "SELECT VALUE ARRAY(SELECT VALUE x + y FROM x IN c.a JOIN y IN c.a) FROM c"
BULK = {
    **key_header("p"),
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
}
SPREAD_TEXTS = (
    "join of 5",
    "order by a million rows",
    "makeset over joins",
    "group by built expressions",
    "262 KB of or",
)
"""What is also asked over several physical partitions."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One hostile request."""

    name: str
    method: str
    segments: list[str]
    body: Body
    headers: Mapping[str, str]
    caller: Caller = READ_ONLY


def _item(number: int, dice: random.Random) -> dict[str, Any]:
    words = ("alpha", "beta", "gamma", "delta", "omega", "sigma")
    return {
        "id": f"i{number}",
        "pk": "p",
        "n": number,
        "a": list(range(200)),
        "s": "a" * 300 + "!",
        "geo": {"type": "Point", "coordinates": [dice.uniform(-25, 25), dice.uniform(-25, 25)]},
        "v": [dice.random() for _ in range(128)],
        "t": " ".join(dice.choice(words) for _ in range(60)),
    }


def prepare(connection: Connection) -> None:
    """The containers of the hostile requests, with items and scripts."""
    dice = random.Random(1)
    path = {"path": "/t", "language": "en-US"}
    vector = {"path": "/v", "dataType": "float32", "distanceFunction": "cosine", "dimensions": 128}
    make_container(
        connection,
        "hostile",
        fullTextPolicy={"defaultLanguage": "en-US", "fullTextPaths": [path]},
        vectorEmbeddingPolicy={"vectorEmbeddings": [vector]},
        computedProperties=[{"name": "cp", "query": COMPUTED}],
    )
    make_container(connection, "spread", throughput_ru=30_000)
    for number in range(ITEMS):
        put(connection, CONTAINER, _item(number, dice))
        put(connection, SPREAD, {**_item(number, dice), "pk": f"p{number}"})
    for number in range(LARGE_ITEMS):
        large = {
            **_item(number, dice),
            "id": f"large{number}",
            "big": "x" * 1_000_000,
            "many": list(range(5000)),
        }
        put(connection, CONTAINER, large)
    for name, body in scripts.PROCEDURES.items():
        must(connection, "POST", [*CONTAINER, "sprocs"], {"id": name, "body": body})
    for name, body in scripts.FUNCTIONS.items():
        must(connection, "POST", [*CONTAINER, "udfs"], {"id": name, "body": body})
    for name, body in (("loop", scripts.TRIGGER_LOOP), ("flood", scripts.TRIGGER_FLOOD)):
        trigger = {"id": name, "body": body, "triggerType": "Pre", "triggerOperation": "All"}
        must(connection, "POST", [*CONTAINER, "triggers"], trigger)


def _query(name: str, text: queries.Text, container: list[str], headers: Mapping[str, str]) -> Shot:
    body = {"query": text[0], "parameters": text[1]}
    return Shot(name, "POST", [*container, "docs"], body, headers)


def _on_items() -> list[Shot]:
    families = (
        *(queries.JOINS, queries.MEMORY, queries.PATTERNS),
        *(queries.TEXTS, queries.SEARCH, queries.COLLISIONS),
    )
    one_key = {**QUERY, **key_header("p")}
    shots = [_query(name, text, CONTAINER, one_key) for family in families for name, text in family.items()]
    for name in SPREAD_TEXTS:
        text = {**queries.JOINS, **queries.MEMORY, **queries.TEXTS}[name]
        shots.append(_query(f"{name}, over partitions", text, SPREAD, CROSS))
    shots += [_query(name, text, SPREAD, CROSS) for name, text in queries.KEYS.items()]
    changes = {**one_key, "a-im": "Incremental Feed"}
    shots += [
        _query(f"{name} on changes", text, CONTAINER, changes) for name, text in queries.CHANGES.items()
    ]
    computed: tuple[queries.Text, ...] = (
        ("SELECT VALUE c.cp FROM c", []),
        ("SELECT VALUE COUNT(1) FROM c WHERE ARRAY_LENGTH(c.cp) < 0", []),
    )
    shots += [_query(f"computed property {n}", text, CONTAINER, one_key) for n, text in enumerate(computed)]
    called = {
        "function that spins": "SELECT VALUE udf.spin(c.n) FROM c",
        "function that is slow": "SELECT VALUE udf.slow(c.n) FROM c JOIN x IN c.a",
        "function with wide answers": "SELECT VALUE udf.wide(c.n) FROM c JOIN x IN c.a",
        "function with deep answers": "SELECT VALUE udf.deep(c.n) FROM c",
        "functions in an order": "SELECT VALUE MAKELIST(udf.wide(c.n)) FROM c JOIN x IN c.a",
    }
    return shots + [_query(name, (text, []), CONTAINER, one_key) for name, text in called.items()]


def _bodies() -> list[Shot]:
    """Bodies as large as the server takes, of very many very small values: to read them is the work."""
    start = b'{"query":"SELECT VALUE 1 FROM c WHERE c.n = @p","parameters":'
    one = start + b'[{"name":"@p","value":'
    bodies = {
        "zeros": one + b"[" + b",".join([b"0"] * 1_900_000) + b"]}]}",
        "empty objects": one + b"[" + b",".join([b"{}"] * 1_200_000) + b"]}]}",
        "names": one + b"{" + b",".join(b'"%d":0' % number for number in range(380_000)) + b"}}]}",
        "parameters": start
        + b"["
        + b",".join(b'{"name":"@p%d","value":1}' % n for n in range(130_000))
        + b"]}",
    }
    headers = {**QUERY, **key_header("p")}
    shots = [
        Shot(f"body of {name}", "POST", [*CONTAINER, "docs"], body, headers) for name, body in bodies.items()
    ]
    shots.append(Shot("body of zeros: databases", "POST", ["dbs"], bodies["zeros"], QUERY))
    patch = b'{"operations":[{"op":"add","path":"/x","value":[' + b",".join([b"0"] * 900_000) + b"]}]}"
    item = b'{"id":"wide","pk":"p",' + b",".join(b'"n%d":{"x":0}' % n for n in range(100_000)) + b"}"
    alike = {"id": "alike", "pk": "p", "a": [*on_the_way_of_zero(17), *[0] * 200_000]}
    own = {**key_header("p"), "x-ms-documentdb-is-upsert": "True"}
    docs = [*CONTAINER, "docs"]
    return [
        *shots,
        Shot("binary item of references", "POST", docs, binary.item("r", "p", 3_900_000), own, MASTER),
        Shot("batch of binary references", "POST", docs, binary.batch("p", 100, 3_900_000), BULK, MASTER),
        Shot("batch of small binary references", "POST", docs, binary.batch("p", 100, 100_000), BULK, MASTER),
        Shot("patch of zeros", "PATCH", [*CONTAINER, "docs", "i2"], patch, key_header("p"), MASTER),
        Shot("item of names", "POST", [*CONTAINER, "docs"], item, own, MASTER),
        Shot("item of numbers of one place", "POST", docs, alike, own, MASTER),
        Shot("the same in its place", "POST", docs, {**alike, "b": 1}, own, MASTER),
        Shot("binary references of one place", "POST", docs, binary.item_of_places("q", "p"), own, MASTER),
    ]


def _plans() -> list[Shot]:
    """Texts that are only planned: what is compiled must not hold anybody up either."""
    headers = {**CROSS, "x-ms-cosmos-is-query-plan-request": "True"}
    chosen = (
        "262 KB of or",
        "262 KB of in",
        "262 KB of subqueries",
        "262 KB of likes",
        "262 KB of arrays",
        "490 KB",
    )
    keys = queries.KEYS["16,000 keys"]
    explained = Shot(
        "explain: 16,000 keys", "POST", ["_pleiad", "v1", *SPREAD, "explain"], {"query": keys[0]}, {}
    )
    plans = [_query(f"plan: {name}", queries.TEXTS[name], CONTAINER, headers) for name in chosen]
    return [*plans, _query("plan: 16,000 keys", keys, SPREAD, headers), explained]


def _on_metadata() -> list[Shot]:
    routes = {
        "databases": ["dbs"],
        "containers": ["dbs", "ground", "colls"],
        "procedures": [*CONTAINER, "sprocs"],
        "functions": [*CONTAINER, "udfs"],
        "offers": ["offers"],
        "users": ["dbs", "ground", "users"],
        "conflicts": [*CONTAINER, "conflicts"],
    }
    return [
        Shot(f"{name}: {route}", "POST", segments, {"query": text[0], "parameters": text[1]}, QUERY)
        for number, (name, text) in enumerate(queries.METADATA.items())
        for place, (route, segments) in enumerate(routes.items())
        if (number + place) % 3 == 0
    ]


def _patches() -> list[Shot]:
    conditions = {
        "joins": "from c where (SELECT VALUE COUNT(1) FROM x IN c.a JOIN y IN c.a JOIN z IN c.a JOIN w IN c.a) < 0",
        "pattern": f"from c where RegexMatch('{'a' * 3000}!', '(a|aa)+$')",
        "pattern on the item": "from c where RegexMatch(c.s, '(a+)+b')",
        "replicate": "from c where LENGTH(REPLICATE(REPLICATE('x', 10000), 10000)) < 0",
        "262 KB": queries.TEXTS["262 KB of or"][0].replace("SELECT VALUE 1 FROM", "from"),
        "exists": queries.JOINS["exists in exists"][0].replace("SELECT VALUE 1 FROM", "from", 1),
    }
    operations = [{"op": "set", "path": "/n", "value": 1}]
    return [
        Shot(
            f"patch: {name}",
            "PATCH",
            [*CONTAINER, "docs", "i1"],
            {"operations": operations, "condition": condition},
            key_header("p"),
            MASTER,
        )
        for name, condition in conditions.items()
    ]


def _bulks() -> list[Shot]:
    """Batches of patches, each with a condition that alone would take long."""
    joins = (
        "from c where (SELECT VALUE COUNT(1) FROM x IN c.a JOIN y IN c.a JOIN z IN c.a JOIN w IN c.a) < {}"
    )
    texts = "from c where " + " OR ".join(f"c.n = {{}}{number}" for number in range(1_900))
    shots = []
    for name, condition in (("joins", joins), ("long texts", texts)):
        entries = [
            {
                "operationType": "Patch",
                "id": f"i{number % ITEMS}",
                "resourceBody": {
                    "operations": [{"op": "set", "path": "/z", "value": 1}],
                    "condition": condition.replace("{}", f"{number}"),
                },
            }
            for number in range(100)
        ]
        for kind, headers in (("bulk", BULK), ("batch", {**BULK, "x-ms-cosmos-batch-atomic": "True"})):
            shots.append(
                Shot(f"{kind} of patches: {name}", "POST", [*CONTAINER, "docs"], entries, headers, MASTER)
            )
    return shots


def _scripts() -> list[Shot]:
    key = key_header("p")
    shots = [
        Shot(f"procedure: {name}", "POST", [*CONTAINER, "sprocs", name], [], key, MASTER)
        for name in scripts.PROCEDURES
    ]
    arguments = {
        "lists": b"[[" + b",".join([b"[]"] * 1_300_000) + b"]]",
        "an array in an object": b'{"length":1,"0":[' + b",".join([b"{}"] * 1_300_000) + b"]}",
    }
    shots += [
        Shot(f"arguments: {name}", "POST", [*CONTAINER, "sprocs", "repeat"], body, key, MASTER)
        for name, body in arguments.items()
    ]
    for name in ("loop", "flood"):
        headers = {**key, "x-ms-documentdb-pre-trigger-include": name}
        shots.append(
            Shot(
                f"trigger: {name}",
                "POST",
                [*CONTAINER, "docs"],
                {"id": f"t-{name}", "pk": "p"},
                headers,
                MASTER,
            )
        )
    return shots


@functools.cache
def all_shots() -> list[Shot]:
    """The whole list, in an order that mixes the families, so that a part of it is a fair sample."""
    shots = [*_on_items(), *_bodies(), *_plans(), *_on_metadata(), *_patches(), *_bulks(), *_scripts()]
    random.Random(12).shuffle(shots)
    return shots

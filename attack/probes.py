"""Every route of the server as a request that would do something there, and the headers that change its meaning.

The list is the suite's own and not the server's table, so that a route the server reads otherwise than its documents
is seen; `tests/proofs/attack` compares the two, so that no route is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from attack.ground import KEY, key_header
from attack.wire import Body

OWN = ["dbs", "ground", "colls", "open"]
"""The container that the tokens are for."""
CLOSED = ["dbs", "ground", "colls", "closed"]
"""One in the same database that they are not for."""
AWAY = ["dbs", "second", "colls", "open"]
"""And one of the same name in another database."""
SCRIPT = "function () { getContext().getResponse().setBody('MARK-script'); }"
TRIGGER = {"id": "t", "body": SCRIPT, "triggerType": "Pre", "triggerOperation": "All"}


@dataclass(frozen=True, slots=True)
class Probe:
    """One request; `headers` belong to it, flags come on top."""

    method: str
    segments: list[str]
    body: Body = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The request in one line."""
        return f"{self.method} /{'/'.join(self.segments)}"


QUERY_ALL: dict[str, Any] = {"query": "SELECT * FROM c", "parameters": []}
FLAGS: dict[str, dict[str, str]] = {
    "plain": {},
    "isquery": {"x-ms-documentdb-isquery": "True"},
    "plan": {"x-ms-cosmos-is-query-plan-request": "True"},
    "query content": {"content-type": "application/query+json"},
    "upsert": {"x-ms-documentdb-is-upsert": "True"},
    "batch": {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"},
    "bulk": {
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-atomic": "False",
        "x-ms-cosmos-batch-continue-on-error": "True",
        "x-ms-documentdb-partitionkeyrangeid": "0",
    },
    "changes": {"a-im": "Incremental Feed"},
    "all versions": {"a-im": "Full-Fidelity Feed"},
    "every flag": {
        "x-ms-documentdb-isquery": "True",
        "x-ms-cosmos-is-query-plan-request": "True",
        "x-ms-documentdb-is-upsert": "True",
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "content-type": "application/query+json",
        "a-im": "Incremental Feed",
    },
    "another method": {"x-http-method-override": "GET", "x-http-method": "GET", "x-ms-method": "GET"},
    "range": {"x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-documentdb-query-enablecrosspartition": "True"},
    "range query": {
        "x-ms-documentdb-partitionkeyrangeid": "0",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "x-ms-documentdb-isquery": "True",
    },
    "hashes": {"x-ms-start-epk": "", "x-ms-end-epk": "FF", "x-ms-read-key-type": "EffectivePartitionKeyRange"},
    "hashes query": {
        "x-ms-start-epk": "",
        "x-ms-end-epk": "FF",
        "x-ms-read-key-type": "EffectivePartitionKeyRange",
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
    },
    "triggers": {"x-ms-documentdb-pre-trigger-include": "t", "x-ms-documentdb-post-trigger-include": "t"},
}  # fmt: skip


def _operations(pk: str, id: str) -> list[dict[str, Any]]:
    """A batch that reads and writes an item of that key."""
    key = f'["{pk}"]'
    return [
        {"operationType": "Read", "id": id, "partitionKey": key},
        {"operationType": "Upsert", "resourceBody": {"id": "made", "pk": pk}, "partitionKey": key},
    ]


def _on_container(container: list[str], pk: str, id: str) -> list[Probe]:
    """Every route below a container, aimed at one item."""
    key = key_header(pk)
    item = {"id": id, "pk": pk, "text": "overwritten"}
    patch = {"operations": [{"op": "set", "path": "/text", "value": "overwritten"}]}
    docs = [*container, "docs"]
    return [
        Probe("GET", container),
        Probe("HEAD", container, headers=key),
        Probe("PUT", container, {"id": container[-1], "partitionKey": KEY, "defaultTtl": 1}),
        Probe("GET", [*container, "pkranges"]),
        Probe("GET", docs),
        Probe("GET", docs, headers=key),
        Probe("POST", docs, {**QUERY_ALL, "id": "made", "pk": pk}, key),
        Probe("POST", docs, {**QUERY_ALL, "id": "made", "pk": pk}),
        Probe(
            "POST",
            docs,
            {"query": "SELECT VALUE c.text FROM c ORDER BY c.text", "id": "made2", "pk": pk},
            key,
        ),
        Probe("POST", docs, {"query": "SELECT DISTINCT VALUE c.text FROM c", "id": "made3", "pk": pk}, key),
        Probe("POST", docs, _operations(pk, id), key),
        Probe("POST", docs, _operations(pk, id)),
        Probe("GET", [*docs, id], headers=key),
        Probe("GET", [*docs, id]),
        Probe("PUT", [*docs, id], item, key),
        Probe("PATCH", [*docs, id], patch, key),
        Probe("PATCH", [*docs, id], {**patch, "condition": "from c where c.text != ''"}, key),
        Probe("DELETE", [*docs, id], headers=key),
        Probe("POST", [*container, "operations", "partitionkeydelete"], headers=key),
        Probe("GET", [*container, "conflicts"]),
        Probe("POST", [*container, "conflicts"], QUERY_ALL),
        Probe("GET", [*container, "conflicts", "x"]),
        Probe("DELETE", [*container, "conflicts", "x"]),
        *_on_scripts(container, pk),
    ]


def _on_scripts(container: list[str], pk: str) -> list[Probe]:
    probes: list[Probe] = []
    for kind, own, more in (("sprocs", "s", {}), ("triggers", "t", TRIGGER), ("udfs", "f", {})):
        path = [*container, kind]
        body = {**more, "body": "function () { return 'overwritten'; }"}
        probes += [
            Probe("GET", path),
            Probe("POST", path, {**QUERY_ALL, **body, "id": "made"}),
            Probe("POST", path, {**QUERY_ALL, **body, "id": own}),
            Probe("GET", [*path, own]),
            Probe("PUT", [*path, own], {**body, "id": own}),
            Probe("DELETE", [*path, own]),
        ]
    return [*probes, Probe("POST", [*container, "sprocs", "s"], [], key_header(pk))]


def _across() -> list[Probe]:
    """One key in the header and another in the body; one item in the path and another in the body."""
    own, docs = key_header("a"), [*OWN, "docs"]
    foreign = {"id": "3", "pk": "b", "text": "overwritten"}
    twice = b'{"id":"3","pk":"a","p\\u006b":"b","text":"overwritten"}'
    return [
        Probe("POST", docs, foreign, own),
        Probe("POST", docs, twice, own),
        Probe("PUT", [*docs, "1"], foreign, own),
        Probe("PUT", [*docs, "1"], {"id": "2", "pk": "a", "text": "overwritten"}, own),
        Probe("PUT", [*docs, "3"], foreign, own),
        Probe("GET", [*docs, "3"], headers=own),
        Probe("DELETE", [*docs, "3"], headers=own),
        Probe("POST", docs, _operations("b", "3"), own),
        Probe("POST", docs, _operations("a", "1"), key_header("b")),
        Probe("POST", docs, QUERY_ALL, {"x-ms-documentdb-partitionkey": "[]"}),
        Probe("POST", docs, QUERY_ALL, {"x-ms-documentdb-partitionkey": '["a","b"]'}),
        Probe("GET", docs, headers={"x-ms-documentdb-partitionkey": "[]"}),
        Probe("PATCH", [*docs, "1"], {"operations": [{"op": "set", "path": "/pk", "value": "b"}]}, own),
        Probe("PATCH", [*docs, "1"], {"operations": [{"op": "set", "path": "/id", "value": "2"}]}, own),
        Probe("POST", [*OWN, "sprocs", "s"], [], key_header("b")),
        Probe("POST", [*OWN, "operations", "partitionkeydelete"], headers=key_header("b")),
        Probe(
            "POST", [*OWN, "operations", "partitionkeydelete"], headers={"x-ms-documentdb-partitionkey": "[]"}
        ),
    ]


def _on_account() -> list[Probe]:
    database, user = ["dbs", "ground"], ["dbs", "ground", "users", "u"]
    permission = {"permissionMode": "All", "resource": "/".join(OWN), "resourcePartitionKey": ["a"]}
    return [
        Probe("GET", []),
        Probe("GET", ["addresses"]),
        Probe("GET", ["dbs"]),
        Probe("HEAD", ["dbs"]),
        Probe("POST", ["dbs"], {**QUERY_ALL, "id": "made"}),
        Probe("GET", database),
        Probe("DELETE", ["dbs", "idle"]),
        Probe("GET", [*database, "colls"]),
        Probe("POST", [*database, "colls"], {**QUERY_ALL, "id": "made", "partitionKey": KEY}),
        Probe("DELETE", [*database, "colls", "idle"]),
        Probe("GET", [*database, "users"]),
        Probe("POST", [*database, "users"], {**QUERY_ALL, "id": "made"}),
        Probe("GET", user),
        Probe("PUT", user, {"id": "renamed"}),
        Probe("DELETE", [*database, "users", "idle"]),
        Probe("GET", [*user, "permissions"]),
        Probe("POST", [*user, "permissions"], {**QUERY_ALL, **permission, "id": "made"}),
        Probe("POST", [*user, "permissions"], {**QUERY_ALL, **permission, "id": "p"}),
        Probe("GET", [*user, "permissions", "p"]),
        Probe("PUT", [*user, "permissions", "p"], {**permission, "id": "p"}),
        Probe("DELETE", [*user, "permissions", "idle"]),
        Probe("GET", [*database, "clientencryptionkeys"]),
        Probe("POST", [*database, "clientencryptionkeys"], {**QUERY_ALL, "id": "made"}),
        Probe("GET", [*database, "clientencryptionkeys", "cek"]),
        Probe("PUT", [*database, "clientencryptionkeys", "cek"], {"id": "cek", "wrapped": "overwritten"}),
        Probe("DELETE", [*database, "clientencryptionkeys", "idle"]),
        Probe("GET", ["offers"]),
        Probe("POST", ["offers"], QUERY_ALL),
    ]


def _on_admin() -> list[Probe]:
    admin = ["_pleiad", "v1"]
    container = [*admin, *OWN]
    return [
        Probe("GET", [*admin, "throughput"]),
        Probe("GET", [*admin, "dbs", "ground", "throughput"]),
        Probe("PUT", [*admin, "dbs", "ground", "throughput"], {"ru": 500}),
        Probe("GET", [*container, "throughput"]),
        Probe("PUT", [*container, "throughput"], {"ru": 500}),
        Probe("GET", [*container, "partitions"]),
        Probe("PUT", [*container, "partitions"], {"ru": {"0": 400}}),
        Probe("POST", [*container, "split"], {"partition": "0"}),
        Probe("POST", [*container, "merge"], {"partitions": ["0", "1"]}),
        *(
            Probe("GET", [*container, name])
            for name in ("live", "history", "heat", "paths", "keys", "workload", "advice")
        ),
        Probe("POST", [*container, "explain"], QUERY_ALL),
        Probe("PUT", [*container, "workload"], {"record": "values"}),
        Probe("POST", [*container, "workload"], {"at": 1, "operation": "read"}),
        Probe("DELETE", [*container, "workload"]),
        Probe("GET", [*container, "workload", "records"]),
        Probe("POST", [*container, "advice"], {"candidates": ["/key"], "sample": 100}),
        Probe("DELETE", [*container, "advice"]),
        Probe("GET", [*container, "advice", "report"]),
        *(Probe("GET", [*admin, name]) for name in ("me", "overview", "live", "history")),
        Probe("POST", ["_pleiad", "handover"], headers={"x-pleiad-handover": "guessed"}),
        Probe("GET", [*admin, "backups"]),
        Probe("POST", [*admin, "backups"], {"keep": 1}),
        Probe("GET", [*admin, "backups", "1"]),
        Probe("GET", [*admin, "copies"]),
        Probe(
            "POST", [*admin, "copies"], {"source": "db/none", "target": "db/other", "partitionKey": "/key"}
        ),
        Probe("GET", [*admin, "copies", "1"]),
        Probe("DELETE", [*admin, "copies", "1"]),
        Probe("POST", [*admin, "copies", "1", "complete"]),
        Probe("GET", [*admin, "faults"]),
        Probe(
            "POST", [*admin, "faults"], {"fault": "503", "count": 1, "operation": "patch", "database": "none"}
        ),
        Probe("DELETE", [*admin, "faults"]),
        Probe("GET", [*admin, "faults", "1"]),
        Probe("DELETE", [*admin, "faults", "1"]),
        Probe("GET", [*admin, "warnings"]),
        Probe("GET", [*admin, "top"]),
        Probe("GET", [*admin, "keys"]),
    ]


def probes(offer: str, thorough: bool = True) -> list[Probe]:
    """Every route, aimed at what the tokens are for and, when thorough, at its neighbours; `offer` is an offer's id."""
    offers = [
        Probe("GET", ["offers", offer]),
        Probe("PUT", ["offers", offer], {"content": {"offerThroughput": 500}}),
    ]
    if not thorough:
        return [*_on_account(), *_on_admin(), *_on_container(OWN, "b", "3"), *_across(), *offers]
    return [
        *_on_account(),
        *_on_admin(),
        *_on_container(OWN, "a", "1"),
        *_on_container(OWN, "b", "3"),
        *_across(),
        *_on_container(CLOSED, "a", "1"),
        *_on_container(AWAY, "a", "1"),
        *offers,
    ]

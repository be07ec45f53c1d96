"""The account that is attacked: made through the server like any other, and counted at the end.

Everything a caller must not see carries a mark in its text, so that a leak is found in any answer, whatever its status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attack.target import MASTER
from attack.wire import Answer, Body, Connection, path_of, request_bytes

PK = "x-ms-documentdb-partitionkey"
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}
QUERY = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
CROSS = {**QUERY, "x-ms-documentdb-query-enablecrosspartition": "True"}
DATABASE = "ground"


class GroundError(Exception):
    """The account could not be prepared."""


def must(
    connection: Connection, method: str, segments: Sequence[str], body: Body = None, **headers: str
) -> Answer:
    """A request of the master key that has to succeed; `headers` with ``_`` for ``-``."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = connection.send(MASTER, method, segments, body, fields)
    if answer.status >= 300:
        raise GroundError(f"{method} {'/'.join(segments)}: {answer.status} {answer.body[:300]!r}")
    return answer


def make_database(connection: Connection, database: str = DATABASE) -> list[str]:
    """The path of a database, made if need be."""
    answer = connection.send(MASTER, "POST", ["dbs"], {"id": database})
    if answer.status not in (201, 409):
        raise GroundError(f"{answer.status} {answer.body[:300]!r}")
    return ["dbs", database]


def make_container(
    connection: Connection,
    name: str,
    database: str = DATABASE,
    throughput_ru: int = 400,
    **more: Any,
) -> list[str]:
    """The path of a new container with the key /pk."""
    parent = make_database(connection, database)
    body = {"id": name, "partitionKey": KEY, **more}
    must(connection, "POST", [*parent, "colls"], body, x_ms_offer_throughput=str(throughput_ru))
    return [*parent, "colls", name]


def key_header(*values: Any) -> dict[str, str]:
    """The header that names a partition key."""
    return {PK: json.dumps(list(values))}


def put(connection: Connection, container: Sequence[str], item: Mapping[str, Any]) -> Answer:
    """Writes an item of a container with the key /pk."""
    fields = {**key_header(item["pk"]), "x-ms-documentdb-is-upsert": "True"}
    answer = connection.send(MASTER, "POST", [*container, "docs"], dict(item), fields)
    if answer.status >= 300:
        raise GroundError(f"{answer.status} {answer.body[:300]!r}")
    return answer


def point_reads(connection: Connection, count: int = 20) -> list[bytes]:
    """A small container of its own, and the reads of its items as bytes."""
    container = make_container(connection, "beside")
    requests = []
    for number in range(count):
        put(connection, container, {"id": f"i{number}", "pk": f"k{number}", "text": "x" * 500})
        segments = [*container, "docs", f"i{number}"]
        fields = {**MASTER.headers("GET", segments), **key_header(f"k{number}")}
        requests.append(request_bytes("GET", path_of(segments), fields))
    return requests


_VOLATILE = ("_token", "secondsLeft", "hits", "_lsn", "lsn", "_ts", "_etag")


def _steady(value: Any) -> Any:
    """A resource without what changes by itself: the token, which each reading makes anew, and the life of a fault."""
    if isinstance(value, dict):
        return {name: _steady(member) for name, member in value.items() if name not in _VOLATILE}
    return [_steady(member) for member in value] if isinstance(value, list) else value


class _Account:
    """Reads the whole account, feed by feed, into one fingerprint for each resource."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.state: dict[str, str] = {}

    def feed(self, segments: list[str], member: str) -> list[dict[str, Any]]:
        fields = {"x-ms-max-item-count": "1000"}
        answer = self._connection.send(MASTER, "GET", segments, headers=fields)
        members: list[dict[str, Any]] = answer.json.get(member, []) if answer.status == 200 else []
        path = "/".join(segments)
        self.state[path] = f"{answer.status} with {len(members)}"
        for resource in members:
            text = json.dumps(_steady(resource), sort_keys=True)
            self.state[f"{path}/{resource['id']}/{resource.get('pk', '')}"] = text
        return members

    def read(self) -> dict[str, str]:
        for database in self.feed(["dbs"], "Databases"):
            path = ["dbs", database["id"]]
            for user in self.feed([*path, "users"], "Users"):
                self.feed([*path, "users", user["id"], "permissions"], "Permissions")
            self.feed([*path, "clientencryptionkeys"], "ClientEncryptionKeys")
            for container in self.feed([*path, "colls"], "DocumentCollections"):
                own = [*path, "colls", container["id"]]
                self.feed([*own, "docs"], "Documents")
                self.feed([*own, "sprocs"], "StoredProcedures")
                self.feed([*own, "triggers"], "Triggers")
                self.feed([*own, "udfs"], "UserDefinedFunctions")
                self.feed([*own, "pkranges"], "PartitionKeyRanges")
        self.feed(["offers"], "Offers")
        self.feed(["_pleiad", "v1", "faults"], "faults")
        return self.state


def state_of(connection: Connection) -> dict[str, str]:
    """Everything in the account as the master key sees it: a text for each resource, by its path and key."""
    return _Account(connection).read()


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The paths of what came, went or changed, sorted."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))

"""Finding and making a container over the NoSQL protocol, for verbs that work on its items."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pleiad.client.admin import RequestRefusedError, sentence
from pleiad.client.connection import Answer, Connection
from pleiad.keys.definition import KeyDefinition
from pleiad.limits import Limits

_THROUGHPUT = "x-ms-offer-throughput"


@dataclass(frozen=True, slots=True)
class FoundContainer:
    """A container as its server tells of it."""

    database: str
    name: str
    rid: str
    key: KeyDefinition
    definition: Mapping[str, Any]
    bounds: tuple[bytes, ...] = ()
    """Where the hash ranges of its physical partitions begin, but for the first, in order; empty if nobody asked."""

    @property
    def link(self) -> tuple[str, ...]:
        return ("dbs", self.database, "colls", self.name)


def find_container(connection: Connection, database: str, name: str) -> FoundContainer | None:
    """The container of that name; None when there is none."""
    link = ("dbs", database, "colls", name)
    answer = connection.request("GET", link, "colls", link, {})
    if answer.status == 404:
        return None
    return _found(database, name, accepted(answer))


def with_bounds(connection: Connection, container: FoundContainer) -> FoundContainer:
    """The container with the bounds of its physical partitions."""
    link = container.link
    found = accepted(connection.request("GET", (*link, "pkranges"), "pkranges", link, {}))
    try:
        bounds = sorted(bytes.fromhex(each["minInclusive"]) for each in found["PartitionKeyRanges"])
    except (KeyError, TypeError, ValueError):
        return container  # nothing depends on it but how fast items come in
    return replace(container, bounds=tuple(bounds[1:]))


def create_container(
    connection: Connection, database: str, definition: Mapping[str, Any], throughput_ru: int | None
) -> FoundContainer:
    """Makes a container, and its database where there is none."""
    link = ("dbs", database)
    made = connection.request("POST", ("dbs",), "dbs", (), {}, json.dumps({"id": database}).encode())
    if made.status != 409:
        accepted(made)
    headers = {} if throughput_ru is None else {_THROUGHPUT: str(throughput_ru)}
    body = json.dumps(definition).encode()
    answer = connection.request("POST", (*link, "colls"), "colls", link, headers, body)
    return _found(database, str(definition["id"]), accepted(answer))


def partition_key_of(paths: Sequence[str]) -> dict[str, Any]:
    """The definition of a partition key: of one path, or hierarchical."""
    return {"paths": list(paths), "kind": "Hash" if len(paths) == 1 else "MultiHash", "version": 2}


def accepted(answer: Answer) -> Any:
    """What a successful answer says; RequestRefusedError for any other."""
    if not answer.is_success:
        raise RequestRefusedError(answer.status, sentence(answer.status, answer.body))
    try:
        return answer.json() if answer.body else None
    except ValueError:
        raise RequestRefusedError(
            answer.status, "the answer is no JSON; is it a Cosmos DB account?"
        ) from None


def _found(database: str, name: str, definition: Any) -> FoundContainer:
    key = KeyDefinition.from_json(definition["partitionKey"], Limits())
    return FoundContainer(database, name, definition["_rid"], key, definition)

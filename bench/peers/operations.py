"""The twelve operations: the requests of each, and what a right answer looks like.

What reads uses one container, whose items stay as they are; what writes uses another.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench import request
from bench.items import Item, items
from bench.server import PleiadServer

GROUP_ITEMS = 100
ITEMS = 5_000
READ, WRITTEN = "dbs/peers/colls/read", "dbs/peers/colls/written"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Requests:
    """What a round sends."""

    made: Sequence[bytes]
    is_repeated: bool = True
    before: Sequence[Item] = ()
    """Items that must be in the written container before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation."""

    name: str
    make: Callable[[PleiadServer, Sequence[Item], int], Requests]
    """The requests for a server, the items it holds, and how many are wanted."""
    statuses: tuple[int, ...]
    is_right: Callable[[bytes, Sequence[Item]], bool]
    per_second: int
    """At most so many are sent in a second, where each is sent once."""


def _signed(server: PleiadServer, verb: str, link: str, path: str, body: bytes = b"", **more: str) -> bytes:
    fields = request.headers(server.key, verb, "docs", link, request.date_text())
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    return request.encode(verb, path, server.host, fields, body)


def _of_item(server: PleiadServer, verb: str, container: str, item: Item, body: bytes = b"") -> bytes:
    link = f"{container}/docs/{item.id}"
    return _signed(server, verb, link, f"/{link}", body, x_ms_documentdb_partitionkey=f'["{item.pk}"]')


def _new(count: int) -> list[Item]:
    return items(f"new{next(_numbers)}", count)


def _on_items(verb: str, body: Callable[[Item], bytes]) -> Callable[..., Requests]:
    def make(server: PleiadServer, held: Sequence[Item], count: int) -> Requests:
        chosen = random.Random(1).sample(list(held), min(1_000, len(held)))
        container = READ if verb == "GET" else WRITTEN
        return Requests([_of_item(server, verb, container, item, body(item)) for item in chosen])

    return make


def _create(server: PleiadServer, held: Sequence[Item], count: int) -> Requests:
    creates = request.ItemCreates(server.host, server.key, WRITTEN, request.date_text())
    return Requests([creates.create(item.pk, item.body) for item in _new(count)], is_repeated=False)


def _delete(server: PleiadServer, held: Sequence[Item], count: int) -> Requests:
    made = _new(count)
    sent = [_of_item(server, "DELETE", WRITTEN, item) for item in made]
    return Requests(sent, is_repeated=False, before=made)


def _grouped(is_bulk: bool) -> Callable[..., Requests]:
    def make(server: PleiadServer, held: Sequence[Item], count: int) -> Requests:
        sent = []
        for number in range(count):
            bodies = [orjson.loads(item.body) for item in _new(GROUP_ITEMS)]
            fields = {
                "x-ms-cosmos-is-batch-request": "true",
                "x-ms-cosmos-batch-atomic": "false" if is_bulk else "true",
                "x-ms-cosmos-batch-continue-on-error": "true" if is_bulk else "false",
            }
            operations: list[dict[str, Any]] = [
                {"operationType": "Create", "resourceBody": each} for each in bodies
            ]
            if is_bulk:
                fields["x-ms-documentdb-partitionkeyrangeid"] = "0"
                for operation in operations:
                    operation["partitionKey"] = orjson.dumps([operation["resourceBody"]["pk"]]).decode()
            else:
                fields["x-ms-documentdb-partitionkey"] = f'["batch-{number}"]'
                for each in bodies:
                    each["pk"] = f"batch-{number}"
            sent.append(
                _signed(server, "POST", WRITTEN, f"/{WRITTEN}/docs", orjson.dumps(operations), **fields)
            )
        return Requests(sent, is_repeated=False)

    return make


# The container has one physical partition, and queries name it: what has to be merged is merged by clients.
def _query(text: str, value: Callable[[Item], object] | None = None) -> Callable[..., Requests]:
    def make(server: PleiadServer, held: Sequence[Item], count: int) -> Requests:
        chosen = random.Random(2).sample(list(held), 200) if value is not None else held[:1]
        sent = []
        for item in chosen:
            parameters = [] if value is None else [{"name": "@value", "value": value(item)}]
            body = orjson.dumps({"query": text, "parameters": parameters})
            made = _signed(
                server, "POST", READ, f"/{READ}/docs", body, x_ms_documentdb_isquery="true",
                x_ms_documentdb_query_enablecrosspartition="true", x_ms_max_item_count="100",
                x_ms_documentdb_partitionkeyrangeid="0",
            )  # fmt: skip
            sent.append(
                made.replace(b"Content-Type: application/json", b"Content-Type: application/query+json")
            )
        return Requests(sent)

    return make


def _changes(server: PleiadServer, held: Sequence[Item], count: int) -> Requests:
    fields = {
        "A-IM": "Incremental feed",
        "x-ms-max-item-count": "100",
        "x-ms-documentdb-partitionkeyrangeid": "0",
    }
    return Requests([_signed(server, "GET", READ, f"/{READ}/docs", b"", **fields)])


def _documents(body: bytes) -> list[Any]:
    return list(orjson.loads(body)["Documents"])


def _is_item(body: bytes, held: Sequence[Item]) -> bool:
    return "id" in orjson.loads(body)


def _is_ordered_page(body: bytes, held: Sequence[Item]) -> bool:
    scores = [each["score"] for each in _documents(body)]
    return scores == sorted(orjson.loads(item.body)["score"] for item in held)[:100]


def _is_grouped(body: bytes, held: Sequence[Item]) -> bool:
    counts = {each["status"]: each["n"] for each in _documents(body)}
    return len(counts) == 4 and sum(counts.values()) == len(held)


def _is_counted(body: bytes, held: Sequence[Item]) -> bool:
    return _documents(body) == [sum(orjson.loads(item.body)["quantity"] < 25 for item in held)]


def _all_created(body: bytes, held: Sequence[Item]) -> bool:
    return [each["statusCode"] for each in orjson.loads(body)] == [201] * GROUP_ITEMS


def _always(body: bytes, held: Sequence[Item]) -> bool:
    return True


def _body(item: Item) -> bytes:
    return item.body


_PATCH = orjson.dumps({"operations": [{"op": "set", "path": "/revision", "value": 10}]})

_REPLACED = (200, 201)
"""Cosmium answers as if it had created the item."""

OPERATIONS = (
    Operation(
        name="point read",
        make=_on_items("GET", lambda item: b""),
        statuses=(200,),
        is_right=_is_item,
        per_second=0,
    ),
    Operation(name="create", make=_create, statuses=(201,), is_right=_is_item, per_second=5_000),
    Operation(
        name="replace", make=_on_items("PUT", _body), statuses=_REPLACED, is_right=_is_item, per_second=0
    ),
    Operation(
        name="patch",
        make=_on_items("PATCH", lambda item: _PATCH),
        statuses=_REPLACED,
        is_right=_is_item,
        per_second=0,
    ),
    Operation(
        name="batch of 100",
        make=_grouped(is_bulk=False),
        statuses=(200,),
        is_right=_all_created,
        per_second=200,
    ),
    Operation(
        name="indexed query",
        make=_query("SELECT * FROM c WHERE c.email = @value", lambda item: orjson.loads(item.body)["email"]),
        statuses=(200,),
        is_right=lambda body, held: len(_documents(body)) >= 1,
        per_second=0,
    ),
    Operation(
        name="ordered page",
        make=_query("SELECT * FROM c ORDER BY c.score"),
        statuses=(200,),
        is_right=_is_ordered_page,
        per_second=0,
    ),
    Operation(
        name="group",
        make=_query("SELECT c.status, COUNT(1) AS n FROM c GROUP BY c.status"),
        statuses=(200,),
        is_right=_is_grouped,
        per_second=0,
    ),
    Operation(
        name="cross-partition count",
        make=_query("SELECT VALUE COUNT(1) FROM c WHERE c.quantity < 25"),
        statuses=(200,),
        is_right=_is_counted,
        per_second=0,
    ),
    Operation(
        name="change feed page",
        make=_changes,
        statuses=(200,),
        is_right=lambda body, held: len(_documents(body)) == 100,
        per_second=0,
    ),
    Operation(
        name="bulk of 100",
        make=_grouped(is_bulk=True),
        statuses=(200,),
        is_right=_all_created,
        per_second=200,
    ),
    Operation(name="delete", make=_delete, statuses=(204,), is_right=_always, per_second=3_000),
)

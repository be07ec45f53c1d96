"""Every route, every kind of caller, every flag: who may do what, and that a refusal changes nothing.

The routes come from the code. A route of an operation that is not in the table here, or of a path that nobody has named
here, fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from pleiad.catalog.resource import Kind
from pleiad.engine.operation import Operation
from pleiad.heads.http.route import Choice, Route
from tests.proofs.rights.account import (
    KEY_HEADER,
    MASTER_KEY,
    READ_ONLY_KEY,
    WRONG_KEY,
    Account,
    Caller,
    OpenAccount,
    holder_of,
    identity_token,
    signed,
)

NOBODY: frozenset[str] = frozenset()
STRANGERS = frozenset(
    {"no key", "wrong key", "expired token", "forged token", "wrong identity", "expired identity"}
)
KEYS = frozenset({"master", "read-only"})
IDENTITIES = frozenset({"identity", "encoded identity"})
READ_TOKENS = frozenset({"read container", "read key", "read item"})
ALL_TOKENS = frozenset({"all container", "all key", "all item"})
TOKENS = READ_TOKENS | ALL_TOKENS | {"all of other"}
MASTER = frozenset({"master"})

READERS = KEYS | IDENTITIES
OF_CONTAINER = frozenset({"read container", "all container"})
OF_ROWS = OF_CONTAINER | {"read key", "all key"}

ALLOWED: dict[Operation, frozenset[str]] = {
    Operation.READ_PAGE: STRANGERS | KEYS | IDENTITIES | TOKENS,
    Operation.READ_HEALTH: STRANGERS | KEYS | IDENTITIES | TOKENS,
    Operation.READ_ADDRESSES: READERS,  # those of the container of a token are asked for by its rid
    Operation.READ_METRICS: NOBODY,  # a key as it is, which the table has no caller for
    Operation.HAND_OVER: NOBODY,  # whoever has a link, which is no caller of the table
    Operation.READ_RIGHTS: KEYS | IDENTITIES | TOKENS,
    Operation.READ_ACCOUNT: KEYS | IDENTITIES | TOKENS,
    Operation.LIST_DATABASES: READERS,
    Operation.QUERY_DATABASES: READERS,
    Operation.CREATE_DATABASE: MASTER,
    Operation.READ_DATABASE: READERS,
    Operation.DELETE_DATABASE: MASTER,
    Operation.LIST_CONTAINERS: READERS,
    Operation.QUERY_CONTAINERS: READERS,
    Operation.CREATE_CONTAINER: MASTER,
    Operation.READ_CONTAINER: READERS | READ_TOKENS | ALL_TOKENS,
    Operation.REPLACE_CONTAINER: MASTER,
    Operation.DELETE_CONTAINER: MASTER | {"all container"},
    Operation.LIST_RANGES: READERS | READ_TOKENS | ALL_TOKENS,
    Operation.READ_ITEM: READERS | READ_TOKENS | ALL_TOKENS,
    Operation.CREATE_ITEM: MASTER | IDENTITIES | {"all container", "all key"},
    Operation.UPSERT_ITEM: MASTER | IDENTITIES | {"all container", "all key"},
    Operation.REPLACE_ITEM: MASTER | IDENTITIES | ALL_TOKENS,
    Operation.PATCH_ITEM: MASTER | IDENTITIES | ALL_TOKENS,
    Operation.DELETE_ITEM: MASTER | IDENTITIES | ALL_TOKENS,
    Operation.DELETE_PARTITION_KEY: MASTER | IDENTITIES | {"all container", "all key"},
    Operation.LIST_ITEMS: READERS | OF_ROWS,
    Operation.READ_CHANGES: READERS | OF_ROWS,
    Operation.QUERY_ITEMS: READERS | OF_ROWS,
    Operation.READ_BARRIER: READERS | READ_TOKENS | ALL_TOKENS,
    Operation.PLAN_QUERY: READERS | OF_ROWS,
    Operation.EXPLAIN_QUERY: READERS | OF_ROWS,
    Operation.READ_PATHS: READERS | OF_CONTAINER,
    Operation.READ_KEY_VALUES: READERS | OF_CONTAINER,
    Operation.RUN_BATCH: MASTER | IDENTITIES | {"all container", "all key"},
    Operation.RUN_SCRIPT: MASTER | IDENTITIES | {"all container", "all key"},
    Operation.LIST_SCRIPTS: READERS | OF_CONTAINER,
    Operation.QUERY_SCRIPTS: READERS | OF_CONTAINER,
    Operation.CREATE_SCRIPT: MASTER | {"all container"},
    Operation.READ_SCRIPT: READERS | OF_CONTAINER,
    Operation.REPLACE_SCRIPT: MASTER | {"all container"},
    Operation.DELETE_SCRIPT: MASTER | {"all container"},
    Operation.LIST_CONFLICTS: READERS | OF_CONTAINER,
    Operation.QUERY_CONFLICTS: READERS | OF_CONTAINER,
    Operation.READ_CONFLICT: READERS | OF_CONTAINER,
    Operation.DELETE_CONFLICT: MASTER | IDENTITIES | {"all container"},
    Operation.LIST_USERS: READERS,
    Operation.QUERY_USERS: READERS,
    Operation.CREATE_USER: MASTER,
    Operation.READ_USER: READERS,
    Operation.REPLACE_USER: MASTER,
    Operation.DELETE_USER: MASTER,
    Operation.LIST_PERMISSIONS: MASTER,
    Operation.QUERY_PERMISSIONS: MASTER,
    Operation.CREATE_PERMISSION: MASTER,
    Operation.READ_PERMISSION: MASTER,
    Operation.REPLACE_PERMISSION: MASTER,
    Operation.DELETE_PERMISSION: MASTER,
    Operation.LIST_ENCRYPTION_KEYS: READERS,
    Operation.QUERY_ENCRYPTION_KEYS: READERS,
    Operation.CREATE_ENCRYPTION_KEY: MASTER,
    Operation.READ_ENCRYPTION_KEY: READERS,
    Operation.REPLACE_ENCRYPTION_KEY: MASTER,
    Operation.DELETE_ENCRYPTION_KEY: MASTER,
    Operation.LIST_OFFERS: KEYS,
    Operation.QUERY_OFFERS: KEYS,
    Operation.READ_OFFER: KEYS,
    Operation.REPLACE_OFFER: MASTER,
    Operation.READ_THROUGHPUT: KEYS,
    Operation.REPLACE_THROUGHPUT: MASTER,
    Operation.READ_PARTITIONS: KEYS,
    Operation.REDISTRIBUTE: MASTER,
    Operation.SPLIT: MASTER,
    Operation.MERGE: MASTER,
    Operation.LIST_FAULTS: KEYS,
    Operation.ADD_FAULT: MASTER,
    Operation.CLEAR_FAULTS: MASTER,
    Operation.READ_FAULT: KEYS,
    Operation.DELETE_FAULT: MASTER,
    Operation.READ_OVERVIEW: KEYS,
    Operation.READ_LIVE: KEYS,
    Operation.READ_HISTORY: KEYS,
    Operation.READ_HEAT: KEYS,
    Operation.LIST_BACKUPS: KEYS,
    Operation.CREATE_BACKUP: MASTER,
    Operation.READ_BACKUP: KEYS,
    Operation.READ_ADVICE: KEYS,
    Operation.START_ADVICE: KEYS,
    Operation.CANCEL_ADVICE: KEYS,
    Operation.LIST_COPIES: KEYS,
    Operation.CREATE_COPY: MASTER,
    Operation.READ_COPY: KEYS,
    Operation.COMPLETE_COPY: MASTER,
    Operation.CANCEL_COPY: MASTER,
    Operation.LIST_WARNINGS: KEYS,
    Operation.READ_BUSIEST: KEYS,
    Operation.READ_KEYS: KEYS,
    Operation.READ_WORKLOAD: KEYS,
    Operation.SWITCH_WORKLOAD: MASTER,
    Operation.ADD_WORKLOAD: MASTER,
    Operation.DELETE_WORKLOAD: MASTER,
}
"""Who may run an operation in the container `c` and on its item `1` of the key `a`."""

NAMES = {
    "dbs": "d",
    "colls": "c",
    "docs": "1",
    "sprocs": "proc",
    "triggers": "trig",
    "udfs": "func",
    "users": "ann",
    "permissions": "perm",
    "clientencryptionkeys": "cek",
    "conflicts": "none",
    "operations": "partitionkeydelete",
    "_pleiad": "v1",
    "css": "base.css",
    "js": "main.js",
    "screens": "home.js",
}

QUERY = "x-ms-documentdb-isquery"
PLAN = "x-ms-cosmos-is-query-plan-request"
FLAGS: tuple[dict[str, str], ...] = (
    {},
    {QUERY: "true"},
    {QUERY: "True"},
    {QUERY: " TRUE "},
    {QUERY: "1"},
    {QUERY: "true, true"},
    {PLAN: "true"},
    {PLAN: "True"},
    {QUERY: "True", PLAN: "True"},
    {QUERY: "False", PLAN: "False"},
    {"content-type": "application/query+json"},
    {"x-ms-documentdb-is-upsert": "true"},
    {"x-ms-documentdb-is-upsert": "true", QUERY: "true"},
    {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"},
    {"x-ms-cosmos-is-batch-request": "true", PLAN: "true"},
    {"a-im": "Incremental Feed"},
    {"x-http-method-override": "GET", "x-http-method": "GET", "x-method-override": "GET"},
    {"x-ms-cosmos-intended-collection-rid": ""},
    {"x-ms-thinclient-proxy-operation-type": "Read", "x-ms-operation-type": "Read"},
)

CONTAINER_BODY = {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "defaultTtl": 77}
TEXT = {"query": "SELECT * FROM c"}
BODIES: dict[Operation, Any] = {
    Operation.CREATE_DATABASE: {"id": "new", **TEXT},
    Operation.CREATE_CONTAINER: {"id": "new", **CONTAINER_BODY, **TEXT},
    Operation.REPLACE_CONTAINER: {"id": "c", **CONTAINER_BODY},
    Operation.CREATE_ITEM: {"id": "new", "pk": "a", **TEXT},
    Operation.UPSERT_ITEM: {"id": "1", "pk": "a", "n": 666, **TEXT},
    Operation.REPLACE_ITEM: {"id": "1", "pk": "a", "n": 666},
    Operation.PATCH_ITEM: {"operations": [{"op": "set", "path": "/n", "value": 666}]},
    Operation.RUN_BATCH: [{"operationType": "Create", "resourceBody": {"id": "new", "pk": "a"}}],
    Operation.CREATE_SCRIPT: {
        "id": "new",
        "body": "function () {}",
        "triggerType": "Pre",
        "triggerOperation": "All",
        **TEXT,
    },
    Operation.REPLACE_SCRIPT: {
        "id": "new",
        "body": "function () { return 666; }",
        "triggerType": "Pre",
        "triggerOperation": "All",
    },
    Operation.CREATE_USER: {"id": "new", **TEXT},
    Operation.REPLACE_USER: {"id": "new"},
    Operation.CREATE_PERMISSION: {
        "id": "new",
        "permissionMode": "All",
        "resource": "dbs/d/colls/c",
        **TEXT,
    },
    Operation.REPLACE_PERMISSION: {"id": "perm", "permissionMode": "All", "resource": "dbs/d/colls/c"},
    Operation.CREATE_ENCRYPTION_KEY: {"id": "new", "wrappedDataEncryptionKey": "AA==", **TEXT},
    Operation.REPLACE_ENCRYPTION_KEY: {"id": "cek", "wrappedDataEncryptionKey": "BB=="},
    Operation.REPLACE_OFFER: {"content": {"offerThroughput": 500}},
    Operation.REPLACE_THROUGHPUT: {"ru": 500},
    Operation.REDISTRIBUTE: {"ru": {"0": 400}},
    Operation.SPLIT: {},
    Operation.MERGE: {"partitions": ["1", "2"]},
    Operation.SWITCH_WORKLOAD: {"record": "values"},
    Operation.ADD_WORKLOAD: {"at": 1, "operation": "read"},
    Operation.CREATE_COPY: {"source": "d/c", "target": "d/new", "partitionKey": "/n"},
    Operation.ADD_FAULT: {"fault": "late", "delayMs": 1, "database": "nobody"},
}
"""What makes an operation change something; those that query too have a query beside it."""


class Try(NamedTuple):
    """One path and method of the code."""

    pattern: str
    method: str
    segments: list[str]
    routes: tuple[Route[Any], ...]


def tries(account: Account) -> Iterator[Try]:
    """Every path and method that the head serves, with names that exist."""
    engine = account.engine
    offer = engine.catalog.offer_of(engine.find(Kind.CONTAINER, engine.database("d"), "c").rid)
    assert offer is not None
    fault = engine.faults.live()[0].id
    names = {
        **NAMES,
        "offers": offer.rid,
        "faults": fault,
        "backups": "none",
        "workload": "records",
        "advice": "report",
    }
    names["copies"] = account.copies.all()[0].job.id
    for pattern, methods in account.head.routes.items():
        parts = pattern.split("/") if pattern else []
        segments = [names[parts[place - 1]] if part == "*" else part for place, part in enumerate(parts)]
        for method, route in methods.items():
            if pattern == "_pleiad/*":
                segments = ["_pleiad", "handover" if method == "POST" else "health"]
            yield Try(pattern, method, segments, route.routes if isinstance(route, Choice) else (route,))


def body_of(tried: Try, operation: Operation) -> Any:
    body = BODIES.get(operation, TEXT)
    if operation is Operation.REPLACE_OFFER:
        return {**body, "id": tried.segments[1], "_rid": tried.segments[1]}
    return body


async def callers(account: Account) -> dict[str, Caller]:
    """Every kind of caller; those with tokens for `c`, its key `a` and its item `1` of that key."""
    container, item = "dbs/d/colls/c", "dbs/d/colls/c/docs/1"
    tokens = {
        "read container": await account.token("rc", "Read", container),
        "all container": await account.token("ac", "All", container),
        "read key": await account.token("rk", "Read", container, ["a"]),
        "all key": await account.token("ak", "All", container, ["a"]),
        "read item": await account.token("ri", "Read", item, ["a"]),
        "all item": await account.token("ai", "All", item, ["a"]),
        "all of other": await account.token("oc", "All", "dbs/d/colls/other"),
    }
    permission = account.engine.catalog.all(Kind.PERMISSION)[-1]
    tokens["expired token"] = account.authenticator.issue(permission, ["", ""], -1)
    tokens["forged token"] = tokens["all container"].replace("sig=", "sig=A")
    return {
        "master": lambda method, segments: signed(MASTER_KEY, method, segments),
        "read-only": lambda method, segments: signed(READ_ONLY_KEY, method, segments),
        "no key": lambda method, segments: {},
        "wrong key": lambda method, segments: signed(WRONG_KEY, method, segments),
        "identity": lambda method, segments: {"authorization": identity_token()},
        "encoded identity": lambda method, segments: {"authorization": _encoded(identity_token())},
        "wrong identity": lambda method, segments: {"authorization": identity_token(WRONG_KEY)},
        "expired identity": lambda method, segments: {"authorization": identity_token(seconds=-3600)},
        **{name: holder_of(token) for name, token in tokens.items()},
    }


def _encoded(token: str) -> str:
    """Percent-encoded as a whole with small letters, as .NET and Java send it."""
    return token.replace("=", "%3d").replace("&", "%26")


def is_set(flags: dict[str, str], name: str) -> bool:
    return flags.get(name, "").strip().lower() == "true"


def operation_of(tried: Try, flags: dict[str, str]) -> Operation:
    """What the protocol says a request is."""
    is_query = is_set(flags, QUERY) or flags.get("content-type") == "application/query+json"
    if tried.pattern.endswith("/docs") and tried.method == "POST":
        if is_set(flags, PLAN):
            return Operation.PLAN_QUERY
        if is_query:
            return Operation.QUERY_ITEMS
        if is_set(flags, "x-ms-cosmos-is-batch-request"):
            return Operation.RUN_BATCH
        is_upsert = is_set(flags, "x-ms-documentdb-is-upsert")
        return Operation.UPSERT_ITEM if is_upsert else Operation.CREATE_ITEM
    if tried.pattern.endswith("/docs"):
        return Operation.READ_CHANGES if "a-im" in flags else Operation.LIST_ITEMS
    if not tried.pattern:
        return Operation.READ_ACCOUNT  # only who asks for HTML, and proves nothing, gets the page
    operations = {route.operation.word.partition("_")[0]: route.operation for route in tried.routes}
    if len(operations) == 1:
        return tried.routes[0].operation
    return operations["query" if is_query else "create"]


def test_every_operation_is_in_the_table_and_has_a_route() -> None:
    assert set(ALLOWED) == set(Operation)


async def test_every_path_and_method_is_an_operation_of_the_list(account: OpenAccount) -> None:
    async with account() as a:
        found = {route.operation for tried in tries(a) for route in tried.routes}
        assert found == set(Operation)


def harmless(operation: Operation, segments: list[str]) -> tuple[Any, list[str], dict[str, str]]:
    """A request that is let in and then fails, so that the account stays as it is."""
    headers = {"if-match": '"no version"', "x-ms-cosmos-intended-collection-rid": "no rid"}
    path = ["_pleiad", "v0", *segments[2:]] if segments[:1] == ["_pleiad"] else segments
    return b"no json", path, headers


async def test_each_caller_may_do_what_the_table_says_and_nothing_changes_otherwise(
    account: OpenAccount,
) -> None:
    async with account() as a:
        known = await callers(a)
        assert set(known) == STRANGERS | KEYS | IDENTITIES | TOKENS
        before = await a.state()
        wrong: list[str] = []
        for tried, (name, caller) in itertools.product(list(tries(a)), known.items()):
            for flags in FLAGS:
                operation = operation_of(tried, flags)
                is_allowed = name in ALLOWED[operation]
                segments, headers, body = (
                    tried.segments,
                    {KEY_HEADER: '["a"]', **flags},
                    body_of(tried, operation),
                )
                if is_allowed and operation.writes:
                    body, segments, more = harmless(operation, segments)
                    headers |= more
                answer = await a.send(tried.method, segments, caller(tried.method, segments), body, headers)
                assert answer.status != 500, answer.body
                if answer.is_refused == is_allowed:
                    wrong.append(f"{name}: {tried.method} /{tried.pattern} {flags} is {answer.status}")
            if await a.state() != before:
                wrong.append(f"{name}: {tried.method} /{tried.pattern} changed something")
                before = await a.state()
        assert wrong == []


WRITES = [
    each
    for each in Operation
    if each.writes and each not in (Operation.DELETE_CONFLICT, Operation.CREATE_BACKUP)
]
"""There are no conflicts to delete; a backup changes nothing of the account (`tests/rooms/cli/test_backup.py`)."""


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.word)
async def test_what_is_tried_would_change_something(operation: Operation, account: OpenAccount) -> None:
    """Else a refusal would prove nothing."""
    async with account() as a:
        for tried in tries(a):
            for flags in FLAGS:
                routes = [route for route in tried.routes if route.operation is operation]
                if not routes or operation_of(tried, flags) is not operation:
                    continue
                if operation is Operation.MERGE:
                    await a.as_master("POST", [*tried.segments[:-1], "split"], {})
                before = await a.state()
                headers = {KEY_HEADER: '["a"]', **flags}
                body = body_of(tried, operation) if operation in BODIES else None
                await a.as_master(tried.method, tried.segments, body, headers)
                assert await a.state() != before
                return
        raise AssertionError("no path runs it")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "get", "Post", "PROPFIND", "X"])
async def test_other_methods_are_no_operations(method: str, account: OpenAccount) -> None:
    async with account() as a:
        before = await a.state()
        served = {tried.pattern for tried in tries(a) if tried.method == method}
        for tried in (tried for tried in tries(a) if tried.pattern not in served):
            for proof in (signed(MASTER_KEY, method, tried.segments), {}):
                answer = await a.send(method, tried.segments, proof, BODIES.get(tried.routes[0].operation))
                assert answer.status == 405
        assert await a.state() == before

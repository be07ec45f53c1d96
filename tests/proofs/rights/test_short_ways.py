"""What is known already is not found out again, and nobody can tell: every operation is answered alike without it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pleiad.engine import container, items
from pleiad.engine.operation import Operation
from pleiad.engine.query import execution
from pleiad.engine.query.found import page_at_once
from pleiad.heads.nosql import key_header, queries, routes
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.point_read import PointReads
from pleiad.heads.nosql.point_write import PointWrites, Sought
from pleiad.heads.nosql.queries import KnownQueries
from pleiad.item import body
from pleiad.store.rows import Row
from pleiad.store.segments import WAIT, Waiting
from pleiad.store.sqlite.mutate import Applier
from pleiad.store.sqlite.reads import SegmentReads
from tests.proofs.rights.account import KEY_HEADER, MASTER_KEY, Account, Answer, OpenAccount, signed
from tests.proofs.rights.test_table import FLAGS, Try, body_of, operation_of, tries
from tests.waiting import until

NOW = int(time.time())
LAST = (Operation.DELETE_CONTAINER, Operation.DELETE_DATABASE)
WRITES = {
    Operation.CREATE_ITEM,
    Operation.UPSERT_ITEM,
    Operation.REPLACE_ITEM,
    Operation.PATCH_ITEM,
    Operation.DELETE_ITEM,
}
KEYS = (
    '["a"]',
    '["b"]',
    "[1]",
    "[1.0]",
    "[true]",
    "[{}]",
    '["a","b"]',
    "[]",
    "no key",
    f'["{"x" * 3000}"]',
    None,
)
OPTIONS: tuple[dict[str, str], ...] = (
    {"if-match": '"no version"'},
    {"if-none-match": "*"},
    {"x-ms-session-token": "0:-1#1"},
    {"x-ms-session-token": "0:1#999999"},
    {"x-ms-session-token": "none"},
    {"x-ms-consistency-level": "Eventual"},
    {"x-ms-consistency-level": "Strong"},
    {"x-ms-consistency-level": "none"},
    {"x-ms-cosmos-priority-level": "Low"},
    {"x-ms-cosmos-priority-level": "none"},
    {"x-ms-cosmos-intended-collection-rid": "none"},
    {"x-ms-exclude-system-properties": "true"},
    {"prefer": "return=minimal"},
    {"x-ms-cosmos-supported-serialization-formats": "CosmosBinary"},
)
ITEMS: tuple[bytes, ...] = (
    b'{"id":"n1","pk":"a","pk":"a"}',
    b'{"id":"n2","pk":"a","x":"\\u0022:"}',
    b'{"id":"n3","pk":"b"}',
    b'{"id":"n4","pk":1}',
    b'{"id":"n5","pk":true}',
    b'{"id":"n6"}',
    b'{"id":"n7","pk":"a","deep":' + b"[" * 200 + b"]" * 200 + b"}",
    b'{"id":"n8","pk":"a","text":"' + b"[{" * 200 + b'"}',
)
_VARYING = re.compile(rb'"_token":"[^"]*"|"continuation":"[^"]*"')
_OF_TIME = frozenset(
    {"x-ms-request-duration-ms", "x-ms-documentdb-query-metrics", "x-ms-continuation", "x-ms-resource-usage"}
)
_COPY = re.compile("copies/[0-9a-f]+")
"""Copies have random ids."""
_RANDOM_ETAG = re.compile(rb'"_etag":"[^,]*"')


def with_rows_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is at hand from now on."""
    at_once = SegmentReads.read_at_once

    async def read(self: SegmentReads, epk: bytes, id: str) -> Row | None:
        return at_once(self, epk, id)

    def wait(self: SegmentReads, epk: bytes, id: str) -> Waiting:
        return WAIT

    monkeypatch.setattr(SegmentReads, "read", read)
    monkeypatch.setattr(SegmentReads, "read_at_once", wait)


def without_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is at hand, remembered or seen at a glance from now on."""
    with_rows_waited_for(monkeypatch)
    monkeypatch.setattr(PointReads, "find", lambda *_: None)
    monkeypatch.setattr(PointWrites, "find", lambda *_: None)
    monkeypatch.setattr(KnownQueries, "find", lambda *_: None)
    monkeypatch.setattr(execution, "found_query", lambda *_: None)
    monkeypatch.setattr(Authenticator, "proves_master_key", lambda *_: False)
    monkeypatch.setattr(key_header, "REMEMBERED_BYTES_MAX", 0)
    monkeypatch.setattr(container, "_PLACE_CHARACTERS_MAX", -1)
    monkeypatch.setattr(body, "_is_plainly_shallow", lambda *_: False)
    monkeypatch.setattr(Applier, "_create", lambda *_: None)
    monkeypatch.setattr(routes, "MARKS", frozenset({b"x-ms-date"}))


def requests(account: Account) -> Iterator[tuple[Try, Operation, dict[str, str], Any]]:
    """Every operation with every flag, and those on items with keys and options of every kind."""
    tried_last = sorted(
        tries(account), key=lambda tried: any(route.operation in LAST for route in tried.routes)
    )
    for tried in tried_last:
        for flags in FLAGS:
            operation = operation_of(tried, flags)
            yield tried, operation, {KEY_HEADER: '["a"]', **flags}, body_of(tried, operation)
        if not tried.routes[0].operation.is_item_operation:
            continue
        operation = tried.routes[-1].operation
        for key in KEYS:
            yield tried, operation, {} if key is None else {KEY_HEADER: key}, body_of(tried, operation)
        for options in OPTIONS:
            yield tried, operation, {KEY_HEADER: '["a"]', **options}, body_of(tried, operation)
        for raw in ITEMS if tried.method == "POST" else ():
            for key in ('["a"]', "[1]", "[true]", "[{}]"):
                yield tried, operation, {KEY_HEADER: key}, raw


async def answers(account: Account, has_fault: bool) -> list[tuple[str, int, dict[str, str], bytes]]:
    said = []
    asked = list(requests(account))
    if not has_fault:
        account.engine.faults.clear()
    for tried, operation, headers, sent in asked:
        proof = signed(MASTER_KEY, tried.method, tried.segments)
        given = {"x-ms-activity-id": "one", **headers}
        # The second time much is known, and clients read without a body.
        for raw in (sent, None if tried.method == "GET" else sent):
            answer = await account.send(tried.method, tried.segments, proof, raw, given)
            path = _COPY.sub("copies/1", "/".join(tried.segments))
            shown = f"{tried.method} /{path} {headers} {sent!r:.60}"
            said.append((shown, answer.status, *_lasting(operation, answer)))
    return said


def _lasting(operation: Operation, answer: Answer) -> tuple[dict[str, str], bytes]:
    """What of an answer follows from the request alone: figures of the account and of time do not."""
    if operation.is_admin:
        return {}, b""
    headers = {name: value for name, value in answer.headers.items() if name not in _OF_TIME}
    text = _VARYING.sub(b"", answer.body)
    if operation.is_item_operation and operation is not Operation.READ_BARRIER:
        return headers, text
    headers.pop("etag", None)
    return headers, _RANDOM_ETAG.sub(b"", text)


def note_found(
    monkeypatch: pytest.MonkeyPatch,
    short_way: type[PointReads | PointWrites | KnownQueries],
    found: dict[type, bool],
    written: set[Operation],
) -> None:
    """Has it noted whether some request went a short way, and which writes did."""
    find: Any = short_way.find

    def noted(*asked: Any) -> Any:
        sought = find(*asked)
        # While there is a fault every request is looked at.
        assert sought is None or not asked[0]._desk._faults.rules
        found[short_way] = found.get(short_way, False) or sought is not None
        if isinstance(sought, Sought):
            written.add(sought.operation)
        return sought

    monkeypatch.setattr(short_way, "find", noted)


def figures(account: Account) -> list[tuple[str, int, int, float]]:
    """What the desk has counted."""
    return [
        (each.operation, each.status, each.requests, round(each.charge_ru, 2))
        for each in account.engine.traffic
    ]


@pytest.mark.parametrize("has_fault", [False, True])
async def test_every_operation_is_answered_alike_without_what_is_known_already(
    account: OpenAccount, monkeypatch: pytest.MonkeyPatch, has_fault: bool
) -> None:
    monkeypatch.setattr(time, "time", lambda: float(NOW))
    found: dict[type, bool] = {}
    written: set[Operation] = set()
    for short_way in (PointReads, PointWrites, KnownQueries):
        note_found(monkeypatch, short_way, found, written)
    async with account("short") as opened:
        short, counted = await answers(opened, has_fault), figures(opened)
    assert found[PointReads] is not has_fault
    assert has_fault or found[KnownQueries]
    assert has_fault or written == WRITES
    without_short_ways(monkeypatch)
    async with account("long") as opened:
        for one, other in zip(short, await answers(opened, has_fault), strict=True):
            assert one == other
        assert counted == figures(opened)
    assert len(short) > 1_000


async def test_a_point_read_is_answered_alike_when_its_row_has_to_be_waited_for(
    account: OpenAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(opened: Account, id: str) -> tuple[int, dict[str, str], bytes]:
        segments = ["dbs", "d", "colls", "c", "docs", id]
        headers = {"x-ms-activity-id": "one", KEY_HEADER: '["a"]'}
        answer = await opened.send("GET", segments, signed(MASTER_KEY, "GET", segments), None, headers)
        return answer.status, *_lasting(Operation.READ_ITEM, answer)

    async with account("short") as opened:
        opened.engine.faults.clear()
        at_once = [await read(opened, id) for id in ("1", "none")]
        with_rows_waited_for(monkeypatch)
        assert [await read(opened, id) for id in ("1", "none")] == at_once
        assert [status for status, _, _ in at_once] == [200, 404]


QUERIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SELECT * FROM c ORDER BY c.number", {}),
    ("SELECT * FROM c ORDER BY c.number DESC", {}),
    ("SELECT TOP 3 * FROM c WHERE c.number >= @low ORDER BY c.number", {"@low": 590}),
    ("SELECT * FROM c WHERE c.number = @n", {"@n": 7}),
    ("SELECT * FROM c WHERE c.number = @n", {"@n": "none"}),
    ("SELECT * FROM c WHERE c.number = @n", {}),
)
CROSS = {"x-ms-documentdb-query-enablecrosspartition": "true"}
QUERY_OPTIONS: tuple[dict[str, str], ...] = (
    {},
    CROSS,
    *({**CROSS, "x-ms-max-item-count": size} for size in ("1", "10", "0", "00", "-1", "-2", "ten", "1000")),
    *({**CROSS, **options} for options in OPTIONS),
    {KEY_HEADER: '["p"]'},
    {KEY_HEADER: '["q"]', "x-ms-max-item-count": "5"},
    {KEY_HEADER: "no key"},
    {KEY_HEADER: "[]"},
    {**CROSS, "x-ms-cosmos-sdk-supportedcapabilities": "1"},
    {**CROSS, "x-ms-cosmos-supported-query-features": "OrderBy", "x-ms-max-item-count": "5"},
    {**CROSS, "x-ms-documentdb-populatequerymetrics": "true"},
    {**CROSS, "x-ms-documentdb-partitionkeyrangeid": "0"},
    {**CROSS, "x-ms-continuation": "forged"},
)


async def query_answers(account: Account) -> list[tuple[Any, ...]]:
    """What each query with each option is answered with, on its first page and the one behind it."""
    segments = ["dbs", "d", "colls", "many", "docs"]
    said: list[tuple[Any, ...]] = []
    for text, parameters in QUERIES:
        listed = [{"name": name, "value": value} for name, value in parameters.items()]
        body = {"query": text, "parameters": listed}
        for options in QUERY_OPTIONS:
            headers = {"x-ms-activity-id": "one", "x-ms-documentdb-isquery": "True", **options}
            for _ in range(2):
                proof = signed(MASTER_KEY, "POST", segments)
                answer = await account.send("POST", segments, proof, body, headers)
                token = answer.headers.get("x-ms-continuation")
                lasting = _lasting(Operation.QUERY_ITEMS, answer)
                said.append((text, options, answer.status, token is None, *lasting))
                if token is None:
                    break
                headers["x-ms-continuation"] = token
    return said


async def test_a_query_that_was_asked_before_is_answered_alike_without_what_is_known_already(
    account: OpenAccount, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    found: list[bool] = []

    def noted(*asked: Any) -> Any:
        page = page_at_once(*asked)
        found.append(page is not None)
        return page

    async with account("queries") as opened:
        opened.engine.faults.clear()
        definition = {"id": "many", "partitionKey": {"paths": ["/pk"], "version": 2}}
        await opened.as_master("POST", ["dbs", "d", "colls"], definition)
        many = await opened.engine.container("d", "many")
        for number in range(600):
            raw = b'{"id":"%d","pk":"%s","number":%d}' % (number, b"pq"[number % 2 :][:1], number)
            await items.create(many, raw, ("pq"[number % 2],))
        await query_answers(opened)
        assert await until(lambda: many.index_progress_percent() == 100)
        monkeypatch.setattr(queries, "page_at_once", noted)
        before = figures(opened)
        short, between = await query_answers(opened), figures(opened)
        without_short_ways(monkeypatch)
        many.prepared.clear()
        for one, other in zip(short, await query_answers(opened), strict=True):
            assert one == other
        after = figures(opened)
    assert _grown(before, between) == _grown(between, after)
    assert any(found) is ("postgres" not in request.node.name)  # which is always waited for


def _grown(before: Any, after: Any) -> list[tuple[str, int, int, float]]:
    """What was counted meanwhile."""
    known = {figure[:2]: figure[2:] for figure in before}
    grown = []
    for operation, status, requests, ru in after:
        earlier, earlier_ru = known.get((operation, status), (0, 0.0))
        if requests != earlier:
            grown.append((operation, status, requests - earlier, round(ru - earlier_ru, 1)))
    return grown

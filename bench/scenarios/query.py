"""Queries on 100,000 items of 1 KB (20,000 in a quick run) in one physical partition, beside point reads.

Physical indexes follow the queries: the first query on a path scans, later ones find an index. So a query that
is measured with its index is warmed until it is steady, and a query that is measured as a scan asks for a path
that no query has asked for before: each round has paths of its own, all of the same distribution.

Bars:
- ``eq_10_vs_point_read``: rate of equality queries that return 10 items over the rate of point reads.
- ``orderby_top100_index_vs_scan``: time of ORDER BY with TOP 100 as a scan over its time with an index.
- ``count_range_without_bodies``: 1 when COUNT with a range filter loads no item, else 0.
- ``scan_3_part_vs_python``: items/s of a scan with a three-part filter over the same filter in Python, each
  item decoded from its JSON; or, on the same scale, over 1,000,000 items/s.
- ``read_many_1000_vs_point_reads``: time of 1,000 point reads one after the other over the time of the query
  that client libraries send for 1,000 items, all its pages.
- ``plan_share_of_query``: 5 % over the share of a cached query's time that goes into planning it.
- ``query_memory_headroom``: 300 MB over the resident memory of the server after all of this.
- ``scan_...``: million items a second of CPU time of queries that look at every item (``scan.py``).
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench import request
from bench.items import Item, items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.process import LOOPBACK, resident_mb
from bench.report import Bar, FamilyReport, line, paired_ratio
from bench.scenarios.scan import scan_bars
from bench.server import PleiadServer, pleiad_server
from bench.settings import QUICK, Settings
from pleiad.account.keys import AccountKeys, KeysInForce
from pleiad.client.connection import Answer, Connection
from pleiad.engine import items as item_operations
from pleiad.engine.desk import Desk
from pleiad.engine.engine import Engine
from pleiad.engine.query.found import found_query
from pleiad.engine.query.request import QueryRequest
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.server.http.message import Request
from pleiad.store.sqlite.store import SqliteStore

ITEMS = 100_000
ITEMS_OF_A_BUCKET = 10
READ_MANY = 1_000
QUERY_MEMORY_MB = 300
SCAN_ITEMS_PER_SECOND = 1_000_000
SCAN_TIMES_PYTHON = 4
PLAN_SHARE = 0.05

WARMUP_SECONDS = 0.3
STEADY_SECONDS_MAX = 20.0
SCAN_SECONDS_MAX = 30.0
ALONE_SECONDS_MAX = 2.0
POINT_READ_REQUESTS = 20_000
EQ_REQUESTS = 2_000
PLAN_ITEMS = 1_000
PLAN_CALLS = 500
DESCRIPTION_CHARACTERS = 270  # what the fields below leave of 1 KB

EQ = "SELECT * FROM c WHERE c.bucket = @bucket"
COUNT = "SELECT VALUE COUNT(1) FROM c WHERE c.n >= @low AND c.n < @high"
# The function keeps the filter from every index; n is never negative, so the count is the same.
COUNT_DECODED = "SELECT VALUE COUNT(1) FROM c WHERE ABS(c.n) >= @low AND ABS(c.n) < @high"
TEXTS = ("alder", "birch", "cypress", "elm", "hazel", "larch", "maple", "rowan")
LEAST = 0.9


def _order_query(path: str) -> str:
    return f"SELECT TOP 100 * FROM c ORDER BY c.{path}"


def _scan_query(number: int) -> str:
    return (
        f"SELECT VALUE c.id FROM c WHERE c.a{number} > @least AND c.part.s{number} = @text "
        f"AND ARRAY_CONTAINS(c.t{number}, @tag)"
    )


SCAN_PARAMETERS = {"@least": LEAST, "@text": "elm", "@tag": "rowan"}


def query_items(count: int, rounds: int) -> list[Item]:
    """The items of the point scenarios with fields for the queries, and about the same size."""
    source = random.Random("query")
    order = source.sample(range(count), count)
    found = []
    for item, number in zip(items("item", count), order, strict=True):
        fields = orjson.loads(item.body)
        fields["description"] = fields["description"][:DESCRIPTION_CHARACTERS]
        fields["bucket"] = number // ITEMS_OF_A_BUCKET
        fields["n"] = number
        fields["part"] = {}
        for index in range(rounds):
            fields[f"m{index}"] = source.randrange(count)
            fields[f"a{index}"] = source.random()
            fields["part"][f"s{index}"] = source.choice(TEXTS)
            fields[f"t{index}"] = source.sample(TEXTS, 2)
        found.append(Item(item.id, item.pk, orjson.dumps(fields)))
    return found


@dataclass(frozen=True, slots=True)
class _Shown:
    """The lines and bars of one part of the family."""

    lines: tuple[tuple[str, Sequence[Measure]], ...]
    bar: Bar


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Every scenario of the family on one server, the scans in this process, and their bars."""
    count = settings.items if settings == QUICK else ITEMS
    with pleiad_server() as server:
        scenario = _Queries(settings, load, server, query_items(count, settings.rounds))
        shown = (
            scenario.equality(),
            scenario.order(),
            scenario.count(),
            scenario.scan(),
            scenario.read_many(),
        )
        used_mb = resident_mb(server.pid)
    return FamilyReport(
        lines=tuple(line(name, measures) for part in shown for name, measures in part.lines),
        bars=(
            *(part.bar for part in shown),
            _plan_bar(),
            Bar(
                name="query_memory_headroom",
                ratio=QUERY_MEMORY_MB / used_mb if used_mb else 0,
                bar=1,
                meaning=f"{QUERY_MEMORY_MB} MB over resident memory after the queries ({used_mb:.0f} MB)",
            ),
            *scan_bars(count, settings.rounds),
        ),
    )


class _Queries:
    """The rounds on one server whose container ``query`` holds the items."""

    def __init__(
        self, settings: Settings, load: LoadProcess, server: PleiadServer, loaded: list[Item]
    ) -> None:
        self._settings = settings
        self._load = load
        self._server = server
        self._items = loaded
        self._link = server.create_container("bench", "query")
        # In pieces, so that neither process holds the requests of all items at once.
        for first in range(0, len(loaded), 20_000):
            server.fill(load, self._link, loaded[first : first + 20_000])

    def equality(self) -> _Shown:
        """Alternate rounds of point reads and of equality queries on an indexed path."""
        self._warm(EQ, {"@bucket": 0})
        buckets = len(self._items) // ITEMS_OF_A_BUCKET
        order = random.Random("buckets")
        queries = [
            self._query(EQ, {"@bucket": bucket}) for bucket in order.sample(range(buckets), EQ_REQUESTS)
        ]
        reads, equalities = [], []
        for number in range(self._settings.rounds):
            reads.append(self._run("query_point_read", self._point_reads(number, POINT_READ_REQUESTS)))
            equalities.append(self._run("query_eq_10", queries))
        bar = Bar(
            name="eq_10_vs_point_read",
            ratio=paired_ratio(equalities, reads),
            bar=0.4,
            meaning="indexed equality queries/s, 10 items each, over point reads/s",
        )
        return _Shown((("query_point_read", reads), ("query_eq_10", equalities)), bar)

    def order(self) -> _Shown:
        """Alternate ORDER BY on a path that was never asked for, once, and on one that has its index."""
        self._warm(_order_query("n"), {})
        indexed, scanned = [], []
        for number in range(self._settings.rounds):
            scanned.append(
                self._once("query_orderby_scan", self._query(_order_query(f"m{number}"), {}, page_items=100))
            )
            indexed.append(
                self._alone("query_orderby_index", [self._query(_order_query("n"), {}, page_items=100)])
            )
        bar = Bar(
            name="orderby_top100_index_vs_scan",
            ratio=_time_ratio(scanned, indexed),
            bar=20,
            meaning="time of ORDER BY, TOP 100 as a scan over its time with an index",
        )
        return _Shown((("query_orderby_scan", scanned), ("query_orderby_index", indexed)), bar)

    def count(self) -> _Shown:
        """COUNT over a tenth of the items by the index, and by looking at every item."""
        size = len(self._items)
        parameters = {"@low": size // 2, "@high": size // 2 + size // 10}
        answer = self._warm(COUNT, parameters)
        if answer.json()["Documents"] != [size // 10]:
            raise LoadError(f"the count is wrong: {answer.body[:200]!r}")
        metrics = dict(pair.split("=") for pair in answer.headers["x-ms-documentdb-query-metrics"].split(";"))
        loaded = int(metrics["retrievedDocumentCount"])
        counted, decoded = [], []
        for _ in range(self._settings.rounds):
            decoded.append(self._once("query_count_decoded", self._query(COUNT_DECODED, parameters)))
            counted.append(self._alone("query_count_index", [self._query(COUNT, parameters)]))
        bar = Bar(
            name="count_range_without_bodies",
            ratio=1.0 if loaded == 0 else 0.0,
            bar=1,
            meaning=f"COUNT with a range loads {loaded} items; "
            f"{_time_ratio(decoded, counted):.0f} times faster than looking at each",
        )
        return _Shown((("query_count_decoded", decoded), ("query_count_index", counted)), bar)

    def scan(self) -> _Shown:
        """A full scan with a filter of three parts, and the same filter in Python over the same items.

        The answers are checked when all rounds are over: to ask again makes the server build indexes, which would
        share its core with the scan of the next round.
        """
        scanned, ratios, rates, found = [], [], [], []
        for number in range(self._settings.rounds):
            query = self._query(_scan_query(number), SCAN_PARAMETERS, page_items=1_000)
            python_seconds, expected = _python_scan(self._items, number)
            measure = self._once("query_scan_3_part", query)
            scanned.append(measure)
            rates.append(len(self._items) / (measure.max_ms / 1000))
            ratios.append(python_seconds / (measure.max_ms / 1000))
            found.append(expected)
        for number, expected in enumerate(found):
            self._check_scan(number, expected)
        ratio = max(
            statistics.median(ratios), SCAN_TIMES_PYTHON * statistics.median(rates) / SCAN_ITEMS_PER_SECOND
        )
        bar = Bar(
            name="scan_3_part_vs_python",
            ratio=ratio,
            bar=SCAN_TIMES_PYTHON,
            meaning=f"scan with three conditions, {statistics.median(rates):,.0f} items/s, "
            f"{statistics.median(ratios):.1f} times Python over decoded items",
        )
        return _Shown((("query_scan_3_part", scanned),), bar)

    def _check_scan(self, number: int, expected: set[str]) -> None:
        """The scan gives what Python found."""
        answer = self._ask(_scan_query(number), SCAN_PARAMETERS, {"x-ms-max-item-count": "1000"})
        if set(answer.json()["Documents"]) != expected:
            raise LoadError(f"the scan gave {answer.headers['x-ms-item-count']} items, not {len(expected)}")

    def read_many(self) -> _Shown:
        """Point reads one after the other, and the pages of one query for as many items."""
        pages = self._read_many_pages()
        reads, queries = [], []
        for number in range(self._settings.rounds):
            reads.append(self._alone("query_1_point_read", self._point_reads(number, READ_MANY)))
            queries.append(self._alone("query_read_many_page", pages))
        ratio = statistics.median(
            READ_MANY * (query.rate / len(pages)) / read.rate
            for query, read in zip(queries, reads, strict=True)
        )
        bar = Bar(
            name="read_many_1000_vs_point_reads",
            ratio=ratio,
            bar=1,
            meaning=f"time of 1,000 point reads in a row over one query for 1,000 items in {len(pages)} pages",
        )
        return _Shown((("query_1_point_read", reads), ("query_read_many_page", queries)), bar)

    def _read_many_pages(self) -> list[bytes]:
        """The requests that fetch 1,000 items as client libraries do it, page after page."""
        chosen = random.Random("many").sample(self._items, READ_MANY)
        conditions: list[str] = []
        parameters: dict[str, str] = {}
        for number, item in enumerate(chosen):
            conditions.append(f"( c.id = @param_id{number} AND c.pk = @param_pk{number}0 )")
            parameters |= {f"@param_id{number}": item.id, f"@param_pk{number}0": item.pk}
        text = f"SELECT * FROM c WHERE ( {' OR '.join(conditions)} )"
        pages: list[bytes] = []
        found, token = 0, ""
        while token or not pages:
            more = {"x-ms-continuation": token} if token else {}
            pages.append(self._query(text, parameters, more))
            answer = self._ask(text, parameters, more)
            found += len(answer.json()["Documents"])
            token = answer.headers.get("x-ms-continuation", "")
        if found != READ_MANY:
            raise LoadError(f"the query for {READ_MANY} items gave {found}")
        return pages

    # -- requests ----------------------------------------------------------------------------------

    def _query(
        self,
        text: str,
        parameters: Mapping[str, Any],
        more: Mapping[str, str] | None = None,
        page_items: int = 0,
    ) -> bytes:
        """The bytes of a query request."""
        server = self._server
        fields = request.headers(server.key, "POST", "docs", self._link, request.date_text())
        # A client that sends its capabilities is left to merge what partitions count.
        del fields["x-ms-cosmos-sdk-supportedcapabilities"]
        fields |= {
            "x-ms-documentdb-isquery": "True",
            "x-ms-documentdb-query-enablecrosspartition": "True",
            **({"x-ms-max-item-count": str(page_items)} if page_items else {}),
            **(more or {}),
        }
        return request.encode("POST", f"/{self._link}/docs", server.host, fields, _body(text, parameters))

    def _ask(self, text: str, parameters: Mapping[str, Any], more: Mapping[str, str] | None = None) -> Answer:
        """One query outside the load generator, to look at its answer."""
        headers = {"x-ms-documentdb-populatequerymetrics": "True", **(more or {})}
        with Connection(f"http://{LOOPBACK}:{self._server.port}", self._server.key) as connection:
            answer = connection.query(self._link.split("/"), orjson.loads(_body(text, parameters)), headers)
        if answer.status != 200:
            raise LoadError(f"a query was answered with {answer.status}: {answer.body[:400]!r}")
        return answer

    def _warm(self, text: str, parameters: Mapping[str, Any]) -> Answer:
        """Asks until the query has its index: much faster than the first time, and steady."""
        times: list[float] = []
        deadline = time.perf_counter() + STEADY_SECONDS_MAX
        while True:
            began = time.perf_counter()
            answer = self._ask(text, parameters)
            times.append(time.perf_counter() - began)
            best = min(times)
            if best < times[0] / 3 and max(times[-3:]) < 2 * best:
                return answer
            if time.perf_counter() > deadline:
                return answer
            time.sleep(0.1)

    def _point_reads(self, number: int, count: int) -> list[bytes]:
        server, date = self._server, request.date_text(seconds_ago=number)
        chosen = random.Random(number).sample(self._items, count)
        return [
            request.read_item(server.host, server.key, self._link, item.id, item.pk, date) for item in chosen
        ]

    def _run(self, name: str, requests: list[bytes], connections: int = 0, seconds: float = 0.0) -> Measure:
        return self._load.run(
            Job(
                name=name,
                port=self._server.port,
                server_pid=self._server.pid,
                requests=requests,
                statuses=(200,),
                connections=connections or self._settings.connections,
                seconds=seconds or self._settings.seconds,
                warmup_seconds=WARMUP_SECONDS,
            )
        )

    def _alone(self, name: str, requests: list[bytes]) -> Measure:
        """A round on one connection."""
        seconds = min(self._settings.seconds, ALONE_SECONDS_MAX)
        return self._run(name, requests, connections=1, seconds=seconds)

    def _once(self, name: str, query: bytes) -> Measure:
        """One request, sent once."""
        return self._load.run(
            Job(
                name=name,
                port=self._server.port,
                server_pid=self._server.pid,
                requests=[query],
                statuses=(200,),
                connections=1,
                seconds=SCAN_SECONDS_MAX,
                warmup_seconds=0,
                repeat=False,
            )
        )


def _body(text: str, parameters: Mapping[str, Any]) -> bytes:
    values = [{"name": name, "value": value} for name, value in parameters.items()]
    return orjson.dumps({"query": text, "parameters": values})


def _time_ratio(slow: Sequence[Measure], fast: Sequence[Measure]) -> float:
    """The median of the ratios of neighbouring rounds' median times."""
    return statistics.median(a.p50_ms / b.p50_ms for a, b in zip(slow, fast, strict=True))


def _python_scan(loaded: Sequence[Item], number: int) -> tuple[float, set[str]]:
    """The seconds that the filter of a round takes in plain Python, and the ids it finds."""
    a, s, t = f"a{number}", f"s{number}", f"t{number}"
    text, tag, decode = SCAN_PARAMETERS["@text"], SCAN_PARAMETERS["@tag"], orjson.loads
    found = set()
    began = time.perf_counter()
    for item in loaded:
        fields = decode(item.body)
        if fields[a] > LEAST and fields["part"][s] == text and tag in fields[t]:
            found.add(fields["id"])
    return time.perf_counter() - began, found


# -- planning, in this process -----------------------------------------------------------------------


def _plan_bar() -> Bar:
    plan_seconds, total_seconds = asyncio.run(_plan_and_total_seconds())
    share = plan_seconds / total_seconds
    return Bar(
        name="plan_share_of_query",
        ratio=PLAN_SHARE / share,
        bar=1,
        meaning=f"5 % over planning's share of a cached equality query ({100 * share:.1f} %: "
        f"{plan_seconds * 1e6:.0f} of {total_seconds * 1e6:.0f} µs)",
    )


async def _plan_and_total_seconds() -> tuple[float, float]:
    """What planning a cached query takes, and the whole of answering it, both without the network."""
    key = "YmVuY2ggYmVuY2ggYmVuY2ggYmVuY2g="
    limits = Limits()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        engine = Engine(SqliteStore(Path(directory), durable=False), limits)
        await engine.open()
        try:
            await engine.create_database({"id": "bench"}, None)
            definition = {"id": "plan", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            await engine.create_container(engine.database("bench"), definition, None)
            container = await engine.container("bench", "plan")
            for item in query_items(PLAN_ITEMS, 1):
                await item_operations.create(container, item.body, (item.pk,))
            head = NoSqlHead(Desk(engine), Authenticator(KeysInForce(AccountKeys(key)), limits))
            total_seconds = await _answer_seconds(head, key)
            plans = []
            for number in range(PLAN_CALLS):
                asked = QueryRequest(text=EQ, parameters={"@bucket": number}, span=WHOLE, items_max=100)
                began = time.perf_counter()
                found_query(container, asked)
                plans.append(time.perf_counter() - began)
        finally:
            await engine.close()
    return statistics.median(plans), total_seconds


async def _answer_seconds(head: NoSqlHead, key: str) -> float:
    """The median time in which the head answers the query once its index is there."""
    link = "dbs/bench/colls/plan"
    fields = request.headers(key, "POST", "docs", link, request.date_text())
    fields |= {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True"}
    headers = {name.lower().encode(): value.encode() for name, value in fields.items()}
    asked = Request("POST", f"/{link}/docs".encode(), headers, _body(EQ, {"@bucket": 1}))
    times = []
    for number in range(2 * PLAN_CALLS):
        began = time.perf_counter()
        answer = await head.handle(asked)
        times.append(time.perf_counter() - began)
        if answer.status != 200:
            raise LoadError(f"a query was answered with {answer.status}: {answer.body[:400]!r}")
        if number < 5:
            await asyncio.sleep(0.2)  # the index is built meanwhile
    return statistics.median(times[PLAN_CALLS:])

"""Queries over REST: item queries in pages, and the query plan for clients that merge partitions themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

from pleiad import charge
from pleiad.engine import session
from pleiad.engine.consistency import Consistency
from pleiad.engine.container import Container
from pleiad.engine.desk import Desk
from pleiad.engine.items import Key
from pleiad.engine.query import execution
from pleiad.engine.query.found import page_at_once
from pleiad.engine.query.page import QueryPage
from pleiad.engine.query.request import TOKEN_BYTES_MAX, QueryRequest
from pleiad.engine.query.resume import resume_point
from pleiad.errors import CROSS_PARTITION_NOT_SERVABLE, PleiadError
from pleiad.heads.http import query_body
from pleiad.heads.http.query_body import query_of
from pleiad.heads.nosql import key_header, session_token
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import CONSISTENCIES, LANES, Call
from pleiad.heads.nosql.encoding import OFFER, WISH
from pleiad.heads.nosql.items import (
    MEANT,
    SCOPES,
    SESSION_TOKEN,
    container_of,
    is_confined,
    opened,
    scope,
)
from pleiad.heads.nosql.query_reports import (
    advice_header,
    index_header_v1,
    index_header_v2,
    metrics_header,
)
from pleiad.heads.nosql.render import HTTP_LINES, feed_body, items_answer, resource_answer
from pleiad.keys.hash import hash_of
from pleiad.keys.range import WHOLE, EpkRange, disjoint
from pleiad.query import Query, advice, compile_query, compile_turn
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.index_use import index_use
from pleiad.query.metrics import QueryMetrics
from pleiad.query.pace import Pace, in_turns
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Request, Response

CROSS_PARTITION = b"x-ms-documentdb-query-enablecrosspartition"
_PARALLEL = b"x-ms-documentdb-query-parallelizecrosspartitionquery"
"""Tells of the client only; it is read to be refused where it says neither yes nor no."""
_SUPPORTED_FEATURES = b"x-ms-cosmos-supported-query-features"
_CAPABILITIES = b"x-ms-cosmos-sdk-supportedcapabilities"
_MERGES_NOT = b"azsdk-go-"
"""Part of the name of the Go client, which sends its capabilities and knows no query plans."""
_MERGES_ROWS_ONLY = b"azure-cosmos-js"
"""Part of the name of the JavaScript client, which finds no end when a partition is divided while it counts."""
IS_QUERY = b"x-ms-documentdb-isquery"
_CONTINUATION = b"x-ms-continuation"
_MAX_ITEMS = b"x-ms-max-item-count"
_SIZE_DIGITS_MAX = 9
_LINK_END = b"/docs"
_TOKEN_LIMIT = b"x-ms-documentdb-responsecontinuationtokenlimitinkb"
_METRICS = b"x-ms-documentdb-populatequerymetrics"
_INDEX_METRICS = b"x-ms-cosmos-populateindexmetrics"
_INDEX_METRICS_V2 = b"x-ms-cosmos-populateindexmetrics-v2"
_ADVICE = b"x-ms-cosmos-populatequeryadvice"
_WITHOUT_PLAN = b"x-ms-cosmos-query-optimisticdirectexecute"
"""Sent by a client that asks one partition without a plan, in the hope that it has nothing to merge."""
_RESUME = "resumeFilter"
_ASKS_MORE = (
    (CONSISTENCIES - {SESSION_TOKEN})
    | LANES
    | SCOPES
    | {
        *(OFFER, WISH, b"a-im", b"x-ms-cosmos-is-query-plan-request"),
        *(_CONTINUATION, _TOKEN_LIMIT, _METRICS, _INDEX_METRICS, _INDEX_METRICS_V2, _ADVICE, _WITHOUT_PLAN),
    }
)
"""Headers that ask for another page than the first, for something else, for more, or for another form of it."""
_RISING, _FALLING = (
    ("x-ms-cosmos-query-execution-info", f'{{"reverseRidEnabled":false,"reverseIndexScan":{falls}}}')
    for falls in ("false", "true")
)
"""Whether rows with equal sort keys come by rising or by falling _rid; clients that merge go by it when they resume."""


async def query(call: Call) -> Response:
    """One page of an item query."""
    container = opened(call) or await container_of(call)
    level = call.consistency()
    text, parameters, body = await query_of(call)
    given = body.get(_RESUME)
    span = scope(call, container)
    session.check_span(call.session(level), container, span)
    request = _page_request(
        call.request.headers, text, parameters, span, call.key, is_confined(call), _page_items(call)
    )._replace(
        token=call.text(_CONTINUATION),
        resume=None if given is None else resume_point(given),
        token_bytes_max=_token_bytes_max(call),
        multiplier=level.read_multiplier,
        lane=call.lane,
    )
    call.work = request
    try:
        page = await execution.run(container, request)
    except PleiadError as error:
        if error.row is CROSS_PARTITION_NOT_SERVABLE:
            error.query_plan = await _plan(container, text, parameters, None)
        raise
    call.partitions = page.partitions
    more = [*_page_pairs(page), *await _reports(call, container, request, page)]
    feed = feed_body(container.resource.rid, "Documents", page.results, len(page.results))
    call.answer_bytes = len(feed)
    return items_answer(200, call, container, page.partitions[0], page.charge_ru, call.key, feed, more=more)


class KnownQueries:
    """The short way of a query that was asked before: a first page that the store finds at once.

    A request that the master key has signed, to a container at work, with no header that asks for anything else, needs
    neither a route nor a `Call`. `find` has every condition. Where one of them does not hold, or the page is not there
    at once, nothing has happened yet, and the request goes the long way from its start.
    """

    def __init__(self, desk: Desk, authenticator: Authenticator, known_hosts: set[bytes | None]) -> None:
        self._desk = desk
        self._authenticator = authenticator
        self._known_hosts = known_hosts

    def answer(self, request: Request) -> Response | None:
        """The answer to a request over HTTP; None where it has to go the long way."""
        began_at = perf_counter()
        sought = self.find(request)
        if sought is None:
            return None
        container, asked = sought
        page = page_at_once(container, asked, began_at)
        if page is None:
            return None
        given = request.headers.get(b"x-ms-activity-id")
        activity_id = self._desk.activity_id("" if given is None else given.strip().decode("latin-1"))
        partitions, charge_ru = page.partitions, page.charge_ru
        more = _page_pairs(page)
        told = HTTP_LINES.of_page(activity_id, began_at, container, partitions[0], charge_ru, more)
        feed = feed_body(container.resource.rid, "Documents", page.results, len(page.results))
        self._desk.count_page(container, asked.key, charge_ru, partitions, began_at)
        return Response(200, told, feed)

    def find(self, request: Request) -> tuple[Container, QueryRequest] | None:
        """The page that a request asks for, if it can be had the short way and the master key has signed it."""
        headers, path, body = request.headers, request.target, request.body
        named, size = headers.get(key_header.NAME), headers.get(_MAX_ITEMS, b"0")
        if (
            request.method != "POST"
            or not _ASKS_MORE.isdisjoint(headers)
            or headers.get(b"host") not in self._known_hosts
            or not path.endswith(_LINK_END)
            or not _is_true(headers.get(IS_QUERY))
            or len(body) > query_body.REMEMBERED_BYTES_MAX
            or (named is not None and len(named) > key_header.REMEMBERED_BYTES_MAX)
            or not (size == b"0" or (size.isdigit() and size[:1] != b"0" and len(size) <= _SIZE_DIGITS_MAX))
        ):
            return None
        engine = self._desk.engine_at_hand
        container = None if engine is None else engine.at_work.by_link.get(path[: -len(_LINK_END)])
        if engine is None or container is None or container.recording is not None:
            return None
        rid, level = container.rid_bytes, engine.consistency
        if headers.get(MEANT, rid) != rid:
            return None
        is_proved = request.proof is self._authenticator.master_proof
        try:
            if not (is_proved or self._authenticator.proves_master_key("POST", path, headers)):
                return None
            text, parameters, told = query_body.remembered(body, container.limits.item_depth)
            key = None if named is None else key_header.remembered(named)
            if key == () or _RESUME in told:
                return None
            span = WHOLE if key is None else container.span_of(key)
            if headers.get(SESSION_TOKEN):
                seen = session_token.read(headers[SESSION_TOKEN].strip().decode("latin-1"))
                if level is Consistency.SESSION and not engine.is_rolled_back:
                    session.check_span(seen, container, span)
            items_max = min(int(size), container.limits.page_items_max) or container.limits.page_items_max
            asked = _page_request(headers, text, parameters, span, key, key is not None, items_max)
        except PleiadError:
            return None  # the long way says what is wrong
        return container, asked if level.read_multiplier == 1 else asked._replace(
            multiplier=level.read_multiplier
        )


def _page_request(
    headers: Mapping[bytes, bytes],
    text: str,
    parameters: Mapping[str, Any],
    span: EpkRange,
    key: Key | None,
    is_confined: bool,
    items_max: int,
) -> QueryRequest:
    """The page that a request with these headers asks for, but for how it goes on."""
    merges = _merges_partitions(headers)
    _is_set(headers, _PARALLEL)
    has_size = _MAX_ITEMS in headers
    return QueryRequest(
        text=text,
        parameters=parameters,
        span=span,
        items_max=items_max,
        key=key or None,
        is_confined=is_confined,
        may_fan_out=_is_set(headers, CROSS_PARTITION),
        is_paged=has_size or _CONTINUATION in headers,
        ends_with_partition=merges or not has_size,
        is_sized=has_size,
        merges_values=merges and _MERGES_ROWS_ONLY not in headers.get(b"x-ms-useragent", b""),
        merges_partitions=merges,
    )


def _is_set(headers: Mapping[bytes, bytes], name: bytes) -> bool:
    """A flag that decides how partitions are asked: a word that is neither true nor false is refused."""
    flag = headers.get(name)
    if flag is None or _is_true(flag):
        return flag is not None
    if flag.strip().lower() not in (b"false", b""):
        value = flag.decode("latin-1")[:100]
        raise BAD_HEADER(name=name.decode(), value=value, hint=" It is True or False.")
    return False


def _is_true(flag: bytes | None) -> bool:
    """The flag of a header: clients write True and true."""
    return flag is not None and flag.strip().lower() == b"true"


def _page_pairs(page: QueryPage) -> list[tuple[str, str]]:
    """How many results there are, the continuation, and how rows with equal sort keys come."""
    pairs = [("x-ms-item-count", str(len(page.results)))]
    if page.token is not None:
        pairs.append(("x-ms-continuation", page.token))
    if page.is_falling is not None:
        pairs.append(_FALLING if page.is_falling else _RISING)
    return pairs


def _merges_partitions(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a client knows query plans: it says so, or it is one of those that send capabilities with every request.

    These are the Python and JavaScript clients, and the Go client, which leaves merging to the server.
    """
    if _SUPPORTED_FEATURES in headers:
        return True
    return _CAPABILITIES in headers and _MERGES_NOT not in headers.get(b"user-agent", b"")


def _token_bytes_max(call: Call) -> int:
    """How long a continuation may be: what the client can take, and never more than a header line should have."""
    value = call.text(_TOKEN_LIMIT)
    most = min(call.limits.continuation_kb * 1024, TOKEN_BYTES_MAX)
    if not value:
        return most
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and int(value) > 0):
        hint = " The continuation token limit specified is not large enough: it must be at least 1."
        raise BAD_HEADER(name=_TOKEN_LIMIT.decode(), value=value[:100], hint=hint)
    return min(most, int(value) * 1024)


def _page_items(call: Call) -> int:
    """Results on a page; a client that does not say is spared the round trips of small pages.

    Nor does one that says 0: the Java client takes the count of `TOP 0` for the size of the page.
    """
    given = call.request.headers.get(_MAX_ITEMS, b"0")
    return call.limits.page_items_max if given == b"0" else call.page_items()


async def _reports(
    call: Call, container: Container, request: QueryRequest, page: QueryPage
) -> list[tuple[str, str]]:
    """The reports on a page that a client asked for."""
    more: list[tuple[str, str]] = []
    headers = call.request.headers
    if call.flag(_WITHOUT_PLAN):
        header = await _reported(call, request, _is_left_to_clients)
        more.append(("x-ms-cosmos-query-requiresdistribution", header))
    if not (
        _METRICS in headers or _INDEX_METRICS in headers or _INDEX_METRICS_V2 in headers or _ADVICE in headers
    ):
        return more
    if call.flag(_METRICS):
        more.append(("x-ms-documentdb-query-metrics", metrics_header(_metrics(page))))
        ids = ",".join(partition.range_id for partition in page.partitions)
        parts = ";".join(f"{name}={part_ru:.4f}" for name, part_ru in page.charge.parts)
        more += [("x-pleiad-partitions-visited", ids), ("x-pleiad-charge-parts", parts)]
    wants_v1 = call.flag(_INDEX_METRICS)
    if wants_v1 or call.flag(_INDEX_METRICS_V2):
        header = await _reported(call, request, partial(_index_report, container, request, wants_v1))
        more.append(("x-ms-cosmos-index-utilization", header))
    if call.flag(_ADVICE):
        header = await _reported(
            call, request, lambda query: advice_header(advice.advice(query, request.parameters))
        )
        more.append(("x-ms-cosmos-query-advice", header))
    return more


def _is_left_to_clients(query: Query) -> str:
    """Whether pages are parts that a client has yet to merge. Told that they are not, it takes them as they come."""
    return str(query.distinct or query.plan.block.is_grouped or query.is_ranked or not query.is_per_item)


async def _reported(call: Call, request: QueryRequest, report: Callable[[Query], str]) -> str:
    """A report on the text of a query."""
    with Pace.of_request(call.limits) as pace:
        async with compile_turn(pace, request.text):
            return await pace.run(lambda: report(compile_query(request.text, call.limits)))


def _index_report(container: Container, request: QueryRequest, is_v1: bool, query: Query) -> str:
    key_paths = container.key.path_steps if request.key else ()
    indexing = container.definition.indexing
    use = index_use(query.plan, request.parameters, indexing, container.computed_names, key_paths)
    return index_header_v1(use) if is_v1 else index_header_v2(use)


def _metrics(page: QueryPage) -> QueryMetrics:
    tally = page.tally
    return QueryMetrics.of_page(
        prepared_ms=page.prepared_ms,
        run_ms=page.milliseconds,
        loaded=tally.items_loaded,
        loaded_bytes=tally.bytes_loaded,
        output=len(page.results),
        output_bytes=tally.bytes_returned,
    )


async def plan(call: Call) -> Response:
    """How a client would run the query itself, partition by partition."""
    container = await container_of(call)
    text, parameters, _ = await query_of(call)
    given = call.text(_SUPPORTED_FEATURES)
    features = [name.strip() for name in given.split(",")] if given else None
    document = await _plan(container, text, parameters, features)
    return resource_answer(200, call, charge.metadata_read(), document)


async def _plan(
    container: Container, text: str, parameters: dict[str, Any], features: list[str] | None
) -> dict[str, Any]:
    with Pace.of_request(container.limits) as pace:
        async with compile_turn(pace, text):
            return await pace.run(_planned, container, text, parameters, features, pace)


def _planned(
    container: Container, text: str, parameters: dict[str, Any], features: list[str] | None, pace: Pace
) -> dict[str, Any]:
    def ranges(keys: list[tuple[Any, ...]] | None) -> list[dict[str, Any]]:
        if keys is None:
            return [_range("", "FF", False)]
        if not keys:
            return [_range("", "", True)]
        levels, points, spans = container.key.levels, set[EpkRange](), list[EpkRange]()
        for key in in_turns(keys):
            spans.append(container.span_of(key))
            if len(key) == levels:
                points.add(spans[-1])
        found = []
        for span in in_turns(disjoint(spans)):
            low, high = (hash_of(end, container.key).hex().upper() for end in (span.min, span.max))
            is_point = span in points
            found.append(_range(low, low if is_point else high, is_point))
        return found

    query = compile_query(text, container.limits, parameters)
    query.execution(parameters, container.query_context(pace))
    return gateway_plan(
        query,
        parameters,
        container.key.path_steps,
        ranges,
        features=features,
        vector_policy=container.definition.properties.get("vectorEmbeddingPolicy"),
        is_planar=container.is_planar,
    )


def _range(low: str, high: str, is_point: bool) -> dict[str, Any]:
    return {"min": low, "max": high, "isMinInclusive": True, "isMaxInclusive": is_point}

"""Queries over REST: item queries in pages, and the query plan for clients that merge partitions themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pleiad import charge
from pleiad.engine import session
from pleiad.engine.container import Container
from pleiad.engine.query import execution
from pleiad.engine.query.execution import QueryPage
from pleiad.engine.query.job import TOKEN_BYTES_MAX, QueryRequest
from pleiad.engine.query.resume import resume_point
from pleiad.errors import CROSS_PARTITION_NOT_SERVABLE, PleiadError
from pleiad.heads.http.query_body import query_of
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of, is_confined, opened, scope
from pleiad.heads.nosql.query_reports import (
    advice_header,
    index_header_v1,
    index_header_v2,
    metrics_header,
)
from pleiad.heads.nosql.render import feed_body, items_answer, resource_answer
from pleiad.keys.hash import hash_of
from pleiad.keys.range import disjoint
from pleiad.query import Query, advice, compile_query, compile_turn
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.index_use import index_use
from pleiad.query.metrics import QueryMetrics
from pleiad.query.pace import Pace
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response

CROSS_PARTITION = b"x-ms-documentdb-query-enablecrosspartition"
_SUPPORTED_FEATURES = b"x-ms-cosmos-supported-query-features"
_CAPABILITIES = b"x-ms-cosmos-sdk-supportedcapabilities"
_MERGES_NOT = b"azsdk-go-"
"""Part of the name of the Go client, which sends its capabilities and knows no query plans."""
_MERGES_ROWS_ONLY = "azure-cosmos-js"
"""Part of the name of the JavaScript client, which finds no end when a partition is divided while it counts."""
_MAX_ITEMS = b"x-ms-max-item-count"
_TOKEN_LIMIT = b"x-ms-documentdb-responsecontinuationtokenlimitinkb"
_METRICS = b"x-ms-documentdb-populatequerymetrics"
_INDEX_METRICS = b"x-ms-cosmos-populateindexmetrics"
_INDEX_METRICS_V2 = b"x-ms-cosmos-populateindexmetrics-v2"
_ADVICE = b"x-ms-cosmos-populatequeryadvice"
_RESUME = "resumeFilter"
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
    merges = _merges_partitions(call)
    has_size = _MAX_ITEMS in call.request.headers
    request = QueryRequest(
        text=text,
        parameters=parameters,
        span=span,
        key=call.key or None,
        is_confined=is_confined(call),
        may_fan_out=call.flag(CROSS_PARTITION),
        is_paged=has_size or b"x-ms-continuation" in call.request.headers,
        ends_with_partition=merges or not has_size,
        is_sized=has_size,
        merges_partitions=merges,
        merges_values=merges and _MERGES_ROWS_ONLY not in call.text(b"x-ms-useragent"),
        items_max=_page_items(call),
        token=call.text(b"x-ms-continuation"),
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
    more = [
        ("x-ms-item-count", str(len(page.results))),
        *await _extra_headers(call, container, request, page),
    ]
    feed = feed_body(container.resource.rid, "Documents", page.results, len(page.results))
    call.answer_bytes = len(feed)
    return items_answer(200, call, container, page.partitions[0], page.charge_ru, call.key, feed, more=more)


def _merges_partitions(call: Call) -> bool:
    """Whether a client knows query plans: it says so, or it is one of those that send capabilities with every request.

    These are the Python and JavaScript clients, and the Go client, which leaves merging to the server.
    """
    headers = call.request.headers
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
    """Results on a page; a client that does not say is spared the round trips of small pages."""
    return call.page_items() if _MAX_ITEMS in call.request.headers else call.limits.page_items_max


async def _extra_headers(
    call: Call, container: Container, request: QueryRequest, page: QueryPage
) -> list[tuple[str, str]]:
    """The continuation, how rows with equal sort keys come, and the reports a client asked for."""
    more = [] if page.token is None else [("x-ms-continuation", page.token)]
    if page.is_falling is not None:
        more.append(_FALLING if page.is_falling else _RISING)
    headers = call.request.headers
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
        points = {container.span_of(key) for key in keys if len(key) == container.key.levels}
        found = []
        for span in disjoint(container.span_of(key) for key in keys):
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

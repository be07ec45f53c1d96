"""What the metadata operations share: throughput headers, and feeds that are listed or queried in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import orjson

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput, from_autoscale_settings
from pleiad.engine.pages.feed import MetadataPageState, opened
from pleiad.engine.seal import fingerprint
from pleiad.heads.http.query_body import query_of
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.render import feed_body, resource_answer
from pleiad.heads.nosql.resource_json import FEEDS, to_json
from pleiad.query import QueryContext, compile_query, compile_turn
from pleiad.query.measure import rendered
from pleiad.query.pace import Pace
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response

_MANUAL = b"x-ms-offer-throughput"
_AUTOSCALE = b"x-ms-cosmos-offer-autopilot-settings"
_DIGITS_MAX = 9


def throughput_of(call: Call) -> Throughput | None:
    """The throughput a create request asks for."""
    manual, autoscale = call.text(_MANUAL), call.text(_AUTOSCALE)
    if manual and autoscale:
        raise errors.BAD_REQUEST(
            reason="Throughput is either manual or autoscale: the request has headers for both."
        )
    if autoscale:
        try:
            return from_autoscale_settings(orjson.loads(autoscale))
        except orjson.JSONDecodeError:
            raise BAD_HEADER(name=_AUTOSCALE.decode(), value=autoscale, hint=" It must be JSON.") from None
    if not manual:
        return None
    if not manual.isascii() or not manual.isdigit() or len(manual) > _DIGITS_MAX:
        raise BAD_HEADER(name=_MANUAL.decode(), value=manual[:100], hint=" It must be a whole number.")
    return Throughput(int(manual))


def scripts_kept(call: Call, container_rid: str) -> tuple[str, str]:
    """How many scripts of each kind a container may have, and how many it has, as quota headers say it."""
    catalog, limits = call.engine.catalog, call.limits
    kinds = (Kind.USER_DEFINED_FUNCTION, Kind.STORED_PROCEDURE, Kind.TRIGGER)
    functions, procedures, triggers = (len(catalog.children(kind, container_rid)) for kind in kinds)
    quota = (
        f"functions={limits.user_defined_functions};storedProcedures={limits.stored_procedures};"
        f"triggers={limits.triggers};"
    )
    return quota, f"functions={functions};storedProcedures={procedures};triggers={triggers};"


async def feed_answer(
    call: Call,
    kind: Kind,
    parent_rid: str,
    resources: Iterable[Resource],
    render: Callable[[Resource], dict[str, Any]] | None = None,
) -> Response:
    """A page of a metadata feed: everything under a parent, or what a query selects of it."""
    show = render or partial(to_json, call.engine.catalog)
    values: list[Any] = [show(resource) for resource in resources]
    mark = fingerprint("metadata", kind, parent_rid, call.request.body if call.method == "POST" else None)
    cost = charge.metadata_read()
    with Pace.of_request(call.limits) as pace:
        if call.method == "POST":
            values = await _selected(call, values, pace)
            cost += charge.evaluation(pace.steps)
        start = _offset(call, mark)
        texts = await pace.run(_texts_of_page, call, values[start : start + call.page_items()], pace)
    extra = {"x_ms_item_count": str(len(texts))}
    if start + len(texts) < len(values):
        state = MetadataPageState(start + len(texts))
        extra["x_ms_continuation"] = call.engine.seal.encode(mark, state.to_state())
    answer = resource_answer(200, call, cost, None, **extra)
    return Response(200, answer.headers, feed_body(parent_rid, FEEDS[kind], texts, len(texts)))


async def _selected(call: Call, values: list[Any], pace: Pace) -> list[Any]:
    """What a query selects of the resources."""
    text, parameters, _ = await query_of(call)
    async with compile_turn(pace, text):
        query = await pace.run(compile_query, text, call.limits)
        context = QueryContext(limits=call.limits, pace=pace)
        execution = await pace.run(query.execution, parameters, context)
    return await pace.run(execution.run, values)


def _texts_of_page(call: Call, values: list[Any], pace: Pace) -> list[bytes]:
    """The texts of as many values as fit an answer, one at least."""
    texts: list[bytes] = []
    room_bytes = call.limits.response_bytes
    for value in values:
        text = rendered(value, pace)
        room_bytes -= len(text)
        if texts and room_bytes < 0:
            break
        texts.append(text)
    return texts


def _offset(call: Call, mark: int) -> int:
    token = call.text(b"x-ms-continuation")
    return opened(call.engine.seal, token, mark, MetadataPageState).given if token else 0

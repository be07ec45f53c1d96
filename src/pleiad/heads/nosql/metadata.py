"""What the metadata operations share: throughput headers, and feeds that are listed or queried in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput, from_autoscale_settings
from pleiad.engine.token import fingerprint, whole_number
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.render import resource_answer
from pleiad.item.numbers import has_double, shortest
from pleiad.query import QueryContext, compile_query
from pleiad.query.parameters import parameter_values
from pleiad.server.message import Response

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
            raise errors.BAD_HEADER(
                name=_AUTOSCALE.decode(), value=autoscale, hint=" It must be JSON."
            ) from None
    if not manual:
        return None
    if not manual.isascii() or not manual.isdigit() or len(manual) > _DIGITS_MAX:
        raise errors.BAD_HEADER(name=_MANUAL.decode(), value=manual[:100], hint=" It must be a whole number.")
    return Throughput(int(manual))


def query_of(call: Call) -> tuple[str, dict[str, Any]]:
    """The text and the parameters of a query request."""
    return query_parts(call.json_object())


def query_parts(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text and the parameters in the body of a query request."""
    text = body.get("query")
    if not isinstance(text, str):
        raise errors.BAD_REQUEST(reason="A query request needs a text 'query'.")
    parameters = body.get("parameters") or []
    if not isinstance(parameters, list):
        raise errors.BAD_REQUEST(reason="'parameters' must be a list of objects with 'name' and 'value'.")
    for parameter in parameters:
        if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str):
            raise errors.BAD_REQUEST(reason="Each parameter needs a 'name' such as @id.")
    values = parameter_values(parameters)
    return text, {name: shortest(value) if has_double(value) else value for name, value in values.items()}


def feed_answer(
    call: Call,
    kind: Kind,
    parent_rid: str,
    resources: Iterable[Resource],
    render: Callable[[Resource], dict[str, Any]] = Resource.to_json,
) -> Response:
    """A page of a metadata feed: everything under a parent, or what a query selects of it."""
    values: list[Any] = [render(resource) for resource in resources]
    mark = fingerprint("metadata", kind, parent_rid, call.request.body if call.method == "POST" else None)
    if call.method == "POST":
        text, parameters = query_of(call)
        values = compile_query(text, call.limits).run(values, parameters, QueryContext(limits=call.limits))
    start = _offset(call, mark)
    page = values[start : start + call.page_items()]
    extra = {"x_ms_item_count": str(len(page))}
    if start + len(page) < len(values):
        extra["x_ms_continuation"] = call.engine.seal.encode(mark, {"c": start + len(page)})
    body = {"_rid": parent_rid, kind.feed: page, "_count": len(page)}
    return resource_answer(200, call, charge.metadata_read(), body, **extra)


def _offset(call: Call, mark: int) -> int:
    token = call.text(b"x-ms-continuation")
    return whole_number(call.engine.seal.decode(token, mark), "c", token) if token else 0

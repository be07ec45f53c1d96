"""A query as the body of a request has it: its text, and its parameters by name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pleiad import errors
from pleiad.engine.beside import beside
from pleiad.heads.http.call import HttpCall, json_object_of
from pleiad.item.numbers import has_double, shortest
from pleiad.query.bind.parameters import parameter_values

REMEMBERED_BYTES_MAX = 2_048
"""Longer bodies are read each time, so that what is remembered has a bound."""


class AskedQuery(NamedTuple):
    """What the body of a query request says."""

    text: str
    parameters: dict[str, Any]
    body: dict[str, Any]


async def query_of(call: HttpCall) -> AskedQuery:
    """The query in a request; its parameters may be large."""
    return await beside(len(call.request.body), lambda: _asked(call.json_object()))


@lru_cache(maxsize=2_048)
def remembered(raw: bytes, depth_max: int) -> AskedQuery:
    """The query that a short body is: clients ask the same again and again. Nobody may change what is in it."""
    return _asked(json_object_of(raw, depth_max))


def _asked(body: dict[str, Any]) -> AskedQuery:
    text = body.get("query")
    if not isinstance(text, str):
        raise errors.BAD_REQUEST(reason="A query request needs a text 'query'.")
    parameters = body.get("parameters") or []
    if not isinstance(parameters, list):
        raise errors.BAD_REQUEST(reason="'parameters' must be a list of objects with 'name' and 'value'.")
    for parameter in parameters:
        if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str):
            raise errors.BAD_REQUEST(reason="Each parameter needs a 'name' such as @id.")
    values = {
        name: shortest(value) if has_double(value) else value
        for name, value in parameter_values(parameters).items()
    }
    return AskedQuery(text, values, body)

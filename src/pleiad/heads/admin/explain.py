"""A query explained over the admin API: mistakes with their place, the way it takes, advice and indexes, as data."""

from __future__ import annotations

from functools import partial
from typing import Any

from pleiad import charge, errors
from pleiad.engine.query.explain import Explanation, explain
from pleiad.engine.query.request import QueryRequest
from pleiad.errors import PleiadError
from pleiad.heads.admin.answer import check_names, key_from_json, made_json_answer
from pleiad.heads.admin.partitions import container_of
from pleiad.heads.http.call import HttpCall
from pleiad.heads.http.query_body import query_of
from pleiad.keys.range import WHOLE
from pleiad.query import compile_turn
from pleiad.query.advice import SENTENCES
from pleiad.query.errors import Complaint, complaints_of
from pleiad.query.index_use import CompositeIndex, SingleIndex
from pleiad.query.pace import Pace
from pleiad.server.http.message import Response

_MEMBERS = frozenset({"query", "parameters", "partitionKey"})


async def read(call: HttpCall) -> Response:
    """What is to be known of a query; it is not run."""
    container = await container_of(call)
    await call.read_large_object()
    check_names(call.json_object(), _MEMBERS)
    cost = charge.metadata_read().ru
    call.container, call.charge_ru = container, cost
    text = call.json_object().get("query")
    try:
        asked = await query_of(call)
        key = key_from_json(asked.body.get("partitionKey"), "partitionKey")
        span = WHOLE if key is None else container.span_of(key)
        request = QueryRequest(
            text=asked.text,
            parameters=asked.parameters,
            span=span,
            items_max=1,
            key=key,
            is_confined=key is not None,
            multiplier=call.engine.consistency.read_multiplier,
        )
        with Pace.of_request(call.limits) as pace:
            async with compile_turn(pace, asked.text):
                found = await pace.run(partial(explain, container, request))
    except PleiadError as error:
        if error.row is not errors.QUERY_ERROR or not isinstance(text, str):
            raise
        mistakes = [_mistake(each, text) for each in complaints_of(error)]
        return made_json_answer(call, {"mistakes": mistakes}, cost)
    return made_json_answer(call, {"mistakes": [], **_explained(found)}, cost)


def _explained(found: Explanation) -> dict[str, Any]:
    use = found.indexes
    return {
        "partitions": list(found.partitions),
        "partitionCount": found.partition_count,
        "isSpread": found.is_spread,
        "reason": found.reach.value,
        "why": found.why,
        "ruPerPartition": found.partition_ru,
        "atManyPartitions": {
            "partitions": found.at_many.partitions,
            "ruMore": found.at_many.more_ru,
            "sentence": found.at_many.sentence,
        },
        "advice": [{"id": each.id, "sentence": SENTENCES[each.id]} for each in found.advice],
        "indexes": {
            "used": [*map(_index, use.utilized_single), *map(_index, use.utilized_composite)],
            "missing": [
                *({**_index(each), "impact": each.impact} for each in use.potential_single),
                *({**_index(each), "impact": "High"} for each in use.potential_composite),
            ],
        },
    }


def _index(index: SingleIndex | CompositeIndex) -> dict[str, Any]:
    is_composite = isinstance(index, CompositeIndex)
    return {
        "paths": list(index.specs) if isinstance(index, CompositeIndex) else [index.spec],
        "isComposite": is_composite,
    }


def _mistake(complaint: Complaint, text: str) -> dict[str, Any]:
    """A mistake with its place as characters from 0, and as lines and columns from 1."""
    shown: dict[str, Any] = {"code": str(complaint.code), "message": complaint.message}
    if complaint.start is None or complaint.end is None:
        return shown
    start, end = (max(0, min(each, len(text))) for each in (complaint.start, complaint.end))
    line, column = _line_and_column(text, start)
    end_line, end_column = _line_and_column(text, max(start, end))
    return {
        **shown,
        "start": start,
        "end": max(start, end),
        "line": line,
        "column": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _line_and_column(text: str, place: int) -> tuple[int, int]:
    before = text[:place]
    return before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1

"""The workload record of a container over the admin API: its switch, its state, its lines, and lines from elsewhere."""

from __future__ import annotations

import asyncio
import io

from pleiad import errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.recording import Fields, Mode
from pleiad.heads.admin.answer import check_names, json_answer, whole_parameter
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.failures import BAD_HEADER, ROUTE_NOT_FOUND
from pleiad.server.http.message import Response, render_headers
from pleiad.workload import record
from pleiad.workload.record import RecordError
from pleiad.workload.ring import Place

CONTINUATION = b"x-ms-continuation"
_RECORDS = "records"


async def read(call: HttpCall) -> Response:
    """Whether the container is recorded, and how much there is."""
    return await _state(call, _container(call))


async def switch(call: HttpCall) -> Response:
    """Has the container recorded with its values or with hashes of them, or no more."""
    container, body = _container(call), call.json_object()
    check_names(body, frozenset({"record"}))
    try:
        mode = Mode(body.get("record", ""))
    except ValueError:
        raise errors.BAD_REQUEST(reason=f"'record' must be one of {', '.join(Mode)}.") from None
    await call.engine.workload.switch(container.rid, mode)
    return await _state(call, container)


async def forget(call: HttpCall) -> Response:
    """Removes the record and the switch of the container."""
    await call.engine.workload.forget(_container(call).rid)
    return json_answer(call, None, 204)


async def lines(call: HttpCall) -> Response:
    """Lines of the record, about a megabyte; the continuation asks for the next."""
    if call.segments[7] != _RECORDS:
        raise ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])
    container, given = _container(call), call.text(CONTINUATION)
    try:
        place = Place.of(given) if given else None
    except ValueError as error:
        raise BAD_HEADER(name=CONTINUATION.decode(), value=given[:100], hint=f" {error}.") from None
    hashed = bool(whole_parameter(call, "hashed", 0, 1))
    body, behind = await call.engine.workload.read(container.rid, _name(call, container), place, hashed)
    pairs = [("Content-Type", "application/x-ndjson"), ("x-ms-activity-id", call.activity_id)]
    if behind is not None:
        pairs.append((CONTINUATION.decode(), str(behind)))
    return Response(200, render_headers(pairs), body)


async def add(call: HttpCall) -> Response:
    """Puts lines that were recorded elsewhere behind the record; all of them, or none where one is bad."""
    container = _container(call)
    try:
        records = await asyncio.to_thread(_nameless, call.request.body)
    except RecordError as error:
        raise errors.BAD_REQUEST(reason=f"The lines are no workload record: {error}.") from None
    await call.engine.workload.append(container.rid, records)
    return json_answer(call, {"added": len(records)})


def _nameless(body: bytes) -> list[Fields]:
    """The records of a body without the container that they name."""
    made = []
    for request in record.read(io.BytesIO(body)):
        fields = record.fields_of(request)
        fields.pop("container", None)
        made.append(fields)
    return made


def _container(call: HttpCall) -> Resource:
    database = call.engine.database(call.segments[3])
    return call.engine.find(Kind.CONTAINER, database, call.segments[5])


def _name(call: HttpCall, container: Resource) -> str:
    return f"{call.engine.database(call.segments[3]).id}/{container.id}"


async def _state(call: HttpCall, container: Resource) -> Response:
    state = await call.engine.workload.state(container.rid)
    answer = {
        "record": state.mode.value,
        "switched": state.is_own,
        "records": state.records,
        "bytes": state.size_bytes,
        "limitBytes": call.limits.workload_container_bytes,
        "lost": state.lost,
    }
    return json_answer(call, answer)

"""Containers over REST."""

from __future__ import annotations

from typing import Any

from pleiad import charge
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine import counted
from pleiad.heads.nosql import session_token
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.metadata import feed_answer, scripts_kept, throughput_of
from pleiad.heads.nosql.render import described, resource_answer
from pleiad.heads.nosql.resource_json import to_json
from pleiad.keys.definition import SYSTEM_KEY
from pleiad.server.http.message import Response

_FIRST_RANGE = "0"
"""The physical partitions of a new container are numbered from here."""
_VERSION = b"x-ms-version"
_KEYS_SINCE = "2018-12-31"
"""The version of the protocol from which on a container must be created with a partition key."""


async def create(call: Call) -> Response:
    database = call.engine.database(call.segments[1], owner=True)
    container = await call.engine.create_container(database, _with_key(call), throughput_of(call))
    fresh = session_token.written(_FIRST_RANGE, container.number, 0)
    extra = _sharing(call, container) | {"x_ms_session_token": fresh}
    return described(201, call, charge.metadata_write(), container, _body(call, container), **extra)


def _with_key(call: Call) -> dict[str, Any]:
    """What is to be created: before a version of the protocol demanded a partition key, no key was the system's."""
    body = call.json_object()
    if body.get("partitionKey") is None and _is_before_keys(call):
        return {**body, "partitionKey": SYSTEM_KEY.to_json()}
    return body


def _is_before_keys(call: Call) -> bool:
    return "" < call.text(_VERSION) < _KEYS_SINCE


def _body(call: Call, container: Resource) -> dict[str, Any]:
    """A container as its client knows it: one from before the system's key would take it for a key of its items."""
    body = to_json(call.engine.catalog, container)
    if _is_before_keys(call) and body["partitionKey"].get("systemKey"):
        del body["partitionKey"]
    return body


async def read(call: Call) -> Response:
    container = _find(call)
    extra = _sharing(call, container) | _standing(call, container)
    if call.flag(b"x-ms-documentdb-populatequotainfo"):
        at_work = call.engine.open_container(call.segments[1], call.segments[3])
        progress = 100 if at_work is None else at_work.index_progress_percent()
        extra["x_ms_documentdb_collection_index_transformation_progress"] = str(progress)
        extra |= await _quota(call)
    body = _body(call, container)
    if call.flag(b"x-ms-documentdb-populatepartitionstatistics"):
        body["statistics"] = await _statistics(call)
    return described(200, call, charge.metadata_read(), container, body, **extra)


async def replace(call: Call) -> Response:
    database = call.engine.database(call.segments[1], owner=True)
    container = await call.engine.replace_container(
        database, call.segments[3], call.json_object(), call.conditions.if_match
    )
    extra = _standing(call, container)
    return described(200, call, charge.metadata_write(), container, _body(call, container), **extra)


async def delete(call: Call) -> Response:
    await call.engine.delete(_find(call), call.conditions.if_match)
    return resource_answer(204, call, charge.metadata_write(), None)


async def list_or_query(call: Call) -> Response:
    database = call.engine.database(call.segments[1], owner=True)
    children = call.engine.catalog.children(Kind.CONTAINER, database.rid)
    return await feed_answer(call, Kind.CONTAINER, database.rid, children)


def _sharing(call: Call, container: Resource) -> dict[str, str]:
    """The header of a container that lives on the throughput of its database."""
    shares = call.engine.provisioning.shares_throughput(container)
    return {"x_ms_share_throughput": "true"} if shares else {}


def _standing(call: Call, container: Resource) -> dict[str, str]:
    """The session token of a container at work, of its first physical partition: a session begins with it."""
    at_work = call.engine.at_work.get(container.rid)
    if at_work is None:
        return {}
    first = at_work.map.partitions[0]
    return {"x_ms_session_token": session_token.written(first.range_id, container.number, first.lsn)}


def _find(call: Call) -> Resource:
    database = call.engine.database(call.segments[1], owner=True)
    return call.engine.find(Kind.CONTAINER, database, call.segments[3])


async def _statistics(call: Call) -> list[dict[str, Any]]:
    """The size of each physical partition."""
    container = await call.engine.container(call.segments[1], call.segments[3])
    return [
        {
            "id": str(state.partition),
            "sizeInKB": state.size_bytes // 1024,
            "documentCount": state.items,
            "partitionKeys": [],
        }
        for state in await counted.states(container)
    ]


async def _quota(call: Call) -> dict[str, str]:
    """Sizes in KB, and `documentSize` in MB, as the service reports them."""
    container = await call.engine.container(call.segments[1], call.segments[3])
    states = await counted.states(container)
    items = sum(state.items for state in states)
    size_kb = sum(state.size_bytes for state in states) // 1024
    quota, usage = scripts_kept(call, container.resource.rid)
    room_kb = call.limits.physical_partition_bytes * len(states) // 1024
    return {
        "x_ms_resource_quota": f"{quota}documentSize={room_kb // 1024};"
        f"documentsSize={room_kb};documentsCount=-1;collectionSize={room_kb};",
        "x_ms_resource_usage": f"{usage}documentSize={size_kb // 1024};"
        f"documentsSize={size_kb};documentsCount={items};collectionSize={size_kb};",
    }

"""The address call: where clients in direct mode ask for the replicas of a range, or of what is in no container.

An address has the host and port that the client asked by, so port mapping needs no setting.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from pleiad import charge, errors
from pleiad.engine.access import NOTHING, Target
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.direct import replica_path
from pleiad.heads.nosql.direct.replica_path import REPLICAS, RangeAddress
from pleiad.heads.nosql.failures import DIRECT_MODE
from pleiad.heads.nosql.grants import container_named
from pleiad.heads.nosql.render import resource_answer
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response

PATH = ["addresses"]
_RESOLVED = "$resolveFor"
_RANGES = "$partitionKeyRangeIds"
_FILTER = "$filter"
_PROTOCOL = "protocol eq rntbd"
_MASTER_ID = "M"
_LOOPBACK = "[::1]"
"""The Java client takes no address with brackets in it; the name means the same."""


async def read(call: Call) -> Response:
    """The addresses of the ranges that are asked for and are there; of the master for the feed of databases."""
    host = _reached_by(call)
    asked = _parameters(call)
    protocol = asked.get(_FILTER, _PROTOCOL).replace("+", " ").strip().lower()
    if protocol != _PROTOCOL:
        raise errors.BAD_REQUEST(reason=f"There are addresses for '{_PROTOCOL}' only.")
    segments = resolved(call)
    if segments == ["dbs"]:
        return _answer(call, host, {_MASTER_ID: None})
    if len(segments) != 5 or segments[0] != "dbs" or segments[2] != "colls":
        raise errors.BAD_REQUEST(
            reason=f"{_RESOLVED} is 'dbs', or 'dbs/<rid>/colls/<rid>/docs' for a range of a container."
        )
    ids = list(dict.fromkeys(filter(None, asked.get(_RANGES, "").split(","))))
    if not ids:
        raise errors.BAD_REQUEST(reason=f"{_RANGES} says no range whose addresses are wanted.")
    container = await call.engine.container(segments[1], segments[3], owner=False)
    there = await _live(call.engine, container, ids)
    rid = container.resource.rid
    return _answer(call, host, {range_id: RangeAddress(rid, range_id) for range_id in there})


async def refuse(call: Call) -> Response:
    """What a server says that shall not speak direct mode; any other final error would be misleading."""
    raise DIRECT_MODE()


def resolved(call: Call) -> list[str]:
    """What addresses are asked for, as a path: it is what the client signs."""
    text = _parameters(call).get(_RESOLVED, "").strip("/")
    return text.split("/") if text else []


def target(call: Call, engine: Engine) -> Target:
    """The container that addresses are asked for, which a resource token has to cover."""
    found = container_named(engine, resolved(call))
    return NOTHING if found is None else Target(found.rid)


async def _live(engine: Engine, container: Container, ids: list[str]) -> list[str]:
    """Those of the ranges that are there, after another look where another server may have made them."""
    if any(container.map.by_range_id(range_id) is None for range_id in ids):
        await engine.second_look(errors.RANGE_GONE(range=",".join(ids)))
    return [range_id for range_id in ids if container.map.by_range_id(range_id) is not None]


def _answer(call: Call, host: str, ranges: dict[str, RangeAddress | None]) -> Response:
    addresses: list[dict[str, Any]] = []
    for range_id, address in ranges.items():
        for replica in REPLICAS:
            uri = f"rntbd://{host}{replica_path.written(address, replica)}"
            addresses.append(
                {
                    "isPrimary": replica == REPLICAS[0],
                    "protocol": "rntbd",
                    "logicalUri": uri,
                    "physcialUri": uri,
                    "partitionIndex": f"{range_id}@0",
                    "partitionKeyRangeId": range_id,
                }
            )
    body = {"_rid": "", "Addresss": addresses, "_count": len(addresses)}
    return resource_answer(200, call, charge.Charge(()), body)


def _reached_by(call: Call) -> str:
    """Host and port as the client knows them, which the head has found to be this server's."""
    host = call.text(b"host")
    if not host:
        raise BAD_HEADER(
            name="Host", value="", hint=" Addresses are given by the name the server is asked by."
        )
    name, colon, port = host.rpartition(":")
    if not colon or name.count("[") != name.count("]"):
        name, port = host, ""
    return f"{'localhost' if name == _LOOPBACK else name}:{port or ('443' if call.request.secure else '80')}"


def _parameters(call: Call) -> dict[str, str]:
    """The query of the call. A plus sign in it is one: rids have them."""
    text = call.request.query.decode("latin-1").replace("+", "%2B")
    return dict(parse_qsl(text, keep_blank_values=True))

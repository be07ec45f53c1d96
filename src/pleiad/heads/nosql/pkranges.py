"""The feed of partition key ranges: how clients learn the partition map.

A client that sends back the feed's etag gets 304 until the map changes, or which ranges of it are splitting. One that
reads the feed incrementally is told only the ranges that are new since its etag, or splitting now or then and not both,
and 304 where none is: clients gather the pages up to the 304 into one map, and a range that came twice would overlap
itself there.
"""

from __future__ import annotations

from typing import Any

from pleiad import charge
from pleiad.engine.container import Container
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.render import resource_answer
from pleiad.item import rid as rids
from pleiad.partition.partition import Partition
from pleiad.server.http.message import Response

_RANGE_KIND = 5


async def list_ranges(call: Call) -> Response:
    container = await container_of(call)
    splitting = call.engine.splitting(container)
    etag = '"' + "-".join(map(str, [container.map.version, *sorted(splitting)])) + '"'
    partitions = container.map.partitions
    total_ru = sum(partition.governor.rate_ru for partition in partitions)
    if b"a-im" in call.request.headers:
        seen, was_splitting = _seen(call, container.map.version)
        changed = splitting ^ was_splitting
        partitions = [each for each in partitions if each.id >= seen or each.id in changed]
    if not partitions or call.text(b"if-none-match") == etag:
        return resource_answer(304, call, charge.metadata_read(), None, etag=etag)
    ranges = [_to_json(container, partition, total_ru, partition.id in splitting) for partition in partitions]
    body = {"_rid": container.resource.rid, "PartitionKeyRanges": ranges, "_count": len(ranges)}
    return resource_answer(
        200, call, charge.metadata_read(), body, etag=etag, x_ms_item_count=str(len(ranges))
    )


def _seen(call: Call, version: int) -> tuple[int, set[int]]:
    """The version of the map that the client has, and what was splitting then; 0 and nothing for none.

    Partitions made later have this number or a higher, and those of then a lower.
    """
    seen = call.text(b"if-none-match").strip('"').split("-")
    if not all(each.isascii() and each.isdigit() and len(each) <= len(str(version)) for each in seen):
        return 0, set()
    known, *splitting = map(int, seen)
    return (known, set(splitting)) if known <= version else (0, set())


def _to_json(
    container: Container, partition: Partition, total_ru: float, is_splitting: bool
) -> dict[str, Any]:
    resource = container.resource
    rid = rids.child_rid(container.database.number, resource.number, _RANGE_KIND, partition.id)
    low, high = partition.span.to_hex()
    return {
        "_rid": rid,
        "id": partition.range_id,
        "_etag": resource.etag,
        "minInclusive": low,
        "maxExclusive": high,
        "ridPrefix": partition.id,
        "_self": f"{container.link}pkranges/{rid}/",
        "throughputFraction": partition.governor.rate_ru / total_ru,
        "status": "splitting" if is_splitting else "online",
        "parents": [str(parent) for parent in partition.parents],
        "ownedArchivalPKRangeIds": [],
        "_ts": resource.ts,
        "lsn": partition.lsn,
    }

"""HEAD: a client that compares replicas asks how far one is until it is far enough. The one copy here always is.

Such barriers cost nothing, since the read that they belong to was charged whole. Without a place a client asks whether
there is a container, and is told as by GET, but for the body.
"""

from __future__ import annotations

from pleiad import charge
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of, is_confined, scope
from pleiad.heads.nosql.render import items_answer, owner_paths, resource_answer
from pleiad.server.http.message import Response


async def of_range(call: Call) -> Response:
    """How far the physical partition of a key or range is; of a container alone, that it is there."""
    container = await container_of(call)
    if not is_confined(call):
        resource = container.resource
        return resource_answer(
            200, call, charge.metadata_read(), None, etag=resource.etag, **owner_paths(call, resource)
        )
    partition = container.map.overlapping(scope(call, container))[0]
    return items_answer(200, call, container, partition, 0.0, None)


async def of_master(call: Call) -> Response:
    """What is in no container has no LSN."""
    return resource_answer(200, call, charge.Charge(()), None)

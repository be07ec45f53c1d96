"""Physical partitions over the admin API: where the items and the load of a container are."""

from __future__ import annotations

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.heads.admin.answer import check_names, json_answer, whole_parameter
from pleiad.heads.admin.partition_json import container_to_json, largest, load_to_json
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response

TOP_DEFAULT = 5
TOP_MAX = 100


async def read(call: HttpCall) -> Response:
    """The physical partitions of a container, its largest and its hottest logical partitions."""
    container = await container_of(call)
    hottest_count = whole_parameter(call, "hottest", TOP_DEFAULT, TOP_MAX)
    largest_count = whole_parameter(call, "largest", TOP_DEFAULT, TOP_MAX)
    answer = await container_to_json(call.engine, container, hottest_count)
    answer["largest"] = await largest(container, largest_count) if largest_count else []
    return json_answer(call, answer)


async def redistribute(call: HttpCall) -> Response:
    """Gives each physical partition RU/s of its own: `{"ru": {"0": 9000, "1": 3000}}`; null evens them out."""
    container = await container_of(call)
    body = call.json_object()
    check_names(body, frozenset({"ru"}))
    given = body.get("ru", False)
    if given is not None:
        if not isinstance(given, dict):
            raise errors.BAD_REQUEST(
                reason="'ru' must be an object with RU/s by partition id, or null for even shares."
            )
        for range_id, rate in given.items():
            if container.map.by_range_id(range_id) is None:
                raise errors.RESOURCE_NOT_FOUND(kind="physical partition", id=range_id[:100])
            if not isinstance(rate, int | float) or isinstance(rate, bool):
                raise errors.BAD_REQUEST(reason="The share of a physical partition is a number of RU/s.")
    rates = None if given is None else {int(range_id): float(rate) for range_id, rate in given.items()}
    await call.engine.offers.redistribute(container, rates)
    loads = {
        partition.range_id: load_to_json(partition.governor.snapshot())["allowed"]
        for partition in container.map.partitions
    }
    return json_answer(call, {"ru": loads})


async def container_of(call: HttpCall) -> Container:
    """The container an admin path names."""
    return await call.engine.container(call.segments[3], call.segments[5], owner=False)

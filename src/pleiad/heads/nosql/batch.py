"""Transactional batch and bulk over REST: operations in, one result for each out, in the form of the request."""

from __future__ import annotations

from pleiad import errors
from pleiad.engine import batch
from pleiad.engine.container import Container
from pleiad.heads.nosql import batch_rows, batch_text
from pleiad.heads.nosql.batch_entry import result_of
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.encoding import TEXT_ROOM
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.render import item_headers
from pleiad.partition.partition import Partition
from pleiad.server.message import Response


async def execute(call: Call) -> Response:
    """A batch when it is atomic, bulk when it is not."""
    container = await container_of(call)
    raw, limits = call.request.body, call.limits
    is_atomic = call.flag(b"x-ms-cosmos-batch-atomic")
    if is_atomic and len(raw) > limits.batch_bytes:
        raise errors.ITEM_TOO_LARGE(size=len(raw), limit=limits.batch_bytes)
    form = batch_rows if batch_rows.is_stream(raw) else batch_text
    entries = await form.read(raw, call.key, container, limits)
    operations = [entry.operation for entry in entries]
    grown_bytes = sum(len(each.body) for each in operations) - len(raw)
    if grown_bytes > 0:  # some were binary JSON
        call.grown_bytes += TEXT_ROOM.take(grown_bytes, limits)
    level = call.consistency()
    session_token = call.session_token(level)
    if is_atomic:
        answer = await batch.run_transaction(
            container, call.key, operations, session_token, level.read_multiplier, call.lane
        )
    else:
        answer = await batch.run_bulk(
            container,
            operations,
            _partition_sent_to(call, container),
            session_token,
            call.flag(b"x-ms-cosmos-batch-continue-on-error"),
            level.read_multiplier,
            call.lane,
        )
    headers = item_headers(call, container, answer.partition, answer.charge_ru)
    results = [
        result_of(entry, each, container, call.wants_minimal)
        for entry, each in zip(entries, answer.answers, strict=True)
    ]
    return Response(207 if answer.has_failure else 200, headers.encode("latin-1"), form.write(results))


def _partition_sent_to(call: Call, container: Container) -> Partition | None:
    """The physical partition a bulk request names, which must still be there."""
    range_id = call.text(b"x-ms-documentdb-partitionkeyrangeid")
    if not range_id:
        return None
    partition = container.map.by_range_id(range_id.split(",")[-1])
    if partition is None:
        raise errors.RANGE_GONE(range=range_id)
    return partition

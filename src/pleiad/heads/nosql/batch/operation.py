"""Transactional batch and bulk over REST: operations in, one result for each out, in the form of the request."""

from __future__ import annotations

from pleiad import errors
from pleiad.engine import batch
from pleiad.engine.container import Container
from pleiad.engine.recorded import BatchWork
from pleiad.heads.nosql.batch import rows as batch_rows
from pleiad.heads.nosql.batch import text as batch_text
from pleiad.heads.nosql.batch.entry import result_of
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.encoding import TEXT_ROOM
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.render import items_answer, undone_answer
from pleiad.partition.partition import Partition
from pleiad.server.http.message import Response


async def execute(call: Call) -> Response:
    """A batch when it is atomic, bulk when it is not."""
    container = await container_of(call)
    raw, limits = call.request.body, call.limits
    is_atomic = call.flag(b"x-ms-cosmos-batch-atomic")
    if len(raw) > limits.batch_bytes:
        raise errors.ITEM_TOO_LARGE(size=len(raw), limit=limits.batch_bytes)
    form = batch_rows if batch_rows.is_stream(raw) else batch_text
    entries = await form.read(raw, call.key, container, limits)
    operations = [entry.operation for entry in entries]
    call.work = BatchWork(operations, is_atomic)
    grown_bytes = max(0, sum(len(each.body) for each in operations) - len(raw))  # some were binary JSON
    with TEXT_ROOM.taken(grown_bytes, limits):
        answer = await _done(call, container, operations, is_atomic)
    call.work = BatchWork(operations, is_atomic, answer.answers)
    all_minimal = call.wants_minimal
    results = [
        result_of(entry, each, container, all_minimal)
        for entry, each in zip(entries, answer.answers, strict=True)
    ]
    has_failure = answer.has_failure
    status = 207 if has_failure or any(each.status == 304 for each in results) else 200
    body = form.write(results)
    call.answer_bytes = len(body)
    told = undone_answer if has_failure and is_atomic else items_answer
    return told(status, call, container, answer.partition, answer.charge_ru, call.key, body)


async def _done(
    call: Call, container: Container, operations: list[batch.ItemOperation], is_atomic: bool
) -> batch.BatchAnswer:
    level = call.consistency()
    seen = call.session(level)
    if is_atomic:
        return await batch.run_transaction(
            container, call.key, operations, seen, level.read_multiplier, call.lane
        )
    return await batch.run_bulk(
        container,
        operations,
        _partition_sent_to(call, container),
        seen,
        call.flag(b"x-ms-cosmos-batch-continue-on-error"),
        level.read_multiplier,
        call.lane,
    )


def _partition_sent_to(call: Call, container: Container) -> Partition | None:
    """The physical partition a bulk request names, which must still be there."""
    range_id = call.text(b"x-ms-documentdb-partitionkeyrangeid")
    if not range_id:
        return None
    partition = container.map.by_range_id(range_id.split(",")[-1])
    if partition is None:
        raise errors.RANGE_GONE(range=range_id)
    return partition

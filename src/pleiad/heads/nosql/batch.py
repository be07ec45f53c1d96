"""Transactional batch and bulk over REST: an array of operations in, an array of their results out.

The array is JSON, as all clients but one send it; the binary form of that one is refused in words. The body of each
operation goes to the engine as the exact text it has in the request, so numbers keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from pleiad import errors
from pleiad.engine import batch
from pleiad.engine.batch import Answer, BatchAnswer, Operation, OperationKind
from pleiad.engine.container import Container
from pleiad.engine.items import Conditions, Key
from pleiad.errors import PleiadError
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.render import item_headers
from pleiad.item import scan
from pleiad.item.body import check_names_unique, count_members, load
from pleiad.keys.value import parse_header, same, to_json_text
from pleiad.partition.partition import Partition
from pleiad.server.message import Response

# An item may nest as deep as its limit; it stands in an operation in an array, a patched value three deeper.
_DEPTH_AROUND_VALUE = 5
_KINDS = {kind.value: kind for kind in OperationKind}
_WITH_BODY = frozenset(
    {OperationKind.CREATE, OperationKind.UPSERT, OperationKind.REPLACE, OperationKind.PATCH}
)
_WITH_ID = frozenset({OperationKind.READ, OperationKind.REPLACE, OperationKind.PATCH, OperationKind.DELETE})
_STARTS = {kind: b'{"operationType":"%b","resourceBody":' % kind.value.encode() for kind in OperationKind}
_DONE = {
    OperationKind.CREATE: 201,
    OperationKind.UPSERT: 200,
    OperationKind.REPLACE: 200,
    OperationKind.READ: 200,
    OperationKind.PATCH: 200,
    OperationKind.DELETE: 204,
}


async def execute(call: Call) -> Response:
    """A batch when it is atomic, bulk when it is not."""
    container = await container_of(call)
    operations = _operations(call, container)
    level = call.consistency()
    session_token = call.session_token(level)
    if call.flag(b"x-ms-cosmos-batch-atomic"):
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
    body = _body(call, container, operations, answer)
    return Response(207 if answer.has_failure else 200, headers.encode("latin-1"), body)


def _partition_sent_to(call: Call, container: Container) -> Partition | None:
    """The physical partition a bulk request names, which must still be there."""
    range_id = call.text(b"x-ms-documentdb-partitionkeyrangeid")
    if not range_id:
        return None
    partition = container.map.by_range_id(range_id.split(",")[-1])
    if partition is None:
        raise errors.RANGE_GONE(range=range_id)
    return partition


# -- the request -----------------------------------------------------------------------------------


def _operations(call: Call, container: Container) -> list[Operation]:
    raw, limits = call.request.body, call.limits
    if len(raw) > limits.batch_bytes:
        raise errors.ITEM_TOO_LARGE(size=len(raw), limit=limits.batch_bytes)
    if raw[:1] and not (raw[:1].isspace() or b" " < raw[:1] < b"\x7f"):
        raise errors.BAD_REQUEST(
            reason="The batch is in the binary HybridRow form, which is not supported. Batch and bulk are "
            "supported as a JSON array of operations."
        )
    entries = load(raw)
    if not isinstance(entries, list):
        raise errors.BAD_REQUEST(reason="A batch must be a JSON array of operations.")
    if not entries:
        raise errors.BAD_REQUEST(reason="Batch request has no operations.")
    if len(entries) > limits.batch_operations:
        raise errors.BAD_REQUEST(
            reason="Batch request has more operations than what is supported. "
            f"It has {len(entries)}, the limit is {limits.batch_operations}."
        )
    check_names_unique(raw, count_members(entries, limits.item_depth + _DEPTH_AROUND_VALUE))
    texts = scan.elements(raw)
    return [
        _operation(index, entry, texts[index], call.key, container) for index, entry in enumerate(entries)
    ]


def _operation(index: int, entry: Any, text: bytes, key: Key | None, container: Container) -> Operation:
    if not isinstance(entry, dict):
        raise _invalid(index, "it must be an object with an 'operationType'.")
    given = entry.get("operationType")
    kind = _KINDS.get(given) if isinstance(given, str) else None
    if kind is None:
        raise _invalid(index, f"its 'operationType' must be one of {', '.join(_KINDS)}.")
    id, body = "", b""
    if kind in _WITH_ID:
        named = entry.get("id")
        if not isinstance(named, str) or not named:
            raise _invalid(index, f"{kind.value} needs the 'id' of an item.")
        id = named
    if kind in _WITH_BODY:
        if "resourceBody" not in entry:
            raise _invalid(index, f"{kind.value} needs a 'resourceBody'.")
        body = _body_text(kind, entry, text)
    conditions = Conditions(_etag(index, entry, "ifMatch"), _etag(index, entry, "ifNoneMatch"))
    return Operation(kind, id, body, conditions, _key(index, entry, key, container))


def _body_text(kind: OperationKind, entry: dict[str, Any], text: bytes) -> bytes:
    """The exact text of an operation's body; the short way for the form in which clients write a create."""
    start = _STARTS[kind]
    if len(entry) == 2 and text.startswith(start):
        return text[len(start) : -1]
    return next(value for name, value, _ in scan.members(text) if name == "resourceBody")


def _etag(index: int, entry: dict[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise _invalid(index, f"its '{name}' must be a string.")
    return value or None


def _key(index: int, entry: dict[str, Any], header_key: Key | None, container: Container) -> Key | None:
    """The key of one operation: its own, as the header would have it, which may not contradict the header."""
    given = entry.get("partitionKey")
    if given is None:
        return header_key
    if isinstance(given, str) and given.lstrip().startswith("["):
        key = parse_header(given)
    else:
        key = parse_header(orjson.dumps(given if isinstance(given, list) else [given]).decode())
    if header_key is not None and not same(container.full_key(key), container.full_key(header_key)):
        raise _invalid(
            index,
            f"its partition key is {to_json_text(key)}, but the whole request is for {to_json_text(header_key)}.",
        )
    return key


def _invalid(index: int, reason: str) -> PleiadError:
    return errors.BAD_REQUEST(reason=f"Operation {index} of the batch is not valid: {reason}")


# -- the answer ------------------------------------------------------------------------------------


def _body(
    call: Call, container: Container, operations: Sequence[Operation], batch_answer: BatchAnswer
) -> bytes:
    entries = [
        _entry(call, container, operation.kind, answer)
        for operation, answer in zip(operations, batch_answer.answers, strict=True)
    ]
    return b"[" + b",".join(entries) + b"]"


def _entry(call: Call, container: Container, kind: OperationKind, answer: Answer) -> bytes:
    if isinstance(answer, PleiadError):
        return _failure(answer, batch.charged_ru(answer))
    status = _DONE[kind]
    if answer.not_modified:
        status = 304
    elif answer.created:
        status = 201
    entry = b'{"statusCode":%d,"subStatusCode":0,"requestCharge":%.2f' % (status, answer.charge.ru)
    row = answer.row
    if row is None:
        return entry + b"}"
    etag = container.etag(row)
    entry += b',"eTag":' + orjson.dumps(etag)
    if answer.not_modified or (call.wants_minimal and kind is not OperationKind.READ):
        return entry + b"}"
    return entry + b',"resourceBody":' + container.render(row) + b"}"


def _failure(error: PleiadError, charge_ru: float) -> bytes:
    return orjson.dumps(
        {
            "statusCode": error.status,
            "subStatusCode": error.substatus,
            "requestCharge": charge_ru,
            "retryAfterMilliseconds": error.retry_after_ms or 0,
            "message": error.message,
        }
    )

"""A batch as a stream of HybridRow records, the form of the .NET client; its answer is one too.

One record is one operation or one result; the item in an operation may be binary JSON, the one in a result is text.
What a record may say and Pleiad cannot do is refused, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterable

from pleiad import errors
from pleiad.engine.batch import ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.items import Key
from pleiad.heads.nosql.batch.entry import Entry, Fields, Result, check_count, entry_of, error_body, invalid
from pleiad.heads.nosql.encoding import is_binary, texts_of
from pleiad.limits import Limits
from pleiad.wire import MalformedError
from pleiad.wire.hybridrow.recordio import TooManyRecordsError, is_stream, read_rows, write_rows
from pleiad.wire.hybridrow.row import Row, RowCodec
from pleiad.wire.hybridrow.schema import BATCH_OPERATION, BATCH_RESULT

_OPERATION = RowCodec(BATCH_OPERATION)
_RESULT = RowCodec(BATCH_RESULT)
_KINDS = {
    0: ItemVerb.CREATE,
    1: ItemVerb.PATCH,
    2: ItemVerb.READ,
    4: ItemVerb.DELETE,
    5: ItemVerb.REPLACE,
    20: ItemVerb.UPSERT,
}
_DOCUMENT = 2
_UNSUPPORTED = ("effectivePartitionKey", "binaryId", "timeToLiveInSeconds")

__all__ = ["is_stream", "read", "write"]


async def read(raw: bytes, key: Key | None, container: Container, limits: Limits) -> list[Entry]:
    """The operations of a request."""
    try:
        rows = [_OPERATION.read(row) for row in read_rows(raw, limits.batch_operations)]
    except TooManyRecordsError:
        raise errors.BAD_REQUEST(
            reason="Batch request has more operations than what is supported. "
            f"The limit is {limits.batch_operations}."
        ) from None
    except MalformedError as error:
        raise errors.BAD_REQUEST(reason=f"The batch is not a good HybridRow stream: {error}.") from error
    check_count(len(rows), limits.batch_operations)
    await _read_bodies(rows, limits)
    return [entry_of(index, _fields(index, row), key, container) for index, row in enumerate(rows)]


async def _read_bodies(rows: list[Row], limits: Limits) -> None:
    """Puts text in place of bodies in binary JSON, which bulk sends when the application asks for it."""
    bodies = {
        index: body
        for index, row in enumerate(rows)
        if isinstance(body := row.get("resourceBody"), bytes) and is_binary(body)
    }
    if bodies:
        texts = await texts_of(list(bodies.values()), limits)
        for index, text in zip(bodies, texts, strict=True):
            rows[index]["resourceBody"] = text


def _fields(index: int, row: Row) -> Fields:
    kind = _KINDS.get(_number(row, "operationType", -1))
    if kind is None:
        raise invalid(index, f"its operationType must be one of {', '.join(map(str, _KINDS))}.")
    if _number(row, "resourceType", _DOCUMENT) != _DOCUMENT:
        raise invalid(index, f"its resourceType must be {_DOCUMENT}, an item.")
    for name in _UNSUPPORTED:
        if name in row:
            raise invalid(index, f"its field '{name}' is not supported.")
    body = row.get("resourceBody")
    return Fields(
        kind,
        _text(row, "id") or "",
        body if isinstance(body, bytes) else None,
        _text(row, "ifMatch"),
        _text(row, "ifNoneMatch"),
        _text(row, "partitionKey"),
        row.get("minimalReturnPreference") is True,
    )


def _number(row: Row, name: str, default: int) -> int:
    value = row.get(name, default)
    return value if isinstance(value, int) else default


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) else None


def write(results: Iterable[Result]) -> bytes:
    """The answer that tells these results, one record for each."""
    return write_rows(map(_result_row, results))


def _result_row(result: Result) -> bytes:
    error = result.error
    return _RESULT.write(
        {
            "statusCode": result.status,
            "subStatusCode": result.substatus,
            "eTag": result.etag,
            "resourceBody": result.body if error is None else error_body(error),
            "retryAfterMilliseconds": None if error is None else error.retry_after_ms,
            "requestCharge": float(result.charge_ru),
        }
    )

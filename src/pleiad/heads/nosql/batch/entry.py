"""One operation of a batch and its result, whichever form the request has.

A form reads its body into `Fields`; `entry_of` checks them and makes the engine's operation; `result_of` says what a
form has to tell of its end.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from pleiad import errors
from pleiad.engine import batch
from pleiad.engine.batch import Answer, ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.items import Conditions, Key
from pleiad.errors import PleiadError
from pleiad.heads.http import key_text
from pleiad.heads.nosql.failures import code_of, message_of, substatus_of
from pleiad.keys.value import same
from pleiad.server.http.failures import status_of

_new = tuple.__new__
KINDS = {kind.value: kind for kind in ItemVerb}
_WITH_BODY = frozenset({ItemVerb.CREATE, ItemVerb.UPSERT, ItemVerb.REPLACE, ItemVerb.PATCH})
_WITH_ID = frozenset({ItemVerb.READ, ItemVerb.REPLACE, ItemVerb.PATCH, ItemVerb.DELETE})
_DONE = {
    ItemVerb.CREATE: 201,
    ItemVerb.UPSERT: 200,
    ItemVerb.REPLACE: 200,
    ItemVerb.READ: 200,
    ItemVerb.PATCH: 200,
    ItemVerb.DELETE: 204,
}


class Fields(NamedTuple):
    """What a request says of one operation; empty texts and None are absent."""

    kind: ItemVerb
    id: str
    body: bytes | None
    if_match: str | None
    if_none_match: str | None
    key: str | None
    """The operation's own partition key, as the header would have it."""
    wants_minimal: bool


class Entry(NamedTuple):
    """An operation to be done, and whether its result is wanted without the item."""

    operation: ItemOperation
    wants_minimal: bool


class Result(NamedTuple):
    """The end of one operation as clients learn it."""

    status: int
    substatus: int
    charge_ru: float
    etag: str | None = None
    body: bytes | None = None
    error: PleiadError | None = None


def invalid(index: int, reason: str) -> PleiadError:
    return errors.BAD_REQUEST(reason=f"Operation {index} of the batch is not valid: {reason}")


def check_count(count: int, limit: int) -> None:
    """Refuses a batch of no operations, and one of too many."""
    if not count:
        raise errors.BAD_REQUEST(reason="Batch request has no operations.")
    if count > limit:
        raise errors.BAD_REQUEST(
            reason="Batch request has more operations than what is supported. "
            f"It has {count}, the limit is {limit}."
        )


def entry_of(index: int, fields: Fields, header_key: Key | None, container: Container) -> Entry:
    """The operation that the fields describe, once they are complete and fit the request."""
    kind = fields.kind
    if kind in _WITH_ID and not fields.id:
        raise invalid(index, f"{kind.value} needs the 'id' of an item.")
    if kind in _WITH_BODY and fields.body is None:
        raise invalid(index, f"{kind.value} needs a 'resourceBody'.")
    operation = ItemOperation(
        kind,
        fields.id if kind in _WITH_ID else "",
        (fields.body or b"") if kind in _WITH_BODY else b"",
        Conditions(fields.if_match or None, fields.if_none_match or None),
        _key(index, fields.key, header_key, container),
    )
    return Entry(operation, fields.wants_minimal)


def _key(index: int, given: str | None, header_key: Key | None, container: Container) -> Key | None:
    """The key of one operation: its own, as the header would have it, which may not contradict the header."""
    if given is None:
        return header_key
    key = key_text.read(given)
    if header_key is not None and not same(container.full_key(key), container.full_key(header_key)):
        raise errors.BAD_REQUEST(
            reason="One or more operations within the batch request have a different partition key value than "
            f"the request. Operation {index} is the first of them."
        )
    return key


def result_of(entry: Entry, answer: Answer, container: Container, all_minimal: bool) -> Result:
    """How an operation ended; `all_minimal` is the wish of the whole request to be told no items it wrote."""
    if isinstance(answer, PleiadError):
        return Result(status_of(answer), substatus_of(answer), batch.charged_ru(answer), error=answer)
    kind = entry.operation.kind
    status = 304 if answer.not_modified else 201 if answer.created else _DONE[kind]
    row, charge_ru = answer.row, answer.charge.ru
    if row is None:
        return _new(Result, (status, 0, charge_ru, None, None, None))
    if answer.not_modified or entry.wants_minimal or (all_minimal and kind is not ItemVerb.READ):
        return _new(Result, (status, 0, charge_ru, container.etag(row), None, None))
    etag, body = container.shown(row)
    return _new(Result, (status, 0, charge_ru, etag, body, None))


def error_body(error: PleiadError) -> bytes:
    """The text that says why an operation failed."""
    return orjson.dumps({"code": code_of(error), "message": message_of(error)})

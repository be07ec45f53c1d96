"""A batch as a JSON array of operations, the form of all clients but one; its answer is an array of results.

The body of each operation goes to the engine as the exact text it has in the request, so numbers keep their digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

from pleiad import errors
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.beside import beside
from pleiad.engine.container import Container
from pleiad.engine.items import NO_CONDITIONS, Key
from pleiad.errors import PleiadError
from pleiad.heads.http import key_text
from pleiad.heads.nosql.batch.entry import KINDS, Entry, Fields, Result, check_count, entry_of, invalid
from pleiad.item import scan
from pleiad.item.body import count_members, is_plain, load, with_names_once
from pleiad.limits import Limits

# An item may nest as deep as its limit; it stands in an operation in an array, a patched value three deeper.
_DEPTH_AROUND_VALUE = 5
_BODY_LAST = re.compile(
    rb'\{"operationType":"[A-Za-z]++","partitionKey":(?:\[[^\[\]{}"\\]*+\]|\[?"[^"\\]*+"\]?),"resourceBody":'
)
"""The start of an operation with a plain key; what follows is the body, where the operation has no fourth field."""
_WHOLE_WRITES = {kind.value: kind for kind in (ItemVerb.CREATE, ItemVerb.UPSERT, ItemVerb.REPLACE)}
_PLAIN_FIELDS = frozenset({"operationType", "partitionKey", "resourceBody", "id"})
_WITH_ITEM = b'{"statusCode":%d,"subStatusCode":%d,"requestCharge":%.2f,"eTag":"\\"%b\\"","resourceBody":%b}'
"""The result of an operation that shows its item; an etag is digits between quotes."""
_STARTS = {kind: b'{"operationType":"%b","resourceBody":' % kind.value.encode() for kind in ItemVerb}


_AT_ONCE_BYTES = 192 * 1024
"""A text of no more bytes is read where it is if it is plain, in a millisecond, or three where somebody made it of
empty arrays: a thread would take that long to be given its turn, and others to get it back."""


_new = tuple.__new__


class _NotPlainError(Exception):
    """A request has more to look at than plain writes have."""


async def read(raw: bytes, key: Key | None, container: Container, limits: Limits) -> list[Entry]:
    """The operations of a request."""
    if len(raw) <= _AT_ONCE_BYTES:
        entries = _entries(raw, limits)
        writes = _plain_writes(raw, entries, key, limits)
        if writes is not None:
            return writes
        return await beside(len(raw), _looked_into, raw, entries, key, container, limits)
    return await beside(len(raw), _read, raw, key, container, limits)


def _entries(raw: bytes, limits: Limits) -> list[Any]:
    entries = load(raw)
    if not isinstance(entries, list):
        raise errors.BAD_REQUEST(reason="A batch must be a JSON array of operations.")
    check_count(len(entries), limits.batch_operations)
    return entries


def _read(raw: bytes, key: Key | None, container: Container, limits: Limits) -> list[Entry]:
    entries = _entries(raw, limits)
    return _plain_writes(raw, entries, key, limits) or _looked_into(raw, entries, key, container, limits)


def _looked_into(
    raw: bytes, entries: list[Any], key: Key | None, container: Container, limits: Limits
) -> list[Entry]:
    """The operations of any request."""
    once = with_names_once(raw, count_members(entries, limits.item_depth + _DEPTH_AROUND_VALUE))
    if once is not raw:
        _check_fields_once(entries, scan.elements(raw))
    texts = scan.elements(once)
    return [
        entry_of(index, _fields(index, entry, texts[index]), key, container)
        for index, entry in enumerate(entries)
    ]


def _plain_writes(raw: bytes, entries: list[Any], key: Key | None, limits: Limits) -> list[Entry] | None:
    """The operations of a request as most are: writes of whole items in compact text, all with the key of the request
    or each with its own.

    Of a text that is what is written for its value, the texts of its parts are what is written for theirs, and nobody
    has to look for them or to read them again. None, where there is something else to look at.
    """
    try:
        if orjson.dumps(entries) != raw:
            return None
        return [_plain_write(entry, key, limits) for entry in entries]
    except (_NotPlainError, PleiadError, orjson.JSONEncodeError):
        return None


def _plain_write(entry: Any, header_key: Key | None, limits: Limits) -> Entry:
    if entry.__class__ is not dict or not _PLAIN_FIELDS.issuperset(entry):
        raise _NotPlainError
    kind, key, value = entry.get("operationType"), entry.get("partitionKey"), entry.get("resourceBody")
    verb, id = _WHOLE_WRITES.get(kind) if kind.__class__ is str else None, entry.get("id", "")
    if verb is None or value.__class__ is not dict or id.__class__ is not str:
        raise _NotPlainError
    if verb is ItemVerb.REPLACE:
        if not id:
            raise _NotPlainError
    else:
        id = ""
    if header_key is not None:
        if "partitionKey" in entry:
            raise _NotPlainError
        own_key = header_key
    elif key.__class__ is list and len(key) == 1 and key[0].__class__ is str:
        own_key = (key[0],)
    elif key.__class__ is str:
        own_key = key_text.read(key if key.lstrip().startswith("[") else orjson.dumps([key]).decode())
    else:
        raise _NotPlainError
    body = orjson.dumps(value)
    if not is_plain(body, limits):
        raise _NotPlainError
    return _new(Entry, (_new(ItemOperation, (verb, id, body, NO_CONDITIONS, own_key, value)), False))


def _check_fields_once(entries: list[Any], texts: list[bytes]) -> None:
    """An item may name a property twice, its last value counts; an operation that names its own twice is none."""
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and len(scan.members(texts[index])) > len(entry):
            raise invalid(index, "a field occurs twice in it.")


def _fields(index: int, entry: Any, text: bytes) -> Fields:
    if not isinstance(entry, dict):
        raise invalid(index, "it must be an object with an 'operationType'.")
    given = entry.get("operationType")
    kind = KINDS.get(given) if isinstance(given, str) else None
    if kind is None:
        raise invalid(index, f"its 'operationType' must be one of {', '.join(KINDS)}.")
    id = entry.get("id")
    return Fields(
        kind,
        id if isinstance(id, str) else "",
        _body_text(kind, entry, text) if "resourceBody" in entry else None,
        _etag(index, entry, "ifMatch"),
        _etag(index, entry, "ifNoneMatch"),
        _key_text(entry.get("partitionKey")),
        entry.get("minimalReturnPreference") is True,
    )


def _body_text(kind: ItemVerb, entry: dict[str, Any], text: bytes) -> bytes:
    """The exact text of an operation's body; the short way for the forms in which clients write whole items."""
    start = _STARTS[kind]
    if len(entry) == 2 and text.startswith(start):
        return text[len(start) : -1]
    if len(entry) == 3 and (fields := _BODY_LAST.match(text)) is not None:
        return text[fields.end() : -1]
    return next(value for name, value, _ in scan.members(text) if name == "resourceBody")


def _etag(index: int, entry: dict[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(index, f"its '{name}' must be a string.")
    return value


def _key_text(given: Any) -> str | None:
    """A key as the header has it: clients send that text, or the values themselves."""
    if given is None or (isinstance(given, str) and given.lstrip().startswith("[")):
        return given
    return orjson.dumps(given if isinstance(given, list) else [given]).decode()


def write(results: Iterable[Result]) -> bytes:
    """The answer that tells these results."""
    return b"[" + b",".join(map(_result, results)) + b"]"


def _result(result: Result) -> bytes:
    if result.error is not None:
        return orjson.dumps(
            {
                "statusCode": result.status,
                "subStatusCode": result.substatus,
                "requestCharge": result.charge_ru,
                "retryAfterMilliseconds": result.error.retry_after_ms or 0,
                "message": result.error.message,
            }
        )
    status, substatus, charge_ru, etag, body, _ = result
    if etag is not None and body is not None:
        return _WITH_ITEM % (status, substatus, charge_ru, etag[1:-1].encode(), body)
    entry = b'{"statusCode":%d,"subStatusCode":%d,"requestCharge":%.2f' % (status, substatus, charge_ru)
    if etag is not None:
        entry += b',"eTag":' + orjson.dumps(etag)
    return entry + b"}"

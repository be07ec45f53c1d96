"""Item operations over REST: translate the request, call the engine, render the answer."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from pleiad import errors
from pleiad.engine import items, items_by_number, logical_delete, patching, session
from pleiad.engine.container import Container
from pleiad.engine.feed import listing
from pleiad.engine.items import ItemAnswer, Key
from pleiad.engine.reading import Reading, read_soon
from pleiad.engine.script import execution
from pleiad.engine.transaction import ItemOperation, ItemVerb
from pleiad.heads.nosql import key_header, session_token
from pleiad.heads.nosql.call import LANES, MINIMAL, Call
from pleiad.heads.nosql.failures import CONTAINER_RID_MISMATCH
from pleiad.heads.nosql.render import feed_body, items_answer
from pleiad.item import rid as rids
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.partition.governor import NORMAL
from pleiad.server.http.failures import BAD_HEADER, ROUTE_NOT_FOUND
from pleiad.server.http.message import Response

MEANT = b"x-ms-cosmos-intended-collection-rid"
SESSION_TOKEN = b"x-ms-session-token"
_DIRECTIVE = b"x-ms-indexing-directive"
_DIRECTIVES = ("", "default", "include", "exclude", "0", "1", "2")
"""By name, as most clients write them, and by number, as the Python client does."""
_DIRECTION = b"x-ms-enumeration-direction"
SCOPES = frozenset({b"x-ms-documentdb-partitionkeyrangeid", b"x-ms-start-epk", b"x-ms-end-epk"})
"""Headers that confine a request to a part of the hashes, beside that of a partition key."""
EXCLUDE_LINKS = b"x-ms-exclude-system-properties"
_PRE_TRIGGERS = b"x-ms-documentdb-pre-trigger-include"
_POST_TRIGGERS = b"x-ms-documentdb-post-trigger-include"
TRIGGERS = frozenset({_PRE_TRIGGERS, _POST_TRIGGERS, _DIRECTIVE})
"""Headers of which `names_triggers` takes note."""


def opened(call: Call) -> Container | None:
    """The container a request names, when it is at work and surely the one meant: without a wait."""
    names, headers = call.segments, call.request.headers
    container = call.engine.at_work.by_path.get((names[1], names[3]))
    meant = headers.get(MEANT)
    if container is None or (meant and meant != container.rid_bytes):
        return None
    if headers.get(SESSION_TOKEN):
        session_token.read(call.text(SESSION_TOKEN))
    return container


async def container_of(call: Call) -> Container:
    """The container a request names, if it is still the one the client means."""
    names, headers = call.segments, call.request.headers
    if headers.get(SESSION_TOKEN):
        session_token.read(call.text(SESSION_TOKEN))
    at_work = call.engine.at_work.by_path.get((names[1], names[3]))
    container = at_work or await call.engine.container(names[1], names[3])
    meant = headers.get(MEANT)
    if meant and meant.decode("latin-1") != container.resource.rid:
        raise CONTAINER_RID_MISMATCH(
            id=container.resource.id, found=container.resource.rid, given=meant.decode("latin-1")
        )
    return container


def document_number(container: Container, segments: list[str]) -> int | None:
    """The number of the document that a path by rids names; None for a path by names.

    A rid is found in its own container only: a signature of a path by rids covers no more than the last of them.
    """
    rid = segments[5]
    if segments[3] != container.resource.rid or not rids.is_rid(rid, rids.PATH_SIZES_BYTES[-1]):
        return None
    database, owner, number = rids.document_parts(rid)
    if (database, owner) != (container.database.number, container.resource.number):
        raise errors.ITEM_NOT_FOUND(id=rid)
    return number


async def item_id(call: Call, container: Container, seen: session.Session = ()) -> str:
    """The id of the item a path names, by id or by rid; a rid goes with the partition key of its item only.

    `seen` is what a reader has seen; it comes before the item, which the partition may not have yet.
    """
    number = document_number(container, call.segments)
    if number is None:
        return call.segments[5]
    row = await items_by_number.row_of_number(container, number)
    if row is None or container.epk_of(container.full_key(call.key)) != row.epk:
        raise items_by_number.missing(container, call.segments[5], call.key, seen)
    return row.id


def key_of(call: Call) -> Key | None:
    """The partition key that a request names, most often one that was named before."""
    header = call.request.headers.get(key_header.NAME, b"")
    if header and len(header) <= key_header.REMEMBERED_BYTES_MAX:
        return key_header.remembered(header)
    return call.key


def read(call: Call) -> Response | Coroutine[Any, Any, Response]:
    container, segments = opened(call), call.segments
    if container is None or segments[3] == container.resource.rid:
        return _read_after_a_look(call)
    key, answer = _begin_read(call, container, segments[5])
    if isinstance(answer, ItemAnswer):
        return _answer(304 if answer.not_modified else 200, call, container, answer, key)
    return end_read(call, container, key, answer)


async def _read_after_a_look(call: Call) -> Response:
    """The answer to a read whose container or item has to be looked for."""
    container = opened(call) or await container_of(call)
    id = await item_id(call, container, call.session(call.consistency()))
    return await end_read(call, container, *_begin_read(call, container, id))


async def end_read(call: Call, container: Container, key: Key | None, reading: Reading) -> Response:
    """The answer to a read that was begun."""
    answer = reading if isinstance(reading, ItemAnswer) else await reading
    return _answer(304 if answer.not_modified else 200, call, container, answer, key)


def _begin_read(call: Call, container: Container, id: str) -> tuple[Key | None, Reading]:
    """The partition key of a read and its answer, which may have to be waited for, by all that its headers say."""
    level = call.consistency()
    seen, multiplier = call.session(level), level.read_multiplier
    return call.key, read_soon(container, id, call.key, call.conditions, seen, multiplier, call.lane)


async def create(call: Call) -> Response:
    container = opened(call) or await container_of(call)
    if names_triggers(call):
        return await _with_triggers(call, container, ItemOperation(ItemVerb.CREATE, "", call.request.body))
    key = key_of(call)
    lane = NORMAL if LANES.isdisjoint(call.request.headers) else call.lane
    answer = await items.create(container, call.request.body, key, lane)
    return _answer(201, call, container, answer, key)


async def upsert(call: Call) -> Response:
    container = await container_of(call)
    if names_triggers(call):
        operation = ItemOperation(ItemVerb.UPSERT, "", call.request.body, call.conditions)
        return await _with_triggers(call, container, operation)
    answer = await items.upsert(container, call.request.body, call.key, call.conditions, call.lane)
    return _answer(201 if answer.created else 200, call, container, answer, call.key)


async def replace(call: Call) -> Response:
    container = await container_of(call)
    id = await item_id(call, container)
    if names_triggers(call):
        operation = ItemOperation(ItemVerb.REPLACE, id, call.request.body, call.conditions)
        return await _with_triggers(call, container, operation)
    answer = await items.replace(container, id, call.request.body, call.key, call.conditions, call.lane)
    return _answer(200, call, container, answer, call.key)


async def patch(call: Call) -> Response:
    container = await container_of(call)
    id = await item_id(call, container)
    if names_triggers(call):
        operation = ItemOperation(ItemVerb.PATCH, id, call.request.body, call.conditions)
        return await _with_triggers(call, container, operation)
    answer = await patching.patch(container, id, call.request.body, call.key, call.conditions, call.lane)
    return _answer(200, call, container, answer, call.key)


async def delete(call: Call) -> Response:
    container = await container_of(call)
    id = await item_id(call, container)
    if names_triggers(call):
        return await _with_triggers(call, container, ItemOperation(ItemVerb.DELETE, id, b"", call.conditions))
    answer = await items.delete(container, id, call.key, call.conditions, call.lane)
    return _answer(204, call, container, answer, call.key)


async def delete_partition_key(call: Call) -> Response:
    if call.segments[5] != "partitionkeydelete":
        raise ROUTE_NOT_FOUND(path="/".join(call.segments))
    container = await container_of(call)
    answer = await logical_delete.delete_partition_key(container, call.key, call.lane)
    return _answer(200, call, container, answer, call.key)


async def feed_page(call: Call) -> Response:
    """A page of all items, of one partition key, of one physical partition or of a range of hashes."""
    container = await container_of(call)
    level = call.consistency()
    span = scope(call, container)
    session.check_span(call.session(level), container, span)
    token = call.text(b"x-ms-continuation")
    is_backward = call.text(_DIRECTION).lower() == "reverse"
    page = await listing.page(
        container, span, token, call.page_items(), level.read_multiplier, call.lane, is_backward
    )
    more = [("x-ms-item-count", str(len(page.rows)))]
    if page.token is not None:
        more.append(("x-ms-continuation", page.token))
    body = feed_body(container.resource.rid, "Documents", container.render_all(page.rows), len(page.rows))
    call.answer_bytes = len(body)
    return items_answer(200, call, container, page.partition, page.charge.ru, call.key, body, more=more)


def scope(call: Call, container: Container) -> EpkRange:
    """The range of hashes a request is confined to by its key, its range id and its epk headers."""
    span = WHOLE
    if not _has_scope(call):
        return span
    range_id = call.text(b"x-ms-documentdb-partitionkeyrangeid")
    if range_id:
        partition = container.map.by_range_id(range_id.split(",")[-1])
        if partition is None:
            raise errors.RANGE_GONE(range=range_id)
        span = partition.span
    key = call.key
    if key == () and container.key.system_key:
        # How .NET names the items without a value for the system's key.
        key = container.full_key(None)
    for narrower in (call.span(), container.span_of(key) if key else None):
        if narrower is not None:
            inside = span.intersect(narrower)
            if inside is None:
                raise errors.BAD_REQUEST(
                    reason="The key range of the request lies outside its partition key range."
                )
            span = inside
    return span


def is_confined(call: Call) -> bool:
    """Whether a request names a key or a range itself."""
    if not _has_scope(call):
        return False
    return (
        bool(call.key) or bool(call.text(b"x-ms-documentdb-partitionkeyrangeid")) or call.span() is not None
    )


def _has_scope(call: Call) -> bool:
    """Whether some header may confine a request to a part of the hashes."""
    headers = call.request.headers
    return key_header.NAME in headers or not SCOPES.isdisjoint(headers)


# -- triggers --------------------------------------------------------------------------------------


def names_triggers(call: Call) -> bool:
    """Whether scripts are to run before or after an operation."""
    headers = call.request.headers
    if _DIRECTIVE in headers:
        _check_directive(call)
    return bool(headers.get(_PRE_TRIGGERS) or headers.get(_POST_TRIGGERS))


async def _with_triggers(call: Call, container: Container, operation: ItemOperation) -> Response:
    """The answer of an operation that names triggers; a post-trigger may have changed its body."""
    pre, post = trigger_names(call, _PRE_TRIGGERS), trigger_names(call, _POST_TRIGGERS)
    done = await execution.write_with_triggers(container, operation, call.key, pre, post, call.lane)
    status = 204 if operation.kind is ItemVerb.DELETE else 200
    if operation.kind is ItemVerb.CREATE or (operation.kind is ItemVerb.UPSERT and done.answer.created):
        status = 201
    response = _answer(status, call, container, done.answer, call.key)
    if done.body is None or call.wants_minimal:
        return response
    return Response(200 if status == 204 else status, response.headers, done.body)


def trigger_names(call: Call, header: bytes) -> list[str]:
    """The triggers a header names, separated by commas."""
    try:
        names = call.request.headers.get(header, b"").decode().split(",")
    except UnicodeDecodeError:
        raise BAD_HEADER(name=header.decode(), value="", hint=" It must be UTF-8.") from None
    return [name.strip() for name in names if name.strip()]


def _check_directive(call: Call) -> None:
    """Items are indexed by the policy of their container; the header of an older way is checked and needs no more."""
    directive = call.text(_DIRECTIVE)
    if directive.lower() not in _DIRECTIVES:
        raise BAD_HEADER(
            name=_DIRECTIVE.decode(), value=directive[:100], hint=" It is Default, Include or Exclude."
        )


def _without_links(text: bytes) -> bytes:
    """An item without `_self` and `_attachments`, which stand among the system properties at its end."""
    head, _, tail = text.rpartition(b'"_self":"')
    return head + tail.partition(b'",')[2].replace(b'"_attachments":"attachments/",', b"", 1)


def _answer(status: int, call: Call, container: Container, answer: ItemAnswer, key: Key | None) -> Response:
    row, partition, charge_ru = answer.row, answer.partition, answer.charge.ru
    call.work = answer
    if row is None:
        return items_answer(status, call, container, partition, charge_ru, key)
    is_minimal = call.method != "GET" and call.request.headers.get(b"prefer") == MINIMAL
    bodiless = answer.not_modified or is_minimal
    body = b"" if bodiless else container.render(row)
    if body and EXCLUDE_LINKS in call.request.headers and call.flag(EXCLUDE_LINKS):
        body = _without_links(body)
    etag = container.etag(row)
    return items_answer(status, call, container, partition, charge_ru, key, body, etag=etag, item_lsn=row.lsn)

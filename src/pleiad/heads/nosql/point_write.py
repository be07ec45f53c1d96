"""The short way of a write of one item by its partition key, which is what most writes are: create, upsert, replace,
patch and delete.

A request that the master key has signed, to a container at work, with no header that asks for anything else, needs
neither a route nor a `Call`. `find` has every condition, but for those that show when the write is begun. Where one of
them does not hold, nothing has happened yet, and the request goes the long way from its start. What is done for it is
done by the same functions as there, and what fails is a call like any from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Final, NamedTuple, NoReturn

from pleiad.engine.beside import LARGE_BYTES
from pleiad.engine.container import Container
from pleiad.engine.desk import Cut, Desk
from pleiad.engine.items import Begun, ItemAnswer, Key, begin_delete, begin_put, end_write
from pleiad.engine.operation import Operation
from pleiad.engine.patching import begin_patch
from pleiad.errors import PleiadError
from pleiad.heads.http.route import Handler
from pleiad.heads.nosql import items, key_header, session_token
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import CONDITIONS, LANES, MINIMAL, Call
from pleiad.heads.nosql.encoding import BINARY_START, OFFER, WISH
from pleiad.heads.nosql.point_read import CallOf
from pleiad.heads.nosql.render import HTTP_LINES
from pleiad.heads.nosql.routes import MARKS
from pleiad.server.http.message import Answer, ConnectionCut, Pending, Request, Response
from pleiad.store.rows import Verb

_UPSERT: Final = b"x-ms-documentdb-is-upsert"
OPTIONS = (MARKS | CONDITIONS | LANES | items.TRIGGERS | {OFFER, WISH, items.EXCLUDE_LINKS, b"date"}) - {
    _UPSERT
}
"""Headers that ask for something else, for more, or for another form of it."""
_LINK_END: Final = b"/docs"
_POSTED: Final[Mapping[bytes, Operation]] = {
    b"false": Operation.CREATE_ITEM,
    b"true": Operation.UPSERT_ITEM,
}
"""What a POST to the items of a container is, by whether it says that it may replace one."""
_OF_ITEM: Final[Mapping[str, tuple[Operation, bytes]]] = {
    "PUT": (Operation.REPLACE_ITEM, b"put"),
    "PATCH": (Operation.PATCH_ITEM, b"patch"),
    "DELETE": (Operation.DELETE_ITEM, b"delete"),
}
"""What other methods are on an item, and how they are signed."""
_HANDLERS: Final[Mapping[Operation, Handler[Call]]] = {
    Operation.CREATE_ITEM: items.create,
    Operation.UPSERT_ITEM: items.upsert,
    Operation.REPLACE_ITEM: items.replace,
    Operation.PATCH_ITEM: items.patch,
    Operation.DELETE_ITEM: items.delete,
}
METHODS: Final = ("POST", *_OF_ITEM)


class Sought(NamedTuple):
    """A write that can go the short way; the id is that of the item in its path, where it names one."""

    operation: Operation
    container: Container
    key: Key
    id: str


class _Asked(NamedTuple):
    """A write on its way."""

    request: Request
    began_at: float
    activity_id: str
    sought: Sought


class PointWrites:
    """Answers writes for which nothing has to be found out."""

    def __init__(
        self, desk: Desk, authenticator: Authenticator, known_hosts: set[bytes | None], call_of: CallOf
    ) -> None:
        self._desk = desk
        self._authenticator = authenticator
        self._known_hosts = known_hosts
        self._call_of = call_of

    def answer(self, request: Request) -> Answer | None:
        """The answer to a request over HTTP; None where it has to go the long way."""
        began_at = perf_counter()
        sought = self.find(request)
        if sought is None:
            return None
        try:
            begun = _begun(sought, request)
        except Exception:
            return None  # the long way says what is wrong
        if begun is None:
            return None
        given = request.headers.get(b"x-ms-activity-id")
        activity_id = self._desk.activity_id("" if given is None else given.strip().decode("latin-1"))
        asked = _Asked(request, began_at, activity_id, sought)
        if isinstance(begun, PleiadError):
            return self._served(asked, begun)
        commit = begun.commit
        if not isinstance(commit, asyncio.Future):
            return self._waited(asked, begun)
        self._desk.waiting_count += 1
        end = partial(self._end, asked, begun)
        return end() if commit.done() else Pending(commit, end)

    def _end(self, asked: _Asked, begun: Begun) -> Response | Coroutine[Any, Any, Response]:
        """The answer to a write whose commit has ended."""
        self._desk.waiting_count -= 1
        answer = end_write(begun)
        return self._waited(asked, begun) if answer is None else self._told(asked, answer)

    def find(self, request: Request) -> Sought | None:
        """What is to be written where, if that can be done the short way and the master key has signed it."""
        headers, path, body = request.headers, request.target, request.body
        named = headers.get(key_header.NAME)
        if (
            named is None
            or len(named) > key_header.REMEMBERED_BYTES_MAX
            or not OPTIONS.isdisjoint(headers)
            or headers.get(b"host") not in self._known_hosts
            or len(body) > LARGE_BYTES
            or body[:1] == BINARY_START
            or headers.get(b"content-type", b"").find(b"query") >= 0  # `in` makes an exception of it first
        ):
            return None
        operation: Operation | None
        verb = b""
        if request.method == "POST":
            operation, id = _POSTED.get(headers.get(_UPSERT, b"false").lower()), b""
            link = path[: -len(_LINK_END)] if path.endswith(_LINK_END) else b""
        else:
            operation, verb = _OF_ITEM[request.method]
            link, _, id = path.rpartition(b"/docs/")
            if not id or id.find(b"/") >= 0 or id.find(b"?") >= 0:
                return None
        engine = self._desk.engine_at_hand
        container = None if engine is None else engine.at_work.by_link.get(link)
        if container is None or operation is None:
            return None
        rid = container.rid_bytes
        if headers.get(items.MEANT, rid) != rid:
            return None
        try:
            if headers.get(items.SESSION_TOKEN):
                session_token.read(headers[items.SESSION_TOKEN].strip().decode("latin-1"))
            key, name = key_header.remembered(named), id.decode()
            # What proves it proves paths as they stand only, so nothing in the id is encoded.
            if not (
                request.proof is self._authenticator.master_proof
                or (
                    self._authenticator.proves_item(verb, path, headers)
                    if verb
                    else self._authenticator.proves_master_key("POST", path, headers)
                )
            ):
                return None
        except (PleiadError, UnicodeDecodeError):
            return None  # the long way says what is wrong
        return Sought(operation, container, key, name) if key else None

    async def _waited(self, asked: _Asked, begun: Begun) -> Response:
        """The answer to a write for which there is more to wait for than a commit, or which has failed."""
        desk = self._desk
        desk.waiting_count += 1
        try:
            answer = await begun.later(begun)
        except Exception as error:
            failure: Exception | None = error
        else:
            failure = None
        finally:
            desk.waiting_count -= 1
        if failure is not None:
            return await self._served(asked, failure)
        return self._told(asked, answer)

    def _told(self, asked: _Asked, answer: ItemAnswer) -> Response:
        """The answer to a write that is done, which the desk counts."""
        request, began_at, activity_id, (operation, container, key, _) = asked
        partition, cost, row, is_created, _, _ = answer
        if row is None:
            status, body = 204, b""
            told = HTTP_LINES.of_page(activity_id, began_at, container, partition, cost.ru, ())
        else:
            status = 201 if is_created else 200
            etag, body = container.shown(row)
            told = HTTP_LINES.of_item(
                request, activity_id, began_at, container, partition, cost.ru, etag, row.lsn
            )
            if request.headers.get(b"prefer") == MINIMAL:
                body = b""
        self._desk.count_write(operation, status, container, key, answer, began_at)
        return Response(status, told, body)

    async def _served(self, asked: _Asked, failure: Exception) -> Response:
        """The answer where a write has failed: from here on it is a call like any."""
        call = self._call_of(asked.request, asked.began_at, HTTP_LINES, asked.activity_id)
        call.operation = operation = asked.sought.operation
        try:
            return await self._desk.serve_on(call, _HANDLERS[operation], call.failed, _failing(failure))
        except Cut:
            raise ConnectionCut from None


def _begun(sought: Sought, request: Request) -> Begun | PleiadError | None:
    """What a write has come to so far; None, and nothing has happened, where it cannot be begun the short way."""
    operation, container, key, id = sought
    if operation is Operation.CREATE_ITEM:
        return begin_put(container, Verb.CREATE, request.body, key, request.is_alone)
    if operation is Operation.UPSERT_ITEM:
        return begin_put(container, Verb.UPSERT, request.body, key, request.is_alone)
    if operation is Operation.REPLACE_ITEM:
        return begin_put(container, Verb.REPLACE, request.body, key, request.is_alone, id)
    if operation is Operation.PATCH_ITEM:
        return begin_patch(container, id, request.body, key, request.is_alone)
    return begin_delete(container, id, key, request.is_alone)


async def _failing(error: Exception) -> NoReturn:
    raise error

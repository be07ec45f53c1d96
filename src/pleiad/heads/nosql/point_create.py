"""The short way of a create, which is what most writes are: one item, by its partition key.

A request that the master key has signed, to a container at work, with no header that asks for anything else, needs
neither a route nor a `Call`. `find` has every condition. Where one of them does not hold, nothing has happened yet, and
the request goes the long way from its start. What is done for it is done by the same functions as there, and what fails
is a call like any from then on.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

from pleiad.engine.beside import LARGE_BYTES
from pleiad.engine.container import Container
from pleiad.engine.desk import Cut, Desk
from pleiad.engine.items import (
    Creating,
    ItemAnswer,
    Key,
    Writing,
    begin_create,
    end_create,
    end_create_later,
)
from pleiad.engine.operation import Operation
from pleiad.errors import PleiadError
from pleiad.heads.nosql import items, key_header, session_token
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import LANES, MINIMAL
from pleiad.heads.nosql.encoding import BINARY_START, OFFER, WISH
from pleiad.heads.nosql.point_read import CallOf
from pleiad.heads.nosql.render import HTTP_LINES
from pleiad.heads.nosql.routes import MARKS
from pleiad.server.http.message import Answer, ConnectionCut, Pending, Request, Response

_UPSERT = b"x-ms-documentdb-is-upsert"
OPTIONS = (MARKS | LANES | items.TRIGGERS | {OFFER, WISH, items.EXCLUDE_LINKS}) - {_UPSERT}
"""Headers that ask for something else, for more, or for another form of it."""
_LINK_END = b"/docs"


class _Asked(NamedTuple):
    """A create on its way."""

    request: Request
    began_at: float
    activity_id: str
    container: Container
    key: Key


class PointCreates:
    """Answers creates for which nothing has to be found out."""

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
        found = self.find(request)
        if found is None:
            return None
        container, key = found
        given = request.headers.get(b"x-ms-activity-id")
        activity_id = self._desk.activity_id("" if given is None else given.strip().decode("latin-1"))
        asked = _Asked(request, began_at, activity_id, container, key)
        try:
            begun = begin_create(container, request.body, key, request.is_alone)
        except Exception as error:
            return self._served(asked, error)
        if not isinstance(begun, Creating):
            return self._waited(asked, begun)
        self._desk.waiting_count += 1
        end = partial(self._end, asked, begun)
        return end() if begun.commit.done() else Pending(begun.commit, end)

    def _end(self, asked: _Asked, creating: Creating) -> Response | Coroutine[Any, Any, Response]:
        """The answer to a create whose commit has ended."""
        self._desk.waiting_count -= 1
        answer = end_create(creating)
        return self._waited(asked, creating) if answer is None else self._told(asked, answer)

    def find(self, request: Request) -> tuple[Container, Key] | None:
        """Where an item is to be created, if that can be done the short way and the master key has signed it."""
        headers, path, body = request.headers, request.target, request.body
        named = headers.get(key_header.NAME)
        if (
            named is None
            or len(named) > key_header.REMEMBERED_BYTES_MAX
            or not OPTIONS.isdisjoint(headers)
            or headers.get(b"host") not in self._known_hosts
            or not path.endswith(_LINK_END)
            or len(body) > LARGE_BYTES
            or body[:1] == BINARY_START
            or headers.get(b"content-type", b"").find(b"query") >= 0  # `in` makes an exception of it first
            or headers.get(_UPSERT, b"false").lower() != b"false"
        ):
            return None
        engine = self._desk.engine_at_hand
        container = None if engine is None else engine.at_work.by_link.get(path[: -len(_LINK_END)])
        if container is None:
            return None
        rid = container.rid_bytes
        if headers.get(items.MEANT, rid) != rid:
            return None
        try:
            if headers.get(items.SESSION_TOKEN):
                session_token.read(headers[items.SESSION_TOKEN].strip().decode("latin-1"))
            key = key_header.remembered(named)
        except PleiadError:
            return None  # the long way says what is wrong
        is_proved = request.proof is self._authenticator.master_proof
        if not key or not (is_proved or self._authenticator.proves_master_key("POST", path, headers)):
            return None
        return container, key

    async def _waited(self, asked: _Asked, begun: Creating | Writing) -> Response:
        """The answer to a create for which there is more to wait for than a commit, or which has failed."""
        desk = self._desk
        desk.waiting_count += 1
        try:
            answer = await (end_create_later(begun) if isinstance(begun, Creating) else begun)
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
        """The answer to a create that is done, which the desk counts."""
        request, began_at, activity_id, container, key = asked
        partition, cost, row, _, _, _ = answer
        assert row is not None
        etag = container.etag(row)
        told = HTTP_LINES.of_item(
            request, activity_id, began_at, container, partition, cost.ru, etag, row.lsn
        )
        self._desk.count_create(container, key, answer, began_at)
        body = b"" if request.headers.get(b"prefer") == MINIMAL else container.render(row)
        return Response(201, told, body)

    async def _served(self, asked: _Asked, failure: Exception) -> Response:
        """The answer where a create has failed: from here on it is a call like any."""
        call = self._call_of(asked.request, asked.began_at, HTTP_LINES, asked.activity_id)
        call.operation = Operation.CREATE_ITEM
        try:
            return await self._desk.serve_on(call, items.create, call.failed, _failing(failure))
        except Cut:
            raise ConnectionCut from None


async def _failing(error: Exception) -> NoReturn:
    raise error

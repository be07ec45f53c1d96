"""The short way of a create, which is what most writes are: one item, by its partition key.

A request that the master key has signed, to a container at work, with no header that asks for anything else, needs
neither a route nor a `Call`. `find` has every condition. Where one of them does not hold, nothing has happened yet, and
the request goes the long way from its start. What is done for it is done by the same functions as there, and what fails
is a call like any from then on.
"""

from __future__ import annotations

from collections.abc import Coroutine
from time import perf_counter
from typing import Any, NoReturn

from pleiad.engine.access import MASTER
from pleiad.engine.beside import LARGE_BYTES
from pleiad.engine.container import Container
from pleiad.engine.desk import Desk
from pleiad.engine.items import ItemAnswer, Key, create
from pleiad.engine.operation import Operation
from pleiad.errors import PleiadError
from pleiad.heads.nosql import items, key_header, session_token
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import LANES, MINIMAL
from pleiad.heads.nosql.encoding import BINARY_START, OFFER, WISH
from pleiad.heads.nosql.point_read import CallOf
from pleiad.heads.nosql.render import HTTP_LINES
from pleiad.heads.nosql.routes import MARKS
from pleiad.server.http.message import Request, Response

_UPSERT = b"x-ms-documentdb-is-upsert"
OPTIONS = (MARKS | LANES | items.TRIGGERS | {OFFER, WISH, items.EXCLUDE_LINKS}) - {_UPSERT}
"""Headers that ask for something else, for more, or for another form of it."""
_LINK_END = b"/docs"


class PointCreates:
    """Answers creates for which nothing has to be found out."""

    def __init__(
        self, desk: Desk, authenticator: Authenticator, known_hosts: set[bytes | None], call_of: CallOf
    ) -> None:
        self._desk = desk
        self._authenticator = authenticator
        self._known_hosts = known_hosts
        self._call_of = call_of

    def answer(self, request: Request) -> Coroutine[Any, Any, Response] | None:
        """The answer to a request over HTTP; None where it has to go the long way."""
        began_at = perf_counter()
        found = self.find(request)
        if found is None:
            return None
        given = request.headers.get(b"x-ms-activity-id")
        activity_id = self._desk.activity_id("" if given is None else given.strip().decode("latin-1"))
        return self._create(request, began_at, activity_id, *found)

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
            or b"query" in headers.get(b"content-type", b"")
            or headers.get(_UPSERT, b"false").lower() != b"false"
        ):
            return None
        engine = self._desk.engine_at_hand
        container = None if engine is None else engine.at_work.by_link.get(path[: -len(_LINK_END)])
        if container is None or container.recording is not None:
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

    async def _create(
        self, request: Request, began_at: float, activity_id: str, container: Container, key: Key
    ) -> Response:
        desk = self._desk
        if desk.engine_at_hand is None:  # no longer
            return await self._served(request, began_at, activity_id, None)
        desk.waiting_count += 1
        try:
            answer = await create(container, request.body, key)
        except Exception as error:
            failure: Exception | None = error
        else:
            failure = None
        finally:
            desk.waiting_count -= 1
        if failure is not None:
            return await self._served(request, began_at, activity_id, failure)
        return self._told(request, began_at, activity_id, container, key, answer)

    def _told(
        self,
        request: Request,
        began_at: float,
        activity_id: str,
        container: Container,
        key: Key,
        answer: ItemAnswer,
    ) -> Response:
        """The answer to a create that is done, which the desk counts."""
        partition, cost, row, _, _, _ = answer
        assert row is not None
        etag = container.etag(row)
        told = HTTP_LINES.of_item(
            request, activity_id, began_at, container, partition, cost.ru, etag, row.lsn
        )
        self._desk.count_create(container, key, answer, began_at)
        body = b"" if request.headers.get(b"prefer") == MINIMAL else container.render(row)
        return Response(201, told, body)

    def _served(
        self, request: Request, began_at: float, activity_id: str, failure: Exception | None
    ) -> Coroutine[Any, Any, Response]:
        """The answer where a create has failed, or something holds it up: from here on it is a call like any."""
        call = self._call_of(request, began_at, HTTP_LINES, activity_id)
        call.operation = Operation.CREATE_ITEM
        if failure is None:
            call.caller = MASTER
            return self._desk.serve(call, items.create, call.form.failure)
        return self._desk.serve_on(call, items.create, call.form.failure, _failing(failure))


async def _failing(error: Exception) -> NoReturn:
    raise error

"""The short way of a point read, which is what most requests are: one item, by its id and partition key.

A request that the master key has signed, for an item of a container at work, with no header that asks for anything
else, needs neither a route nor a `Call`: all that these would find out is known from a few look-ups. `find` has every
condition. Where one of them does not hold, nothing has happened yet, and the request goes the long way from its start.
What is done for it is done by the same functions as there: `engine.items`, the form of the answer, the desk's counts.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from time import perf_counter
from typing import Any, NoReturn

from pleiad.engine.consistency import Consistency
from pleiad.engine.container import Container
from pleiad.engine.desk import Desk
from pleiad.engine.items import NO_CONDITIONS, ItemAnswer, Key
from pleiad.engine.operation import Operation
from pleiad.engine.reading import Reading, read_soon
from pleiad.engine.session import Session
from pleiad.errors import PleiadError
from pleiad.heads.http.route import Handler
from pleiad.heads.nosql import items, key_header, session_token
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import CONDITIONS, CONSISTENCIES, LANES, AnswerForm, Call
from pleiad.heads.nosql.encoding import OFFER, WISH
from pleiad.heads.nosql.render import HTTP_LINES
from pleiad.server.http.message import Request, Response

OPTIONS = (CONDITIONS | LANES | CONSISTENCIES | {OFFER, WISH, items.EXCLUDE_LINKS, b"date"}) - {
    items.SESSION_TOKEN
}
"""Headers that ask for more than the item, or for another form of it, or that are signed where few are."""

Sought = tuple[Container, str, Key, Session, int]
"""An item that can be read the short way: its container, id and key, what its reader has seen, the charge's factor."""
CallOf = Callable[[Request, float, AnswerForm, str], Call]
"""The call of a request that began at a time, with the form of its answer and its activity id."""


class PointReads:
    """Answers point reads for which nothing has to be found out."""

    def __init__(
        self, desk: Desk, authenticator: Authenticator, known_hosts: set[bytes | None], call_of: CallOf
    ) -> None:
        self._desk = desk
        self._is_proven = authenticator.proves_item
        self._known_hosts = known_hosts
        self._call_of = call_of

    def answer(self, request: Request) -> Response | Coroutine[Any, Any, Response] | None:
        """The answer to a request over HTTP; None where it has to go the long way."""
        began_at = perf_counter()
        headers = request.headers
        if request.body or headers.get(b"host") not in self._known_hosts:
            return None
        sought = self.find(request.target, headers)
        if sought is None:
            return None
        container, _, key, _, _ = sought
        given = headers.get(b"x-ms-activity-id")
        desk = self._desk
        activity_id = (
            next(desk.activity_ids) if given is None else desk.activity_id(given.strip().decode("latin-1"))
        )
        answer = begin(sought)
        if not isinstance(answer, ItemAnswer):
            call = self._call_of(request, began_at, HTTP_LINES, activity_id)
            return self.go_on(call, items.read, container, key, answer)
        partition, cost, row, _, _, _ = answer
        assert row is not None  # where there is none the read has failed
        etag, text = container.shown(row)
        told = HTTP_LINES.of_item(
            request, activity_id, began_at, container, partition, cost.ru, etag, row.lsn
        )
        desk.count_read(container, key, answer, began_at)
        return Response(200, told, text)

    def find(self, path: bytes, headers: Mapping[bytes, bytes]) -> Sought | None:
        """The item that a request asks for, if it can be read the short way and the master key has signed it."""
        engine, named = self._desk.engine_at_hand, headers.get(key_header.NAME)
        if engine is None or named is None or not OPTIONS.isdisjoint(headers):
            return None
        link, _, name = path.rpartition(b"/docs/")
        container = engine.at_work.by_link.get(link)
        if container is None or not name or name.find(b"/") >= 0 or name.find(b"?") >= 0:
            return None
        rid, level = container.rid_bytes, engine.consistency
        if headers.get(items.MEANT, rid) != rid or len(named) > key_header.REMEMBERED_BYTES_MAX:
            return None
        seen: Session = ()
        try:
            if headers.get(items.SESSION_TOKEN):
                if level is not Consistency.SESSION or engine.is_rolled_back:
                    return None
                seen = session_token.read(headers[items.SESSION_TOKEN].strip().decode("latin-1"))
            key, id = key_header.remembered(named), name.decode()
            # It proves paths as they stand only, so nothing in the id is encoded.
            if not self._is_proven(b"get", path, headers):
                return None
        except (PleiadError, UnicodeDecodeError):
            return None  # the long way says what is wrong
        return container, id, key, seen, level.read_multiplier

    def go_on(
        self,
        call: Call,
        work: Handler[Call],
        container: Container,
        key: Key,
        begun: Reading | Exception,
    ) -> Coroutine[Any, Any, Response]:
        """The answer where the item is not at hand, or the read has failed: from here on it is a call like any."""
        call.operation = Operation.READ_ITEM
        ending = (
            _failing(begun) if isinstance(begun, Exception) else items.end_read(call, container, key, begun)
        )
        return self._desk.serve_on(call, work, call.failed, ending)


def begin(sought: Sought) -> Reading | Exception:
    """What the read of an item gives at once, or what it failed with."""
    container, id, key, seen, multiplier = sought
    try:
        return read_soon(container, id, key, NO_CONDITIONS, seen, multiplier)
    except Exception as error:
        return error


async def _failing(error: Exception) -> NoReturn:
    raise error

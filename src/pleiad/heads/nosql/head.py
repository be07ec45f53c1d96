"""The NoSQL head: finds the operation that a request is, hands it in at the desk, and renders what comes of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from time import perf_counter
from typing import Any
from urllib.parse import unquote_to_bytes

from pleiad import errors
from pleiad.engine import access
from pleiad.engine.beside import LARGE_BYTES
from pleiad.engine.desk import Cut, Desk
from pleiad.engine.operation import Area, Operation
from pleiad.errors import PleiadError
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.explorer.page import ExplorerPage
from pleiad.heads.http.host_names import HostNames
from pleiad.heads.http.route import Choice, Handler, Methods, Route
from pleiad.heads.nosql import encoding
from pleiad.heads.nosql.account import AccountOperations
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import AnswerForm, Call
from pleiad.heads.nosql.callers import HeaderCallers
from pleiad.heads.nosql.encoding import BINARY_START, OFFER, WISH
from pleiad.heads.nosql.point_read import PointReads
from pleiad.heads.nosql.point_write import METHODS, PointWrites
from pleiad.heads.nosql.queries import IS_QUERY, KnownQueries
from pleiad.heads.nosql.render import HTTP_LINES, SIMPLE_TOKEN_LINES
from pleiad.heads.nosql.routes import routes
from pleiad.heads.nosql.session_token import VECTORS_SINCE
from pleiad.heads.nosql.users import UserOperations
from pleiad.server.http.failures import METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND
from pleiad.server.http.message import Answer, ConnectionCut, Pending, Request, Response

_BINARY_WHERE_OFFERED = frozenset(
    {
        Operation.READ_ITEM,
        Operation.CREATE_ITEM,
        Operation.UPSERT_ITEM,
        Operation.REPLACE_ITEM,
        Operation.QUERY_ITEMS,
    }
)
_BINARY_WHERE_WISHED = _BINARY_WHERE_OFFERED | {Operation.LIST_ITEMS, Operation.READ_CHANGES}
"""Operations whose answers may be binary JSON: patches, batches, scripts and metadata never are."""

_QUERY = "QUERY"
"""A POST that says it is a query."""

ShortWay = Callable[[Request], Answer | None]
"""The answer to a request for which nothing has to be found out; None for others."""
_NO_COROUTINES = (Response, Pending)
Guard = Callable[[Call], Awaitable[None] | None]
"""Raises where a request cannot be served as it was sent: at once, or when it is awaited."""


class NoSqlHead:
    """Answers the REST protocol for one account."""

    def __init__(
        self,
        desk: Desk,
        authenticator: Authenticator,
        admin: AdminOperations | None = None,
        hosts: HostNames | None = None,
        direct: bool = True,
        page: ExplorerPage | None = None,
    ) -> None:
        self._hosts = hosts or HostNames("127.0.0.1")
        self._known_hosts = self._hosts.known
        self._desk = desk
        self._limits = desk.limits
        self._authenticator = authenticator
        self._callers = HeaderCallers(authenticator)
        self.routes: Mapping[str, Methods[Call]] = routes(
            UserOperations(authenticator), AccountOperations(self._hosts), direct
        )
        """Every path that is served, with a star where a name stands."""
        if admin is not None:
            self.routes = {**self.routes, **admin.routes()}
        if page is not None:
            (account,) = self.routes[""].values()
            assert isinstance(account, Route)
            self.routes = {**self.routes, **page.routes(), "": {"GET": page.beside(account)}}
        self._by_length = _by_length(self.routes)
        self.point_reads = PointReads(desk, authenticator, self._known_hosts, self.call_of)
        """The short way of most requests."""
        writes = PointWrites(desk, authenticator, self._known_hosts, self.call_of)
        queries = KnownQueries(desk, authenticator, self._known_hosts)
        self._short_ways: dict[str, ShortWay] = {
            "GET": self.point_reads.answer,
            **dict.fromkeys(METHODS, writes.answer),
            _QUERY: queries.answer,
        }

    def admit(
        self, request: Request, form: AnswerForm | None = None, activity_id: str = ""
    ) -> Response | None:
        """The gate of the server: whether a request may send its body, by who asks and not yet by what for.

        The proof is left in the request, so that it is made once.
        """
        began_at = perf_counter()
        activity_id = activity_id or self._activity_id(request)
        form = form or _http_form(request.headers)
        try:
            call = self.call_of(request, began_at, form, activity_id)
            if self._authenticator.proves_master_key(request.method, call.raw_path, request.headers):
                request.proof = self._authenticator.master_proof
                return None
            if self._route(call).operation.area is Area.OPEN:
                raise errors.BAD_REQUEST(reason="What needs no key takes no body.")
            request.proof = self._authenticator.proof_of(self._callers.proof(call))
        except PleiadError as error:
            return self._refused(request, began_at, form.failure(error, activity_id, began_at))
        return None

    async def handle(self, request: Request) -> Response:
        """Answers one request; raises nothing but `ConnectionCut`, when a fault asks for it."""
        answer = self.answer(request)
        return answer if isinstance(answer, Response) else await answer

    def answer(
        self,
        request: Request,
        form: AnswerForm | None = None,
        activity_id: str = "",
        guard: Guard | None = None,
    ) -> Answer:
        """The same, at once where nothing has to be waited for.

        Another transport than HTTP has a form and an activity id of its own. A guard is asked before the operation
        runs, when its caller is known to be allowed to run it.
        """
        form = form or _http_form(request.headers)
        kind = _QUERY if IS_QUERY in request.headers else request.method
        if form is HTTP_LINES and (short_way := self._short_ways.get(kind)) is not None:
            said = short_way(request)
            if said is not None:
                return said if isinstance(said, _NO_COROUTINES) else unless_cut(said)
        began_at = perf_counter()
        activity_id = activity_id or self._activity_id(request)
        try:
            call = self.call_of(request, began_at, form, activity_id)
            route = self._route(call)
            call.operation = route.operation
            if request.proof is self._authenticator.master_proof or self._authenticator.proves_master_key(
                request.method, call.raw_path, request.headers
            ):
                call.caller = access.MASTER
        except PleiadError as error:
            return self._refused(request, began_at, form.failure(error, activity_id, began_at))
        work = route.handler if self._is_plain(call) else partial(self._unusual, route.handler)
        if guard is not None:
            work = partial(guarded, guard, work)
        answer = self._desk.serve_soon(call, work, call.failed)
        return answer if isinstance(answer, Response) else unless_cut(answer)

    def call_of(self, request: Request, began_at: float, form: AnswerForm, activity_id: str) -> Call:
        """The call that a request is."""
        target = request.target
        # `find`, since `in` takes what it looks for in bytes for a number first, and makes an exception of it.
        raw_path = target if target[:1] == b"/" and target.find(b"?") < 0 else _path_of(request)
        return Call(
            activity_id,
            began_at,
            request,
            request.method,
            raw_path,
            _segments_of(raw_path),
            self._limits,
            self._callers,
            form,
        )

    def _activity_id(self, request: Request) -> str:
        given = request.headers.get(b"x-ms-activity-id")
        return self._desk.activity_id("" if given is None else given.strip().decode("latin-1"))

    def _refused(self, request: Request, began_at: float, answer: Response) -> Response:
        return self._desk.refused(_kind_of_no_route(request), began_at, answer)

    def _is_plain(self, call: Call) -> bool:
        """Whether a request is what nearly all are: sent to a known name, in text, and answered in text."""
        request = call.request
        headers, body = request.headers, request.body
        return (
            headers.get(b"host") in self._known_hosts
            and request.target[:1] == b"/"
            and OFFER not in headers
            and WISH not in headers
            and (not body or (len(body) <= LARGE_BYTES and body[:1] != BINARY_START))
        )

    async def _unusual(self, handler: Handler[Call], call: Call) -> Response:
        """The answer to a request that names another host, is large, or is or wants to be written in binary."""
        request, operation = call.request, call.operation
        if operation is not Operation.READ_HEALTH:  # whoever asks for that may know the server by any name
            self._hosts.check(request)
        encoding.check_wish(request.headers)
        grown_bytes = await self._read_binary(request) if encoding.is_binary(request.body) else 0
        with encoding.TEXT_ROOM.taken(grown_bytes, self._limits):
            if operation.is_metadata or (operation.is_admin and operation is not Operation.ADD_WORKLOAD):
                await call.read_large_object()
            said = handler(call)
            answer = said if isinstance(said, Response) else await said
        if answer.body and _is_answered_in_binary(operation, request.headers, len(answer.body)):
            answer.body = await encoding.written(answer.body)
        return answer

    async def _read_binary(self, request: Request) -> int:
        """Puts its text in the place of a body in binary JSON; how much longer that is."""
        text = await encoding.text_of(request.body, self._limits)
        grown_bytes = max(0, len(text) - len(request.body))
        request.body = text
        return grown_bytes

    def _route(self, call: Call) -> Route[Call]:
        segments = call.segments
        count = len(segments)
        methods = (
            self._by_length[count].get("/".join(segments[::2])) if count < len(self._by_length) else None
        )
        if methods is None:
            if segments[0] == "offers":
                raise errors.BAD_REQUEST(reason="There is nothing beneath an offer.")
            raise ROUTE_NOT_FOUND(path="/".join(segments)[:200])
        route = methods.get(call.method)
        if route is None:
            raise METHOD_NOT_ALLOWED(method=call.method)
        return route.choose(call) if isinstance(route, Choice) else route


def _http_form(headers: Mapping[bytes, bytes]) -> AnswerForm:
    """The form in which the client of a request over HTTP reads answers; without a version it knows the newest."""
    version = headers.get(_VERSION)
    return SIMPLE_TOKEN_LINES if version and version < VECTORS_SINCE else HTTP_LINES


_VERSION = b"x-ms-version"
_ITEM_PATH = re.compile(rb"/+dbs/[^/]+/colls/[^/]+/docs/[^/?]*\?")


def _path_of(request: Request) -> bytes:
    """The path of a request, still percent-encoded.

    Items are asked for without a query, and clients write the question mark of an id as it is: what follows belongs
    to the id.
    """
    target = request.target
    if b"?" in target and _ITEM_PATH.match(target) is not None:
        return target
    return request.raw_path


def _segments_of(raw_path: bytes) -> list[str]:
    """The decoded segments of a path; slashes before it and at its end mean nothing."""
    segments = raw_path.strip(b"/")
    if not segments:
        return []
    try:
        if segments.find(b"%") < 0:
            return segments.decode().split("/")
        return [unquote_to_bytes(segment).decode() for segment in segments.split(b"/")]
    except UnicodeDecodeError:
        raise errors.BAD_REQUEST(reason="The path is not UTF-8.") from None


async def unless_cut(answer: Coroutine[Any, Any, Response]) -> Response:
    """What the desk gives, in the server's words where a fault wants the connection closed."""
    try:
        return await answer
    except Cut:
        raise ConnectionCut from None


def guarded(guard: Guard, work: Handler[Call], call: Call) -> Response | Coroutine[Any, Any, Response]:
    """What a call gives whose guard lets it pass."""
    checking = guard(call)
    return work(call) if checking is None else _after(checking, work, call)


async def _after(checking: Awaitable[None], work: Handler[Call], call: Call) -> Response:
    await checking
    answer = work(call)
    return answer if isinstance(answer, Response) else await answer


def _kind_of_no_route(request: Request) -> str:
    """What a request is counted as that is none of the operations."""
    if request.target.startswith((b"/_pleiad", b"/metrics")):
        return "admin"
    return "metadata_read" if request.method == "GET" else "metadata_write"


def _is_answered_in_binary(operation: Operation, headers: Mapping[bytes, bytes], answer_bytes: int) -> bool:
    """Whether an answer of that size is given in binary JSON to a client that sends these headers."""
    if operation in _BINARY_WHERE_OFFERED and encoding.offers_binary(headers, answer_bytes):
        return True
    return operation in _BINARY_WHERE_WISHED and encoding.wishes_binary(headers)


def _by_length(routes: Mapping[str, Methods[Call]]) -> list[dict[str, Methods[Call]]]:
    """The routes by the number of their segments, and then by the segments that are not names."""
    patterns = {tuple(pattern.split("/")) if pattern else (): methods for pattern, methods in routes.items()}
    longest = max(map(len, patterns))
    return [
        {"/".join(parts[::2]): methods for parts, methods in patterns.items() if len(parts) == count}
        for count in range(longest + 1)
    ]

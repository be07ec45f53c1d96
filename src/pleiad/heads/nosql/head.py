"""The NoSQL head: finds the operation that a request is, hands it in at the desk, and renders what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter

from pleiad import errors
from pleiad.engine import access
from pleiad.engine.beside import LARGE_BYTES
from pleiad.engine.desk import Cut, Desk
from pleiad.engine.operation import Area, Operation
from pleiad.errors import PleiadError
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.http.host_names import HostNames
from pleiad.heads.http.route import Choice, Handler, Methods, Route
from pleiad.heads.nosql import encoding
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import Call, path_of, path_segments
from pleiad.heads.nosql.callers import HeaderCallers
from pleiad.heads.nosql.render import error_answer
from pleiad.heads.nosql.routes import routes
from pleiad.heads.nosql.users import UserOperations
from pleiad.server.http.failures import METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND
from pleiad.server.http.message import ConnectionCut, Request, Response

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


class NoSqlHead:
    """Answers the REST protocol for one account."""

    def __init__(
        self,
        desk: Desk,
        authenticator: Authenticator,
        admin: AdminOperations | None = None,
        hosts: HostNames | None = None,
    ) -> None:
        self._hosts = hosts or HostNames("127.0.0.1")
        self._known_hosts = self._hosts.known
        self._desk = desk
        self._limits = desk.limits
        self._authenticator = authenticator
        self._callers = HeaderCallers(authenticator)
        self.routes: Mapping[str, Methods[Call]] = routes(UserOperations(authenticator))
        """Every path that is served, with a star where a name stands."""
        if admin is not None:
            self.routes = {**self.routes, **admin.routes()}
        self._by_length = _by_length(self.routes)

    def admit(self, request: Request) -> Response | None:
        """The gate of the server: whether a request may send its body, by who asks and not yet by what for.

        The proof is left in the request, so that it is made once.
        """
        began_at = perf_counter()
        try:
            call = self._call(request, began_at)
            if self._authenticator.proves_master_key(request.method, call.raw_path, request.headers):
                request.proof = self._authenticator.master_proof
                return None
            if self._route(call).operation.area is Area.OPEN:
                raise errors.BAD_REQUEST(reason="What needs no key takes no body.")
            request.proof = self._authenticator.proof_of(self._callers.proof(call))
        except PleiadError as error:
            return self._refused(request, began_at, error)
        return None

    async def handle(self, request: Request) -> Response:
        """Answers one request; raises nothing but `ConnectionCut`, when a fault asks for it."""
        began_at = perf_counter()
        try:
            call = self._call(request, began_at)
            route = self._route(call)
            call.operation = route.operation
            if request.proof is self._authenticator.master_proof or self._authenticator.proves_master_key(
                request.method, call.raw_path, request.headers
            ):
                call.caller = access.MASTER
        except PleiadError as error:
            return self._refused(request, began_at, error)
        work = route.handler if self._is_plain(call) else partial(self._unusual, route.handler)
        try:
            return await self._desk.serve(call, work, error_answer)
        except Cut:
            raise ConnectionCut from None

    def _call(self, request: Request, began_at: float) -> Call:
        raw_path = path_of(request)
        segments = path_segments(raw_path)
        return Call(
            request, raw_path, segments, self._activity_id(request), began_at, self._limits, self._callers
        )

    def _activity_id(self, request: Request) -> str:
        given = request.headers.get(b"x-ms-activity-id", b"")
        return self._desk.activity_id(given.strip().decode("latin-1"))

    def _refused(self, request: Request, began_at: float, error: PleiadError) -> Response:
        answer = error_answer(error, self._activity_id(request))
        return self._desk.refused(_kind_of_no_route(request), began_at, answer)

    def _is_plain(self, call: Call) -> bool:
        """Whether a request is what nearly all are: sent to a known name, in text, and answered in text."""
        request = call.request
        headers = request.headers
        return (
            headers.get(b"host") in self._known_hosts
            and request.target[:1] == b"/"
            and encoding.OFFER not in headers
            and encoding.WISH not in headers
            and (not request.body or self._is_small_text(request.body))
        )

    def _is_small_text(self, body: bytes) -> bool:
        return len(body) <= LARGE_BYTES and not encoding.is_binary(body)

    async def _unusual(self, handler: Handler[Call], call: Call) -> Response:
        """The answer to a request that names another host, is large, or is or wants to be written in binary."""
        request, operation = call.request, call.operation
        if operation is not Operation.READ_HEALTH:  # whoever asks for that may know the server by any name
            self._hosts.check(request)
        encoding.check_wish(request.headers)
        grown_bytes = await self._read_binary(request) if encoding.is_binary(request.body) else 0
        with encoding.TEXT_ROOM.taken(grown_bytes, self._limits):
            if operation.is_metadata:
                await call.read_large_object()
            answer = await handler(call)
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
            raise ROUTE_NOT_FOUND(path="/".join(segments)[:200])
        route = methods.get(call.method)
        if route is None:
            raise METHOD_NOT_ALLOWED(method=call.method)
        return route(call) if isinstance(route, Choice) else route


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

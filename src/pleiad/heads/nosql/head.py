"""The NoSQL head: routes a request, authenticates it, has it done, and renders every failure.

The only place where an exception that is not in the error table can still surface: it becomes a 500 with an
activity id, and the log has the rest.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from time import perf_counter

from pleiad import charge, errors
from pleiad.engine import access
from pleiad.engine.access import Caller, Role
from pleiad.engine.beside import LARGE_BYTES
from pleiad.engine.engine import Engine
from pleiad.engine.operation import Area, Operation
from pleiad.errors import PleiadError
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.nosql import encoding, faults, grants
from pleiad.heads.nosql.auth import Authenticator, ResourceToken, SignedParts
from pleiad.heads.nosql.call import Call, path_of, path_segments
from pleiad.heads.nosql.render import error_answer
from pleiad.heads.nosql.route import Choice, Methods, Route
from pleiad.heads.nosql.routes import routes
from pleiad.heads.nosql.users import UserOperations
from pleiad.item import rid as rids
from pleiad.server.host_names import HostNames
from pleiad.server.message import ConnectionCut, Request, Response

_log = logging.getLogger(__name__)
_VERBS = {method: method.lower() for method in ("GET", "POST", "PUT", "PATCH", "DELETE")}


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
    """Answers the REST protocol for one engine."""

    def __init__(
        self,
        engine: Engine,
        authenticator: Authenticator,
        admin: AdminOperations | None = None,
        hosts: HostNames | None = None,
    ) -> None:
        self._hosts = hosts or HostNames("127.0.0.1")
        self._known_hosts = self._hosts.known
        self._engine = engine
        self._faults = engine.faults
        self._traffic = engine.traffic
        self._authenticator = authenticator
        self._activity_ids = _activity_ids()
        self.routes: Mapping[str, Methods] = routes(UserOperations(authenticator))
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
            raw_path = path_of(request)
            if self._authenticator.proves_master_key(request.method, raw_path, request.headers):
                request.proof = access.MASTER
                return None
            call = Call(request, self._engine, raw_path, path_segments(raw_path), "", began_at)
            if self._route(call).operation.area is Area.OPEN:
                raise errors.BAD_REQUEST(reason="What needs no key takes no body.")
            request.proof = self._proof(call)
        except PleiadError as error:
            answer = error_answer(error, self._activity_id(request))
            self._traffic.note(_kind_of_no_route(request), answer.status, perf_counter() - began_at, 0.0)
            return answer
        return None

    def _activity_id(self, request: Request) -> str:
        given = request.header(b"x-ms-activity-id")
        if not given or not given.isascii() or not given.isprintable():
            return next(self._activity_ids)
        return given

    async def handle(self, request: Request) -> Response:
        """Answers one request and counts it; raises nothing but `ConnectionCut`, when a fault asks for it."""
        began_at = perf_counter()
        route: Route | None = None
        call: Call | None = None
        charge_ru = 0.0
        activity_id = self._activity_id(request)
        try:
            raw_path = path_of(request)
            call = Call(request, self._engine, raw_path, path_segments(raw_path), activity_id, began_at)
            route = self._route(call)
            if request.proof is not access.MASTER and not self._authenticator.proves_master_key(
                request.method, raw_path, request.headers
            ):
                await self._check_access(call, route.operation)
            if request.headers.get(b"host") not in self._known_hosts or request.target[:1] != b"/":
                self._check_host(request, route.operation)
            encoding.check_wish(request.headers)
            if encoding.is_binary(request.body):
                await self._read_binary(call)
            if route.operation.is_metadata and len(request.body) > LARGE_BYTES:
                await call.read_large_object()
            try:
                answer = await self._answer(call, route)
            except PleiadError as error:
                if not await self._engine.second_look(error):
                    raise
                if call.caller.role is not Role.MASTER:
                    # What the look found may be another container of the same name.
                    await self._check_access(call, route.operation)
                answer = await self._answer(call, route)
            charge_ru = call.charge_ru
            if answer.body and _is_answered_in_binary(route.operation, request.headers, len(answer.body)):
                answer.body = await encoding.written(answer.body)
        except PleiadError as error:
            charge_ru = error.charge_ru or 0.0
            answer = error_answer(error, activity_id)
        except ConnectionCut:
            raise
        except Exception:
            _log.exception("activity %s failed", activity_id)
            answer = error_answer(errors.INTERNAL(), activity_id)
        finally:
            if call is not None and call.grown_bytes:
                encoding.TEXT_ROOM.give_back(call.grown_bytes)
        kind = route.operation.kind if route is not None else _kind_of_no_route(request)
        self._traffic.note(kind, answer.status, perf_counter() - began_at, charge_ru)
        return answer

    async def _read_binary(self, call: Call) -> None:
        """Puts its text in the place of a body in binary JSON."""
        request, limits = call.request, self._engine.limits
        text = await encoding.text_of(request.body, limits)
        call.grown_bytes = encoding.TEXT_ROOM.take(max(0, len(text) - len(request.body)), limits)
        request.body = text

    def _answer(self, call: Call, route: Route) -> Awaitable[Response]:
        if route.operation.is_metadata:
            return self._metadata_answer(call, route)
        return self._with_faults(call, route) if self._faults.rules else route.handler(call)

    async def _metadata_answer(self, call: Call, route: Route) -> Response:
        """The answer of a request on metadata, which the account's budget for these pays for, failed or not."""
        budget = self._engine.metadata_budget
        budget.admit()
        try:
            answer = await (self._with_faults(call, route) if self._faults.rules else route.handler(call))
        except PleiadError as error:
            error.charge_ru = error.charge_ru or charge.metadata_read().ru
            budget.spend(error.charge_ru)
            raise
        budget.spend(call.charge_ru)
        return answer

    async def _with_faults(self, call: Call, route: Route) -> Response:
        operation = route.operation
        if operation.is_admin:
            return await route.handler(call)
        return await faults.answer(call, route.handler, operation.kind, operation.is_item_operation)

    def _route(self, call: Call) -> Route:
        segments = call.segments
        count = len(segments)
        methods = (
            self._by_length[count].get("/".join(segments[::2])) if count < len(self._by_length) else None
        )
        if methods is None:
            raise errors.ROUTE_NOT_FOUND(path="/".join(segments)[:200])
        route = methods.get(call.method)
        if route is None:
            raise errors.METHOD_NOT_ALLOWED(method=call.method)
        return route(call) if isinstance(route, Choice) else route

    # -- who asks ---------------------------------------------------------------------------------

    async def _check_access(self, call: Call, operation: Operation) -> None:
        """The long way to know a caller, and whether it may do what is about to be done."""
        if operation.area is Area.OPEN:
            return
        proof = self._proof(call)
        if isinstance(proof, Caller):
            call.caller = proof
            access.check(proof, operation)
            return
        binding = grants.Binding.from_json(proof.binding)
        call.caller = await grants.holder(self._engine, proof.permission_rid, binding)
        assert call.caller.grant is not None
        access.check(call.caller, operation, await grants.target_of(call, call.caller.grant))

    def _check_host(self, request: Request, operation: Operation) -> None:
        """Refuses names that are not the server's; whoever asks for its health may know it by any."""
        if operation is not Operation.READ_HEALTH:
            self._hosts.check(request)

    def _proof(self, call: Call) -> Caller | ResourceToken:
        request = call.request
        if isinstance(request.proof, Caller | ResourceToken):
            return request.proof
        plain_date = request.header(b"date") if b"date" in request.headers else ""
        return self._authenticator.authenticate(
            request.header(b"authorization"), request.header(b"x-ms-date"), plain_date, _signed_parts(call)
        )


def _activity_ids() -> Iterator[str]:
    """Ids for requests that bring none: one random start per process, then counted, since randomness is slow."""
    start = uuid.uuid4()
    prefix = str(start)[:24]
    for number in itertools.count(start.node):
        yield f"{prefix}{number & 0xFFFFFFFFFFFF:012x}"


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


def _signed_parts(call: Call) -> SignedParts:
    """What the client signed for this path: the type and link of the resource, or of the parent of a feed."""
    segments = call.segments
    if len(segments) == 6 and segments[4] == "operations":
        segments = segments[:4]
    if len(segments) % 2:
        kind, link = segments[-1], "/".join(segments[:-1])
    else:
        kind, link = (segments[-2] if segments else ""), "/".join(segments)
    if kind == "offers":
        link = by_rid = segments[1].lower() if len(segments) > 1 else ""
    else:
        by_rid = _last_rid(segments) or link
    return SignedParts(_VERBS.get(call.method, ""), kind.lower(), link, by_rid)


def _last_rid(segments: Sequence[str]) -> str | None:
    """What a client signs of a path that is rids throughout: the last one, which is found in its own place only.

    None for any other path, whose last name alone would say nothing of its place.
    """
    names = segments[1::2]
    if not names or not rids.looks_like_database_rid(names[0]):
        return None
    for name, size_bytes in zip(names, rids.PATH_SIZES_BYTES, strict=False):
        if not rids.is_rid(name, size_bytes):
            return None
    return names[-1].lower() if len(names) <= len(rids.PATH_SIZES_BYTES) else None


def _by_length(routes: Mapping[str, Methods]) -> list[dict[str, Methods]]:
    """The routes by the number of their segments, and then by the segments that are not names."""
    patterns = {tuple(pattern.split("/")) if pattern else (): methods for pattern, methods in routes.items()}
    longest = max(map(len, patterns))
    return [
        {"/".join(parts[::2]): methods for parts, methods in patterns.items() if len(parts) == count}
        for count in range(longest + 1)
    ]

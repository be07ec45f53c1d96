"""The NoSQL head: routes a request, authenticates it, has it done, and renders every failure.

The only place where an exception that is not in the error table can still surface: it becomes a 500 with an
activity id, and the log has the rest.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from time import perf_counter

import orjson

from pleiad import charge, errors
from pleiad.catalog.resource import Kind
from pleiad.engine import access
from pleiad.engine.access import Access, Caller, Grant, Role
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.nosql import (
    account,
    batch,
    changes,
    conflicts,
    containers,
    databases,
    faults,
    items,
    offers,
    pkranges,
    queries,
    scripts,
)
from pleiad.heads.nosql.auth import Authenticator, ResourceToken, SignedParts
from pleiad.heads.nosql.call import Call, path_segments
from pleiad.heads.nosql.render import error_answer
from pleiad.heads.nosql.users import UserOperations
from pleiad.item import rid as rids
from pleiad.keys.value import parse_header
from pleiad.server.message import ConnectionCut, Request, Response

_log = logging.getLogger(__name__)
_Operation = Callable[[Call], Awaitable[Response]]
_DATA = frozenset({"docs", "operations"})
_VERBS = {method: method.lower() for method in ("GET", "POST", "PUT", "PATCH", "DELETE")}


ITEM_OPERATIONS: dict[_Operation | None, str] = {
    items.read: "read",
    items.create: "create",
    items.upsert: "upsert",
    items.replace: "replace",
    items.patch: "patch",
    items.delete: "delete",
    items.delete_partition_key: "delete_partition_key",
    items.feed_page: "feed",
    changes.page: "changes",
    queries.query: "query",
    queries.plan: "query_plan",
    batch.execute: "batch",
    scripts.execute: "script",
}
"""Operations on items by the names that metrics and faults have for them; everything else is metadata or admin."""


class _Choice:
    """A route that is several operations, which only the headers of a request tell apart."""

    __slots__ = ("_choose",)

    def __init__(self, choose: Callable[[Call], _Operation]) -> None:
        self._choose = choose

    def __call__(self, call: Call) -> _Operation:
        return self._choose(call)


_Methods = Mapping[str, _Operation | _Choice]


class NoSqlHead:
    """Answers the REST protocol for one engine."""

    def __init__(
        self, engine: Engine, authenticator: Authenticator, admin: AdminOperations | None = None
    ) -> None:
        self._engine = engine
        self._faults = engine.faults
        self._traffic = engine.traffic
        self._authenticator = authenticator
        self._activity_ids = _activity_ids()
        routes = _routes(UserOperations(authenticator))
        self._open_paths: frozenset[bytes] = frozenset()
        if admin is not None:
            routes.update(admin.routes())
            self._open_paths = admin.open_paths
        self._routes = _by_length(routes)

    async def handle(self, request: Request) -> Response:
        """Answers one request and counts it; raises nothing but `ConnectionCut`, when a fault asks for it."""
        began_at = perf_counter()
        operation: _Operation | None = None
        charge_ru = 0.0
        activity_id = request.header(b"x-ms-activity-id")
        if not activity_id or not activity_id.isascii() or not activity_id.isprintable():
            activity_id = next(self._activity_ids)
        try:
            raw_path = request.raw_path
            call = Call(request, self._engine, raw_path, path_segments(raw_path), activity_id)
            operation = self._operation(call)
            if request.proof is not access.MASTER and not self._authenticator.proves_master_key(
                request.method, raw_path, request.headers
            ):
                await self._check_access(call)
            try:
                answer = await self._answer(call, operation)
            except PleiadError as error:
                if not await self._engine.second_look(error):
                    raise
                answer = await self._answer(call, operation)
            charge_ru = call.charge_ru
        except PleiadError as error:
            charge_ru = error.charge_ru or 0.0
            answer = error_answer(error, activity_id)
        except ConnectionCut:
            raise
        except Exception:
            _log.exception("activity %s failed", activity_id)
            answer = error_answer(errors.INTERNAL(), activity_id)
        kind = ITEM_OPERATIONS.get(operation) or self._other_kind(request)
        self._traffic.note(kind, answer.status, perf_counter() - began_at, charge_ru)
        return answer

    def admit(self, request: Request) -> Response | None:
        """The gate of the server: whether a request may send its body, by who asks and not yet by what for.

        The proof is left in the request, so that it is made once.
        """
        began_at = perf_counter()
        raw_path = request.raw_path
        try:
            if self._authenticator.proves_master_key(request.method, raw_path, request.headers):
                request.proof = access.MASTER
            elif raw_path in self._open_paths:
                raise errors.BAD_REQUEST(reason="A request that needs no key takes no body.")
            else:
                request.proof = self._proof(
                    Call(request, self._engine, raw_path, path_segments(raw_path), "")
                )
        except PleiadError as error:
            activity_id = request.header(b"x-ms-activity-id")
            if not activity_id or not activity_id.isascii() or not activity_id.isprintable():
                activity_id = next(self._activity_ids)
            answer = error_answer(error, activity_id)
            self._traffic.note(self._other_kind(request), answer.status, perf_counter() - began_at, 0.0)
            return answer
        return None

    def _other_kind(self, request: Request) -> str:
        """What is counted as one operation beside those on items."""
        if request.target.startswith((b"/_pleiad", b"/metrics")):
            return "admin"
        return "metadata_read" if request.method == "GET" else "metadata_write"

    def _answer(self, call: Call, operation: _Operation) -> Awaitable[Response]:
        if operation not in ITEM_OPERATIONS and call.segments and self._other_kind(call.request) != "admin":
            return self._metadata_answer(call, operation)
        return self._with_faults(call, operation) if self._faults.rules else operation(call)

    async def _metadata_answer(self, call: Call, operation: _Operation) -> Response:
        """The answer of a request on metadata, which the account's budget for these pays for, failed or not."""
        budget = self._engine.metadata_budget
        budget.admit()
        try:
            answer = await (self._with_faults(call, operation) if self._faults.rules else operation(call))
        except PleiadError as error:
            error.charge_ru = error.charge_ru or charge.metadata_read().ru
            budget.spend(error.charge_ru)
            raise
        budget.spend(call.charge_ru)
        return answer

    async def _with_faults(self, call: Call, operation: _Operation) -> Response:
        kind = ITEM_OPERATIONS.get(operation) or self._other_kind(call.request)
        if kind == "admin":
            return await operation(call)
        return await faults.answer(call, operation, kind, operation in ITEM_OPERATIONS)

    def _operation(self, call: Call) -> _Operation:
        segments = call.segments
        count = len(segments)
        methods = self._routes[count].get("/".join(segments[::2])) if count < len(self._routes) else None
        if methods is None:
            raise errors.ROUTE_NOT_FOUND(path="/".join(segments)[:200])
        operation = methods.get(call.method)
        if operation is None:
            raise errors.METHOD_NOT_ALLOWED(method=call.method)
        return operation(call) if isinstance(operation, _Choice) else operation

    # -- who asks ---------------------------------------------------------------------------------

    async def _check_access(self, call: Call) -> None:
        """The long way to know a caller, and what it may do."""
        if call.raw_path in self._open_paths:
            return
        proof = self._proof(call)
        if proof is not access.MASTER:
            call.caller = await self._token_holder(proof) if isinstance(proof, ResourceToken) else proof
            access.check(call.caller, await self._access(call))

    def _proof(self, call: Call) -> Caller | ResourceToken:
        request = call.request
        if isinstance(request.proof, Caller | ResourceToken):
            return request.proof
        plain_date = request.header(b"date") if b"date" in request.headers else ""
        return self._authenticator.authenticate(
            request.header(b"authorization"), request.header(b"x-ms-date"), plain_date, _signed_parts(call)
        )

    async def _token_holder(self, token: ResourceToken) -> Caller:
        """The rights of a resource token, which last as long as its permission."""
        permission = self._engine.catalog.by_rid(Kind.PERMISSION, token.permission_rid)
        if permission is None:
            raise errors.FORBIDDEN(reason="The permission of this resource token does not exist any more.")
        properties = permission.properties
        segments = properties["resource"].strip("/").split("/")
        key = properties.get("resourcePartitionKey")
        return Caller(
            Role.RESOURCE,
            Grant(
                self._rid_path(segments),
                await self._item_name(segments),
                parse_header(orjson.dumps(key).decode()) if key else None,
                properties["permissionMode"].lower() == "all",
            ),
        )

    async def _access(self, call: Call) -> Access:
        segments = call.segments
        is_execution = call.method == "POST" and len(segments) == 6 and segments[4] == "sprocs"
        is_read = call.method == "GET" or (call.method == "POST" and not is_execution and _is_query(call))
        return Access(
            writes=not is_read,
            is_data=len(segments) > 4 and (segments[4] in _DATA or is_execution),
            container_path=self._rid_path(segments),
            item_id=await self._item_name(segments),
            key=call.key,
            is_account_read=not segments,
            is_permission=len(segments) > 4 and segments[4] == Kind.PERMISSION.segment,
            operation=f"{call.method} {'/'.join(segments[::2])}",
            is_admin=segments[:1] == ["_pleiad"],
        )

    def _rid_path(self, segments: list[str]) -> tuple[str, ...]:
        """The rids of the database and container in a path; what does not exist stands for itself."""
        if len(segments) < 2 or segments[0] != "dbs":
            return ()
        database = self._engine.catalog.find(Kind.DATABASE, "", segments[1])
        if database is None:
            return (segments[1], *segments[3:4])
        if len(segments) < 4 or segments[2] != "colls":
            return (database.rid,)
        container = self._engine.catalog.find(Kind.CONTAINER, database.rid, segments[3])
        return (database.rid, container.rid if container is not None else segments[3])

    async def _item_name(self, segments: list[str]) -> str | None:
        """The id of the item in a path; a rid in its place is looked up."""
        if len(segments) < 6 or segments[4] != "docs":
            return None
        if not rids.looks_like_database_rid(segments[1]):
            return segments[5]
        return await items.item_id(segments, await self._engine.container(segments[1], segments[3]))


def _activity_ids() -> Iterator[str]:
    """Ids for requests that bring none: one random start per process, then counted, since randomness is slow."""
    start = uuid.uuid4()
    prefix = str(start)[:24]
    for number in itertools.count(start.node):
        yield f"{prefix}{number & 0xFFFFFFFFFFFF:012x}"


def _is_query(call: Call) -> bool:
    return call.is_query or call.flag(b"x-ms-cosmos-is-query-plan-request")


def _signed_parts(call: Call) -> SignedParts:
    """What the client signed for this path: the type and link of the resource, or of the parent of a feed."""
    segments = call.segments
    if len(segments) == 6 and segments[4] == "operations":
        segments = segments[:4]
    if len(segments) % 2:
        kind, link = segments[-1], "/".join(segments[:-1])
    else:
        kind, link = (segments[-2] if segments else ""), "/".join(segments)
    by_rid = link
    if kind == "offers":
        link = by_rid = segments[1].lower() if len(segments) > 1 else ""
    elif len(segments) > 1 and len(segments[1]) == 8 and rids.looks_like_database_rid(segments[1]):
        owner = segments[:-1] if len(segments) % 2 else segments
        by_rid = owner[-1].lower()
    return SignedParts(_VERBS.get(call.method, ""), kind.lower(), link, by_rid)


def _post_items(call: Call) -> _Operation:
    if call.flag(b"x-ms-cosmos-is-query-plan-request"):
        return queries.plan
    if call.is_query:
        return queries.query
    if call.flag(b"x-ms-cosmos-is-batch-request"):
        return batch.execute
    return items.upsert if call.is_upsert else items.create


def _get_items(call: Call) -> _Operation:
    return changes.page if b"a-im" in call.request.headers else items.feed_page


def _list_or_create(create: _Operation, feed: _Operation) -> dict[str, _Operation]:
    """A feed's methods: POST creates unless it is marked as a query."""

    async def post(call: Call) -> Response:
        return await (feed(call) if call.is_query else create(call))

    return {"POST": post, "GET": feed}


def _by_length(routes: Mapping[str, _Methods]) -> list[dict[str, _Methods]]:
    """The routes by the number of their segments, and then by the segments that are not names."""
    patterns = {tuple(pattern.split("/")) if pattern else (): methods for pattern, methods in routes.items()}
    longest = max(map(len, patterns))
    return [
        {"/".join(parts[::2]): methods for parts, methods in patterns.items() if len(parts) == count}
        for count in range(longest + 1)
    ]


def _routes(users: UserOperations) -> dict[str, _Methods]:
    """Every path of the protocol, with a star where a name or rid stands."""
    child: dict[str, _Operation] = {"GET": users.read, "PUT": users.replace, "DELETE": users.delete}
    children = _list_or_create(users.create, users.list_or_query)
    script: dict[str, _Operation] = {"GET": scripts.read, "PUT": scripts.replace, "DELETE": scripts.delete}
    routes: dict[str, _Methods] = {
        "": {"GET": account.read},
        "dbs": _list_or_create(databases.create, databases.list_or_query),
        "dbs/*": {"GET": databases.read, "DELETE": databases.delete},
        "dbs/*/colls": _list_or_create(containers.create, containers.list_or_query),
        "dbs/*/colls/*": {"GET": containers.read, "PUT": containers.replace, "DELETE": containers.delete},
        "dbs/*/colls/*/docs": {"POST": _Choice(_post_items), "GET": _Choice(_get_items)},
        "dbs/*/colls/*/docs/*": {
            "GET": items.read,
            "PUT": items.replace,
            "PATCH": items.patch,
            "DELETE": items.delete,
        },
        "dbs/*/colls/*/pkranges": {"GET": pkranges.list_ranges},
        "dbs/*/colls/*/operations/*": {"POST": items.delete_partition_key},
        "dbs/*/users": children,
        "dbs/*/users/*": child,
        "dbs/*/users/*/permissions": children,
        "dbs/*/users/*/permissions/*": child,
        "dbs/*/clientencryptionkeys": children,
        "dbs/*/clientencryptionkeys/*": child,
        "offers": {"POST": offers.list_or_query, "GET": offers.list_or_query},
        "offers/*": {"GET": offers.read, "PUT": offers.replace},
        "dbs/*/colls/*/conflicts": {"GET": conflicts.list_or_query, "POST": conflicts.list_or_query},
        "dbs/*/colls/*/conflicts/*": {"GET": conflicts.not_found, "DELETE": conflicts.not_found},
    }
    for segment in scripts.SEGMENTS:
        routes[f"dbs/*/colls/*/{segment}"] = _list_or_create(scripts.create, scripts.list_or_query)
        routes[f"dbs/*/colls/*/{segment}/*"] = script
    routes["dbs/*/colls/*/sprocs/*"] = {**script, "POST": scripts.execute}
    return routes

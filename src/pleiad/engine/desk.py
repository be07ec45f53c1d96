"""The desk: the one place that every request of every head passes.

A head turns what it was sent into a `Visit` and hands it in with the work to be done. The desk finds out who asks and
whether the operation is allowed, lets the metadata budget and faults on demand have their say, tries once more where
another server may have changed what was missing, and counts what came of it. Only a visit that was admitted has an
engine, so no head can do anything but through here.

Invariants
- `work` runs only after `access.check` said yes to the operation it is, again when it runs a second time.
- Every visit is counted once, whatever comes of it; a request that is no visit is counted by `refused`.
- Nothing but `Cut` is raised to a head: every failure is told by the head's own `told`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeVar

from pleiad import charge, errors
from pleiad.catalog.resource import Kind
from pleiad.engine import access, faults
from pleiad.engine.access import MASTER, NOBODY, NOTHING, Caller, Grant, Target
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.faults import Effect
from pleiad.engine.items import Key
from pleiad.engine.operation import Area, Operation
from pleiad.errors import PleiadError

_log = logging.getLogger(__name__)


class Answer(Protocol):
    """What a head answers with. The desk knows of it only what it is counted by."""

    status: int
    """How it ended, in the numbers of the head's protocol."""


class Cut(Exception):
    """A fault wants the connection of this request closed without an answer."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a request goes, as it says itself: by names or rids, and by a physical partition or a partition key."""

    database: str = ""
    container: str = ""
    range_id: str = ""


class Visit(ABC):
    """One request at the desk: what its head knows of it, and what is found out about it here.

    A head has a kind of its own, which says who asks and where the request goes.
    """

    __slots__ = (
        "activity_id",
        "began_at",
        "caller",
        "charge_ru",
        "container",
        "engine",
        "key_spent",
        "operation",
    )

    operation: Operation
    """What the request is; nothing else decides what its caller must be allowed to do."""
    engine: Engine
    """Set when the visit is admitted."""

    def __init__(self, activity_id: str, began_at: float) -> None:
        self.activity_id = activity_id
        self.began_at = began_at
        self.caller: Caller = NOBODY
        self.charge_ru = 0.0
        """What the answer says the request cost."""
        self.container: Container | None = None
        self.key_spent: Key | None = None

    def spent(self, container: Container, key: Key | None, charge_ru: float) -> None:
        """Tells what an operation on items cost, and for which partition key."""
        self.charge_ru = charge_ru
        self.container = container
        self.key_spent = key

    @abstractmethod
    async def identify(self, engine: Engine) -> Caller:
        """Who asks; raises when that is not proved."""

    @abstractmethod
    async def target(self, engine: Engine, grant: Grant) -> Target:
        """What the request touches, as far as the grant of its caller has to cover it."""

    @abstractmethod
    def destination(self) -> Destination:
        """Where the request goes."""

    @property
    @abstractmethod
    def key(self) -> Key | None:
        """The partition key the request names."""


V = TypeVar("V", bound=Visit)
A = TypeVar("A", bound=Answer)


class Desk:
    """The desk of one account."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._faults = engine.faults
        self._traffic = engine.traffic
        self._activity_ids = _activity_ids()
        self.limits = engine.limits

    def activity_id(self, given: str) -> str:
        """The id of a request: the one it brings, if that can be shown as it is, or a new one."""
        if not given or not given.isascii() or not given.isprintable():
            return next(self._activity_ids)
        return given

    async def serve(
        self, visit: V, work: Callable[[V], Awaitable[A]], told: Callable[[PleiadError, str], A]
    ) -> A:
        """The answer to a request: what its work gives, or what its head tells of a failure."""
        try:
            if visit.caller is MASTER:
                visit.engine = self._engine
            else:
                await self._admit(visit)
            if visit.operation.is_metadata or self._faults.rules:
                answer = await self._carefully(visit, work)
            else:
                answer = await work(visit)
        except PleiadError as error:
            answer = await self._once_more(visit, work, told, error)
        except Cut:
            raise
        except Exception:
            answer = self._broken(visit, told)
        if visit.key_spent and visit.container is not None:
            visit.container.heat.note(visit.key_spent, visit.charge_ru)
        self._traffic.note(
            visit.operation.kind, answer.status, perf_counter() - visit.began_at, visit.charge_ru
        )
        return answer

    def refused(self, kind: str, began_at: float, answer: A) -> A:
        """Counts a request that was refused before it was a visit."""
        self._traffic.note(kind, answer.status, perf_counter() - began_at, 0.0)
        return answer

    async def _admit(self, visit: Visit) -> None:
        """Finds out who asks, and raises when that is nobody who may do this."""
        if visit.operation.area is not Area.OPEN:
            visit.caller = caller = await visit.identify(self._engine)
            target = NOTHING if caller.grant is None else await visit.target(self._engine, caller.grant)
            access.check(caller, visit.operation, target)
        visit.engine = self._engine

    async def _once_more(
        self,
        visit: V,
        work: Callable[[V], Awaitable[A]],
        told: Callable[[PleiadError, str], A],
        error: PleiadError,
    ) -> A:
        """The answer to a request that failed, tried again where another server may have changed what it missed."""
        try:
            if await self._engine.second_look(error):
                if visit.caller is not MASTER:
                    # What the look found may be another container of the same name.
                    await self._admit(visit)
                return await self._carefully(visit, work)
        except PleiadError as another:
            error = another
        except Cut:
            raise
        except Exception:
            return self._broken(visit, told)
        visit.charge_ru = error.charge_ru or 0.0
        visit.key_spent = None
        return told(error, visit.activity_id)

    def _broken(self, visit: Visit, told: Callable[[PleiadError, str], A]) -> A:
        """What is told of a failure that nobody foresaw."""
        _log.exception("activity %s failed", visit.activity_id)
        visit.charge_ru = 0.0
        visit.key_spent = None
        return told(errors.INTERNAL(), visit.activity_id)

    async def _carefully(self, visit: V, work: Callable[[V], Awaitable[A]]) -> A:
        """The work under the metadata budget and the faults in force."""
        if not visit.operation.is_metadata:
            return await self._with_faults(visit, work)
        budget = self._engine.metadata_budget
        budget.admit()
        try:
            answer = await self._with_faults(visit, work)
        except PleiadError as error:
            error.charge_ru = error.charge_ru or charge.metadata_read().ru
            budget.spend(error.charge_ru)
            raise
        budget.spend(visit.charge_ru)
        return answer

    # -- faults on demand -------------------------------------------------------------------------

    async def _with_faults(self, visit: V, work: Callable[[V], Awaitable[A]]) -> A:
        """The work, unless a rule wants something else to happen to it."""
        if not self._faults.rules or visit.operation.is_admin:
            return await work(visit)
        rule = self._faults.take(await self._met(visit))
        if rule is None:
            return await work(visit)
        if rule.delay_ms:
            await asyncio.sleep(rule.delay_ms / 1000)
        error = rule.error()
        if error is not None:
            raise error
        if rule.effect is Effect.CUT_BEFORE:
            raise Cut
        if rule.effect is Effect.CUT_AFTER:
            try:
                await work(visit)
            finally:
                raise Cut
        return await work(visit)

    async def _met(self, visit: Visit) -> faults.Target:
        """A request as rules see it."""
        to = visit.destination()
        database, container = self._names(to)
        if container and any(rule.partition is not None for rule in self._faults.rules):
            # A rule about a partition needs the map of the container, which is open after its first use only.
            with contextlib.suppress(PleiadError):
                await self._engine.container(database, container)
        return faults.Target(
            operation=visit.operation.kind,
            is_item_operation=visit.operation.is_item_operation,
            database=database,
            container=container,
            is_on=lambda range_id: self._is_on(visit, to, range_id),
        )

    def _names(self, to: Destination) -> tuple[str, str]:
        """The names of the database and the container of a request, which may have said their rids instead."""
        catalog = self._engine.catalog
        database = catalog.find(Kind.DATABASE, "", to.database) if to.database else None
        if database is None:
            return to.database, to.container
        container = catalog.find(Kind.CONTAINER, database.rid, to.container) if to.container else None
        return database.id, to.container if container is None else container.id

    def _is_on(self, visit: Visit, to: Destination, range_id: str) -> bool:
        """Whether a request goes to a physical partition: by the range it names, by its key, or because to all."""
        container = self._engine.open_container(to.database, to.container)
        if container is None:
            return False
        if to.range_id:
            return to.range_id == range_id
        try:
            key = visit.key
            if key is None:
                return container.map.by_range_id(range_id) is not None
            partitions = container.map.overlapping(container.span_of(key))
        except PleiadError:
            return False  # the operation itself will say what is wrong with the key
        return range_id in [partition.range_id for partition in partitions]


def _activity_ids() -> Iterator[str]:
    """Ids for requests that bring none: one random start per process, then counted, since randomness is slow."""
    start = uuid.uuid4()
    prefix = str(start)[:24]
    for number in itertools.count(start.node):
        yield f"{prefix}{number & 0xFFFFFFFFFFFF:012x}"

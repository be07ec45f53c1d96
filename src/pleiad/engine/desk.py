"""The desk: the one place that every request of every head passes.

A head turns what it was sent into a `Visit` and hands it in with the work to be done. The desk finds out who asks and
whether the operation is allowed, lets the metadata budget and faults on demand have their say, tries once more where
another server may have changed what was missing, and counts what came of it. Only a visit that was admitted has an
engine, so no head can do anything but through here. A point read, a create or a query that the master key has signed
may be no visit: its head takes the engine at hand, once the signature is proved, and has it counted (`count_read`).

Invariants
- `work` runs only after `access.check` said yes to the operation it is, again when it runs a second time.
- Every visit is counted once, whatever comes of it; a request that is no visit is counted by `refused`.
- Nothing but `Cut` is raised to a head: every failure is told by the head's own `told`.
- While the desk is `quiet`, no visit has an engine; those that come meanwhile wait, and have the one there is then.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from time import perf_counter
from types import CoroutineType
from typing import Any, NoReturn, Protocol, TypeVar, cast

from pleiad import charge, errors
from pleiad.catalog.resource import Kind
from pleiad.engine import access, faults
from pleiad.engine.access import MASTER, NOTHING
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.faults import Effect
from pleiad.engine.items import ItemAnswer, Key
from pleiad.engine.operation import Area, Operation
from pleiad.engine.recorded import note, note_write
from pleiad.engine.visit import Destination, Visit
from pleiad.engine.watch.observer import Seen
from pleiad.errors import PleiadError, Reason
from pleiad.keys.value import to_json_text
from pleiad.partition.partition import Partition

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.001
_OK = 200
_READ = Operation.READ_ITEM.kind
_QUERY = Operation.QUERY_ITEMS.kind
_NAME_CHARACTERS_MAX = 255
"""How much of a name observers are told: what is longer names nothing."""


class Answer(Protocol):
    """What a head answers with. The desk knows of it only what it is counted by."""

    status: int
    """How it ended, in the numbers of the head's protocol."""


class Cut(Exception):
    """A fault wants the connection of this request closed without an answer."""


V = TypeVar("V", bound=Visit)
A = TypeVar("A", bound=Answer)
Work = Callable[[V], A | Coroutine[Any, Any, A]]
"""Does what a visit is for, at once or where something has to be waited for by a coroutine."""


class Desk:
    """The desk of one account."""

    def __init__(self, engine: Engine) -> None:
        self.move_to(engine)
        self.activity_ids = _activity_ids()
        """New ids, for requests that bring none."""
        self.limits = engine.limits
        self.waiting_count = 0
        """Visits and creates that wait for something of their engine; others begin and end in one turn of the loop."""
        self._quiet_ends: asyncio.Event | None = None

    def move_to(self, engine: Engine) -> None:
        """Has the visits to come served by an engine; where there was another one, the desk is quiet."""
        self._engine = engine
        self._faults = engine.faults
        self._traffic = engine.traffic
        self._observers = engine.observers
        self._workload = engine.workload

    @contextlib.asynccontextmanager
    async def quiet(self, seconds_max: float) -> AsyncIterator[None]:
        """A time without visits: those under way have ended, and those that come wait for its end.

        TimeoutError, and nothing is kept waiting any longer, when some last longer than `seconds_max`.
        """
        if self._quiet_ends is not None:
            raise RuntimeError("the desk is quiet already")
        self._quiet_ends = asyncio.Event()
        end = perf_counter() + seconds_max
        try:
            while self.waiting_count:
                if perf_counter() > end:
                    raise TimeoutError(f"requests are still under way after {seconds_max:g} s")
                await asyncio.sleep(_LOOK_SECONDS)
            yield
        finally:
            self._quiet_ends.set()
            self._quiet_ends = None

    def activity_id(self, given: str) -> str:
        """The id of a request: the one it brings, if that can be shown as it is, or a new one."""
        if not given or not given.isascii() or not given.isprintable():
            return next(self.activity_ids)
        return given

    async def serve(self, visit: V, work: Work[V, A], told: Callable[[PleiadError, str], A]) -> A:
        """The answer to a request: what its work gives, or what its head tells of a failure."""
        answer = self.serve_soon(visit, work, told)
        return await answer if isinstance(answer, Coroutine) else answer

    def serve_soon(
        self, visit: V, work: Work[V, A], told: Callable[[PleiadError, str], A]
    ) -> A | Coroutine[Any, Any, A]:
        """The same, at once where nothing has to be waited for."""
        if (
            visit.caller is not MASTER
            or visit.operation.is_metadata
            or self._faults.rules
            or self._quiet_ends is not None
        ):
            return self._served(visit, work, told, self._admitted(visit, work))
        visit.engine = self._engine
        try:
            answer = work(visit)
        except Exception as error:
            return self._served(visit, work, told, _failing(error))
        if isinstance(answer, CoroutineType):
            return self._served(visit, work, told, answer)
        done = cast(A, answer)
        self._count(visit, done)
        return done

    @property
    def engine_at_hand(self) -> Engine | None:
        """The engine, while what the master key asks for is held up by nothing and looked at by nobody.

        It is for point reads, writes of one item and queries alone; who is not proved to have that key is a visit.
        """
        is_free = not self._faults.rules and self._quiet_ends is None and not self._observers.all
        return self._engine if is_free else None

    def serve_on(
        self,
        visit: V,
        work: Work[V, A],
        told: Callable[[PleiadError, str], A],
        begun: Coroutine[Any, Any, A],
    ) -> Coroutine[Any, Any, A]:
        """The answer to a request of the master key whose work was begun with the engine at hand."""
        visit.caller, visit.engine = MASTER, self._engine
        return self._served(visit, work, told, begun)

    async def _served(
        self,
        visit: V,
        work: Work[V, A],
        told: Callable[[PleiadError, str], A],
        begun: Coroutine[Any, Any, A],
    ) -> A:
        """The answer to a request that has to wait, or that has failed."""
        if self._quiet_ends is not None:
            await self._let_quiet_end(begun)
        self.waiting_count += 1
        try:
            answer = await begun
        except PleiadError as error:
            answer = await self._once_more(visit, work, told, error)
        except Cut:
            raise
        except Exception:
            answer = self._broken(visit, told)
        finally:
            self.waiting_count -= 1
        self._count(visit, answer)
        return answer

    async def _let_quiet_end(self, begun: Coroutine[Any, Any, A]) -> None:
        """Keeps a visit waiting; what it would have begun is dropped when its client gives up."""
        try:
            while self._quiet_ends is not None:
                await self._quiet_ends.wait()
        except BaseException:
            begun.close()
            raise

    async def _admitted(self, visit: V, work: Work[V, A]) -> A:
        """What the work of a request gives to a caller who is yet to be known, or whom something may hold up."""
        if visit.caller is MASTER:
            visit.engine = self._engine
        else:
            await self._admit(visit)
        if visit.operation.is_metadata or self._faults.rules:
            return await self._carefully(visit, work)
        return await _done(work(visit))

    def _count(self, visit: Visit, answer: Answer) -> None:
        container, kind, status = visit.container, visit.operation.kind, answer.status
        seconds = perf_counter() - visit.began_at
        if container is None:
            self._traffic.note(kind, status, seconds, visit.charge_ru)
        else:
            if visit.key_spent:
                container.heat.note(visit.key_spent, visit.charge_ru)
            taken = container.traffic.note(kind, status, seconds, visit.charge_ru)
            if visit.partitions is not None:
                for partition in visit.partitions:
                    partition.latencies[taken] += 1
            elif visit.partition is not None:
                visit.partition.latencies[taken] += 1
        if self._observers.all:
            try:
                self._show(visit, status, seconds)
            except Exception:
                _log.exception("nobody was told of activity %s", visit.activity_id)
        if container is None:
            if self._workload.is_on:
                self._record(visit, status)
        elif (recording := container.recording) is not None:
            work = visit.work
            if status == _OK and work.__class__ is ItemAnswer and visit.key_spent:
                _, _, row, _, _, old = work
                if old is None and row is not None:
                    recording.add_brief(
                        (visit.began_at, kind, visit.key_spent, row.id, visit.charge_ru, row.size_bytes)
                    )
                    return
            self._record(visit, status)

    def count_read(self, container: Container, key: Key, answer: ItemAnswer, began_at: float) -> None:
        """Counts a point read that gave its item, and was no visit because nothing had to be found out for it."""
        partition, cost, row = answer[:3]
        container.heat.note(key, cost.ru)
        taken = container.traffic.note(_READ, _OK, perf_counter() - began_at, cost.ru)
        partition.latencies[taken] += 1
        if container.recording is not None and row is not None:
            container.recording.add_brief((began_at, _READ, key, row.id, cost.ru, row.size_bytes))

    def count_write(
        self,
        operation: Operation,
        status: int,
        container: Container,
        key: Key,
        answer: ItemAnswer,
        began_at: float,
    ) -> None:
        """Counts a write of one item that is done, and was no visit because nothing had to be found out for it."""
        partition, cost = answer[:2]
        container.heat.note(key, cost.ru)
        taken = container.traffic.note(operation.kind, status, perf_counter() - began_at, cost.ru)
        partition.latencies[taken] += 1
        if container.recording is not None:
            note_write(container.recording, operation, status, key, answer)

    def count_page(
        self,
        container: Container,
        key: Key | None,
        ru: float,
        partitions: Sequence[Partition],
        began_at: float,
    ) -> None:
        """Counts a page of a query that was no visit, on a container that nobody records."""
        if key:
            container.heat.note(key, ru)
        taken = container.traffic.note(_QUERY, _OK, perf_counter() - began_at, ru)
        for partition in partitions:
            partition.latencies[taken] += 1

    def _record(self, visit: Visit, status: int) -> None:
        """Leaves the record of a request of any kind, where its container is recorded."""
        try:
            note(self._engine, visit, status)
        except Exception:
            _log.exception("activity %s was not recorded", visit.activity_id)

    def refused(self, kind: str, began_at: float, answer: A) -> A:
        """Counts a request that was refused before it was a visit."""
        seconds = perf_counter() - began_at
        self._traffic.note(kind, answer.status, seconds, 0.0)
        if self._observers.all:
            self._observers.tell(Seen(operation=kind, status=answer.status, seconds=seconds))
        return answer

    def _show(self, visit: Visit, status: int, seconds: float) -> None:
        """Tells the observers of an answered request."""
        to = visit.destination()
        database, container = self._names(to)
        key = _key_of(visit)
        self._observers.tell(
            Seen(
                operation=visit.operation.word,
                activity_id=visit.activity_id,
                database=database[:_NAME_CHARACTERS_MAX],
                container=container[:_NAME_CHARACTERS_MAX],
                key="" if key is None else to_json_text(key),
                partitions=self._reached(visit, to, key),
                status=status,
                charge_ru=visit.charge_ru,
                seconds=seconds,
                query=visit.question(),
            )
        )

    def _reached(self, visit: Visit, to: Destination, key: Key | None) -> tuple[str, ...]:
        """The physical partitions a request on items went to, as its operation, its range or its key tells."""
        if not visit.operation.is_item_operation:
            return ()
        if visit.partitions is not None:
            return tuple(partition.range_id for partition in visit.partitions)
        if to.range_id:
            return (to.range_id[:_NAME_CHARACTERS_MAX],)
        container = visit.container or self._engine.open_container(to.database, to.container)
        if key is None or container is None:
            return ()
        try:
            reached = container.map.overlapping(container.span_of(key))
        except PleiadError:
            return ()  # the answer has said what is wrong with the key
        return tuple(partition.range_id for partition in reached)

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
        work: Work[V, A],
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
        self._fail(visit, error)
        return told(error, visit.activity_id)

    def _fail(self, visit: Visit, error: PleiadError) -> None:
        """What is counted of a request that failed: where it was meant to go, and nothing spent on its key."""
        visit.charge_ru = error.charge_ru or 0.0
        visit.key_spent = visit.partition = visit.partitions = None
        if not visit.operation.is_item_operation:
            return
        to = visit.destination()
        visit.container = self._engine.open_container(to.database, to.container)
        if visit.container is not None and error.row.reason is Reason.THROTTLED and error.range_id:
            key = _key_of(visit)
            if key:
                with contextlib.suppress(PleiadError):  # a key that is none was not what it was refused for
                    visit.container.heat.refuse(key)

    def _broken(self, visit: Visit, told: Callable[[PleiadError, str], A]) -> A:
        """What is told of a failure that nobody foresaw."""
        _log.exception("activity %s failed", visit.activity_id)
        failure = errors.INTERNAL()
        self._fail(visit, failure)
        return told(failure, visit.activity_id)

    async def _carefully(self, visit: V, work: Work[V, A]) -> A:
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

    async def _with_faults(self, visit: V, work: Work[V, A]) -> A:
        """The work, unless a rule wants something else to happen to it."""
        if not self._faults.rules or visit.operation.is_admin:
            return await _done(work(visit))
        rule = self._faults.take(await self._met(visit))
        if rule is None:
            return await _done(work(visit))
        if rule.delay_ms:
            await asyncio.sleep(rule.delay_ms / 1000)
        error = rule.error()
        if error is not None:
            raise error
        if rule.effect is Effect.CUT_BEFORE:
            raise Cut
        if rule.effect is Effect.CUT_AFTER:
            try:
                await _done(work(visit))
            finally:
                raise Cut
        return await _done(work(visit))

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


def _key_of(visit: Visit) -> Key | None:
    """The partition key of a request, unless that cannot be read."""
    try:
        return visit.key_spent or visit.key or None
    except PleiadError:
        return None


async def _done(answer: A | Coroutine[Any, Any, A]) -> A:
    return await answer if isinstance(answer, Coroutine) else answer


async def _failing(error: Exception) -> NoReturn:
    raise error


def _activity_ids() -> Iterator[str]:
    """Ids for requests that bring none: one random start per process, then counted, since randomness is slow."""
    start = uuid.uuid4()
    prefix = str(start)[:24]
    last_digits = [f"{number:02x}" for number in range(256)]
    for number in itertools.count(start.node >> 8):
        most = f"{prefix}{number & 0xFFFFFFFFFF:010x}"
        for last in last_digits:
            yield most + last

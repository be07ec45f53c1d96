"""One seed of the simulation: a server that lives, crashes and lives again, its clients, and those who reshape it."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass

from pleiad import errors
from pleiad.catalog.throughput import Throughput
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.phase import Phase
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from tests.proofs.simulation.clients import Reader, Writer, everything, prepare
from tests.proofs.simulation.followers import RangeFollower, VersionFollower, WholeFollower
from tests.proofs.simulation.ground import Ground
from tests.proofs.simulation.history import History, demand
from tests.proofs.simulation.invariants import check_partitions, check_segments
from tests.proofs.simulation.loop import CrashError, SeededLoop, one_world

_OPERATION_SECONDS = 2.0
_LONG_HOLD_SECONDS = 3.0
_PARTITIONS_MAX = 6
_EXPECTED = (errors.CANNOT_SPLIT, errors.CANNOT_MERGE, errors.RANGE_GONE)


class InjectedError(Exception):
    """A failure in the middle of a change, made by the scenario."""


@dataclass(frozen=True)
class Plan:
    """What a seed does."""

    lives: int
    writers: int
    writes: int
    movers: int
    moves: int
    failing: float
    holding: float
    long_holds: bool
    limits: Limits
    throughput_ru: int
    key_version: int
    keeps_versions: bool


def plan_of(random_of: random.Random) -> Plan:
    small = random_of.random() < 0.2
    limits = Limits(
        operation_seconds=_OPERATION_SECONDS, physical_partition_bytes=12_000 if small else 1_000_000_000
    )
    return Plan(
        lives=random_of.choice((1, 2, 2, 3)),
        writers=random_of.randint(2, 5),
        writes=random_of.randint(10, 30),
        movers=random_of.choice((1, 1, 2)),
        moves=random_of.randint(2, 5),
        failing=random_of.choice((0.0, 0.0, 0.1, 0.3)),
        holding=random_of.choice((0.0, 0.3)),
        long_holds=random_of.random() < 0.1,
        limits=limits,
        throughput_ru=random_of.choice((400, 12_000)),
        key_version=random_of.choice((1, 2, 2)),
        keeps_versions=random_of.random() < 0.5,
    )


class _LogErrors(logging.Handler):
    """Failures that the server logged and nobody was told about."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, InjectedError):
            self.found.append(f"{record.getMessage()}: {error!r}")


class World:
    """The lives of one server, all from one seed."""

    def __init__(self, seed: int, ground: Ground) -> None:
        self._seed = seed
        self._ground = ground
        self._random = random.Random(f"{seed}/plan")
        self.plan = plan_of(self._random)
        self.history = History()
        self.history.may_time_out = self.plan.long_holds
        self._followers: list[RangeFollower | WholeFollower] = [RangeFollower(), WholeFollower()]
        self._version_follower = VersionFollower()
        self._now = 0.0
        self.crashes = 0
        self.changes = 0

    def run(self) -> None:
        """Runs the seed; raises what is wrong."""
        log = _LogErrors()
        logger = logging.getLogger("pleiad")
        logger.addHandler(log)
        was_propagating, logger.propagate = logger.propagate, False
        try:
            for life in range(self.plan.lives):
                self._live(life)
                demand(not log.found, f"the server logged {log.found[:3]}")
        finally:
            logger.removeHandler(log)
            logger.propagate = was_propagating

    def _live(self, life: int) -> None:
        is_last = life == self.plan.lives - 1
        order = random.Random(f"{self._seed}/{life}/order")
        loop = self._ground.loop(order, self._now)
        if not is_last and order.random() < 0.5:
            loop.crash_at_turn = order.randrange(20, 3_000)
        asyncio.set_event_loop(loop)
        try:
            with one_world(loop, order):
                loop.run_until_complete(self._scenario(life, loop, order))
        except CrashError:
            self.crashes += 1
            self._ground.survive(life, order)
        finally:
            self._ground.abandon()
            self._now = loop.time()
            asyncio.set_event_loop(None)
            logging.disable()
            loop.bury()
            logging.disable(logging.NOTSET)

    # -- one life ------------------------------------------------------------------------------------

    async def _scenario(self, life: int, loop: SeededLoop, order: random.Random) -> None:
        is_last = life == self.plan.lives - 1
        engine = Engine(await self._ground.open(loop, order), self.plan.limits)
        await engine.open()
        container = await self._container(engine)
        if not self.history.fixed:
            loop.crash_at_turn, crash = None, loop.crash_at_turn
            await prepare(container, self.history)
            if self.plan.keeps_versions:
                await self._version_follower.begin(container, await everything(container))
            if crash is not None:
                loop.crash_soon(crash)
        await self._check(engine, container, at_rest=False)
        random_of = random.Random(f"{self._seed}/{life}/report")
        mover = _Mover(self.plan, engine, container, random_of, loop, crashes=not is_last)
        engine.reshaper.report = mover.report
        await asyncio.gather(*self._clients(container, life), *mover.tasks(f"{self._seed}/{life}"))
        self.changes += mover.done
        mover.is_quiet = True
        await self._check(engine, container, at_rest=True)
        if is_last:
            await self._end(engine, container)
        await engine.close()

    async def _container(self, engine: Engine) -> Container:
        try:
            return await engine.container("db", "c")
        except PleiadError:
            pass
        body: dict[str, object] = {
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "version": self.plan.key_version},
            "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
            "defaultTtl": -1,
        }
        if self.plan.keeps_versions:
            body["changeFeedPolicy"] = {"retentionDuration": 10}
        try:
            database = engine.database("db")
        except PleiadError:
            database = await engine.create_database({"id": "db"}, None)
        await engine.create_container(database, body, Throughput(self.plan.throughput_ru))
        return await engine.container("db", "c")

    def _clients(self, container: Container, life: int) -> list[asyncio.Task[None]]:
        plan, history = self.plan, self.history
        work = []
        for number in range(plan.writers):
            random_of = random.Random(f"{self._seed}/{life}/writer{number}")
            work.append(Writer(container, history, number, random_of).run(plan.writes))
        for number in range(2):
            random_of = random.Random(f"{self._seed}/{life}/reader{number}")
            work.append(Reader(container, history, random_of).run(3))
        followers: list[RangeFollower | WholeFollower | VersionFollower] = [*self._followers]
        if plan.keeps_versions:
            followers.append(self._version_follower)
        for number, follower in enumerate(followers):
            random_of = random.Random(f"{self._seed}/{life}/follower{number}")
            work.append(follower.run(container, random_of, plan.writes))
        return [asyncio.ensure_future(each) for each in work]

    async def _check(self, engine: Engine, container: Container, at_rest: bool) -> None:
        began = time.time()
        found = await everything(container)
        self.history.check(found, began, time.time())
        if at_rest:
            await engine.keeper.settled()
            await check_partitions(engine, container)
            check_segments(engine, container, self._ground.segments())

    async def _end(self, engine: Engine, container: Container) -> None:
        await asyncio.sleep(10)
        await self._check(engine, container, at_rest=True)
        found = await everything(container)
        for follower in self._followers:
            await follower.finish(container, found)
        if self.plan.keeps_versions:
            await self._version_follower.finish(container, found, self.history)
        short = [key for key, owned in self.history.owned.items() if owned.ttl is not None and owned.state]
        demand(not short, f"the items {short} have outlived their time")


class _Mover:
    """Splits, merges and rehomes at random, lets changes fail, wait, and takes the process down with them."""

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        container: Container,
        random_of: random.Random,
        loop: SeededLoop,
        crashes: bool,
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._container = container
        self._random = random_of
        self._loop = loop
        self._crashes = crashes
        self.is_quiet = False
        self.done = 0

    async def report(self, container: Container, phase: Phase) -> None:
        """What happens when a change comes to a phase."""
        if self.is_quiet:
            return
        if self._crashes and self._random.random() < 0.1:
            self._loop.crash_soon(self._random.randrange(1, 25))
        if self._random.random() < self._plan.holding:
            longest = _LONG_HOLD_SECONDS if self._plan.long_holds else 0.05
            await asyncio.sleep(self._random.uniform(0, longest))
        if self._random.random() < self._plan.failing:
            raise InjectedError(phase)

    def tasks(self, seed: str) -> list[asyncio.Task[None]]:
        return [
            asyncio.ensure_future(self._move(random.Random(f"{seed}/mover{number}")))
            for number in range(self._plan.movers)
        ]

    async def _move(self, random_of: random.Random) -> None:
        for _ in range(self._plan.moves):
            await asyncio.sleep(random_of.uniform(0, 0.03))
            ids = [partition.range_id for partition in self._container.map.partitions]
            index = random_of.randrange(len(ids))
            try:
                await self._change(random_of.random(), ids, index)
                self.done += 1
            except InjectedError:
                continue
            except PleiadError as error:
                demand(error.row in _EXPECTED, f"a change failed: {status_of(error)} {error.message}")

    async def _change(self, choice: float, ids: list[str], index: int) -> None:
        if choice < 0.25:
            await self._engine.reshaper.rehome(self._container, ids[index])
        elif len(ids) < _PARTITIONS_MAX and (choice < 0.7 or len(ids) == 1):
            await self._engine.split(self._container, ids[index])
        elif len(ids) > 1:
            first = min(index, len(ids) - 2)
            await self._engine.merge(self._container, ids[first : first + 2])

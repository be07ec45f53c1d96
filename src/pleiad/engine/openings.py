"""Opening containers, and keeping the open ones abreast of other servers on the same store.

A notice, a miss and a write to a closed partition each lead to a look; the store tells whether this server is behind.
Correctness depends on none of it: a write under an old map ends GONE, a read of a segment that is no more ends with
SegmentDroppedError, and a change of the catalog that overlooked another one is refused and made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from pleiad.catalog.catalog import Catalog
from pleiad.catalog.placement import Placement
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container, open_container, partition_of
from pleiad.engine.container_scripts import ContainerScripts
from pleiad.engine.throughput.provisioning import Provisioning
from pleiad.engine.turns import MapTurns
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.partition.map import PartitionMap
from pleiad.partition.partition import Partition
from pleiad.script.pool import ScriptPool
from pleiad.store.catalog import CatalogStore
from pleiad.store.segments import SegmentDroppedError, SegmentStore

_log = logging.getLogger(__name__)


class Openings:
    """Opens the containers of one account, and learns what others made of them."""

    def __init__(
        self,
        store: CatalogStore,
        segments: SegmentStore,
        catalog: Catalog,
        limits: Limits,
        at_work: AtWork,
        provisioning: Provisioning,
        scripts: ScriptPool,
        turns: MapTurns,
    ) -> None:
        self._store = store
        self._segments = segments
        self._catalog = catalog
        self._limits = limits
        self._at_work = at_work
        self._provisioning = provisioning
        self._scripts = scripts
        self._turns = turns
        self._wanted = asyncio.Event()
        self._turn = asyncio.Lock()
        self._is_half_done = False
        self._looks_done = 0
        self._passed_over: set[str] = set()
        """Containers whose map was left as it was because this server was about to change it."""

    async def open(self, resource: Resource) -> Container:
        """The container at work, opened when it was not."""
        found = self._at_work.get(resource.rid)
        if found is not None:
            return found
        database = self._catalog.by_rid(Kind.DATABASE, resource.parent_rid)
        assert database is not None
        scripts = ContainerScripts(self._catalog, self._scripts, resource.rid)
        looks = self if self._store.is_shared else None
        opened = await open_container(
            resource, database, self._catalog, self._segments, self._limits, scripts, looks
        )
        opened.fixed_bytes = self._provisioning.fixed_bytes(resource)
        opened.allot(self._provisioning.allotment_of(resource))
        return self._at_work.add(opened)

    # -- what others changed -----------------------------------------------------------------------

    def notice(self) -> None:
        """Asks for a look soon."""
        self._wanted.set()

    async def for_ever(self) -> None:
        """Looks whenever there was a notice."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.look()
            except Exception as error:
                if isinstance(error, PleiadError):
                    if not self._store.problems.is_troubled:
                        _log.warning("learning what other servers changed is put off: %s", error.message)
                else:
                    _log.exception("learning what other servers changed failed")
                await asyncio.sleep(1)
                self._wanted.set()

    async def look(self) -> bool:
        """Takes over what others changed; whether there was something, also where another look has just found it."""
        looks_done = self._looks_done
        if not await self._is_needed():
            return self._looks_done != looks_done
        async with self._turn:
            async with self._catalog.lock:
                if not await self._is_needed():
                    return True
                self._is_half_done = True
                await self._catalog.load()
                self._at_work.forget_paths()
            for container in self._at_work:
                await self._take_over(container)
            await self._settle()
            self._is_half_done = False
            self._looks_done += 1
        return True

    async def _is_needed(self) -> bool:
        """Whether others changed something, or a look is under way, failed half-way or passed over a container.

        The store is no longer behind as soon as a look has begun to load, so its answer comes first.
        """
        if await self._store.is_behind() or self._is_half_done:
            return True
        return not all(map(self._turns.is_taken, self._passed_over))

    async def _take_over(self, container: Container) -> None:
        rid = container.resource.rid
        resource = self._catalog.by_rid(Kind.CONTAINER, rid)
        database = self._catalog.by_rid(Kind.DATABASE, resource.parent_rid) if resource is not None else None
        if resource is None or database is None:
            self._at_work.forget(rid)
            self._passed_over.discard(rid)
            return
        if resource != container.resource:
            container.adopt(resource, database)
        # Whoever changes the map of a container has its lease, so nobody else does meanwhile. Who has a turn here may
        # find that another server has the lease, and gives up: then the map is taken over by the next look.
        if self._turns.is_taken(rid):
            self._passed_over.add(rid)
        else:
            self._passed_over.discard(rid)
            await self._renew_map(container)

    async def _settle(self) -> None:
        """Takes over new throughput, and containers whose chores nobody else may be left to do."""
        for resource in self._catalog.with_chores():
            if resource.rid not in self._at_work:
                with contextlib.suppress(SegmentDroppedError):
                    await self.open(resource)
        for offer in self._catalog.all(Kind.OFFER):
            self._provisioning.apply(offer, self._at_work)

    async def renew(self, container: Container) -> None:
        """Learns what others made of a container before this server changes its map."""
        await self.look()
        self._passed_over.discard(container.resource.rid)
        await self._renew_map(container)

    async def _renew_map(self, container: Container) -> None:
        """Puts the map of the catalog in place of a container's own where they differ."""
        placements = self._catalog.placements(container.resource.rid)
        known = {_identity(partition): partition for partition in container.map.partitions}
        if not placements or {_placed(placement) for placement in placements} == set(known):
            return
        partitions = []
        for placement in placements:
            partition = known.get(_placed(placement))
            if partition is None:
                partition = partition_of(placement, self._segments)
                await partition.load()
            partitions.append(partition)
        container.adopt_map(PartitionMap(partitions))


def _identity(partition: Partition) -> tuple[int, int, str]:
    return partition.id, partition.epoch, partition.segment_name


def _placed(placement: Placement) -> tuple[int, int, str]:
    return placement.id, placement.epoch, placement.segment

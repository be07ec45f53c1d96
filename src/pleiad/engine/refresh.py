"""Learning what other servers on the same store have changed: the catalog, and the maps of the containers at work.

A notice, a miss and a write to a closed partition each lead to a look; the store tells whether this server is behind.
Correctness depends on none of it: a write under an old map ends GONE, a read of a segment that is no more ends with
SegmentDroppedError, and a change of the catalog that overlooked another one is refused and made again.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from pleiad import errors
from pleiad.catalog.catalog import Catalog, StaleCatalogError
from pleiad.catalog.placement import Placement
from pleiad.catalog.resource import Kind
from pleiad.engine.container import Container, partition_of
from pleiad.partition.map import PartitionMap
from pleiad.partition.partition import Partition
from pleiad.store.catalog import CatalogStore
from pleiad.store.segments import SegmentStore

_log = logging.getLogger(__name__)
_ATTEMPTS = 5

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_Self = TypeVar("_Self", bound="HasRefresher")


class Refresher:
    """Keeps the catalog and the open containers of one engine abreast of other servers."""

    def __init__(
        self,
        store: CatalogStore,
        segments: SegmentStore,
        catalog: Catalog,
        containers: dict[str, Container],
        forget_paths: Callable[[], None],
        is_being_changed: Callable[[Container], bool],
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        self._settle = settle
        self._store = store
        self._segments = segments
        self._catalog = catalog
        self._containers = containers
        self._forget_paths = forget_paths
        self._is_being_changed = is_being_changed
        self._wanted = asyncio.Event()
        self._turn = asyncio.Lock()
        self._is_half_done = False

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
                if isinstance(error, errors.PleiadError):
                    if not self._store.problems.is_troubled:
                        _log.warning("learning what other servers changed is put off: %s", error.message)
                else:
                    _log.exception("learning what other servers changed failed")
                await asyncio.sleep(1)
                self._wanted.set()

    async def look(self) -> bool:
        """Takes over what others changed; whether there was something."""
        if not await self._is_needed():
            return False
        async with self._turn:
            async with self._catalog.lock:
                if not await self._is_needed():
                    return True
                self._is_half_done = True
                await self._catalog.load()
                self._forget_paths()
            for rid, container in list(self._containers.items()):
                await self._renew(rid, container)
            await self._settle()
            self._is_half_done = False
        return True

    async def _is_needed(self) -> bool:
        """Whether others changed something, or a look is under way or failed half-way.

        The store is no longer behind as soon as a look has begun to load, so its answer comes first.
        """
        return await self._store.is_behind() or self._is_half_done

    async def _renew(self, rid: str, container: Container) -> None:
        resource = self._catalog.by_rid(Kind.CONTAINER, rid)
        database = self._catalog.by_rid(Kind.DATABASE, resource.parent_rid) if resource is not None else None
        if resource is None or database is None:
            self._containers.pop(rid, None)
            return
        if resource != container.resource:
            container.adopt(resource, database)
        # Whoever changes the map of a container has its lease, so nobody else does meanwhile.
        if not self._is_being_changed(container):
            await self.renew_map(container)

    async def renew_map(self, container: Container) -> None:
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


class HasRefresher:
    """What `on_a_fresh_catalog` asks of the class of its methods."""

    refresher: Refresher


def on_a_fresh_catalog(
    change: Callable[Concatenate[_Self, _Arguments], Coroutine[Any, Any, _Answer]],
) -> Callable[Concatenate[_Self, _Arguments], Coroutine[Any, Any, _Answer]]:
    """A change of the catalog that is made again when another server's change came between."""

    @functools.wraps(change)
    async def whole(self: _Self, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        for _ in range(_ATTEMPTS):
            try:
                return await change(self, *arguments, **named)
            except StaleCatalogError:
                await self.refresher.look()
        raise errors.UNAVAILABLE(reason="Other servers are changing the catalog; retry.")

    return whole

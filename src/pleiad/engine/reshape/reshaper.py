"""Changing the physical partitions of a container while it is at work: split, merge, and rehome.

A split is two commits, whatever the size: the segment fences the parent and opens two partitions over the same rows,
then the catalog puts them into the map. Afterwards each child is *rehomed*: its rows are copied into a segment of its
own. A merge is the same copy, of two or more neighbours into one segment.

A copy is made beside the writes: first all rows, then what changed since, again and again until little is left.
Then the sources are fenced, the rest is repeated, the totals are compared, and the catalog commits.

Invariants:
- the commit of the catalog is the moment of the change; before it everything can be undone, after it nothing;
- a partition that was fenced without that commit is opened again under a new epoch, so that neither a writer nor a
  mover who knows an older one can do anything;
- every step expects the record of the operation as its maker wrote it, and to undo a change begins with taking that
  record over: so a commit that was not confirmed is done or can no more take place, whoever finds it half done;
- what cannot be undone because the store does not answer is undone by `mend` when it does;
- who was fenced out waits for `Container.adopt_map`, which ends every change, done or undone;
- one change at a time in a container.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pleiad import errors
from pleiad.catalog.catalog import Catalog
from pleiad.catalog.container import unique_values_of
from pleiad.catalog.placement import Cause, MapChange, Placement, segment_name, segment_of
from pleiad.engine.container import Container, partition_of
from pleiad.engine.faults import Faults, Rule
from pleiad.engine.phase import Phase
from pleiad.engine.reshape.failure import ChangedElsewhereError, OvertakenError, StoppedError
from pleiad.engine.reshape.pieces import Source, check_neighbours, cut, live_partition, middle_of, together
from pleiad.engine.reshape.progress import Progress
from pleiad.engine.steady import to_the_end
from pleiad.engine.turns import MapTurns
from pleiad.errors import PleiadError
from pleiad.keys.hash import hash_of
from pleiad.keys.range import EpkRange
from pleiad.limits import Limits
from pleiad.partition.map import PartitionMap
from pleiad.partition.partition import Partition
from pleiad.store.catalog import CatalogStore
from pleiad.store.move import move_between
from pleiad.store.moves import Division
from pleiad.store.rows import PartitionState
from pleiad.store.segments import Segment, SegmentStore

_log = logging.getLogger(__name__)

_REST = 0.8
"""How long a copy rests after each piece of it, as a part of the time that took, while somebody writes: the clients
go before the copy."""
_DELTA_ROWS_MAX = 100
_CATCH_UP_ROUNDS_MAX = 50
_LOOK_SECONDS = 0.02
"""How often a change that is held looks whether it still is: a hold also ends by its time."""


Report = Callable[[Container, Phase], Awaitable[None]]


async def _nothing(container: Container, phase: Phase) -> None:
    """Reports to nobody."""


class Maps(Protocol):
    """Who knows the partition maps that other servers made."""

    async def renew(self, container: Container) -> None:
        """Learns what others made of a container before this server changes its map."""


class Reshaper:
    """Splits, merges and rehomes physical partitions."""

    def __init__(
        self,
        store: CatalogStore,
        segments: SegmentStore,
        catalog: Catalog,
        limits: Limits,
        faults: Faults,
        turns: MapTurns,
        maps: Maps,
    ) -> None:
        self._store = store
        self._segments = segments
        self._catalog = catalog
        self._limits = limits
        self._faults = faults
        self._turns = turns
        self._maps = maps
        self._unsettled: dict[str, MapChange] = {}
        """The changes of this process that are neither done nor undone, by container."""
        self.progress: dict[str, Progress] = {}
        """How far the changes of this process are that are under way, by container."""
        self._is_stopping = False
        self.report: Report = _nothing
        """Is awaited at the beginning of each phase."""

    async def stop(self) -> None:
        """Undoes what is under way and lets nothing new begin."""
        self._is_stopping = True
        await self._turns.ended()

    async def _enter(self, container: Container, phase: Phase) -> None:
        if (progress := self.progress.get(container.resource.rid)) is not None:
            progress.phase = phase
        await self.report(container, phase)
        await self._wait_while_held(container, phase)
        self._check_going()

    async def _wait_while_held(self, container: Container, phase: Phase) -> None:
        """Waits as long as a fault holds changes at a phase; each that does counts this change once."""
        met: list[Rule] = []
        while not self._is_stopping:
            holds = self._faults.holds(phase, container.database.id, container.resource.id)
            if not holds:
                return
            for rule in holds:
                if rule not in met:
                    rule.hits += 1
                    met.append(rule)
            await asyncio.sleep(_LOOK_SECONDS)

    def _check_going(self) -> None:
        if self._is_stopping:
            raise StoppedError

    # -- split -----------------------------------------------------------------------------------

    @to_the_end
    async def split(
        self, container: Container, range_id: str, cause: Cause = Cause.REQUEST
    ) -> tuple[Partition, Partition]:
        """Divides a partition in two; the children share its segment until `rehome` has been there."""
        async with self._turn(container):
            parent = live_partition(container, range_id)
            at = await self._where(container, parent)
            old = self._placement(container, parent)
            left_id = 1 + max(placement.id for placement in self._catalog.history(old.container_rid))
            operation = await self._begin(container, "split", [parent], {parent.segment_name})
            try:
                await self._enter(container, Phase.DIVIDING)
                division = Division(parent.id, parent.epoch, parent.span, at, left_id, left_id + 1)
                halves = await parent.segment.divide(division)
                if halves is None:
                    raise OvertakenError
                await self._enter(container, Phase.COMMITTING)
                children = [
                    replace(
                        old,
                        id=state.partition,
                        span=span,
                        epoch=state.epoch,
                        parents=(*old.parents, old.id),
                        made_at=int(time.time()),
                        cause=cause.value,
                    )
                    for state, span in zip(halves, cut(parent.span, at), strict=True)
                ]
                await self._commit(container, operation, [old], children)
            except Exception:
                await self._try_to_undo(container)
                raise
            del self._unsettled[container.resource.rid]
            lsns = [state.lsn for state in halves]
            left, right = (
                partition_of(child, self._segments, lsn) for child, lsn in zip(children, lsns, strict=True)
            )
            self._adopt(container, [parent], [left, right])
            _log.info(
                "split %s range %s into %s and %s", container.path, range_id, left.range_id, right.range_id
            )
            return left, right

    async def _where(self, container: Container, parent: Partition) -> bytes:
        """The epk a partition is cut at: half of its logical partitions on each side."""
        at = await parent.segment.middle(parent.span)
        if at is None and (await parent.state()).items:
            raise errors.CANNOT_SPLIT(
                range=parent.range_id,
                reason="it holds a single logical partition, and those are never divided",
            )
        # Clients place keys in ranges by their hash alone, so a range ends at a hash.
        at = middle_of(parent.span, container) if at is None else hash_of(at, container.key)
        if at is None or not parent.span.min < at < parent.span.max:
            raise errors.CANNOT_SPLIT(range=parent.range_id, reason="its range of hashes is too narrow")
        return at

    # -- merge and rehome ------------------------------------------------------------------------

    @to_the_end
    async def merge(self, container: Container, range_ids: Sequence[str]) -> Partition:
        """Makes one partition of neighbours."""
        async with self._turn(container):
            sources = sorted(
                [live_partition(container, each) for each in range_ids], key=lambda each: each.span.min
            )
            check_neighbours(sources)
            size_bytes = sum([(await source.state()).size_bytes for source in sources])
            if size_bytes > self._limits.physical_partition_bytes:
                raise errors.CANNOT_MERGE(
                    reason=f"together they hold {size_bytes} bytes, and a physical partition holds at most "
                    f"{self._limits.physical_partition_bytes}."
                )
            rid = container.resource.rid
            old = [self._placement(container, source) for source in sources]
            ancestors = {id for placement in old for id in (*placement.parents, placement.id)}
            id = 1 + max(placement.id for placement in self._catalog.history(rid))
            span = EpkRange(sources[0].span.min, sources[-1].span.max)
            new = Placement(
                rid,
                id,
                span,
                _segment_name(container, id),
                1,
                tuple(sorted(ancestors)),
                int(time.time()),
                node=old[0].node,
                cause=Cause.REQUEST.value,
            )
            merged = await self._relocate(container, "merge", sources, old, new)
            _log.info("merged %s ranges %s into %s", container.path, ", ".join(range_ids), merged.range_id)
            return merged

    @to_the_end
    async def rehome(self, container: Container, range_id: str) -> None:
        """Gives a partition a segment of its own."""
        async with self._turn(container):
            source = live_partition(container, range_id)
            old = self._placement(container, source)
            new = replace(old, segment=_segment_name(container, source.id), epoch=old.epoch + 1)
            await self._relocate(container, "rehome", [source], [old], new)

    def homeless(self, container: Container) -> list[Partition]:
        """The partitions that sit in a segment that was made for another one, and holds more than their rows."""
        homeless = {
            placement.id
            for placement in self._catalog.placements(container.resource.rid)
            if not placement.is_at_home
        }
        return [partition for partition in container.map.partitions if partition.id in homeless]

    async def _relocate(
        self,
        container: Container,
        kind: str,
        partitions: Sequence[Partition],
        old: Sequence[Placement],
        new: Placement,
    ) -> Partition:
        """Copies partitions into a new segment, and puts one partition over it in their place."""
        target = segment_of(new, self._segments)
        segments = {partition.segment_name: partition.segment for partition in partitions}
        sources: list[Source] = []
        operation = await self._begin(container, kind, partitions, {new.segment, *segments})
        try:
            for segment in segments.values():
                await segment.track_deletes(True)
            await self._enter(container, Phase.COPYING)
            for partition in partitions:
                sources.append(await self._copy(container, target, partition))
            await self._enter(container, Phase.CATCHING_UP)
            for _ in range(_CATCH_UP_ROUNDS_MAX):
                if await self._catch_up(sources) <= _DELTA_ROWS_MAX:
                    break
            for source in sources:
                partition = source.partition
                source.fenced = await partition.segment.fence(partition.id, partition.epoch)
                if source.fenced is None:
                    raise OvertakenError
            await self._enter(container, Phase.FENCED)
            await self._catch_up(sources)
            state = together(new, sources)
            await target.open_partition(state)
            await self._enter(container, Phase.COMMITTING)
            await self._commit(container, operation, old, [new])
        except Exception:
            await self._try_to_undo(container)
            raise
        result = partition_of(new, self._segments, state.lsn)
        self._adopt(container, partitions, [result])
        try:
            await self.report(container, Phase.CLEANING)
        finally:
            await self._try_to_clean(container, segments)
        return result

    # -- holding writers -------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def held(self, container: Container) -> AsyncIterator[list[tuple[Partition, PartitionState]]]:
        """A time in which nobody writes to a container: the partitions with their counters, which stay as they are.

        Whoever wants to write waits. Afterwards the partitions are open under new epochs, so that every server looks
        at the catalog before its next write.
        """
        async with self._turn(container):
            partitions = list(container.map.partitions)
            await self._begin(container, "hold", partitions, ())
            fenced = []
            try:
                for partition in partitions:
                    state = await partition.segment.fence(partition.id, partition.epoch)
                    if state is None:
                        raise OvertakenError
                    fenced.append((partition, state))
                yield fenced
            finally:
                await self._try_to_undo(container)

    async def _copy(self, container: Container, target: Segment, partition: Partition) -> Source:
        values_of = unique_values_of(container.definition.unique_keys)
        move = move_between(partition.segment, target, partition.id, partition.span, values_of)
        if (progress := self.progress.get(container.resource.rid)) is not None:
            progress.sources[partition.id] = Source(partition, move)
        has_more = True
        while has_more:
            self._check_going()
            seen, began = partition.lsn, time.monotonic()
            has_more = await move.copy_some()
            if partition.lsn > seen:
                await asyncio.sleep((time.monotonic() - began) * _REST)
        return Source(partition, move)

    async def _catch_up(self, sources: Sequence[Source]) -> int:
        """Repeats what happened at the sources since the last time; how many rows that were."""
        return sum([await source.move.catch_up() for source in sources])

    async def _try_to_clean(self, container: Container, segments: Iterable[str]) -> None:
        """Frees what a change has left; where the store does not answer, `mend` does it."""
        try:
            await self._drop_unused(segments)
        except PleiadError as error:
            _log.warning("segments of %s are freed later: %s", container.path, error.message)
        else:
            del self._unsettled[container.resource.rid]

    async def _drop_unused(self, segments: Iterable[str]) -> None:
        """Frees the segments that hold no live partition any more; the others go on as they are."""
        live = self._catalog.segment_names()
        for name in sorted(segments):
            if name in live:
                await self._segments.segment(name).track_deletes(False)
            else:
                await self._segments.drop_segments([name])

    # -- what every change does --------------------------------------------------------------------

    @to_the_end
    async def mend(self, container: Container) -> None:
        """Undoes the change that the last process, or this one, left half done."""
        if self._is_half_done(container):
            async with self._turn(container):
                pass  # to have a turn is to find everything mended

    def _is_half_done(self, container: Container) -> bool:
        rid = container.resource.rid
        return self._catalog.is_interrupted(rid) or rid in self._unsettled

    @contextlib.asynccontextmanager
    async def _turn(self, container: Container) -> AsyncIterator[None]:
        """Alone in changing the map of a container, in this process and among servers on the same store."""
        rid = container.resource.rid
        async with self._turns.of(rid), self._store.lease(f"map/{rid}") as is_ours:
            if not is_ours:
                raise ChangedElsewhereError
            if self._store.is_shared:
                await self._maps.renew(container)
            if self._is_half_done(container):
                await self._undo(container)
            try:
                yield
            finally:
                self.progress.pop(rid, None)

    @property
    def is_troubled(self) -> bool:
        """Whether the store cannot be worked on, and the operator knows."""
        return self._store.problems.is_troubled

    def _placement(self, container: Container, partition: Partition) -> Placement:
        for placement in self._catalog.placements(container.resource.rid):
            if placement.id == partition.id:
                return placement
        raise errors.RANGE_GONE(range=partition.range_id)

    async def _begin(
        self, container: Container, kind: str, partitions: Sequence[Partition], segments: Iterable[str]
    ) -> MapChange:
        rid = container.resource.rid
        history = self._catalog.history(rid)
        ids = tuple(each.id for each in partitions)
        self.progress[rid] = Progress(kind, ids)
        await self._enter(container, Phase.PREPARING)
        operation = MapChange(kind, ids, tuple(sorted(segments)), secrets.token_hex(8))
        while True:
            async with self._catalog.lock:
                # What the caller chose, ids above all, holds for the map that it saw.
                if self._catalog.history(rid) != history or self._catalog.is_interrupted(rid):
                    raise ChangedElsewhereError
                self._unsettled[rid] = operation
                if await self._catalog.begin_operation(rid, operation):
                    return operation
                del self._unsettled[rid]
            await self._maps.renew(container)

    async def _commit(
        self, container: Container, operation: MapChange, old: Sequence[Placement], new: Sequence[Placement]
    ) -> None:
        async with self._catalog.lock:
            if not await self._catalog.change_map(container.resource.rid, operation, old, new, ends=True):
                raise OvertakenError

    def _adopt(self, container: Container, old: Sequence[Partition], new: Sequence[Partition]) -> None:
        self.progress.pop(container.resource.rid, None)
        stay = [partition for partition in container.map.partitions if partition not in old]
        container.adopt_map(PartitionMap([*stay, *new]))

    async def _try_to_undo(self, container: Container) -> None:
        """Undoes what failed, for as long as the store answers; the failure itself is what the caller is told."""
        try:
            await self._undo(container, takes_over=False)
        except PleiadError as error:
            _log.warning("a change of %s is undone later: %s", container.path, error.message)

    async def _undo(self, container: Container, takes_over: bool = True) -> None:
        """Opens again what a change has fenced, and frees what nobody names; all of it has no effect the second time.

        What was committed unknown to this server is done, and stays so. An operation that is not, or no more, this
        server's own is taken over by who has just got the lease.
        """
        rid = container.resource.rid
        await self._maps.renew(container)
        own, found = self._unsettled.get(rid), self._catalog.operation(rid)
        if found is not None:
            if found != own:
                if not takes_over:
                    raise OvertakenError
                found = await self._take_over(container, found, own)
            fenced = [each for each in container.map.partitions if each.id in found.partitions]
            reopened = [await self._reopen(container, found, partition) for partition in fenced]
            await self._commit(container, found, (), ())
            self._adopt(container, fenced, reopened)
        left = found or own
        await self._drop_unused(left.segments if left is not None else ())
        self._unsettled.pop(rid, None)

    async def _take_over(self, container: Container, found: MapChange, last: MapChange | None) -> MapChange:
        """Makes an operation that somebody else has left this server's own: now nobody else can go on with it."""
        segments = {*found.segments, *(last.segments if last is not None else ())}
        own = replace(found, segments=tuple(sorted(segments)), token=secrets.token_hex(8))
        self._unsettled[container.resource.rid] = own
        async with self._catalog.lock:
            if not await self._catalog.take_over(container.resource.rid, own):
                raise OvertakenError
        return own

    async def _reopen(self, container: Container, operation: MapChange, partition: Partition) -> Partition:
        """Opens a partition under an epoch nobody knows yet: first the catalog learns it, then the segment.

        Also when it seems to be open: a fence of the change may still be on its way, and then finds another epoch.
        """
        old = self._placement(container, partition)
        new = replace(old, epoch=max((await partition.state()).epoch, old.epoch) + 1)
        async with self._catalog.lock:
            if not await self._catalog.change_map(container.resource.rid, operation, [old], [new]):
                raise OvertakenError
        state = await partition.segment.reopen(partition.id, new.epoch)
        return partition_of(new, self._segments, state.lsn)


def _segment_name(container: Container, id: int) -> str:
    """A name that was never used: what a mover of the past still writes to is not what this one reads."""
    return f"{segment_name(container.resource.number, id)}-{secrets.token_hex(4)}"

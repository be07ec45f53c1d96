"""One copy at work, from wherever the last process left it to its end.

Invariants:
- what is written down of the progress is in the target: places are noted after what lies before them is durable;
- from the first to the last write only the server whose token the record has writes to the target: it has closed the
  target to all others, and given its partitions epochs that nobody knew before;
- nothing that is repeated goes on for as long as the source is written to: what happened is repeated up to what the
  source had reached when that began;
- the copy ends well only after every item was compared and both containers hold the same number of items; where it
  follows the source, that is while nobody can write to the source.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from pleiad.catalog.resource import Kind
from pleiad.engine.engine import Engine
from pleiad.engine.reshape.failure import ChangedElsewhereError
from pleiad.job.copy.apply import Applier
from pleiad.job.copy.collisions import find_collisions
from pleiad.job.copy.ending import Ending
from pleiad.job.copy.failure import CopyCancelledError, CopyFailedError, NamelessCollisionError
from pleiad.job.copy.job import Asked, CopyPlace, CopyState, CopyStep
from pleiad.job.copy.ledger import Ledger
from pleiad.job.copy.pacer import Pacer
from pleiad.job.copy.prepare import Preparation, held_when_free, open_by_rid
from pleiad.job.copy.pursuit import Pursuit, outpaced
from pleiad.job.copy.reader import SourceReader
from pleiad.job.copy.transform import Transform
from pleiad.job.copy.verify import Verification, live_count
from pleiad.job.copy.writer import TargetWriter
from pleiad.keys.range import WHOLE
from pleiad.store.catalog import Record
from pleiad.store.rows import Row

_NOTE_SECONDS = 2.0
_POLL_SECONDS = 0.1
_DELTA_CHANGES_MAX = 200
_CATCH_UP_SECONDS_MAX = 30.0
_SWITCH_SECONDS_MAX = 2.0
"""How long catching up may take at the share of the copy: on the way, and when nothing else is left to do."""
_HELD_SECONDS_MAX = 0.8
"""Writers are let go when the last changes take longer than this; they wait for the commit of the catalog besides."""
_ATTEMPTS_MAX = 10
_RENEWALS_MAX = 5
_MISCOUNTS_MAX = 1
_EXPIRED_ROWS = 1_000


class _TooLongError(Exception):
    """The writers of the source would have to wait too long."""


class CopyRun:
    """The work of this process on one copy."""

    def __init__(self, engine: Engine, record: Record) -> None:
        self._engine = engine
        self.ledger = Ledger(engine, record)
        self._ending = Ending(engine, self.ledger)
        self._noted_at = time.monotonic()
        self.done = self.ledger.job.done
        self.followed = self.ledger.job.followed
        self.verified = 0
        self._places: list[CopyPlace] = []

    async def run(self) -> None:
        """Brings the copy to an end; CopyTakenError when another server has it, PleiadError to try again later."""
        await self.ledger.take()
        try:
            self.ledger.check_wanted()
            await Preparation(self._engine, self.ledger).run()
            await self._open()
            try:
                await self._work()
            except NamelessCollisionError:
                raise await self._miscounted(self.ledger.job.total, self.done) from None
        except CopyFailedError as error:
            await self._ending.failed(error.reason, error.items)
        except CopyCancelledError:
            await self._ending.cancelled()

    async def _open(self) -> None:
        engine, job = self._engine, self.ledger.job
        self._source = await open_by_rid(engine, job.source_rid, "source")
        self._target = await open_by_rid(engine, job.target_rid, "target")
        # The epochs of its partitions become new: whoever worked on this copy before cannot write there any more.
        async with held_when_free(engine, self.ledger, self._target):
            pass
        self._pacer = Pacer(job.plan.share, engine.traffic)
        self._reader = SourceReader(self._source, self._pacer)
        self._writer = TargetWriter(self._target, self._pacer, self.ledger.check_ours)
        transform = Transform(self._source, self._target, job.plan.sets)
        self._applier = Applier(
            self._source, self._target, transform, self._reader, self._writer, engine.looks
        )
        self._applier.may_repeat = job.resumed > 0
        self._places = list(job.places)

    async def _work(self) -> None:
        await self._copy()
        await self._enter(CopyStep.FOLLOWING)
        await self._catch_up()
        if not self.ledger.job.plan.follows:
            await self._verify_moment()
            return
        await self._verify()
        await self._complete()

    async def _enter(self, step: CopyStep, **fields: Any) -> None:
        await self.ledger.note(
            step=step, places=tuple(self._places), done=self.done, followed=self.followed, **fields
        )

    async def _note(self) -> None:
        """Writes progress down now and then, and looks whether the copy is still wanted."""
        self.ledger.check_wanted()
        for rid, what in ((self._source.resource.rid, "source"), (self._target.resource.rid, "target")):
            if self._engine.catalog.by_rid(Kind.CONTAINER, rid) is None:
                raise CopyFailedError(f"the {what} was deleted meanwhile")
        now = time.monotonic()
        if now - self._noted_at >= _NOTE_SECONDS and not self._applier.parked:
            self._noted_at = now
            await self._enter(self.ledger.job.step)

    # -- what was there at the beginning ---------------------------------------------------------------

    async def _copy(self) -> None:
        """Copies the rows of the beginning."""
        done: list[CopyPlace] = []
        waiting = list(reversed(self._places))
        while waiting:
            place = waiting.pop()
            if not place.has_rows:
                done.append(place)
                continue
            rows, places = await self._reader.rows(place)
            self.done += await self._applier.create(rows)
            waiting += reversed(places)
            self._places = [*done, *reversed(waiting)]
            await self._note()
            await self._pacer.rest()

    # -- what happened since ------------------------------------------------------------------------

    async def _catch_up(self, seconds_max: float = _CATCH_UP_SECONDS_MAX) -> None:
        """Repeats what happened until little is left; takes more than its share where that would take too long.

        A copy of one moment needs no more than what happened while its rows were read.
        """
        pursuit = Pursuit(self._pacer, seconds_max, await self._left())
        while await self._follow(pursuit) > _DELTA_CHANGES_MAX and self.ledger.job.plan.follows:
            pass
        self._pacer.relax()

    async def _left(self) -> int:
        """How many changes are yet to be repeated, or a few more: an LSN may be one of a row that is not in a place."""
        await self._source.learn_lsns(WHOLE)
        return sum(max(0, self._reached(place) - place.versions_after) for place in self._places)

    async def _follow(self, pursuit: Pursuit | None = None, until: float | None = None) -> int:
        """Repeats what happened up to now, at every place; how many changes that were.

        Nobody may write to the source where it has to be done until a time.
        """
        count = 0
        reached: list[CopyPlace] = []
        await self._source.learn_lsns(WHOLE)
        waiting = [(place, self._reached(place)) for place in reversed(self._places)]
        while waiting:
            place, goal = waiting.pop()
            changes, has_more, places = await self._reader.changes(place)
            if changes:
                if self.ledger.job.plan.follows:
                    await self._applier.repeat(changes)
                else:
                    await self._applier.create_images(changes, place.goal)
                count += len(changes)
                self.followed += len(changes)
            for each in reversed(places):
                if has_more and (until is not None or each.versions_after < goal):
                    waiting.append((each, goal))
                else:
                    reached.append(each)
            self._places = [*reached, *(each for each, _ in reversed(waiting))]
            if until is None:
                await self._note()
                if pursuit is not None and pursuit.is_due:
                    pursuit.look(await self._left())
                await self._pacer.rest()
            elif time.monotonic() > until:
                raise _TooLongError
        await self._applier.settle()
        return count

    def _reached(self, place: CopyPlace) -> int:
        """How far the source is at a place, as far as this server knows."""
        return max(partition.lsn for partition in self._source.map.overlapping(place.span))

    # -- comparing ----------------------------------------------------------------------------------

    async def _verify_moment(self) -> None:
        """Compares the target with what the source was at the beginning, and ends the copy."""
        await self._enter(CopyStep.VERIFYING)
        verification = Verification(self._applier, self._writer)
        for place in self._places:
            await self._compare_rows(verification, replace(place, rows_after=0))
        # What was not met by now has been changed by now.
        await self._source.learn_lsns(WHOLE)
        for place in self._places:
            goal = self._reached(place)
            waiting = [replace(place, versions_after=place.goal)]
            while waiting:
                changes, has_more, places = await self._reader.changes(waiting.pop())
                befores = [each.before for each in changes if each.before is not None]
                await verification.compare([row for row in befores if row.lsn <= place.goal])
                waiting += [each for each in places if has_more and each.versions_after < goal]
                await self._verified(verification)
        if verification.suspects:
            raise verification.refusal()
        now = int(time.time())
        count = await live_count(self._target, self._source.default_ttl, now)
        if count != verification.live_at(now):
            raise await self._miscounted(verification.live_at(now), count)
        await self._ending.done(
            verified=verification.items,
            checksum=verification.checksum,
            done=self.done,
            followed=self.followed,
        )

    async def _miscounted(self, expected: int, found: int) -> CopyFailedError:
        """What is told when the target holds more or fewer items than the source: it names those that became one."""
        collisions = await find_collisions(self._applier, self._pages, self.ledger.job.total)
        if collisions:
            return await self._applier.collision(collisions)
        return CopyFailedError(
            f"the target holds {found:,} items where the source has {expected:,}: something else has written there"
        )

    async def _pages(self) -> AsyncIterator[Sequence[Row]]:
        """Everything that the source holds now."""
        waiting = [CopyPlace(each.span, each.lsn, 0, each.lsn) for each in self._source.map.partitions]
        while waiting:
            place = waiting.pop()
            if place.has_rows:
                rows, places = await self._reader.rows(place)
                yield rows
                waiting += places
                await self._note()

    async def _compare_rows(self, verification: Verification, place: CopyPlace) -> None:
        waiting = [place]
        while waiting:
            place = waiting.pop()
            if place.has_rows:
                rows, places = await self._reader.rows(place)
                await verification.compare(rows)
                waiting += reversed(places)
                await self._verified(verification)

    async def _verified(self, verification: Verification) -> None:
        self.verified = verification.items
        await self._note()
        await self._pacer.rest()

    async def _verify(self) -> None:
        """Compares a source that goes on to be written to; what differs must be what has just changed."""
        await self._enter(CopyStep.VERIFYING)
        verification = Verification(self._applier, self._writer)
        await self._source.learn_lsns(WHOLE)
        for place in list(self._places):
            for partition in self._source.map.overlapping(place.span):
                part = partition.span.intersect(place.span)
                if part is not None:
                    goal = CopyPlace(part, partition.lsn, 0, partition.lsn)
                    await self._compare_rows(verification, goal)
        for _ in range(_RENEWALS_MAX):
            if not verification.suspects:
                break
            await self._catch_up()
            origins, verification.suspects = list(verification.suspects), {}
            items = await self._applier.renew(origins)
            await self._applier.settle()
            await verification.compare_items(items)
        if verification.suspects:
            raise verification.refusal()
        self.verified = verification.items
        await self._enter(
            CopyStep.FOLLOWING,
            is_ready=True,
            verified=verification.items,
            checksum=verification.checksum,
        )

    # -- the end ------------------------------------------------------------------------------------

    async def _complete(self) -> None:
        """Follows the source until the copy is to be completed, and completes it."""
        plan, miscounts = self.ledger.job.plan, 0
        while not plan.is_switch and self.ledger.asked is not Asked.COMPLETE:
            await self._follow()
            await asyncio.sleep(_POLL_SECONDS)
        await self.ledger.note(state=CopyState.SWITCHING)
        for attempt in range(_ATTEMPTS_MAX):
            await self._catch_up(_SWITCH_SECONDS_MAX)
            try:
                counts = await self._switch()
                if counts is None:
                    return
                miscounts += 1
                if miscounts > _MISCOUNTS_MAX:
                    raise await self._miscounted(*counts)
                await self._verify()
            except (_TooLongError, ChangedElsewhereError):
                await asyncio.sleep(_POLL_SECONDS * attempt)
            self.ledger.check_wanted()
        raise outpaced()

    async def _switch(self) -> tuple[int, int] | None:
        """Stops the writers of the source for a moment, repeats the rest, and ends the copy.

        When the two do not hold the same number of items, their numbers: then they have to be compared again.
        """
        began = time.monotonic()
        async with self._engine.reshaper.held(self._source), self._pacer.free():
            await self._follow(until=began + _HELD_SECONDS_MAX)
            await self._remove_expired()
            self._applier.refuse_parked()
            now = int(time.time())
            expected = await live_count(self._source, self._target.default_ttl, now)
            found = await live_count(self._target, self._source.default_ttl, now)
            if expected != found:
                return expected, found
            held_ms = round((time.monotonic() - began) * 1000)
            await self._ending.done(verified=found, done=self.done, followed=self.followed, held_ms=held_ms)
        return None

    async def _remove_expired(self) -> None:
        """Removes what has expired in the source and was not swept there yet."""
        now = int(time.time())
        for partition in self._source.map.partitions:
            rows = await partition.expired(now, self._source.default_ttl, _EXPIRED_ROWS)
            if self._source.default_ttl is not None and rows:
                await self._applier.remove(rows)

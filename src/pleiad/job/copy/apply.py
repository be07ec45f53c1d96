"""Putting rows and changes of the source into the target, page by page.

What was there at the beginning is created, so that two items which would be one in the target are found. Changes are
repeated by what they leave: an item is put as it was after them, and removed only where the target holds what it was
before them; so repeating them twice, as after a crash, ends the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

from pleiad.engine.container import Container
from pleiad.engine.fresh import Looks
from pleiad.item.body import load
from pleiad.item.ttl import expires_at, is_expired
from pleiad.job.copy.failure import (
    ITEMS_NAMED_MAX,
    CopyFailedError,
    NamelessCollisionError,
    TargetMovedError,
)
from pleiad.job.copy.reader import Change, SourceReader
from pleiad.job.copy.transform import Placed, Transform, Unfit
from pleiad.job.copy.writer import TargetWriter, Written
from pleiad.keys.hash import epk
from pleiad.query.pace import Pace
from pleiad.store.rows import ItemKey, Row, Verb

_LOOK_SECONDS = 0.02


class Applier:
    """What a copy does with pages of its source."""

    def __init__(
        self,
        source: Container,
        target: Container,
        transform: Transform,
        reader: SourceReader,
        writer: TargetWriter,
        looks: Looks,
    ) -> None:
        self._source = source
        self._target = target
        self._transform = transform
        self._reader = reader
        self._writer = writer
        self._looks = looks
        self.parked: dict[ItemKey, str] = {}
        """Items of the source that a unique key keeps out for now, with its paths."""
        self.may_repeat = False
        """Whether an earlier process may have written what is to be created."""

    # -- from rows to items of the target ----------------------------------------------------------

    async def placed(self, rows: Sequence[Row]) -> tuple[list[Placed], list[tuple[Row, str]]]:
        """The live items of rows in the target, and the rows that cannot be there with the reason."""
        if not self._transform.is_costly:
            return self._place(rows, Pace())
        with Pace.of_request(self._target.limits) as pace:
            return await pace.run(self._place, rows, pace)

    def _place(self, rows: Sequence[Row], pace: Pace) -> tuple[list[Placed], list[tuple[Row, str]]]:
        found: list[Placed] = []
        unfit: list[tuple[Row, str]] = []
        now = time.time()
        expressions = self._transform.execution(pace)
        for row in rows:
            try:
                placed = self._transform.place(row, expressions)
            except Unfit as error:
                if not self._source.is_expired(row, now):
                    unfit.append((row, error.reason))
                continue
            if self.is_live(placed, now):
                found.append(placed)
        return found, unfit

    def is_live(self, placed: Placed, now: float) -> bool:
        """Whether an item has not expired, neither by the rules of the source nor by those of the target."""
        ttl = placed.put.ttl
        return not is_expired(placed.ts, ttl, self._source.default_ttl, now) and not is_expired(
            placed.ts, ttl, self._target.default_ttl, now
        )

    def expiries(self, placed: Placed) -> list[int]:
        """When an item expires; none where it never does."""
        moments = [
            expires_at(placed.ts, placed.put.ttl, ttl)
            for ttl in (self._source.default_ttl, self._target.default_ttl)
        ]
        return sorted(moment for moment in moments if moment is not None)[:1]

    def _refuse(self, unfit: Sequence[tuple[Row, str]]) -> None:
        if unfit:
            _, reason = unfit[0]
            raise CopyFailedError(
                f"an item cannot be in the target: {reason}",
                [self._transform.name_of(each) for each, _ in unfit],
            )

    # -- what was there at the beginning ---------------------------------------------------------------

    async def create(self, rows: Sequence[Row]) -> int:
        """Creates the items of rows; how many rows that were."""
        items, unfit = await self.placed(rows)
        self._refuse(unfit)
        written = await self._put(items, Verb.CREATE)
        self._refuse_conflicts(written)
        if written.existing:
            await self._check_existing(written.existing)
        elif items:
            self.may_repeat = False
        return len(rows)

    async def create_images(self, changes: Iterable[Change], goal: int) -> None:
        """Creates what changed items were at the beginning, unless they were copied before they changed."""
        rows = [each.before for each in changes if each.before is not None and each.before.lsn <= goal]
        items, unfit = await self.placed(rows)
        self._refuse(unfit)
        written = await self._put(items, Verb.CREATE)
        self._refuse_conflicts(written)
        may_repeat, self.may_repeat = self.may_repeat, True
        await self._check_existing(written.existing)
        self.may_repeat = may_repeat

    async def _check_existing(self, items: Sequence[Placed]) -> None:
        """Items that are there already must be those that an earlier process has put there."""
        rows = await self._writer.rows([placed.key for placed in items])
        strangers = [
            (placed, row)
            for placed, row in zip(items, rows, strict=True)
            if row is not None and not (self.may_repeat and placed.is_in(row))
        ]
        if strangers:
            pairs = [(placed.origin, self._origin_of(row)) for placed, row in strangers]
            if None in await self._reader.rows_of([other for _, other in pairs]):
                raise NamelessCollisionError
            raise await self.collision(pairs)

    def _origin_of(self, row: Row) -> ItemKey:
        """The item of the source that a row of the target was, if its partition key is still in it."""
        return ItemKey(epk(self._source.key.extract(load(row.body)), self._source.key), row.id)

    async def collision(self, keys: Sequence[tuple[ItemKey, ItemKey]]) -> CopyFailedError:
        """What is told of pairs of items that would be one in the target."""
        named: list[str] = []
        for pair in keys[:ITEMS_NAMED_MAX]:
            rows = [row for row in await self._reader.rows_of(pair) if row is not None]
            named.append(" and ".join(self._transform.name_of(row) for row in rows))
        return CopyFailedError(
            "two items of the source would be one in the target, with the same id in one logical partition",
            named,
        )

    def _refuse_conflicts(self, written: Written) -> None:
        if written.conflicting:
            _, paths = written.conflicting[0]
            raise CopyFailedError(
                f"items of the source would break the unique key {paths} of the target",
                [placed.key.id for placed, _ in written.conflicting],
            )

    # -- what happened since ------------------------------------------------------------------------

    async def repeat(self, changes: Sequence[Change]) -> list[Placed]:
        """Does to the target what changes did to the source; the items that they left."""
        befores, _ = await self._everything([each.before for each in changes if each.before is not None])
        afters, unfit = await self._everything([each.after for each in changes if each.after is not None])
        await self._check_unfit(unfit)
        puts: dict[ItemKey, Placed] = {}
        removals: dict[ItemKey, list[Placed]] = {}
        for change in changes:
            before = befores.get(_identity(change.before))
            after = afters.get(_identity(change.after))
            if before is not None and (after is None or after.key != before.key):
                if puts.get(before.key, before).origin == before.origin:
                    puts.pop(before.key, None)
                removals.setdefault(before.key, []).append(before)
            if after is not None:
                puts[after.key] = after
        await self._remove([images for key, images in removals.items() if key not in puts], afters.values())
        now = time.time()
        items = [placed for placed in puts.values() if self.is_live(placed, now)]
        self._park(await self._put(items, Verb.UPSERT))
        return items

    async def _everything(
        self, rows: Sequence[Row]
    ) -> tuple[dict[tuple[bytes, str, int], Placed], list[tuple[Row, str]]]:
        """The items of rows by the identity of the row, expired or not."""
        found: dict[tuple[bytes, str, int], Placed] = {}
        unfit: list[tuple[Row, str]] = []

        def place(pace: Pace) -> None:
            expressions = self._transform.execution(pace)
            for row in rows:
                try:
                    found[_identity(row)] = self._transform.place(row, expressions)
                except Unfit as error:
                    unfit.append((row, error.reason))

        with Pace.of_request(self._target.limits) as pace:
            await pace.run(place, pace)
        return found, unfit

    async def _check_unfit(self, unfit: Sequence[tuple[Row, str]]) -> None:
        """An item that cannot be in the target ends the copy, unless it has been changed or deleted since."""
        if not unfit:
            return
        current = await self._reader.rows_of([ItemKey(row.epk, row.id) for row, _ in unfit])
        self._refuse(
            [
                (row, reason)
                for (row, reason), now in zip(unfit, current, strict=True)
                if now is not None and now.lsn == row.lsn
            ]
        )

    async def _remove(self, removals: Sequence[Sequence[Placed]], left: Iterable[Placed]) -> None:
        """Removes items where the target has one of their images: another item may have taken their place."""
        if not removals:
            return
        images: dict[ItemKey, list[Placed]] = {}
        for placed in left:
            images.setdefault(placed.key, []).append(placed)
        keys = [group[0].key for group in removals]
        rows = await self._writer.rows(keys)
        doomed = [
            key
            for key, row, group in zip(keys, rows, removals, strict=True)
            if row is not None and any(image.is_in(row) for image in (*group, *images.get(key, ())))
        ]
        await self._remove_all(doomed)

    def _park(self, written: Written) -> None:
        for placed, paths in written.conflicting:
            self.parked[placed.origin] = paths

    async def settle(self) -> None:
        """Tries again with the items that a unique key has kept out: as they are now, and all of them together."""
        if self.parked:
            parked, self.parked = self.parked, {}
            await self.renew(list(parked))

    async def renew(self, origins: Sequence[ItemKey]) -> list[Placed]:
        """Puts items of the source into the target as they are now, whatever is there; the items."""
        rows = [row for row in await self._reader.rows_of(origins) if row is not None]
        items, unfit = await self.placed(rows)
        self._refuse(unfit)
        await self._remove_all([placed.key for placed in items])
        self._park(await self._put(items, Verb.UPSERT))
        return items

    async def remove(self, rows: Sequence[Row]) -> None:
        """Removes the items of rows, expired ones above all."""
        items, _ = await self._everything(rows)
        await self._remove_all([placed.key for placed in items.values()])

    def refuse_parked(self) -> None:
        """Raises when unique keys still keep items out."""
        if self.parked:
            paths = next(iter(self.parked.values()))
            raise CopyFailedError(
                f"items of the source would break the unique key {paths} of the target",
                [key.id for key in list(self.parked)[:ITEMS_NAMED_MAX]],
            )

    # -- the target may move ------------------------------------------------------------------------

    async def _put(self, items: Sequence[Placed], verb: Verb) -> Written:
        while True:
            try:
                return await self._writer.put(items, verb)
            except TargetMovedError:
                # Some of them may be there already, written before the partitions moved.
                self.may_repeat = True
                await self._look()

    async def _remove_all(self, keys: Sequence[ItemKey]) -> None:
        while keys:
            try:
                await self._writer.remove(keys)
                return
            except TargetMovedError:
                await self._look()

    async def _look(self) -> None:
        await self._looks.look()
        await asyncio.sleep(_LOOK_SECONDS)


def _identity(row: Row | None) -> tuple[bytes, str, int]:
    return (b"", "", 0) if row is None else (row.epk, row.id, row.lsn)

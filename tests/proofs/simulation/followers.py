"""Clients that follow the change feeds of a simulated server, over splits, merges and crashes."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson

from pleiad.engine.container import Container
from pleiad.engine.feed import changes, versions
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.rows import Row, Verb, Version
from tests.proofs.simulation.history import History, Key, demand

_PAUSE_SECONDS = 0.01
Found = dict[Key, tuple[dict[str, Any], int]]


class _Seen:
    """What a client of the feed of latest versions was given, and in which order."""

    def __init__(self) -> None:
        self._lsns: dict[Key, int] = {}
        self._reached: dict[bytes, int] = {}

    def take(self, rows: list[Row]) -> None:
        for row in rows:
            key = orjson.loads(row.body)["pk"], row.id
            demand(row.lsn > self._lsns.get(key, 0), f"I5: the feed gives {key} of LSN {row.lsn} again")
            demand(
                row.lsn >= self._reached.get(row.epk, 0),
                f"I5: the feed gives LSN {row.lsn} of {key[0]} behind {self._reached.get(row.epk)}",
            )
            self._lsns[key] = self._reached[row.epk] = row.lsn

    def check(self, found: Found) -> None:
        """The last version of everything that is there was seen."""
        for key, (_, lsn) in found.items():
            seen = self._lsns.get(key)
            demand(seen == lsn, f"I5: of {key} the feed gave LSN {seen}, there is {lsn}")


class RangeFollower:
    """Follows the latest versions range by range, and divides its ranges as the partitions are divided."""

    def __init__(self) -> None:
        self._pieces: list[tuple[EpkRange, str]] = [(WHOLE, "")]
        self._seen = _Seen()

    async def run(self, container: Container, random_of: random.Random, count: int) -> None:
        for _ in range(count):
            await self._page(container, random_of.randrange(len(self._pieces)), random_of.choice((1, 5, 50)))
            await asyncio.sleep(random_of.uniform(0, _PAUSE_SECONDS))

    async def _page(self, container: Container, index: int, items_max: int) -> int:
        span, place = self._pieces[index]
        parts = [partition.span.intersect(span) for partition in container.map.overlapping(span)]
        part = parts[0]
        assert part is not None
        page = await changes.page(container, part, place, changes.Origin.BEGINNING, 0, items_max)
        # As clients do when a range is gone: the place holds for each part of it.
        self._pieces[index : index + 1] = [
            (part, page.place),
            *((other, place) for other in parts[1:] if other is not None),
        ]
        self._seen.take(page.rows)
        return len(page.rows)

    async def finish(self, container: Container, found: Found) -> None:
        """Reads the rest; then everything that is there must have been seen."""
        index = 0
        while index < len(self._pieces):
            while await self._page(container, index, 100):
                pass
            index += 1
        self._seen.check(found)


class WholeFollower:
    """Follows the latest versions of the whole container with one place."""

    def __init__(self) -> None:
        self._place = ""
        self._seen = _Seen()

    async def run(self, container: Container, random_of: random.Random, count: int) -> None:
        for _ in range(count):
            await self._page(container, random_of.choice((1, 5, 50)))
            await asyncio.sleep(random_of.uniform(0, _PAUSE_SECONDS))

    async def _page(self, container: Container, items_max: int) -> int:
        page = await changes.page(container, WHOLE, self._place, changes.Origin.BEGINNING, 0, items_max)
        self._place = page.place
        self._seen.take(page.rows)
        return len(page.rows)

    async def finish(self, container: Container, found: Found) -> None:
        """Reads the rest; then everything that is there must have been seen."""
        while await self._page(container, 100):
            pass
        self._seen.check(found)


class VersionFollower:
    """Follows all versions and deletes, and replays them."""

    def __init__(self) -> None:
        self._place = ""
        self._found: Found = {}
        self._reached: dict[bytes, tuple[int, int]] = {}
        self._stamps: dict[tuple[str, int], set[int]] = {}

    async def begin(self, container: Container, found: Found) -> None:
        """Takes a place behind what is there now."""
        self._place = (await versions.page(container, WHOLE, "", 1)).place
        self._found = dict(found)

    async def run(self, container: Container, random_of: random.Random, count: int) -> None:
        for _ in range(count):
            await self._page(container, random_of.choice((1, 5, 50)))
            await asyncio.sleep(random_of.uniform(0, _PAUSE_SECONDS))

    async def _page(self, container: Container, items_max: int) -> int:
        page = await versions.page(container, WHOLE, self._place, items_max)
        self._place = page.place
        for version in page.versions:
            self._take(version)
        return len(page.versions)

    def _take(self, version: Version) -> None:
        at = version.lsn, version.position
        demand(
            at > self._reached.get(version.epk, (0, -1)),
            f"I5: the version {at} of {version.id} comes behind {self._reached.get(version.epk)}",
        )
        self._reached[version.epk] = at
        body = orjson.loads(version.body or version.previous_body)
        key = body["pk"], version.id
        before = self._found.get(key)
        demand(
            version.previous_lsn == (before[1] if before is not None else 0),
            f"I5: the version {at} of {key} says it follows {version.previous_lsn}, before it came {before}",
        )
        if version.verb is Verb.DELETE:
            del self._found[key]
            return
        self._found[key] = body, version.lsn
        self._stamps.setdefault((key[0], version.lsn), set()).add(body["stamp"])

    async def finish(self, container: Container, found: Found, history: History) -> None:
        """Reads the rest; replayed they give what is there, and every acknowledged write was among them."""
        while await self._page(container, 100):
            pass
        demand(
            self._found == found, f"I5: the versions give {len(self._found)} items, there are {len(found)}"
        )
        for (pk, lsn), stamp in history.lsns_used.items():
            if stamp > history.stamp_at_start:
                demand((pk, lsn) in self._stamps, f"I5: the write {stamp} of {pk}, LSN {lsn}, has no version")

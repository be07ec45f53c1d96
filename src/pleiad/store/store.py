"""Both contracts in one object: what one machine has, and two stores put together for an engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pleiad.store.budget import BudgetClaim, BudgetParts
from pleiad.store.catalog import CatalogStore, Record
from pleiad.store.commits import CommitCounts
from pleiad.store.figures import StoreFigures
from pleiad.store.problems import JoinedProblems, Problems
from pleiad.store.segments import Segment, SegmentStore


class Store(CatalogStore, SegmentStore, Protocol):
    """The durable state of one account: its catalog and its segments."""


class StorePair:
    """A catalog store and a segment store as one Store; they may be one object, and need not be of one kind."""

    def __init__(self, catalog: CatalogStore, segments: SegmentStore) -> None:
        self.catalog = catalog
        self.segments = segments
        self.problems: Problems = catalog.problems
        if segments.problems is not catalog.problems:
            self.problems = JoinedProblems(catalog.problems, segments.problems)

    # -- the catalog -----------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        return self.catalog.is_shared

    def load_records(self) -> Awaitable[Sequence[Record]]:
        return self.catalog.load_records()

    def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
        drops: Iterable[str] = (),
    ) -> Awaitable[bool]:
        return self.catalog.save_records(puts, deletes, expected, unless_behind, drops)

    def is_behind(self) -> Awaitable[bool]:
        return self.catalog.is_behind()

    def watch(self, changed: Callable[[], None]) -> None:
        self.catalog.watch(changed)

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        return self.catalog.lease(name)

    def alone(self) -> AbstractAsyncContextManager[bool]:
        return self.catalog.alone()

    def share_budgets(
        self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float
    ) -> Awaitable[BudgetParts]:
        return self.catalog.share_budgets(claims, holds_all, seconds)

    def agree(self, settings: Mapping[str, str], may_differ: bool) -> Awaitable[None]:
        return self.catalog.agree(settings, may_differ)

    # -- the segments ----------------------------------------------------------------------------

    @property
    def node(self) -> str:
        return self.segments.node

    @property
    def commits(self) -> CommitCounts:
        return self.segments.commits

    def figures(self) -> StoreFigures:
        return self.segments.figures()

    def segment(self, name: str) -> Segment:
        return self.segments.segment(name)

    def drop_segments(self, names: Iterable[str]) -> Awaitable[None]:
        return self.segments.drop_segments(names)

    def drop_all_segments(self) -> Awaitable[None]:
        return self.segments.drop_all_segments()

    def reconcile(self, names: Iterable[str]) -> Awaitable[None]:
        return self.segments.reconcile(names)

    def scrub_for_ever(self) -> Coroutine[None, None, None]:
        return self.segments.scrub_for_ever()

    # -- both ------------------------------------------------------------------------------------

    async def is_there(self) -> bool:
        return await self.catalog.is_there() and await self.segments.is_there()

    async def close(self) -> None:
        try:
            await self.segments.close()
        finally:
            await self.catalog.close()

"""Stores that are tested: the catalog of an account, its segments, and both together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from pleiad.store.budget import BudgetClaim, BudgetParts
from pleiad.store.catalog import CatalogStore, Record
from pleiad.store.checked.breach import CALLER, demand
from pleiad.store.checked.segment import CheckedSegment
from pleiad.store.commits import CommitCounts
from pleiad.store.figures import StoreFigures
from pleiad.store.problems import Problems
from pleiad.store.segments import SegmentStore
from pleiad.store.store import Store, StorePair

_Identity = tuple[str, str]


def checked(store: Store) -> StorePair:
    """A store of which every call is tested."""
    return StorePair(CheckedCatalogStore(store), CheckedSegmentStore(store, store.is_shared))


class CheckedCatalogStore:
    """The contract's CatalogStore over another one."""

    def __init__(self, inner: CatalogStore) -> None:
        self.inner = inner
        self._records: dict[_Identity, Record] | None = None
        """As they must be; None while that is not certain."""

    @property
    def is_shared(self) -> bool:
        return self.inner.is_shared

    @property
    def problems(self) -> Problems:
        return self.inner.problems

    async def load_records(self) -> Sequence[Record]:
        known = self._records
        records = await self.inner.load_records()
        found = {(record.kind, record.rid): record for record in records}
        names = {(record.kind, record.parent, record.name) for record in records}
        demand(len(found) == len(records) == len(names), "C2", "two records have one identity, or one name")
        if known is not None and known is self._records:
            demand(found == known, "C4", f"the records are {found}, and were left as {known}")
        if not self.inner.is_shared and known is self._records:
            self._records = found
        return records

    async def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
        drops: Iterable[str] = (),
    ) -> bool:
        new, gone, wanted = list(puts), list(deletes), list(expected)
        identities = [(record.kind, record.rid) for record in new]
        demand(len(set(identities)) == len(identities), CALLER, f"one record put twice: {identities}")
        known, self._records = self._records, None
        is_saved = await self.inner.save_records(new, gone, wanted, unless_behind, drops)
        if known is None:
            return is_saved
        is_as_expected = all(known.get((record.kind, record.rid)) == record for record in wanted)
        demand(is_saved is is_as_expected, "C3", f"expecting {wanted}, a save ended {is_saved}")
        after = dict(known)
        if is_saved:
            for record in gone:
                after.pop((record.kind, record.rid), None)
            after.update(zip(identities, new, strict=True))
        self._records = after
        return is_saved

    async def is_behind(self) -> bool:
        is_behind = await self.inner.is_behind()
        demand(self.inner.is_shared or not is_behind, "C4", "behind others, although there are none")
        return is_behind

    def watch(self, changed: Callable[[], None]) -> None:
        self.inner.watch(changed)

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        return self._ours(self.inner.lease(name))

    def alone(self) -> AbstractAsyncContextManager[bool]:
        return self._ours(self.inner.alone())

    @asynccontextmanager
    async def _ours(self, block: AbstractAsyncContextManager[bool]) -> AsyncIterator[bool]:
        async with block as is_ours:
            demand(self.inner.is_shared or is_ours, "C4", "kept from others, although there are none")
            yield is_ours

    async def share_budgets(
        self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float
    ) -> BudgetParts:
        answer = await self.inner.share_budgets(claims, holds_all, seconds)
        demand(answer.servers >= 1, "C5", f"{answer.servers} servers share the budgets")
        strange = answer.parts.keys() - {claim.name for claim in claims}
        demand(not strange, "C5", f"parts of budgets that were not named: {strange}")
        wrong = {name: part for name, part in answer.parts.items() if not 0 <= part.share <= 1}
        demand(not wrong, "C5", f"shares that are none: {wrong}")
        return answer

    async def agree(self, settings: Mapping[str, str], may_differ: bool) -> None:
        await self.inner.agree(settings, may_differ)

    async def is_there(self) -> bool:
        return await self.inner.is_there()

    async def close(self) -> None:
        await self.inner.close()


class CheckedSegmentStore:
    """The contract's SegmentStore over another one."""

    def __init__(self, inner: SegmentStore, is_shared: bool) -> None:
        self.inner = inner
        self._is_shared = is_shared
        self._segments: dict[str, CheckedSegment] = {}

    @property
    def node(self) -> str:
        return self.inner.node

    @property
    def problems(self) -> Problems:
        return self.inner.problems

    @property
    def commits(self) -> CommitCounts:
        return self.inner.commits

    def figures(self) -> StoreFigures:
        return self.inner.figures()

    def segment(self, name: str) -> CheckedSegment:
        found = self._segments.get(name)
        if found is None:
            found = self._segments[name] = CheckedSegment(self.inner.segment(name), self._is_shared)
        return found

    async def drop_segments(self, names: Iterable[str]) -> None:
        doomed = list(names)
        gone = [self._segments.pop(name) for name in doomed if name in self._segments]
        for segment in gone:
            segment.expect_drop()
        await self.inner.drop_segments(doomed)
        for segment in gone:
            segment.mark_dropped()

    async def drop_all_segments(self) -> None:
        gone = list(self._segments.values())
        self._segments.clear()
        for segment in gone:
            segment.expect_drop()
        await self.inner.drop_all_segments()
        for segment in gone:
            segment.mark_dropped()

    async def reconcile(self, names: Iterable[str]) -> None:
        await self.inner.reconcile(names)

    async def is_there(self) -> bool:
        return await self.inner.is_there()

    async def scrub_for_ever(self) -> None:
        await self.inner.scrub_for_ever()

    async def close(self) -> None:
        await self.inner.close()

"""The contract of a catalog store: the records of one account, and what its servers tell each other.

Catalog records are few and small, and read whole at the start. In a cluster there is one catalog, whatever number of
nodes the segments are on.

Invariants every catalog store keeps; `store.checked` tests them on each call:
C1. `save_records` changes all it is told to or nothing, and what it has changed would survive the death of the process
    and of the machine when it returns.
C2. (kind, rid) is unique among the records, and so is (kind, parent, name).
C3. A save whose expected records are not stored exactly as given changes nothing and says so.
C4. `load_records` gives what this server has saved, unless another server has changed it since.
C5. Shares of a budget lie between 0 and 1, and only those who name a budget have one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pleiad.store.budget import BudgetClaim, BudgetParts
from pleiad.store.problems import Problems


@dataclass(frozen=True, slots=True)
class Record:
    """One catalog record: a database, container, offer, user, permission, physical partition or counter.

    `body` is a JSON value; (kind, rid) is its identity and (kind, parent, name) is unique.
    """

    kind: str
    rid: str
    parent: str
    name: str
    body: dict[str, Any] = field(default_factory=dict)


class CatalogStore(Protocol):
    """The records of one account, and the company of the servers that work on it."""

    @property
    def is_shared(self) -> bool:
        """Whether other servers may work on the same data."""

    @property
    def problems(self) -> Problems:
        """What is wrong at this moment."""

    def load_records(self) -> Awaitable[Sequence[Record]]:
        """Every catalog record."""

    def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
        drops: Iterable[str] = (),
    ) -> Awaitable[bool]:
        """Writes catalog changes in one durable transaction, and which segments nobody needs after it.

        False, and no change, unless each expected record is stored exactly as given; with `unless_behind` also when
        another server changed records since this one last loaded them.
        """

    def is_behind(self) -> Awaitable[bool]:
        """Whether another server changed catalog records since this one last loaded them."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` soon after another server may have changed catalog records: a hint, not the truth."""

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Keeps a name from all other servers for the length of a block; inside it, False when one of them has it.

        A server that dies loses its names after a while. They only save work that two would do: whatever must not be
        done twice is guarded by epochs and expected records.
        """

    def alone(self) -> AbstractAsyncContextManager[bool]:
        """Keeps all other servers from the data for the length of a block; inside it, False when one is at work."""

    def share_budgets(
        self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float
    ) -> Awaitable[BudgetParts]:
        """Tells the other servers which shares of budgets this one uses, and takes what nobody has; for so long.

        What it held of budgets it names no more is free at once. A server that `holds_all` goes on using all of every
        budget; while there is one, no other gets anything.
        """

    def agree(self, settings: Mapping[str, str], may_differ: bool) -> Awaitable[None]:
        """SettingsDifferError names settings that other servers here have otherwise; who is alone decides."""

    def is_there(self) -> Awaitable[bool]:
        """Whether the data can be reached at this moment; a short look."""

    def close(self) -> Awaitable[None]:
        """Finishes running writes and releases everything; to close it again does nothing."""

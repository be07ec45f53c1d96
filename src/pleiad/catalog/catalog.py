"""The catalog of one account: every metadata resource in memory, every change durable before it is seen.

Changes go one at a time through a lock: check against memory, write to the store, then show. A crash between the
last two shows the change after the restart, which the client was never told about: an unknown outcome, not a lie.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pleiad import errors
from pleiad.catalog import placement as placements
from pleiad.catalog.placement import MapChange, Placement
from pleiad.catalog.resource import PARENTS, Kind, Resource, from_record, is_resource_record, new_etag
from pleiad.item import rid as rids
from pleiad.limits import Limits
from pleiad.store.catalog import CatalogStore, Record

ACCOUNT_RID = ""
_SCRIPT_NIBBLES = {
    Kind.STORED_PROCEDURE: rids.KIND_STORED_PROCEDURE,
    Kind.TRIGGER: rids.KIND_TRIGGER,
    Kind.USER_DEFINED_FUNCTION: rids.KIND_UDF,
}
_COUNTER = "counter"
_SECRET = "secret"
_SECRET_BYTES = 32
UNFINISHED_COPY = "copy"
"""The kind of the records that a copy of another account leaves here until it is whole."""
CONTAINER_COPY = "containercopy"
"""The kind of the records of copies of containers, under way and over."""


class StaleCatalogError(Exception):
    """Another server changed the catalog meanwhile; nothing was changed here, and `load` shows what it did."""


class UnfinishedCopyError(Exception):
    """The store holds a part of an account that is being copied into it."""

    def __init__(self) -> None:
        super().__init__(
            "a copy into this store has not ended: run the same `pleiad copy-data` again to finish it, "
            "or give another store"
        )


class Catalog:
    """Databases, containers, scripts, offers, users, permissions, client encryption keys and the partition map."""

    def __init__(self, store: CatalogStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._by_rid: dict[tuple[Kind, str], Resource] = {}
        self._by_name: dict[tuple[Kind, str, str], Resource] = {}
        self._placements: dict[str, list[Placement]] = {}
        self._operations: dict[str, Record] = {}
        self._copies: dict[str, Record] = {}
        self._last_number = 0
        self.secret = secrets.token_bytes(_SECRET_BYTES)
        """What the account's continuation tokens are sealed with; kept with the first resource."""
        self._is_secret_kept = False
        self.lock = asyncio.Lock()

    async def load(self) -> None:
        """Reads everything from the store, in place of what was known before."""
        records = await self._store.load_records()
        self._by_rid.clear()
        self._by_name.clear()
        self._placements.clear()
        self._operations.clear()
        self._copies.clear()
        for record in records:
            if is_resource_record(record):
                self._show(from_record(record))
            elif record.kind == placements.KIND:
                self._placements.setdefault(record.parent, []).append(placements.from_record(record))
            elif record.kind == placements.OPERATION:
                self._operations[record.parent] = record
            elif record.kind == CONTAINER_COPY:
                self._copies[record.rid] = record
            elif record.kind == UNFINISHED_COPY:
                raise UnfinishedCopyError
            elif record.kind == _COUNTER:
                self._last_number = record.body["last"]
            elif record.kind == _SECRET:
                self.secret = bytes.fromhex(record.body["key"])
                self._is_secret_kept = True

    async def keep_secret(self) -> None:
        """Gives a secret to an account that was made without one; all servers then have the same."""
        while self._by_rid and not self._is_secret_kept:
            if await self._store.save_records([self._secret_record()], [], unless_behind=True):
                self._is_secret_kept = True
            else:
                await self.load()

    def _secret_record(self) -> Record:
        return Record(_SECRET, _SECRET, "", _SECRET, {"key": self.secret.hex()})

    # -- reads ---------------------------------------------------------------------------------

    def find(self, kind: Kind, parent_rid: str, name_or_rid: str) -> Resource | None:
        """The child of a parent by its name, or else by its rid."""
        found = self._by_name.get((kind, parent_rid, name_or_rid))
        if found is None:
            found = self._by_rid.get((kind, name_or_rid))
            if found is not None and found.parent_rid != parent_rid:
                return None
        return found

    def by_rid(self, kind: Kind, rid: str) -> Resource | None:
        return self._by_rid.get((kind, rid))

    def parent_of(self, resource: Resource) -> Resource | None:
        """The resource that another one stands under; None for what stands under the account."""
        kind = PARENTS.get(resource.kind)
        return None if kind is None else self._by_rid.get((kind, resource.parent_rid))

    def owner_of(self, offer: Resource) -> Resource | None:
        """The container or database that an offer pays for."""
        rid = offer.properties["offerResourceId"]
        return self._by_rid.get((Kind.CONTAINER, rid)) or self._by_rid.get((Kind.DATABASE, rid))

    def children(self, kind: Kind, parent_rid: str) -> list[Resource]:
        """All resources of a kind under a parent, oldest first."""
        found = [r for (k, _), r in self._by_rid.items() if k is kind and r.parent_rid == parent_rid]
        return sorted(found, key=lambda resource: resource.number)

    def all(self, kind: Kind) -> list[Resource]:
        """All resources of a kind in the account, oldest first."""
        found = [resource for (k, _), resource in self._by_rid.items() if k is kind]
        return sorted(found, key=lambda resource: resource.number)

    def placements(self, container_rid: str) -> list[Placement]:
        """The live physical partitions of a container."""
        return [placement for placement in self.history(container_rid) if placement.is_live]

    def history(self, container_rid: str) -> list[Placement]:
        """Every physical partition a container has and had, in the order of their ids."""
        return sorted(self._placements.get(container_rid, []), key=lambda placement: placement.id)

    def is_interrupted(self, container_rid: str) -> bool:
        """Whether a change of a container's partition map has begun and not ended."""
        return container_rid in self._operations

    def operation(self, container_rid: str) -> MapChange | None:
        """The change of a container's partition map that has begun and not ended."""
        record = self._operations.get(container_rid)
        return placements.operation_from_record(record) if record is not None else None

    def being_split(self, container_rid: str) -> tuple[int, ...]:
        """The ids of the physical partitions of a container that are being split."""
        operation = self.operation(container_rid)
        return operation.partitions if operation is not None and operation.kind == "split" else ()

    def is_unfinished(self, container_rid: str) -> bool:
        """Whether a change of a container's partition map is to be undone, or brought to its end."""
        are_at_home = all(placement.is_at_home for placement in self.placements(container_rid))
        return self.is_interrupted(container_rid) or not are_at_home

    def offer_of(self, resource_rid: str) -> Resource | None:
        """The offer that holds the throughput of a database or container, if it has its own."""
        for offer in self._by_rid.values():
            if offer.kind is Kind.OFFER and offer.properties["offerResourceId"] == resource_rid:
                return offer
        return None

    def segment_names(self) -> set[str]:
        """The segments that hold data of a container that exists."""
        return {
            placement.segment for many in self._placements.values() for placement in many if placement.is_live
        }

    def segments_in_use(self) -> set[str]:
        """These, and those of changes that are under way or interrupted."""
        operations = map(placements.operation_from_record, self._operations.values())
        return self.segment_names() | {name for operation in operations for name in operation.segments}

    # -- changes -------------------------------------------------------------------------------

    def new_resource(
        self, kind: Kind, parent: Resource | None, id: str, properties: dict[str, Any], number: int
    ) -> Resource:
        """A resource of that number that does not exist yet; `add` makes it exist."""
        rid = _rid(kind, parent, number)
        return Resource(
            kind,
            rid,
            parent.rid if parent is not None else ACCOUNT_RID,
            rid if kind is Kind.OFFER else id,
            number,
            int(time.time()),
            new_etag(),
            properties,
        )

    def next_numbers(self) -> Callable[[], int]:
        """A source of fresh numbers for one change; hold the lock, and save the change with `add`."""

        def fresh() -> int:
            self._last_number += 1
            return self._last_number

        return fresh

    @property
    def last_number(self) -> int:
        """The last number that a resource was given."""
        return self._last_number

    def skip_numbers(self, last: int) -> None:
        """Has new resources get numbers beyond one, so that no rid means another resource than it did before."""
        self._last_number = max(self._last_number, last)

    def check_absent(self, kind: Kind, parent_rid: str, id: str) -> None:
        """Raises the conflict a second resource of that name would be."""
        if (kind, parent_rid, id) in self._by_name:
            raise errors.RESOURCE_EXISTS(kind=kind.word, id=id)

    def check_count(self) -> None:
        """Databases and containers together have a quota."""
        count = len(self.all(Kind.DATABASE)) + len(self.all(Kind.CONTAINER))
        if count >= self._limits.databases_and_containers:
            raise errors.TOO_MANY_RESOURCES(
                limit=self._limits.databases_and_containers, what="databases and containers"
            )

    def check_children(self, kind: Kind, parent_rid: str, most: int) -> None:
        """Raises when a parent has as many resources of a kind as it may have."""
        if len(self.children(kind, parent_rid)) >= most:
            raise errors.TOO_MANY_RESOURCES(limit=most, what=f"resources of the kind {kind.word}")

    async def add(self, resources: Iterable[Resource], new_placements: Iterable[Placement] = ()) -> None:
        """Makes new resources and physical partitions exist, durably and together."""
        added, placed = list(resources), list(new_placements)
        counter = Record(_COUNTER, _COUNTER, "", _COUNTER, {"last": self._last_number})
        records = [resource.to_record() for resource in added] + [
            placement.to_record() for placement in placed
        ]
        if not self._is_secret_kept:
            records.append(self._secret_record())
        await self._save([*records, counter], [])
        self._is_secret_kept = True
        for resource in added:
            self._show(resource)
        for placement in placed:
            self._placements.setdefault(placement.container_rid, []).append(placement)

    async def replace(self, old: Resource, new: Resource) -> None:
        """Puts the next version of a resource in place of the last one."""
        await self._save([new.to_record()], [old.to_record()])
        self._hide(old)
        self._show(new)

    def copies(self) -> list[Record]:
        """The records of copies of containers, in no order."""
        return list(self._copies.values())

    def copy_record(self, id: str) -> Record | None:
        """The record of one of them."""
        return self._copies.get(id)

    async def save_copy(
        self,
        new: Record | None,
        old: Record | None,
        changes: Sequence[tuple[Resource, Resource]] = (),
    ) -> bool:
        """Puts the record of a copy in place of an older one, and versions of resources in place of others, in one
        durable step: all of them or none. Names may be exchanged by it. Without a new record the old one goes.

        False, and no change, when the record or a resource is not as given.
        """
        puts = [after.to_record() for _, after in changes]
        gone = [before.to_record() for before, _ in changes]
        expected = list(gone)
        if new is not None:
            puts.append(new)
        if old is not None:
            expected.append(old)
            gone.append(old)
        if not await self._store.save_records(puts, gone, expected, unless_behind=old is None):
            return False
        if old is not None:
            self._copies.pop(old.rid, None)
        if new is not None:
            self._copies[new.rid] = new
        for before, _ in changes:
            self._hide(before)
        for _, after in changes:
            self._show(after)
        return True

    def with_chores(self) -> list[Resource]:
        """The containers that have something to sweep, or a change to be finished, whether they are used or not."""
        return [
            resource
            for resource in self.all(Kind.CONTAINER)
            if "defaultTtl" in resource.properties
            or "changeFeedPolicy" in resource.properties
            or self.is_unfinished(resource.rid)
        ]

    async def begin_operation(self, container_rid: str, operation: MapChange) -> bool:
        """Notes that a change of a container's map begins, before it fences anything.

        False, and no change, when another one is under way, or when another server changed the catalog.
        """
        if container_rid not in self._placements:
            raise errors.UNAVAILABLE(reason="The container is being deleted.")
        record = operation.to_record(container_rid)
        is_free = container_rid not in self._operations
        if not is_free or not await self._store.save_records([record], [], unless_behind=True):
            return False
        self._operations[container_rid] = record
        return True

    async def take_over(self, container_rid: str, operation: MapChange) -> bool:
        """Puts an operation in place of the one that is under way; False when that is not as it was."""
        record = operation.to_record(container_rid)
        if not await self._store.save_records([record], [], [self._operations[container_rid]]):
            return False
        self._operations[container_rid] = record
        return True

    async def change_map(
        self,
        container_rid: str,
        operation: MapChange,
        old: Sequence[Placement],
        new: Sequence[Placement],
        ends: bool = False,
    ) -> bool:
        """Puts new placements in the place of old ones, in one durable step of an operation, which it may end.

        Old ones whose id is not among the new are kept as retired. False, and no change, when the operation or an old
        one is not as given.
        """
        now = int(time.time())
        ids = {placement.id for placement in new}
        retired = [replace(placement, retired_at=now) for placement in old if placement.id not in ids]
        changed = [*retired, *new]
        under = operation.to_record(container_rid)
        kept = {placement.id: placement for placement in self._placements.get(container_rid, ())}
        kept.update((placement.id, placement) for placement in changed)
        needed = {placement.segment for placement in kept.values() if placement.is_live}
        is_saved = await self._store.save_records(
            [placement.to_record() for placement in changed],
            [under] if ends else [],
            [under, *(placement.to_record() for placement in old)],
            drops=[name for name in operation.segments if name not in needed] if ends else (),
        )
        if not is_saved:
            return False
        if ends:
            self._operations.pop(container_rid, None)
        self._placements[container_rid] = list(kept.values())
        return True

    async def remove(self, resource: Resource) -> list[str]:
        """Removes a resource and everything beneath it; returns the segments that nobody names any more."""
        doomed = self._subtree(resource)
        gone = [p for r in doomed if r.kind is Kind.CONTAINER for p in self.history(r.rid)]
        running = [self._operations[r.rid] for r in doomed if r.rid in self._operations]
        records = [r.to_record() for r in doomed] + [placement.to_record() for placement in gone] + running
        # Those of a change that is under way too: once its record is gone, nobody else knows of them.
        unneeded = {name for record in running for name in placements.operation_from_record(record).segments}
        unneeded |= {placement.segment for placement in gone if placement.is_live}
        await self._save([], records, sorted(unneeded))
        for each in doomed:
            self._hide(each)
            self._placements.pop(each.rid, None)
            self._operations.pop(each.rid, None)
        return sorted(unneeded)

    async def _save(
        self, puts: Iterable[Record], deletes: Iterable[Record], drops: Iterable[str] = ()
    ) -> None:
        if not await self._store.save_records(puts, deletes, unless_behind=True, drops=drops):
            raise StaleCatalogError

    def _subtree(self, resource: Resource) -> list[Resource]:
        found = [resource]
        for child in list(self._by_rid.values()):
            if child.kind is Kind.OFFER:
                if child.properties["offerResourceId"] == resource.rid:
                    found.append(child)
            elif child.parent_rid == resource.rid:
                found.extend(self._subtree(child))
        return found

    def _show(self, resource: Resource) -> None:
        self._by_rid[resource.kind, resource.rid] = resource
        self._by_name[resource.kind, resource.parent_rid, resource.id] = resource

    def _hide(self, resource: Resource) -> None:
        del self._by_rid[resource.kind, resource.rid]
        del self._by_name[resource.kind, resource.parent_rid, resource.id]


def _rid(kind: Kind, parent: Resource | None, number: int) -> str:
    if kind is Kind.DATABASE:
        return rids.database_rid(number)
    if kind is Kind.OFFER:
        return rids.offer_rid(number)
    assert parent is not None
    if kind is Kind.CONTAINER:
        return rids.container_rid(parent.number, number)
    if kind is Kind.USER:
        return rids.user_rid(parent.number, number)
    if kind is Kind.ENCRYPTION_KEY:
        return rids.user_rid(parent.number, number)
    database_number = int.from_bytes(rids.decode(parent.rid)[:4], "big")
    if kind in _SCRIPT_NIBBLES:
        return rids.child_rid(database_number, parent.number, _SCRIPT_NIBBLES[kind], number)
    return rids.permission_rid(database_number, parent.number, number)

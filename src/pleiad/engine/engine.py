"""One account at work: the catalog, the open containers, and the background work on them.

Every head calls this class for databases, containers, throughput, users and permissions, and the functions of
`items` and `feed` for items, on the `Container` it hands out.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from pleiad import errors
from pleiad.catalog import placement, throughput
from pleiad.catalog.catalog import ACCOUNT_RID, Catalog, StaleCatalogError
from pleiad.catalog.container import (
    ContainerDefinition,
    check_encryption_keys,
    define,
    define_new,
    is_ttl_recounted,
    redefine,
    with_versions_since,
)
from pleiad.catalog.copy_marks import Closing, closed_of
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput
from pleiad.engine.at_work import AtWork
from pleiad.engine.consistency import Consistency
from pleiad.engine.container import Container
from pleiad.engine.faults import Faults
from pleiad.engine.fresh import Looks, on_a_fresh_catalog
from pleiad.engine.openings import Openings
from pleiad.engine.refusals import Refusals
from pleiad.engine.reshape.failure import ChangedElsewhereError
from pleiad.engine.reshape.keeper import Keeper
from pleiad.engine.reshape.reshaper import Reshaper
from pleiad.engine.seal import Seal
from pleiad.engine.steady import to_the_end
from pleiad.engine.sweeper import sweep_for_ever
from pleiad.engine.throughput.metadata_budget import MetadataBudget
from pleiad.engine.throughput.offers import Offers
from pleiad.engine.throughput.provisioning import Migration, OfferState, Provisioning, check_fixed
from pleiad.engine.throughput.shared_budget import SharedBudget, Standing
from pleiad.engine.turns import MapTurns
from pleiad.engine.watch.busiest import Busiest
from pleiad.engine.watch.chronicle import Chronicle
from pleiad.engine.watch.observer import Observers
from pleiad.engine.watch.watch import Watch
from pleiad.engine.watch.workload import WorkloadRecorder
from pleiad.errors import PleiadError
from pleiad.item.id import check_resource_name
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.partition.governor import OBSERVE, Throttle
from pleiad.partition.partition import Partition
from pleiad.script.pool import ScriptPool
from pleiad.store.segments import SegmentDroppedError, SegmentOutOfServiceError
from pleiad.store.store import Store


class Engine:
    """Databases, containers, offers, users and permissions of one account.

    Without a throttle the governors only count. A serverless account has no offers.
    """

    def __init__(
        self,
        store: Store,
        limits: Limits,
        consistency: Consistency = Consistency.SESSION,
        throttle: Throttle = OBSERVE,
        serverless: bool = False,
    ) -> None:
        self.store = store
        self.limits = limits
        self.consistency = consistency
        self.is_enforced = throttle.enforced
        """Whether requests beyond the throughput are refused, or only counted."""
        self.is_stopping = False
        """Whether the requests that run are the last ones."""
        self.is_rolled_back = False
        """Whether clients may have seen what is not there any more: sessions of theirs demand nothing then."""
        self.faults = Faults()
        self.observers = Observers()
        """Who is told of every request; nobody, unless somebody wants to see them."""
        self.busiest = Busiest()
        self.script_pool = ScriptPool(limits)
        self.metadata_budget = MetadataBudget(limits, throttle)
        self.catalog = Catalog(store, limits)
        self.seal = Seal(self.catalog)
        self.at_work = AtWork()
        """The containers that are open: the short way of every operation on items finds its own there."""
        self.traffic = self.at_work.traffic
        self._background: list[asyncio.Task[None]] = []
        self.refusals, turns, standing = Refusals(), MapTurns(), Standing()
        if store.is_shared:
            throttle = dataclasses.replace(throttle, first_share=standing.first_share)
        self.provisioning = Provisioning(store, self.catalog, limits, throttle, serverless, self.refusals)
        self.budget = SharedBudget(store, standing, self.provisioning, self.at_work, throttle.clock)
        self.openings = Openings(
            store, store, self.catalog, limits, self.at_work, self.provisioning, self.script_pool, turns
        )
        self.looks: Looks = self.openings
        self.offers = Offers(self.catalog, self.provisioning, self.at_work, self.openings)
        self.reshaper = Reshaper(store, store, self.catalog, limits, self.faults, turns, self.openings)
        self.keeper = Keeper(self.reshaper, limits, self.at_work, self.offers, self.refusals)
        self.watch = Watch(self.at_work, self.refusals)
        self.chronicle = Chronicle(self.at_work, self.catalog, self.provisioning.provisioned_ru, limits)
        self.workload = WorkloadRecorder(limits, self.at_work, self.catalog, self.looks)

    async def open(self) -> None:
        """Loads the catalog, removes what deleted containers left behind, and starts the background work."""
        try:
            await self.catalog.load()
            self.provisioning.check_account()
            if self.store.is_shared:
                await self.budget.try_turn()
                self._background.append(asyncio.create_task(self.budget.for_ever()))
            # Before the first change of the catalog, which would make an older one look newer.
            await self.store.reconcile(self.catalog.segments_in_use())
            await self.catalog.keep_secret()
            for resource in self.catalog.with_chores():
                await self._set_to_work(resource.rid)
        except BaseException:
            await self._stop_background()
            await self.store.close()
            raise
        self._background.append(asyncio.create_task(sweep_for_ever(self.at_work, self.store)))
        if self.store.is_shared:
            self.store.watch(self.openings.notice)
            self._background.append(asyncio.create_task(self.openings.for_ever()))
        self.keeper.start()
        self._background.append(asyncio.create_task(self.watch.for_ever()))
        self._background.append(asyncio.create_task(self.chronicle.for_ever()))
        self._background.append(asyncio.create_task(self.store.scrub_for_ever()))

    async def close(self) -> None:
        """Stops the background work and closes the store."""
        await self.keeper.stop()
        await self._stop_background()
        await self.workload.close()
        self.script_pool.close()
        async with self.catalog.lock:
            await self.store.close()

    async def _stop_background(self) -> None:
        for task in self._background:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.budget.stop()

    # -- finding ---------------------------------------------------------------------------------

    def database(self, id: str, owner: bool = False) -> Resource:
        """The database of that name or rid; a missing owner of what was asked for has a sub-status of its own."""
        return self.find(Kind.DATABASE, None, id, owner)

    def find(self, kind: Kind, parent: Resource | None, id: str, owner: bool = False) -> Resource:
        """A resource by its name or rid under its parent."""
        found = self.catalog.find(kind, parent.rid if parent is not None else ACCOUNT_RID, id)
        if found is None:
            row = errors.OWNER_NOT_FOUND if owner else errors.RESOURCE_NOT_FOUND
            raise row(kind=kind.word, id=id)
        return found

    @property
    def containers(self) -> list[Container]:
        """The containers at work."""
        return list(self.at_work)

    def open_container(self, database_id: str, container_id: str) -> Container | None:
        """The container when it is at work already: the short way of every item operation."""
        return self.at_work.by_path.get((database_id, container_id))

    async def container(self, database_id: str, container_id: str, owner: bool = True) -> Container:
        """The container at work, opened when it was not."""
        database = self.database(database_id, owner=True)
        resource = self.find(Kind.CONTAINER, database, container_id, owner)
        container = await self.openings.open(resource)
        if self.catalog.by_rid(Kind.CONTAINER, resource.rid) is not None:
            self.at_work.note_path(database_id, container_id, container)
        return container

    async def _set_to_work(self, rid: str) -> None:
        """Opens a container whose chores wait, and mends it; again where another server has just moved its rows."""
        while (resource := self.catalog.by_rid(Kind.CONTAINER, rid)) is not None:
            try:
                await self.reshaper.mend(await self.openings.open(resource))
                return
            except (ChangedElsewhereError, SegmentOutOfServiceError):
                return
            except SegmentDroppedError:
                if not await self.openings.look():
                    raise

    def place_of_segment(self, name: str) -> tuple[str, str, str] | None:
        """The names of database and container, and the range id, that a segment holds the rows of."""
        for container in self.catalog.all(Kind.CONTAINER):
            for place in self.catalog.placements(container.rid):
                if place.segment == name:
                    database = self.catalog.by_rid(Kind.DATABASE, container.parent_rid)
                    return database.id if database is not None else "", container.id, str(place.id)
        return None

    async def second_look(self, error: PleiadError) -> bool:
        """Whether an operation that failed for want of something may succeed now that others were asked for it."""
        if not self.store.is_shared:
            return False
        if error.row is errors.SESSION_NOT_AVAILABLE:
            for container in self.containers:
                await container.learn_lsns(WHOLE)
            return True
        is_miss = error.row in (errors.RESOURCE_NOT_FOUND, errors.OWNER_NOT_FOUND, errors.RANGE_GONE)
        return (is_miss or isinstance(error, SegmentDroppedError)) and await self.openings.look()

    # -- databases and containers -----------------------------------------------------------------

    @to_the_end
    @on_a_fresh_catalog
    async def create_database(self, body: dict[str, Any], given: Throughput | None) -> Resource:
        """Creates a database, with shared throughput for its containers when some is given."""
        id = check_resource_name(body.get("id"), self.limits)
        self._check_given(given, "Shared throughput database creation")
        async with self.catalog.lock:
            self.catalog.check_absent(Kind.DATABASE, ACCOUNT_RID, id)
            self.catalog.check_count()
            if given is not None:
                self.provisioning.check_account_limit(given.checked(self.limits).ru)
            fresh = self.catalog.next_numbers()
            database = self.catalog.new_resource(Kind.DATABASE, None, id, {}, fresh())
            offers = [self.provisioning.new_offer(database, given, fresh())] if given else []
            await self.catalog.add([database, *offers])
        return database

    @to_the_end
    @on_a_fresh_catalog
    async def create_container(
        self,
        database: Resource,
        body: dict[str, Any],
        given: Throughput | None,
        marks: Mapping[str, Any] | None = None,
    ) -> Resource:
        """Creates a container and the physical partitions its throughput asks for; `marks` are for servers only."""
        async with self.catalog.lock:
            definition, own, shared = self.check_new_container(database, body, given)
            fresh = self.catalog.next_numbers()
            properties = {**definition.properties, **(marks or {})}
            container = self.catalog.new_resource(Kind.CONTAINER, database, body["id"], properties, fresh())
            has_own = shared is None and not self.provisioning.is_serverless
            offers = [self.provisioning.new_offer(container, own, fresh())] if has_own else []
            count = throughput.partition_count(shared or own, self.limits, shared is not None)
            placed = placement.place(container.rid, container.number, count, definition.key)
            await self.catalog.add([container, *offers], placed)
        if definition.default_ttl is not None or definition.versions_seconds is not None:
            await self.openings.open(container)
        return container

    def check_new_container(
        self, database: Resource, body: dict[str, Any], given: Throughput | None
    ) -> tuple[ContainerDefinition, Throughput, Throughput | None]:
        """What a new container is, its own throughput, and the one it shares; raises what stands against it."""
        id = check_resource_name(body.get("id"), self.limits)
        self._check_given(given, "Setting offer throughput or autopilot on container")
        definition = define_new(body, self.limits)
        self.find(Kind.DATABASE, None, database.rid, owner=True)
        self.catalog.check_absent(Kind.CONTAINER, database.rid, id)
        self.catalog.check_count()
        keys = self.catalog.children(Kind.ENCRYPTION_KEY, database.rid)
        check_encryption_keys(definition, {key.id for key in keys})
        shared = self.provisioning.shared_throughput(database) if given is None else None
        own = given or Throughput(self.limits.throughput_ru_default)
        own.checked(self.limits)
        if shared is None:
            self.provisioning.check_stated(given)
            self.provisioning.check_account_limit(own.ru)
        key_given = not definition.key.system_key
        if not throughput.is_splittable(key_given, own.ru, shared is not None, self.limits):
            check_fixed(own, self.limits)
        return definition, own, shared

    def _check_given(self, given: Throughput | None, operation: str) -> None:
        if given is not None and self.provisioning.is_serverless:
            raise errors.NO_OFFERS(operation=operation)

    @to_the_end
    @on_a_fresh_catalog
    async def replace_container(
        self, database: Resource, id: str, body: dict[str, Any], if_match: str | None
    ) -> Resource:
        """Replaces the policies of a container; its id and partition key stay."""
        old = self.find(Kind.CONTAINER, database, id)
        if not self._redefined(old, body, if_match)[1]:
            return await self._replace_container(database, old, body, if_match)
        # Rows tell when they expire, so there must be none, and none may be written until the change is known.
        container = await self.openings.open(old)
        await _check_empty(container)
        async with self.reshaper.held(container):
            await _check_empty(container)
            return await self._replace_container(database, old, body, if_match, is_held=True)

    async def _replace_container(
        self,
        database: Resource,
        seen: Resource,
        body: dict[str, Any],
        if_match: str | None,
        is_held: bool = False,
    ) -> Resource:
        async with self.catalog.lock:
            old = self.find(Kind.CONTAINER, database, seen.id)
            definition, needs_hold = self._redefined(old, body, if_match)
            if old.rid != seen.rid or (needs_hold and not is_held):
                raise StaleCatalogError
            new = old.changed(with_versions_since(old.properties, definition))
            await self.catalog.replace(old, new)
        container = await self.openings.open(new)
        container.adopt(new, database)
        container.drop_surplus_indexes()
        return new

    def _redefined(
        self, old: Resource, body: dict[str, Any], if_match: str | None
    ) -> tuple[ContainerDefinition, bool]:
        """What a container is to be by a client's body, and whether nobody may write to it meanwhile."""
        if body.get("id") != old.id:
            raise errors.BAD_REQUEST(reason=f"The id of a container cannot be changed: it is '{old.id}'.")
        old.check_etag(if_match)
        _check_not_filled(old)
        before = define(old.properties, self.limits)
        definition = redefine(before, body, self.limits)
        return definition, is_ttl_recounted(before, definition)

    @to_the_end
    @on_a_fresh_catalog
    async def delete(self, resource: Resource, if_match: str | None = None) -> None:
        """Deletes a resource with everything beneath it."""
        async with self.catalog.lock:
            current = self.catalog.by_rid(resource.kind, resource.rid)
            if current is None:
                raise errors.RESOURCE_NOT_FOUND(kind=resource.kind.word, id=resource.id)
            current.check_etag(if_match)
            self.at_work.forget_paths()
            segments = await self.catalog.remove(current)
            self.at_work.forget_paths()
            for rid in self.at_work.forget_deleted(self.catalog):
                self.provisioning.forget(rid)
            self.provisioning.forget(current.rid)
            await self.store.drop_segments(segments)

    # -- physical partitions -----------------------------------------------------------------------

    @to_the_end
    async def split(self, container: Container, range_id: str) -> tuple[Partition, Partition]:
        """Splits a physical partition in two; its children get segments of their own in the background."""
        if not self.provisioning.is_splittable(container.resource):
            raise errors.CANNOT_SPLIT(range=range_id, reason="its container is a fixed one")
        children = await self.reshaper.split(container, range_id)
        self.keeper.wake()
        return children

    @to_the_end
    async def merge(self, container: Container, range_ids: Sequence[str]) -> Partition:
        """Makes one physical partition of neighbours, if those that remain can serve the throughput."""
        remaining = len(container.map.partitions) - len(range_ids) + 1
        needed = self.provisioning.partitions_needed(container)
        if remaining < needed:
            raise errors.CANNOT_MERGE(
                reason=f"the container's throughput needs {needed} physical partitions; lower it first."
            )
        return await self.reshaper.merge(container, range_ids)

    def splitting(self, container: Container) -> set[int]:
        """The ids of the physical partitions that are being split, or are to be for the container's throughput."""
        awaited = {partition.id for partition in self.keeper.to_be_split_for_throughput(container)}
        return awaited | set(self.catalog.being_split(container.resource.rid))

    # -- throughput --------------------------------------------------------------------------------

    def check_has_offers(self) -> None:
        """Offers of a serverless account can neither be read nor changed, as there are none."""
        if self.provisioning.is_serverless:
            raise errors.NO_OFFERS(operation="Reading or replacing offers")

    async def replace_offer(
        self,
        rid: str,
        body: dict[str, Any],
        if_match: str | None,
        migration: Migration = Migration.NONE,
    ) -> Resource:
        """Changes the throughput of a database or container."""
        new = await self.offers.replace(rid, body, if_match, migration)
        await self._set_payees_to_work(new)
        self.keeper.wake()
        return new

    async def offer_state(self, offer: Resource) -> OfferState:
        """How far an offer may be changed now."""
        await self._set_payees_to_work(offer)
        return await self.provisioning.state(offer)

    async def _set_payees_to_work(self, offer: Resource) -> None:
        """Opens the containers an offer pays for, since the keeper sees only containers at work."""
        for resource in self.provisioning.payees(offer):
            await self.openings.open(resource)

    # -- users, permissions, client encryption keys, scripts -------------------------------------------------

    @to_the_end
    @on_a_fresh_catalog
    async def create_child(
        self,
        kind: Kind,
        parent: Resource,
        id: str,
        properties: dict[str, Any],
        upsert: bool = False,
        most: int | None = None,
    ) -> tuple[Resource, bool]:
        """Creates a resource under its parent, or replaces it when asked to upsert; says whether it is new.

        `most` is how many of its kind the parent may have.
        """
        check_resource_name(id, self.limits)
        async with self.catalog.lock:
            old = self.catalog.find(kind, parent.rid, id)
            if old is not None and upsert:
                new = old.changed(properties)
                await self.catalog.replace(old, new)
                return new, False
            if self.catalog.by_rid(parent.kind, parent.rid) is None:
                raise errors.OWNER_NOT_FOUND(kind=parent.kind.word, id=parent.id)
            self.catalog.check_absent(kind, parent.rid, id)
            if most is not None:
                self.catalog.check_children(kind, parent.rid, most)
            created = self.catalog.new_resource(kind, parent, id, properties, self.catalog.next_numbers()())
            await self.catalog.add([created])
        return created, True

    @to_the_end
    @on_a_fresh_catalog
    async def replace_child(
        self, old: Resource, id: str, properties: dict[str, Any], if_match: str | None
    ) -> Resource:
        """Replaces a user, permission, client encryption key or script; it may be renamed."""
        check_resource_name(id, self.limits)
        async with self.catalog.lock:
            current = self.catalog.by_rid(old.kind, old.rid)
            if current is None:
                raise errors.RESOURCE_NOT_FOUND(kind=old.kind.word, id=old.id)
            current.check_etag(if_match)
            if id != current.id:
                self.catalog.check_absent(old.kind, old.parent_rid, id)
            new = current.changed(properties, id)
            await self.catalog.replace(current, new)
        return new


async def _check_empty(container: Container) -> None:
    for partition in container.map.partitions:
        if await partition.scan(partition.span, 0, 1):
            raise errors.BAD_REQUEST(
                reason="'ttlPropertyPath', and 'defaultTtl' beside it, can only be changed while the container "
                "is empty."
            )


def _check_not_filled(container: Resource) -> None:
    """Refuses to change a container that a copy fills: with another time to live it might keep nothing of it."""
    closed = closed_of(container.properties)
    if closed is not None and closed.why is Closing.FILLED:
        raise errors.COPY_UNDER_WAY(
            reason=f"The copy {closed.copy_id} fills this container; change it when that has ended."
        )

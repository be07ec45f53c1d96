"""Provisioned throughput at work: which offer pays for a container, what it may be changed to, and who shares it.

Changes of offers are made by the `Engine`, under the catalog's lock; here is what they mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pleiad import errors
from pleiad.catalog import throughput
from pleiad.catalog.catalog import Catalog
from pleiad.catalog.placement import segment_of
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import History, Throughput
from pleiad.engine.allotment import Allotment, Pool
from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container
from pleiad.engine.refusals import Refusals
from pleiad.limits import Limits
from pleiad.partition.governor import Buckets, Governor, Throttle
from pleiad.store.segments import SegmentStore

BUCKETS = "throughputBuckets"
SHARES = "physicalPartitionThroughput"
_BUCKETS_CHANGED_AT = ".bucketsChangedAt"
_REDISTRIBUTED_AT = ".redistributedAt"
"""When the throughput was last redistributed: the times of the last minute."""
_MINUTE_SECONDS = 60


class Migration(Enum):
    """Whether a change of throughput may be one between manual and autoscale."""

    NONE = "none"
    TO_AUTOSCALE = "to autoscale"
    """The system works out the maximum; what the request says is not looked at."""
    TO_MANUAL = "to manual"
    """The figure is the maximum that autoscale had."""
    AS_GIVEN = "as given"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferState:
    """What a client is told beside an offer: how far it may go down, how far up at once, and whether the physical
    partitions it needs are still being made."""

    minimum_ru: int
    instant_maximum_ru: int
    is_pending: bool


class Provisioning:
    """The throughput of one account."""

    def __init__(
        self,
        segments: SegmentStore,
        catalog: Catalog,
        limits: Limits,
        throttle: Throttle,
        is_serverless: bool,
        refusals: Refusals,
    ) -> None:
        self._catalog = catalog
        self._limits = limits
        self._segments = segments
        self._refusals = refusals
        self._pools: dict[str, Pool] = {}
        self._stored_bytes: dict[str, int] = {}
        """The last known size of each container at work."""
        self.now: Callable[[], float] = time.time
        """The clock of times that are stored."""
        self.throttle = throttle
        self.is_serverless = is_serverless

    def check_account(self) -> None:
        """Raises ValueError when the data belongs to an account of the other kind: that is for an account's life."""
        offers = self._catalog.all(Kind.OFFER)
        if self.is_serverless and offers:
            raise ValueError(
                "this data has provisioned throughput: it belongs to an account that is not serverless"
            )
        unpaid = [c for c in self._catalog.all(Kind.CONTAINER) if self.offer_behind(c) is None]
        if not self.is_serverless and unpaid:
            raise ValueError("this data belongs to a serverless account: serve it as one")

    # -- who pays --------------------------------------------------------------------------------------

    def offer_behind(self, container: Resource) -> Resource | None:
        """The offer a container's requests are paid from: its own, or that of its database."""
        return self._catalog.offer_of(container.rid) or self._catalog.offer_of(container.parent_rid)

    def new_offer(self, owner: Resource, given: Throughput, number: int) -> Resource:
        """The offer of a new database or container."""
        properties = {
            "offerVersion": "V2",
            "offerType": "Invalid",
            "offerResourceId": owner.rid,
            "content": given.offer_content(),
        }
        return self._catalog.new_resource(Kind.OFFER, None, "", properties, number)

    def partitions_needed(self, container: Container) -> int:
        """The physical partitions it takes to serve a container's throughput."""
        offer = self.offer_behind(container.resource)
        if offer is None:
            return 1
        return throughput.partitions_to_serve(
            throughput.from_offer_content(offer.properties["content"]), self._limits
        )

    def shared_throughput(self, database: Resource) -> Throughput | None:
        """The throughput a database shares among its containers, if there is room for one more."""
        offer = self._catalog.offer_of(database.rid)
        if offer is None:
            return None
        if len(self._members(database.rid)) >= self._limits.shared_database_containers:
            raise errors.SHARED_DATABASE_FULL(limit=self._limits.shared_database_containers)
        return throughput.from_offer_content(offer.properties["content"])

    def shares_throughput(self, container: Resource) -> bool:
        """Whether a container lives on the throughput of its database."""
        offer = self.offer_behind(container)
        return offer is not None and offer.properties["offerResourceId"] != container.rid

    def _members(self, database_rid: str) -> list[Resource]:
        """The containers that share the throughput of their database."""
        containers = self._catalog.children(Kind.CONTAINER, database_rid)
        return [container for container in containers if not self._catalog.offer_of(container.rid)]

    def allotment_of(self, container: Resource) -> Allotment:
        """What a container may spend."""
        offer = self.offer_behind(container)
        if offer is None:
            return Allotment(throttle=self.throttle, partition_ru=float(self._limits.serverless_partition_ru))
        content = offer.properties["content"]
        given = throughput.from_offer_content(content)
        if offer.properties["offerResourceId"] != container.rid:
            return Allotment(throttle=self.throttle, throughput=given, pool=self._pool(container.parent_rid))
        return Allotment(
            throttle=self.throttle,
            throughput=given,
            weights={int(each["id"]): each["throughput"] for each in content.get(SHARES, [])},
            buckets=_buckets(content.get(BUCKETS, [])),
        )

    def _pool(self, database_rid: str) -> Pool:
        """The governors that the containers of a database share, made when the first of them is opened."""
        pool = self._pools.get(database_rid)
        if pool is None:
            pool = self._pools[database_rid] = Pool()
            self._allot_pool(database_rid)
        return pool

    def _allot_pool(self, database_rid: str) -> None:
        offer = self._catalog.offer_of(database_rid)
        assert offer is not None
        given = throughput.from_offer_content(offer.properties["content"])
        self._pools[database_rid].allot(given, self._places(offer), self.throttle, self._limits)

    def _places(self, offer: Resource) -> int:
        """The places in which a database spends its throughput: as many as its widest container has partitions."""
        given = throughput.from_offer_content(offer.properties["content"])
        members = self._members(offer.properties["offerResourceId"])
        widest = max([len(self._catalog.placements(member.rid)) for member in members], default=1)
        return max(widest, throughput.partition_count(given, self._limits, shared=True))

    def governors(self, at_work: AtWork) -> dict[str, Governor]:
        """The governors of the containers at work, by a name that is the same at every server.

        Pools follow the partition maps first, so that place n is the same place at every server.
        """
        named = {}
        for container in at_work:
            if container.allotment.pool is None:
                for partition in container.map.partitions:
                    named[f"{container.resource.rid}/{partition.id}"] = partition.governor
        for rid, pool in self._pools.items():
            offer = self._catalog.offer_of(rid)
            if offer is not None and self._places(offer) != len(pool.governors):
                self.apply(offer, at_work)
            named |= {f"{rid}/{place}": governor for place, governor in enumerate(pool.governors)}
        return named

    def apply(self, offer: Resource, at_work: AtWork) -> None:
        """Puts a changed offer into force in every open container that it pays for."""
        owner = offer.properties["offerResourceId"]
        if owner in self._pools:
            self._allot_pool(owner)
        for container in at_work:
            if owner in (container.resource.rid, container.resource.parent_rid):
                container.allot(self.allotment_of(container.resource))

    def forget(self, rid: str) -> None:
        """Lets go of what is kept for a resource that was deleted."""
        self._pools.pop(rid, None)
        self._stored_bytes.pop(rid, None)

    # -- the whole account -------------------------------------------------------------------------------

    def provisioned_ru(self) -> int:
        """The throughput of all databases and containers; of autoscale it is the maximum that counts."""
        offers = self._catalog.all(Kind.OFFER)
        return sum(throughput.from_offer_content(offer.properties["content"]).ru for offer in offers)

    def check_account_limit(self, wanted_ru: int, instead_of_ru: int = 0) -> None:
        """Refuses to create or raise a throughput beyond what the account may have in all."""
        limit = self._limits.account_throughput_ru
        if not limit or self.is_serverless or wanted_ru <= instead_of_ru:
            return
        current = self.provisioned_ru()
        wanted = current - instead_of_ru + wanted_ru
        if wanted > limit:
            raise errors.ACCOUNT_THROUGHPUT_LIMIT(limit=limit, current=current, wanted=wanted)

    def check_stated(self, given: Throughput | None) -> None:
        """Where the account has a limit, nobody gets throughput of his own without asking for it."""
        if given is None and self._limits.account_throughput_ru and not self.is_serverless:
            raise errors.BAD_REQUEST(
                reason="The account has a total throughput limit: state the throughput of a new container."
            )

    # -- what an offer may become ------------------------------------------------------------------------

    async def history(self, offer: Resource) -> History:
        """What the minimum of an offer depends on."""
        payees = self.payees(offer)
        stored_bytes = 0
        for container in payees:
            for placement in self._catalog.placements(container.rid):
                state = await segment_of(placement, self._segments).state(placement.id)
                stored_bytes += state.size_bytes
        is_shared = self._catalog.by_rid(Kind.CONTAINER, offer.properties["offerResourceId"]) is None
        highest = throughput.highest_ru(offer.properties["content"])
        return History(highest, stored_bytes, len(payees) if is_shared else 0)

    async def state(self, offer: Resource) -> OfferState:
        """How far an offer may be changed now."""
        given = throughput.from_offer_content(offer.properties["content"])
        return OfferState(
            minimum_ru=throughput.minimum_ru(given.autoscale, await self.history(offer), self._limits),
            instant_maximum_ru=throughput.instant_maximum_ru(self._partition_count(offer), self._limits),
            is_pending=self.is_pending(offer),
        )

    def is_pending(self, offer: Resource) -> bool:
        """Whether an offer waits for physical partitions that are still to be made."""
        given = throughput.from_offer_content(offer.properties["content"])
        needed = throughput.partitions_to_serve(given, self._limits)
        maps = [self._catalog.placements(payee.rid) for payee in self.payees(offer)]
        return any(
            len(placements) < needed
            and not all(self._refusals.is_indivisible(each.container_rid, each.id) for each in placements)
            for placements in maps
        )

    def _partition_count(self, offer: Resource) -> int:
        """The physical partitions an offer has to live with now: of several containers those of the narrowest."""
        given = throughput.from_offer_content(offer.properties["content"])
        counts = [len(self._catalog.placements(payee.rid)) for payee in self.payees(offer)]
        return min(counts, default=throughput.partition_count(given, self._limits, shared=True))

    def payees(self, offer: Resource) -> list[Resource]:
        """The containers an offer pays for."""
        owner = offer.properties["offerResourceId"]
        container = self._catalog.by_rid(Kind.CONTAINER, owner)
        return [container] if container is not None else self._members(owner)

    def owner_name(self, offer: Resource) -> str:
        """The database or container of an offer as DB or DB/CONTAINER."""
        owner = offer.properties["offerResourceId"]
        container = self._catalog.by_rid(Kind.CONTAINER, owner)
        database = self._catalog.by_rid(Kind.DATABASE, container.parent_rid if container else owner)
        return "/".join(each.id for each in (database, container) if each is not None)

    def is_splittable(self, container: Resource) -> bool:
        """Whether a container may ever have a second physical partition."""
        offer = self.offer_behind(container) if self._limits.fixed_container_bytes else None
        if offer is None:
            return True
        key_given = not container.properties["partitionKey"].get("systemKey", False)
        shared = offer.properties["offerResourceId"] != container.rid
        initial = throughput.initial_ru(offer.properties["content"])
        return throughput.is_splittable(key_given, initial, shared, self._limits)

    def fixed_bytes(self, container: Resource) -> int:
        """What a fixed container holds at most; 0 for one that is split when it grows."""
        return 0 if self.is_splittable(container) else self._limits.fixed_container_bytes

    async def wanted(self, offer: Resource, body: Mapping[str, Any], migration: Migration) -> dict[str, Any]:
        """The properties an offer is to have next, checked: as the body says, or migrated to the other kind."""
        old = offer.properties["content"]
        current = throughput.from_offer_content(old)
        history = await self.history(offer)
        if migration is Migration.TO_AUTOSCALE:
            given = current if current.autoscale else throughput.to_autoscale(current, history, self._limits)
        elif migration is Migration.TO_MANUAL:
            given = throughput.to_manual(current) if current.autoscale else current
        else:
            given = throughput.from_offer_content(body.get("content"))
            if migration is Migration.NONE:
                _check_same_kind(current, given)
        given.checked(self._limits, history)
        self.check_account_limit(given.ru, current.ru)
        state = await self.state(offer)
        if state.is_pending and given.ru > state.instant_maximum_ru:
            raise errors.OFFER_PENDING()
        container = self._catalog.by_rid(Kind.CONTAINER, offer.properties["offerResourceId"])
        if container is not None and not self.is_splittable(container):
            check_fixed(given, self._limits)
        properties = {**offer.properties, "content": _content(given, old)}
        sent = body.get("content")
        if isinstance(sent, dict) and sent.get(BUCKETS, old.get(BUCKETS, [])) != old.get(BUCKETS, []):
            buckets = self._checked_buckets(offer, sent[BUCKETS])
            properties["content"] = _content(given, {**old, BUCKETS: buckets})
            properties[_BUCKETS_CHANGED_AT] = self.now()
        return properties

    def note_stored(self, container: Resource, stored_bytes: int | None) -> Resource | None:
        """Takes note of the size of a container; the offer behind it when it has become too small for the data.

        None forgets the size, so that the next one is new again.
        """
        if self._stored_bytes.get(container.rid) == stored_bytes:
            return None
        if stored_bytes is None:
            del self._stored_bytes[container.rid]
            return None
        self._stored_bytes[container.rid] = stored_bytes
        offer = self.offer_behind(container)
        return offer if offer is not None and self.raised(offer) is not None else None

    def raised(self, offer: Resource) -> dict[str, Any] | None:
        """The properties of an offer that is raised to what the data it pays for asks for; None when it is enough."""
        content = offer.properties["content"]
        current = throughput.from_offer_content(content)
        stored_bytes = sum(self._stored_bytes.get(payee.rid, 0) for payee in self.payees(offer))
        raised = throughput.raised_for_storage(current, stored_bytes, self._limits)
        return {**offer.properties, "content": _content(raised, content)} if raised != current else None

    # -- buckets and shares ------------------------------------------------------------------------------

    def _checked_buckets(self, offer: Resource, given: object) -> list[dict[str, Any]]:
        """The throughput buckets of a container as a client defines them, if it may change them now."""
        owner = offer.properties["offerResourceId"]
        if self._catalog.by_rid(Kind.CONTAINER, owner) is None:
            raise errors.BAD_REQUEST(reason="A database with shared throughput has no throughput buckets.")
        checked = check_buckets(given, self._limits)
        since = self.now() - offer.properties.get(_BUCKETS_CHANGED_AT, float("-inf"))
        pause = self._limits.throughput_bucket_change_seconds
        if 0 <= since < pause:
            raise errors.TOO_MANY_BUCKET_CHANGES(
                retry_after_ms=int((pause - since) * 1000) + 1, seconds=pause
            )
        return checked

    def redistributed(
        self, offer: Resource, container: Container, rates: Mapping[int, float] | None
    ) -> dict[str, Any]:
        """The properties of an offer whose physical partitions have these RU/s, or with None even shares again."""
        content = {name: value for name, value in offer.properties["content"].items() if name != SHARES}
        if rates is not None:
            total_ru = throughput.from_offer_content(content).ru
            content[SHARES] = self._checked_shares(container, total_ru, rates)
        now, most = self.now(), self._limits.redistributions_per_minute
        times = [at for at in offer.properties.get(_REDISTRIBUTED_AT, []) if 0 <= now - at < _MINUTE_SECONDS]
        if len(times) >= most:
            wait_seconds = _MINUTE_SECONDS - (now - times[len(times) - most]) if most else _MINUTE_SECONDS
            raise errors.TOO_MANY_REDISTRIBUTIONS(retry_after_ms=int(wait_seconds * 1000) + 1, most=most)
        return {**offer.properties, "content": content, _REDISTRIBUTED_AT: [*times, now]}

    def _checked_shares(
        self, container: Container, total_ru: int, rates: Mapping[int, float]
    ) -> list[dict[str, Any]]:
        """The RU/s of each physical partition, which must be all there are and sum up to the throughput."""
        live = {partition.id for partition in container.map.partitions}
        if rates.keys() != live:
            raise errors.BAD_REQUEST(
                reason="Throughput is redistributed over all physical partitions of a container: "
                f"{', '.join(map(str, sorted(live)))}."
            )
        most = self._limits.physical_partition_ru
        if not all(0 < rate <= most for rate in rates.values()):
            raise errors.BAD_REQUEST(reason=f"A physical partition has more than 0 and at most {most} RU/s.")
        if abs(sum(rates.values()) - total_ru) > 0.5:
            raise errors.BAD_REQUEST(
                reason=f"The shares of the physical partitions sum up to {sum(rates.values()):g} RU/s, "
                f"the throughput is {total_ru} RU/s."
            )
        now_ru = {partition.id: partition.governor.rate_ru for partition in container.map.partitions}
        sources = sum(rate < now_ru[id] for id, rate in rates.items())
        targets = sum(rate > now_ru[id] for id, rate in rates.items())
        if max(sources, targets) > self._limits.redistribution_partitions:
            raise errors.BAD_REQUEST(
                reason=f"One request takes throughput from {self._limits.redistribution_partitions} physical "
                f"partitions at most and gives it to as many, not from {sources} to {targets}."
            )
        return [{"id": str(id), "throughput": rate} for id, rate in sorted(rates.items())]


def _content(given: Throughput, old: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an offer with a new throughput; its history, its buckets and its shares stay."""
    content = given.offer_content(throughput.highest_ru(old), throughput.initial_ru(old))
    return content | {name: old[name] for name in (BUCKETS, SHARES) if old.get(name)}


def _check_same_kind(current: Throughput, given: Throughput) -> None:
    """The kind of a throughput changes by a migration, which works out the new figure itself."""
    if given.autoscale and not current.autoscale:
        raise errors.NO_MIGRATION_TO_AUTOSCALE()
    if current.autoscale and not given.autoscale:
        raise errors.NO_MIGRATION_TO_MANUAL()


def check_fixed(given: Throughput, limits: Limits) -> None:
    """A fixed container has one physical partition and no more throughput than that serves."""
    if given.ru > limits.fixed_container_ru:
        raise errors.BAD_REQUEST(
            reason=f"A fixed container has at most {limits.fixed_container_ru} RU/s, not {given.ru}. For more, copy "
            "its items into a container with a partition key."
        )


def check_buckets(given: object, limits: Limits) -> list[dict[str, Any]]:
    """Throughput buckets as a client defines them: an id, the percent it may use, and one default at most."""
    if not isinstance(given, list):
        raise errors.BAD_REQUEST(reason=f"'{BUCKETS}' must be a list.")
    checked: list[dict[str, Any]] = []
    for entry in given:
        id = entry.get("id") if isinstance(entry, dict) else None
        percent = entry.get("maxThroughputPercentage") if isinstance(entry, dict) else None
        if type(id) is not int or not 1 <= id <= limits.throughput_buckets:
            raise errors.BAD_REQUEST(
                reason=f"A throughput bucket has an 'id' from 1 to {limits.throughput_buckets}."
            )
        if type(percent) is not int or not 1 <= percent <= 100:
            raise errors.BAD_REQUEST(
                reason="A throughput bucket has a 'maxThroughputPercentage' from 1 to 100."
            )
        is_default = entry.get("isDefaultBucket") is True
        checked.append({"id": id, "maxThroughputPercentage": percent, "isDefaultBucket": is_default})
    defaults = sum(entry["isDefaultBucket"] for entry in checked)
    if len({entry["id"] for entry in checked}) != len(checked) or defaults > 1:
        raise errors.BAD_REQUEST(
            reason="The ids of throughput buckets differ, and one is the default at most."
        )
    return checked


def _buckets(stored: list[dict[str, Any]]) -> Buckets | None:
    if not stored:
        return None
    percents = {entry["id"]: entry["maxThroughputPercentage"] for entry in stored}
    return Buckets(percents, sum(entry["id"] for entry in stored if entry["isDefaultBucket"]))

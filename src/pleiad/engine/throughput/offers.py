"""Changes of offers: by clients, by an operator who shares throughput out by hand, and because data has grown."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pleiad import errors
from pleiad.catalog import throughput
from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container
from pleiad.engine.fresh import Looks, on_a_fresh_catalog
from pleiad.engine.log_line import log_line
from pleiad.engine.steady import to_the_end
from pleiad.engine.throughput.provisioning import Migration, Provisioning

_log = logging.getLogger("pleiad.throughput")


class Offers:
    """The offers of one account, and what they ask of physical partitions."""

    def __init__(self, catalog: Catalog, provisioning: Provisioning, at_work: AtWork, looks: Looks) -> None:
        self._catalog = catalog
        self._provisioning = provisioning
        self._at_work = at_work
        self.looks = looks

    def partitions_needed(self, container: Container) -> int:
        """The physical partitions it takes to serve a container's throughput."""
        return self._provisioning.partitions_needed(container)

    def is_splittable(self, container: Container) -> bool:
        """Whether a container may ever have a second physical partition."""
        return self._provisioning.is_splittable(container.resource)

    @to_the_end
    @on_a_fresh_catalog
    async def replace(
        self, rid: str, body: Mapping[str, Any], if_match: str | None, migration: Migration
    ) -> Resource:
        """Changes the throughput of a database or container."""
        async with self._catalog.lock:
            old = self._catalog.find(Kind.OFFER, "", rid)
            if old is None:
                raise errors.RESOURCE_NOT_FOUND(kind=Kind.OFFER.word, id=rid)
            old.check_etag(if_match)
            return await self._put(old, await self._provisioning.wanted(old, body, migration))

    @to_the_end
    @on_a_fresh_catalog
    async def redistribute(self, container: Container, rates: Mapping[int, float] | None) -> None:
        """Gives each physical partition RU/s of its own, by id, that sum up to the throughput; None evens them out.

        A later change of the throughput keeps the proportions.
        """
        async with self._catalog.lock:
            offer = self._catalog.offer_of(container.resource.rid)
            if offer is None:
                raise errors.BAD_REQUEST(reason="Only a container's own throughput can be redistributed.")
            await self._put(offer, self._provisioning.redistributed(offer, container, rates))

    async def follow_storage(self, container: Container, stored_bytes: int) -> None:
        """Has the throughput behind a container raised when its data has outgrown it."""
        offer = self._provisioning.note_stored(container.resource, stored_bytes)
        if offer is not None:
            try:
                await self._raise(offer.rid)
            except BaseException:
                self._provisioning.note_stored(container.resource, None)
                raise

    @to_the_end
    @on_a_fresh_catalog
    async def _raise(self, rid: str) -> None:
        """Raises an offer to what its data asks for, unless it was changed or deleted since it was found wanting."""
        async with self._catalog.lock:
            offer = self._catalog.by_rid(Kind.OFFER, rid)
            raised = self._provisioning.raised(offer) if offer is not None else None
            if offer is None or raised is None:
                return
            before, after = (
                throughput.from_offer_content(each["content"]).ru for each in (offer.properties, raised)
            )
            await self._put(offer, raised)
            owner = self._provisioning.owner_name(offer)
        _log.info(log_line(kind="raised-by-storage", resource=owner, before=before, after=after))

    async def _put(self, offer: Resource, properties: dict[str, Any]) -> Resource:
        new = offer.changed(properties)
        await self._catalog.replace(offer, new)
        self._provisioning.apply(new, self._at_work)
        return new

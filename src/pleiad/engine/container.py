"""A container at work: its definition, its partition map, and what is precomputed for its items."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from binascii import b2a_base64
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pleiad import errors
from pleiad.catalog.catalog import Catalog
from pleiad.catalog.container import ContainerDefinition, define, versions_since
from pleiad.catalog.copy_marks import Closed, Closing, closed_of, followed_by
from pleiad.catalog.placement import Placement, segment_of
from pleiad.catalog.resource import Resource
from pleiad.engine.allotment import Allotment
from pleiad.engine.container_scripts import ContainerScripts
from pleiad.engine.fresh import Looks
from pleiad.engine.kept import KeptWork
from pleiad.engine.recording import Recording
from pleiad.engine.remembered import Remembered
from pleiad.engine.seal import Seal
from pleiad.engine.traffic import SLICES, Heat, Traffic
from pleiad.errors import PleiadError
from pleiad.index.policy import ELEMENT
from pleiad.index.terms import TermCounter
from pleiad.item import rid as rids
from pleiad.item.body import load
from pleiad.item.system import etag_template, item_template, link_of_container, lsn_of_etag, shown_template
from pleiad.item.ttl import is_expired, ttl_from
from pleiad.keys.hash import V1_STRING_BYTES_MAX, epk
from pleiad.keys.range import EpkRange, position, prefix_range
from pleiad.keys.value import KeyValue, check_size, same, to_json_text
from pleiad.limits import Limits, size_text
from pleiad.partition.map import PartitionMap
from pleiad.partition.partition import Partition
from pleiad.query import QueryContext, compile_query
from pleiad.query.pace import Pace
from pleiad.query.pushdown import policy_paths
from pleiad.store.rows import Mutation, Outcome, PartitionWrite, Result, Row
from pleiad.store.segments import SegmentOutOfServiceError, SegmentStore
from pleiad.store.selection import IndexedPath
from pleiad.values.undefined import UNDEFINED

_LOOK_AGAIN_SECONDS = 0.2
_EXCHANGED_RETRY_MS = 10
_PLACES_MAX = 1_024
_PLACE_CHARACTERS_MAX = 128
_log = logging.getLogger("pleiad.engine")
_new = tuple.__new__


class Place(NamedTuple):
    """Where the items of a partition key are, for as long as the partition map stays as it is."""

    epk: bytes
    partition: Partition


class Container:
    """One container, ready for item operations."""

    def __init__(
        self,
        resource: Resource,
        database: Resource,
        partition_map: PartitionMap,
        catalog: Catalog,
        limits: Limits,
        scripts: ContainerScripts,
        looks: Looks | None = None,
    ) -> None:
        self.seal = Seal(catalog)
        self.scripts = scripts
        self.looks = looks
        """Learns what other servers changed; None when there can be no others."""
        self._map_changed: asyncio.Event = asyncio.Event()
        self.limits = limits
        self.fixed_bytes = 0
        """What a fixed container holds at most, on its one physical partition; 0: it is none."""
        self.traffic = Traffic()
        self.heat = Heat(self._slice_of, lambda: self.traffic.spent_ru())
        self.recording: Recording | None = None
        """Where requests are noted for the workload record, while that is switched on."""
        self.map = partition_map
        self.allotment = Allotment()
        self.row_bytes_seen = 0
        """About how large the items are that were read last: how many are read at once goes by it."""
        self.rid_bytes = resource.rid.encode()
        self._told_of_long_keys = False
        self.kept = KeptWork()
        self._places: dict[tuple[KeyValue, ...], Place] = {}
        self.link = link_of_container(database.rid, resource.rid)
        self._docs_link = f"{self.link}docs/"
        self._rid_prefix = rids.document_rid_prefix(database.number, resource.number)
        self._item_template = item_template(self._docs_link, resource.number)
        self._shown_template = shown_template(self._docs_link)
        self._etag_template = etag_template(resource.number)
        self.adopt(resource, database)

    def adopt(self, resource: Resource, database: Resource) -> None:
        """Takes over a new version of the container's resource; identity and partition key never change."""
        self.resource = resource
        self.database = database
        self.definition: ContainerDefinition = define(resource.properties, self.limits)
        self.terms = TermCounter(self.definition.indexing)
        self.key = self.definition.key
        if self.key.system_key and self.limits.fixed_container_bytes:
            # Without a key all items are one logical partition, so its limit is that of the container.
            most_bytes = min(self.limits.fixed_container_bytes, self.limits.logical_partition_bytes)
            self.limits = dataclasses.replace(self.limits, logical_partition_bytes=most_bytes)
        self.key_names = frozenset([steps[0] for steps in self.key.path_steps])
        self.default_ttl = self.definition.default_ttl
        self.versions_seconds = self.definition.versions_seconds
        self.versions_since = versions_since(resource.properties)
        self.closed = closed_of(resource.properties)
        """Set while clients may not write to the container."""
        self.is_followed = followed_by(resource.properties) is not None
        """Whether a copy needs every change, however long they are kept for clients."""
        self.keeps_versions = self.is_followed or self.versions_seconds is not None
        self.has_versions_to_forget = True
        """False when a container that keeps no versions is known to have none left of earlier days."""
        self.path = f"dbs/{database.id}/colls/{resource.id}"
        computed = resource.properties.get("computedProperties", [])
        self._computed = tuple((each["name"], compile_query(each["query"], self.limits)) for each in computed)
        self.computed_names = tuple(name for name, _ in self._computed)
        self.prepared = Remembered()
        """What is known of queries on this version of the container, by text and parameters."""
        self.value_filters = Remembered()
        """Texts whose filter is one value of one path, and None for all others; `engine.query.prepared` fills both."""
        self.is_indexed = policy_paths(self.definition.indexing, self.computed_names)

    # -- the partition map -----------------------------------------------------------------------

    def adopt_map(self, new: PartitionMap) -> None:
        """Puts a new partition map in place, and lets those who wait for it go on.

        Governors and counters stay with their ranges; each partition gets its share of the throughput anew.
        """
        before = {partition.id: partition for partition in self.map.partitions}
        for partition in new.partitions:
            if (old := before.get(partition.id)) is not None:
                partition.governor = old.governor
                partition.latencies, partition.refused = old.latencies, old.refused
        self.map = new
        self._places = {}
        self.allotment.apply(new, self.limits)
        self._map_changed.set()
        self._map_changed = asyncio.Event()

    async def successor(self, gone: Partition, epk: bytes) -> Partition:
        """The partition of a hash after the one it belonged to was closed to writers; waits while there is none."""
        waited = self.limits.operation_seconds
        await asyncio.sleep(0)  # a request that has not waited yet is no task, and a time-out needs one
        partition = self.map.find(epk)
        try:
            async with asyncio.timeout(waited):
                while partition is gone:
                    await self._next_map()
                    partition = self.map.find(epk)
        except TimeoutError:
            raise errors.COMPLETING_SPLIT(range=gone.range_id) from None
        return partition

    def allot(self, allotment: Allotment) -> None:
        """Takes over a new throughput; every physical partition gets its share at once."""
        self.allotment = allotment
        allotment.apply(self.map, self.limits)

    async def _next_map(self) -> None:
        """Waits for the next map; where other servers make them, looks for it now and then."""
        changed = self._map_changed
        if self.looks is None:
            await changed.wait()
            return
        await self.looks.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                await changed.wait()

    async def learn_lsns(self, span: EpkRange) -> None:
        """Learns how far other servers have written; alone on its store, a server knows."""
        if self.looks is not None:
            for partition in self.map.overlapping(span):
                await partition.load()

    # -- physical indexes ------------------------------------------------------------------------

    def drop_surplus_indexes(self) -> None:
        """Drops the physical indexes on paths that the indexing policy excludes."""

        def is_allowed(indexed: IndexedPath) -> bool:
            steps: tuple[str | int, ...] = indexed.path
            return self.is_indexed((*steps, ELEMENT) if indexed.element else steps)

        for partition in self.map.partitions:
            partition.drop_indexes(is_allowed)

    def index_progress_percent(self) -> int:
        """How far the physical indexes are built, over all partitions."""
        return int(100 * min(partition.index_progress() for partition in self.map.partitions))

    def commit(
        self, partition: Partition, mutations: Sequence[Mutation], now: int, atomic: bool = False
    ) -> Awaitable[Sequence[Outcome]]:
        """Commits mutations on one of the container's partitions by the container's rules."""
        return partition.commit(self.write(partition, tuple(mutations), now, atomic))

    def write(
        self,
        partition: Partition,
        mutations: tuple[Mutation, ...],
        now: int,
        atomic: bool = False,
        is_alone: bool = False,
    ) -> PartitionWrite:
        """Mutations as one of the container's partitions is to commit them, by the container's rules."""
        if self.closed is not None:
            raise _refusal(self.closed, self.resource.id, now, self.limits)
        if self.definition.ttl_path:
            mutations = tuple([self._with_own_base(mutation, now) for mutation in mutations])
        terms = self.default_ttl, self.limits.logical_partition_bytes, atomic, self.keeps_versions
        fields = partition.id, partition.epoch, now, mutations, *terms, self.fixed_bytes, is_alone
        return _new(PartitionWrite, fields)

    def _with_own_base(self, mutation: Mutation, now: int) -> Mutation:
        """A mutation whose time to live ends when it would if it counted from the item's own property."""
        if not mutation.body:
            return mutation
        base = self.definition.ttl_base(load(mutation.body))
        return mutation._replace(ttl=ttl_from(base, now, mutation.ttl, self.default_ttl, self.limits))

    def refusal_of(self, mutation: Mutation, outcome: Outcome) -> PleiadError:
        """The row of the error table for a mutation that the store refused."""
        result = outcome.result
        if result is Result.EXISTS:
            return errors.ITEM_EXISTS(id=mutation.id if mutation.new_id is None else mutation.new_id)
        if result is Result.MISSING:
            return errors.ITEM_NOT_FOUND(id=mutation.id)
        if result is Result.PRECONDITION_FAILED:
            return errors.PRECONDITION_FAILED()
        if result is Result.UNIQUE_CONFLICT:
            paths = self.definition.unique_keys[outcome.unique_key].paths
            return errors.UNIQUE_KEY_CONFLICT(paths=", ".join(paths))
        if result is Result.LOGICAL_PARTITION_FULL:
            return errors.PARTITION_KEY_FULL(limit=self.limits.logical_partition_text)
        if result is Result.PARTITION_FULL:
            return errors.FIXED_CONTAINER_FULL(limit=size_text(self.fixed_bytes))
        raise AssertionError(f"the store refused a mutation for no reason: {result}")

    # -- keys ----------------------------------------------------------------------------------

    def full_key(self, given: tuple[KeyValue, ...] | None) -> tuple[KeyValue, ...]:
        """The complete key of a point operation; a prefix of a hierarchical key is not enough."""
        if given is None:
            if self.key.system_key:
                return (UNDEFINED,)
            raise errors.MISSING_PARTITION_KEY()
        if len(given) == self.key.levels:
            check_size(given, self.key, self.limits)
            return given
        if not given:
            return (UNDEFINED,) * self.key.levels
        raise errors.PARTITION_KEY_INCOMPLETE(given=to_json_text(given), levels=self.key.levels)

    def place_of_item(self, item: dict[str, Any], given: tuple[KeyValue, ...] | None) -> Place:
        """Where an item belongs, whose key must be the one the request names."""
        place = self._places.get(given) if given else None
        # Of strings only, as what is remembered: there equal is the same.
        if place is not None and given:
            name = self.key.name_at_top
            is_its_key = item.get(name) == given[0] if name else self.key.extract(item) == given
            if is_its_key:
                return place
        return self.place_of(self.key_of(item, given))

    def key_of(self, item: dict[str, Any], given: tuple[KeyValue, ...] | None) -> tuple[KeyValue, ...]:
        """The key inside an item, which must be the one the request names."""
        found = self.key.extract(item)
        named = self.full_key(given)
        if not same(named, found):
            raise errors.PARTITION_KEY_MISMATCH(found=to_json_text(found), given=to_json_text(named))
        check_size(found, self.key, self.limits)
        if self.key.version == 1 and not self._told_of_long_keys:
            self._tell_of_long_key(found)
        return found

    def _tell_of_long_key(self, key: tuple[KeyValue, ...]) -> None:
        """Says once that keys of version 1 which begin alike are one logical partition."""
        if any(
            isinstance(value, str) and len(value.encode("utf-8", "replace")) > V1_STRING_BYTES_MAX
            for value in key
        ):
            self._told_of_long_keys = True
            _log.warning(
                "%s has a partition key of version 1 and a key value of more than %d bytes: values that are alike up "
                "to there share one logical partition; a key of version 2, or the limit partition_key_bytes_v1 = %d, "
                "prevents it",
                self.path,
                V1_STRING_BYTES_MAX,
                V1_STRING_BYTES_MAX,
            )

    def epk_of(self, key: tuple[KeyValue, ...]) -> bytes:
        return epk(key, self.key)

    def place_of(self, given: tuple[KeyValue, ...] | None) -> Place:
        """The hash and the physical partition of a complete key; those of strings are remembered, as most are."""
        place = self._places.get(given) if given else None
        if place is not None:
            return place
        key = self.full_key(given)
        hashed = epk(key, self.key)
        place = Place(hashed, self.map.find(hashed))
        # Of strings only: 1, 1.0 and true are equal here, and keys of their own.
        if self.key.version == 2 and all(
            type(value) is str and len(value) <= _PLACE_CHARACTERS_MAX for value in key
        ):
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            self._places[key] = place
        return place

    def span_of(self, given: tuple[KeyValue, ...]) -> EpkRange:
        """The hashes of a key, or of every key beneath a hierarchical prefix."""
        if len(given) > self.key.levels:
            raise errors.BAD_PARTITION_KEY(
                reason=f"the key {to_json_text(given)} has more levels than the container's {self.key.levels}."
            )
        check_size(given, self.key, self.limits)
        return prefix_range(given or (UNDEFINED,), self.key)

    def _slice_of(self, given: tuple[KeyValue, ...]) -> int:
        """The slice of the hash space that a key lies in; of a prefix the first."""
        place = self._places.get(given)
        hashed = self.span_of(given).min if place is None else place.epk
        return min(SLICES - 1, int(SLICES * position(hashed, self.key)))

    def unique_values(self, item: dict[str, Any]) -> tuple[bytes, ...]:
        """The value of each unique key in an item; a missing path counts as null."""
        return tuple(unique.value_in(item) for unique in self.definition.unique_keys)

    # -- what clients see ------------------------------------------------------------------------

    def etag(self, row: Row) -> str:
        lsn = row.lsn
        return self._etag_template % (lsn & 0xFFFFFFFF, lsn >> 32, row.ts)

    def lsn_of(self, etag: str) -> int | None:
        return lsn_of_etag(self.resource.number, etag)

    def render(self, row: Row) -> bytes:
        """The item as clients read it: the stored text with its system properties."""
        number, _, _, lsn, ts, _, _, _, body = row
        raw = self._rid_prefix + (number | rids.LOWEST_BYTE_FIRST).to_bytes(8, "little")
        rid = b2a_base64(raw, newline=False).replace(b"/", b"-")
        comma = b"," if len(body) > 2 else b""
        return self._item_template % (
            body[:-1], comma, rid, rid, lsn & 0xFFFFFFFF, lsn >> 32, ts, ts,
        )  # fmt: skip

    def shown(self, row: Row) -> tuple[str, bytes]:
        """The etag of an item, and the item as `render` has it."""
        number, _, _, lsn, ts, _, _, _, body = row
        raw = self._rid_prefix + (number | rids.LOWEST_BYTE_FIRST).to_bytes(8, "little")
        rid = b2a_base64(raw, newline=False).replace(b"/", b"-")
        etag = self._etag_template % (lsn & 0xFFFFFFFF, lsn >> 32, ts)
        comma = b"," if len(body) > 2 else b""
        return etag, self._shown_template % (body[:-1], comma, rid, rid, etag[1:-1].encode(), ts)

    def render_all(self, rows: Iterable[Row]) -> list[bytes]:
        """Items as clients read them: the stored texts with their system properties, by one template."""
        prefix, template = self._rid_prefix, self._item_template
        texts = []
        for number, _, _, lsn, ts, _, _, _, body in rows:
            raw = prefix + (number | rids.LOWEST_BYTE_FIRST).to_bytes(8, "little")
            rid = b2a_base64(raw, newline=False).replace(b"/", b"-")
            comma = b"," if len(body) > 2 else b""
            texts.append(template % (body[:-1], comma, rid, rid, lsn & 0xFFFFFFFF, lsn >> 32, ts, ts))
        return texts

    def system_properties(self, row: Row) -> dict[str, Any]:
        """The system properties of an item, for a query to look at."""
        rid = rids.document_rid_of(self._rid_prefix, row.number)
        return {
            "_rid": rid,
            "_self": f"{self._docs_link}{rid}/",
            "_etag": self.etag(row),
            "_attachments": "attachments/",
            "_ts": row.ts,
        }

    def is_expired(self, row: Row, now: float) -> bool:
        return is_expired(row.ts, row.ttl, self.default_ttl, now)

    def condition_context(self, pace: Pace) -> QueryContext:
        """What the condition of a patch knows: the item, and nothing of the container's policies."""
        return QueryContext(limits=self.limits, pace=pace)

    @property
    def is_planar(self) -> bool:
        """Whether geometries lie in a plane and not on the globe."""
        config = self.definition.properties.get("geospatialConfig") or {}
        return bool(config.get("type") == "Geometry")

    def query_context(
        self, pace: Pace | None = None, udfs: Mapping[str, Callable[..., Any]] | None = None
    ) -> QueryContext:
        """What a query on this container knows beside its text; `pace` may stop it."""
        properties = self.definition.properties
        return QueryContext(
            limits=self.limits,
            udfs=udfs or {},
            computed_properties=self._computed,
            vector_policy=properties.get("vectorEmbeddingPolicy"),
            full_text_policy=properties.get("fullTextPolicy"),
            is_planar=self.is_planar,
            pace=pace or Pace(),
        )


def _refusal(closed: Closed, id: str, now: float, limits: Limits) -> PleiadError:
    """What a client is told that writes to a closed container.

    Right after an exchange the request may have been meant for the container that has the name now: it is to be sent
    again, and then finds that one.
    """
    if closed.why is Closing.FILLED:
        return errors.CONTAINER_BEING_FILLED(id=id, copy=closed.copy_id)
    if now <= closed.since + limits.operation_seconds:
        return errors.CONTAINER_EXCHANGED(id=id, retry_after_ms=_EXCHANGED_RETRY_MS)
    return errors.CONTAINER_REPLACED(id=id, copy=closed.copy_id)


async def open_container(
    resource: Resource,
    database: Resource,
    catalog: Catalog,
    segments: SegmentStore,
    limits: Limits,
    scripts: ContainerScripts,
    looks: Looks | None = None,
) -> Container:
    """Builds the working form of a container from its catalog records."""
    partitions = [partition_of(placement, segments) for placement in catalog.placements(resource.rid)]
    for partition in partitions:
        with contextlib.suppress(SegmentOutOfServiceError):  # the others serve on
            await partition.load()
    return Container(resource, database, PartitionMap(partitions), catalog, limits, scripts, looks)


def partition_of(placement: Placement, segments: SegmentStore, lsn: int = 0) -> Partition:
    """The working form of a placement."""
    segment = segment_of(placement, segments)
    return Partition(
        placement.id, placement.span, placement.epoch, placement.parents, placement.segment, segment, lsn
    )

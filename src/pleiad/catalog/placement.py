"""The durable partition map: one record per physical partition, live or retired, and one per running change of it.

Invariant: the live records of a container tile the whole hash space, without a gap or an overlap. Ids are never
used twice in a container, and `parents` lists every ancestor. While a change of the map may have fenced partitions
its operation record is there, so that a restart knows which containers to mend; and every step of the change expects
that record, so that who has taken it over is alone in changing the map.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pleiad import errors
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.range import EpkRange, even_ranges
from pleiad.store.catalog import Record
from pleiad.store.segments import FIRST_NODE, Segment, SegmentStore

KIND = "partition"
OPERATION = "operation"


class Cause(Enum):
    """Why a change of the map takes place."""

    REQUEST = "request"
    STORAGE = "storage"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True)
class Placement:
    """One physical partition as the catalog remembers it: its range of hashes and the segment of its rows."""

    container_rid: str
    id: int
    span: EpkRange
    segment: str
    epoch: int
    parents: tuple[int, ...] = ()
    made_at: int = 0
    retired_at: int | None = None
    """When a split or merge put others in its place; None while it is live."""
    node: str = FIRST_NODE
    """The node that the segment is on."""
    cause: str = ""
    """Why the split or merge took place that made it; empty where that is not known."""

    @property
    def is_live(self) -> bool:
        return self.retired_at is None

    @property
    def is_at_home(self) -> bool:
        """Whether its segment was made for it; a child of a split sits in the segment of its parent at first."""
        return self.segment.split("-")[1] == f"p{self.id}"

    def to_record(self) -> Record:
        low, high = self.span.to_hex()
        body = {
            "min": low,
            "max": high,
            "segment": self.segment,
            "epoch": self.epoch,
            "parents": list(self.parents),
            "made": self.made_at,
        }
        if self.retired_at is not None:
            body["retired"] = self.retired_at
        if self.node != FIRST_NODE:
            body["node"] = self.node
        if self.cause:
            body["cause"] = self.cause
        return Record(KIND, f"{self.container_rid}/{self.id}", self.container_rid, str(self.id), body)


def from_record(record: Record) -> Placement:
    """The placement a catalog record holds."""
    body = record.body
    span = EpkRange.from_hex(body["min"], body["max"])
    return Placement(
        record.parent,
        int(record.name),
        span,
        body["segment"],
        body["epoch"],
        tuple(body["parents"]),
        body.get("made", 0),
        body.get("retired"),
        body.get("node", FIRST_NODE),
        body.get("cause", ""),
    )


def segment_of(placement: Placement, segments: SegmentStore) -> Segment:
    """Where the rows of a placement are; UNAVAILABLE when they are on a node that is not the one at hand."""
    if placement.node != segments.node:
        raise errors.UNAVAILABLE(
            reason=f"The rows are on the node '{placement.node}', which is not connected."
        )
    return segments.segment(placement.segment)


def changes_of(history: Iterable[Placement]) -> tuple[int, int]:
    """How many splits and how many merges made the partitions of a container what they are."""
    by_id = {placement.id: placement for placement in history}
    children = merges = 0
    for placement in by_id.values():
        if placement.parents:
            # The youngest ancestor is the partition that was split, or one of those that were merged.
            parent = by_id[max(placement.parents)].span
            if parent.intersect(placement.span) == placement.span:
                children += 1
            else:
                merges += 1
    return children // 2, merges


def children_of(history: Iterable[Placement]) -> dict[int, list[Placement]]:
    """What came in the place of each partition that was split or merged, by its id."""
    by_id = {placement.id: placement for placement in history}
    found: dict[int, list[Placement]] = {}
    for placement in by_id.values():
        known = [id for id in placement.parents if id in by_id]
        older = {id for parent in known for id in by_id[parent].parents}
        for parent in known:
            if parent not in older:
                found.setdefault(parent, []).append(placement)
    return found


@dataclass(frozen=True, slots=True)
class MapChange:
    """A change of a container's map that is under way: the partitions it may fence, the segments it uses or makes.

    The token is that of the one who makes the change, or has taken it over to undo it.
    """

    kind: str
    partitions: tuple[int, ...]
    segments: tuple[str, ...]
    token: str

    def to_record(self, container_rid: str) -> Record:
        body = {
            "partitions": list(self.partitions),
            "segments": list(self.segments),
            "token": self.token,
        }
        return Record(OPERATION, container_rid, container_rid, self.kind, body)


def operation_from_record(record: Record) -> MapChange:
    """The operation a catalog record holds."""
    body = record.body
    segments = tuple(body.get("segments", ()))
    return MapChange(record.name, tuple(body["partitions"]), segments, body.get("token", ""))


def segment_name(container_number: int, id: int) -> str:
    """The name of the first segment made for a partition; those made later append to it."""
    return f"c{container_number}-p{id}"


def place(container_rid: str, container_number: int, count: int, key: KeyDefinition) -> list[Placement]:
    """The physical partitions of a new container: `count` even shares of the hash space."""
    now = int(time.time())
    return [
        Placement(container_rid, index, span, segment_name(container_number, index), epoch=1, made_at=now)
        for index, span in enumerate(even_ranges(count, key))
    ]

"""The durable partition map: one record per physical partition, live or retired.

Invariant: the live records of a container tile the whole hash space, without a gap or an overlap. Ids are never
used twice in a container, and `parents` lists every ancestor.
"""

from __future__ import annotations

from dataclasses import dataclass

from pleiad.keys.definition import KeyDefinition
from pleiad.keys.range import EpkRange, even_ranges
from pleiad.store.contract import Record

KIND = "partition"


@dataclass(frozen=True, slots=True)
class Placement:
    """One physical partition as the catalog remembers it: its range of hashes and the segment of its rows."""

    container_rid: str
    id: int
    span: EpkRange
    segment: str
    epoch: int
    parents: tuple[int, ...] = ()

    def to_record(self) -> Record:
        low, high = self.span.to_hex()
        body = {
            "min": low,
            "max": high,
            "segment": self.segment,
            "epoch": self.epoch,
            "parents": list(self.parents),
        }
        return Record(KIND, f"{self.container_rid}/{self.id}", self.container_rid, str(self.id), body)


def from_record(record: Record) -> Placement:
    """The placement a catalog record holds."""
    body = record.body
    span = EpkRange.from_hex(body["min"], body["max"])
    return Placement(
        record.parent, int(record.name), span, body["segment"], body["epoch"], tuple(body["parents"])
    )


def place(container_rid: str, container_number: int, count: int, key: KeyDefinition) -> list[Placement]:
    """The physical partitions of a new container: `count` even shares of the hash space."""
    return [
        Placement(container_rid, index, span, f"c{container_number}-p{index}", epoch=1)
        for index, span in enumerate(even_ranges(count, key))
    ]

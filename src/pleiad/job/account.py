"""What an account in a store consists of: its catalog records, and its physical partitions with their counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256

import orjson

from pleiad.catalog import placement as placements
from pleiad.catalog.container import UniqueKey, unique_keys_of
from pleiad.catalog.placement import Placement
from pleiad.catalog.resource import Kind
from pleiad.store.catalog import Record
from pleiad.store.rows import PartitionState
from pleiad.store.segments import SegmentStore

_CONTAINER = Kind.CONTAINER.record


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a store as it was when it was read."""

    records: Sequence[Record]
    live: Sequence[Placement]
    """The physical partitions that hold rows."""
    states: Sequence[tuple[str, PartitionState]]
    """Segment and counters of every partition that was ever written there, closed ones too."""
    unique_keys: dict[str, tuple[UniqueKey, ...]]
    """By the rid of the container."""

    @property
    def items(self) -> int:
        """About how many items there are: what their partitions have counted."""
        live = {(placement.segment, placement.id) for placement in self.live}
        return sum(state.items for segment, state in self.states if (segment, state.partition) in live)

    @property
    def fingerprint(self) -> str:
        """Differs between two accounts, and between two moments of one when something was written between them."""
        digest = sha256()
        for record in sorted(self.records, key=lambda record: (record.kind, record.rid)):
            identity = (record.kind, record.rid, record.parent, record.name)
            digest.update(orjson.dumps((identity, record.body), option=orjson.OPT_SORT_KEYS))
        for segment, state in self.states:
            digest.update(orjson.dumps((segment, astuple(state))))
        return digest.hexdigest()


async def read_account(store: SegmentStore, records: Sequence[Record]) -> Account:
    """The account that the records of a store describe."""
    history = [placements.from_record(record) for record in records if record.kind == placements.KIND]
    history.sort(key=lambda placement: (placement.segment, placement.id))
    live = [placement for placement in history if placement.is_live]
    segments = {placement.segment for placement in live}
    return Account(
        records,
        live,
        await _states(store, [placement for placement in history if placement.segment in segments]),
        {record.rid: _unique_keys(record) for record in records if record.kind == _CONTAINER},
    )


async def _states(store: SegmentStore, placed: Iterable[Placement]) -> list[tuple[str, PartitionState]]:
    found = []
    for placement in placed:
        state = await placements.segment_of(placement, store).state(placement.id)
        # A partition that was never written has no epoch yet.
        if state.epoch:
            found.append((placement.segment, state))
    return found


def _unique_keys(record: Record) -> tuple[UniqueKey, ...]:
    return unique_keys_of(record.body["properties"])

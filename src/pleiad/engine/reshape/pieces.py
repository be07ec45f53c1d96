"""Pieces of the hash space and their counters, as a change of the map cuts them and puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pleiad import errors
from pleiad.catalog.placement import Placement
from pleiad.engine.container import Container
from pleiad.engine.reshape.failure import MismatchError
from pleiad.keys.range import EpkRange, midpoint
from pleiad.partition.partition import Partition
from pleiad.store.move import Move
from pleiad.store.rows import PartitionState


@dataclass(slots=True)
class Source:
    """A partition whose rows are being copied, and its counters once nobody writes to it any more."""

    partition: Partition
    move: Move
    fenced: PartitionState | None = None


def live_partition(container: Container, range_id: str) -> Partition:
    partition = container.map.by_range_id(range_id)
    if partition is None:
        raise errors.RANGE_GONE(range=range_id)
    return partition


def cut(span: EpkRange, at: bytes) -> tuple[EpkRange, EpkRange]:
    return EpkRange(span.min, at), EpkRange(at, span.max)


def middle_of(span: EpkRange, container: Container) -> bytes | None:
    try:
        return midpoint(span, container.key)
    except ValueError:
        return None  # a range of version 1 that was cut at a key and not at a hash


def check_neighbours(sources: Sequence[Partition]) -> None:
    if len(sources) < 2 or len({source.id for source in sources}) < len(sources):
        raise errors.CANNOT_MERGE(reason="a merge takes two or more different physical partitions.")
    for lower, upper in pairwise(sources):
        if lower.span.max != upper.span.min:
            raise errors.CANNOT_MERGE(reason=f"{lower.range_id} and {upper.range_id} are not neighbours.")


def together(new: Placement, sources: Sequence[Source]) -> PartitionState:
    """The counters of the partition over a finished copy, which must hold what the sources count."""
    states = []
    for source in sources:
        fenced, move = source.fenced, source.move
        assert fenced is not None
        if (move.items, move.size_bytes) != (fenced.items, fenced.size_bytes):
            raise MismatchError(
                f"the copy of partition {fenced.partition} holds {move.items} items of {move.size_bytes} bytes "
                f"and not {fenced.items} of {fenced.size_bytes}"
            )
        states.append(fenced)
    stays = len(states) == 1 and states[0].partition == new.id
    return PartitionState(
        new.id,
        new.epoch,
        max(state.lsn for state in states),
        states[0].next_sequence if stays else 1,
        sum(state.items for state in states),
        sum(state.size_bytes for state in states),
    )

"""Whether a physical partition could be split or merged, told before anybody tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pleiad.engine.container import Container
from pleiad.engine.reshape.pieces import middle_of
from pleiad.limits import Limits, size_text
from pleiad.partition.partition import Partition
from pleiad.store.rows import PartitionState

_FIXED = "It cannot be split: its container is a fixed one."
_ONE_KEY = "It cannot be split: it holds a single logical partition, and those are never divided."
_NARROW = "It cannot be split: its range of hashes is too narrow."
_ALONE = "It cannot be merged: there is no other physical partition."


@dataclass(frozen=True, slots=True)
class Prospect:
    """What could become of a partition; a refusal is a sentence, or None where there is none."""

    split_refusal: str | None
    mergeable_with: tuple[str, ...]
    merge_refusal: str | None


def prospects_of(
    container: Container,
    states: Mapping[int, PartitionState],
    partitions_needed: int,
    is_splittable: bool,
    indivisible: frozenset[int],
    limits: Limits,
) -> dict[int, Prospect]:
    """The prospects of each partition, by id.

    `indivisible` are those that could not be split when that was last tried. Whether one holds a single key is found
    out by a try only, unless it holds a single item.
    """
    partitions = container.map.partitions
    found = {}
    for place, partition in enumerate(partitions):
        neighbours = [*partitions[max(0, place - 1) : place], *partitions[place + 1 : place + 2]]
        fitting, merge_refusal = _merge(
            partition, neighbours, states, len(partitions), partitions_needed, limits
        )
        refusal = _FIXED
        if is_splittable:
            refusal = _split_refusal(container, partition, states[partition.id], indivisible)
        found[partition.id] = Prospect(refusal or None, fitting, merge_refusal)
    return found


def _split_refusal(
    container: Container, partition: Partition, state: PartitionState, indivisible: frozenset[int]
) -> str:
    if partition.id in indivisible or state.items == 1:
        return _ONE_KEY
    if state.items == 0:
        at = middle_of(partition.span, container)
        if at is None or not partition.span.min < at < partition.span.max:
            return _NARROW
    return ""


def _merge(
    partition: Partition,
    neighbours: Sequence[Partition],
    states: Mapping[int, PartitionState],
    count: int,
    needed: int,
    limits: Limits,
) -> tuple[tuple[str, ...], str | None]:
    """The neighbours that a partition could be merged with, and why there is none."""
    if not neighbours:
        return (), _ALONE
    if count - 1 < needed:
        return (), (
            f"It cannot be merged: the container's throughput needs {needed} physical partitions; lower it first."
        )
    own_bytes, most_bytes = states[partition.id].size_bytes, limits.physical_partition_bytes
    fitting = tuple(
        each.range_id for each in neighbours if own_bytes + states[each.id].size_bytes <= most_bytes
    )
    if fitting:
        return fitting, None
    return (), (
        "It cannot be merged: together with a neighbour it would be larger than the "
        f"{size_text(most_bytes)} that a physical partition holds."
    )

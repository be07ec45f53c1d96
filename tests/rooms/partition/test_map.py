"""The partition map: the ranges tile the space of hashes, so each hash belongs to exactly one partition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.keys.range import MAX, MIN, EpkRange
from pleiad.partition.map import PartitionMap
from pleiad.partition.partition import Partition
from pleiad.store.segments import Segment

NO_SEGMENT = cast(Segment, None)
EPKS = st.binary(max_size=17).filter(lambda epk: epk < MAX)
EDGES = st.sets(EPKS.filter(bool), max_size=12).map(sorted)


def map_of(spans: list[tuple[int, EpkRange]]) -> PartitionMap:
    return PartitionMap(Partition(id, span, 1, (), f"s{id}", NO_SEGMENT) for id, span in spans)


def spans_between(edges: list[bytes]) -> list[EpkRange]:
    bounds = [MIN, *edges, MAX]
    return [EpkRange(low, high) for low, high in pairwise(bounds)]


@given(edges=EDGES, epk=EPKS, shuffle=st.randoms(use_true_random=False))
def test_exactly_one_partition_contains_any_hash_and_the_map_finds_it(
    edges: list[bytes], epk: bytes, shuffle: Any
) -> None:
    spans = list(enumerate(spans_between(edges)))
    shuffle.shuffle(spans)
    partition_map = map_of(spans)
    holders = [partition for partition in partition_map.partitions if partition.span.contains(epk)]
    assert holders == [partition_map.find(epk)]
    assert partition_map.by_range_id(holders[0].range_id) is holders[0]


@given(edges=EDGES, ends=st.sets(EPKS, min_size=2, max_size=2).map(sorted))
def test_the_partitions_over_a_range_are_those_that_hold_a_part_of_it(
    edges: list[bytes], ends: list[bytes]
) -> None:
    span = EpkRange(ends[0], ends[1])
    partition_map = map_of(list(enumerate(spans_between(edges))))
    found = partition_map.overlapping(span)
    assert found == [p for p in partition_map.partitions if p.span.intersect(span) is not None]
    parts = [p.span.intersect(span) for p in found]
    assert [part.min for part in parts if part] == [span.min, *(part.max for part in parts[:-1] if part)]
    assert parts[-1] is not None
    assert parts[-1].max == span.max


@given(edges=EDGES.filter(bool), data=st.data())
def test_a_hole_an_overlap_or_an_open_end_is_refused(edges: list[bytes], data: st.DataObject) -> None:
    spans = spans_between(edges)
    victim = data.draw(st.integers(0, len(spans) - 1))
    damaged = data.draw(
        st.sampled_from(
            [
                spans[:victim] + spans[victim + 1 :],
                [*spans, spans[victim]],
                [
                    *spans[:victim],
                    EpkRange(spans[victim].min, spans[victim].max + b"\x00"),
                    *spans[victim + 1 :],
                ],
            ]
        )
    )
    with pytest.raises(ValueError, match="do not tile"):
        map_of(list(enumerate(damaged)))


def test_the_version_of_a_map_changes_with_its_partitions() -> None:
    one = map_of([(0, EpkRange(MIN, MAX))])
    split = map_of([(1, EpkRange(MIN, b"\x20")), (2, EpkRange(b"\x20", MAX))])
    assert one.version != split.version

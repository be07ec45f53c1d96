"""Counting index terms, and the terms that a replacement changes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attack.hostile.collisions import on_the_way_of_zero
from pleiad.index.policy import IndexingPolicy
from pleiad.index.terms import TermCounter
from pleiad.limits import Limits

LIMITS = Limits()
SECONDS_OF_A_MISTAKE = 10.0
"""What counting takes at least where numbers collide; otherwise it takes a fraction of a second."""
DEFAULT = TermCounter(IndexingPolicy.from_json(None, LIMITS))


def policy_of(
    included: list[str], excluded: list[str], composites: list[list[str]] | None = None
) -> IndexingPolicy:
    return IndexingPolicy.from_json(
        {
            "includedPaths": [{"path": path} for path in included],
            "excludedPaths": [{"path": path} for path in excluded],
            "compositeIndexes": [[{"path": path} for path in paths] for paths in composites or []],
        },
        LIMITS,
    )


@pytest.mark.parametrize(
    ("item", "terms"),
    [
        ({}, 0),
        ({"id": "1"}, 1),
        ({"id": "1", "a": None, "b": True, "c": 1.5}, 4),
        ({"id": "1", "_etag": "x"}, 1),
        ({"id": "1", "o": {"x": 1, "y": {"z": 2}}}, 3),
        ({"id": "1", "o": {}, "a": []}, 3),
        ({"id": "1", "a": [1, 1, 2]}, 3),
        ({"id": "1", "a": [1, 1.0, True]}, 3),
        ({"id": "1", "a": [{}, {}, []]}, 3),
        ({"id": "1", "a": [{"x": 1}, {"x": 1}, {"y": 1}]}, 3),
        ({"id": "1", "a": [[1, 2], [2, 3]]}, 4),
    ],
)
def test_one_term_for_each_path_and_value_and_one_for_the_time(item: dict[str, Any], terms: int) -> None:
    assert DEFAULT.count(item) == terms + 1


def test_only_indexed_paths_make_terms() -> None:
    counter = TermCounter(policy_of(["/a/?", "/o/x/*", "/t/[]/n/?"], ["/*"]))
    item = {
        "id": "1",
        "a": 1,
        "b": 2,
        "o": {"x": {"p": 1, "q": 2}, "y": 3},
        "t": [{"n": 1, "m": 2}, {"n": 2}],
    }
    assert counter.count(item) == 1 + 1 + 2 + 2 + 1


def test_each_composite_index_is_one_term() -> None:
    counter = TermCounter(policy_of([], ["/*"], [["/a", "/b"], ["/a", "/t/[]/n"]]))
    assert counter.count({"id": "1", "a": 1}) == 1 + 1 + 2
    assert counter.changed({"id": "1", "a": 1}, {"id": "1", "a": 2}) == (2, 2)
    assert counter.changed({"id": "1", "b": 1}, {"id": "1", "b": True}) == (1, 1)
    assert counter.changed({"id": "1", "t": [{"n": 1}]}, {"id": "1", "t": [{"n": 1}, {"n": 2}]}) == (1, 1)
    assert counter.changed({"id": "1", "z": 1}, {"id": "1", "z": 2}) == (0, 0)


def test_mode_none_has_no_terms() -> None:
    counter = TermCounter(IndexingPolicy.from_json({"indexingMode": "none"}, LIMITS))
    assert counter.count({"id": "1"}) == 0
    assert counter.changed({"id": "1", "a": 1}, {"id": "1"}) == (0, 0)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"a": 1}, {"a": 1}, (0, 0)),
        ({"a": 1}, {"a": 1.0}, (0, 0)),
        ({"a": 1}, {"a": True}, (1, 1)),
        ({"a": {"b": 1}}, {"a": {"b": True}}, (1, 1)),
        ({"a": 1}, {}, (1, 0)),
        ({}, {"a": None}, (0, 1)),
        ({"a": [1, 2]}, {"a": [2, 1, 1]}, (0, 0)),
        ({"a": [1, 2]}, {"a": [2, 3, 4]}, (1, 2)),
        ({"a": {"b": 1}}, {"a": {}}, (1, 1)),
        ({"_etag": "x"}, {"_etag": "y"}, (0, 0)),
    ],
)
def test_a_replacement_changes_the_terms_that_only_one_version_has(
    old: dict[str, Any], new: dict[str, Any], changed: tuple[int, int]
) -> None:
    assert DEFAULT.changed(old, new) == changed


def terms_of(policy: IndexingPolicy, value: Any, steps: tuple[str | int, ...] = ()) -> set[Any]:
    """The terms by the definition: a set of path and typed value."""
    if isinstance(value, dict) and (value or not steps):
        return set().union(*(terms_of(policy, child, (*steps, name)) for name, child in value.items()))
    if isinstance(value, list) and value:
        return set().union(*(terms_of(policy, child, (*steps, 0)) for child in value))
    if not policy.is_indexed(steps):
        return set()
    kind = (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )
    return {(steps, kind, str(float(value)) if kind == "number" else str(value))}


names = st.sampled_from(["a", "b", "id"])
values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, "", "x"]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
items = st.dictionaries(names, values, max_size=3)
policies = st.sampled_from(
    [
        policy_of(["/*"], []),
        policy_of(["/*"], ["/a/*"]),
        policy_of(["/*", "/a/b/?"], ["/a/*"]),
        policy_of(["/a/[]/?", "/b/*"], ["/*"]),
        policy_of(["/a/[]/b/*", "/b/?"], ["/*", "/a/[]/b/a/?"]),
    ]
)


@given(policies, items, items)
def test_counts_agree_with_the_definition(
    policy: IndexingPolicy, old: dict[str, Any], new: dict[str, Any]
) -> None:
    counter = TermCounter(policy)
    before, after = terms_of(policy, old), terms_of(policy, new)
    assert counter.count(old) == len(before) + 1
    assert counter.changed(old, new) == (len(before - after), len(after - before))


def test_arrays_longer_than_a_piece_are_counted_as_one() -> None:
    numbers = [number % 30_000 for number in range(100_000)]
    texts = [str(number) for number in numbers]
    assert DEFAULT.count({"a": numbers}) == DEFAULT.count({"a": texts}) == 30_001
    assert DEFAULT.count({"a": [*numbers, *texts, None, 5.0, 0.5]}) == 60_003


@pytest.mark.parametrize("more", [[], [True]])
def test_numbers_that_are_chosen_to_collide_are_counted_like_others(more: list[Any]) -> None:
    numbers = [*on_the_way_of_zero(17), *[0] * 300_000, *more]
    began = time.thread_time()
    terms = DEFAULT.count({"a": numbers})
    assert terms == 1 + (1 << 16) + 1 + len(more)
    assert time.thread_time() - began < SECONDS_OF_A_MISTAKE

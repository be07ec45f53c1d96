"""Sorting that lets other requests have their turn: short runs, each sorted at once, then merged step by step.

What is sorted was counted when it was evaluated, and how often it is sorted depends on how it was found: no steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from functools import total_ordering
from typing import Any, Final, TypeVar

from pleiad.query.pace import Pace

RUN: Final = 1_024
_MERGED_AT_ONCE: Final = 32
_COMPARISONS_OF_A_RUN: Final = 10

_Value = TypeVar("_Value")


def paced_sort(
    values: Iterable[_Value], key: Callable[[_Value], Any], pace: Pace, reverse: bool = False
) -> list[_Value]:
    """As ``sorted``, stability included."""
    rest = values if isinstance(values, list) else list(values)
    if len(rest) <= RUN:
        pace.worked(len(rest))
        return sorted(rest, key=key, reverse=reverse)
    runs = []
    for start in range(0, len(rest), RUN):
        runs.append(sorted(rest[start : start + RUN], key=key, reverse=reverse))
        pace.worked(_COMPARISONS_OF_A_RUN * RUN)
    while len(runs) > 1:
        runs = [
            _merged(runs[start : start + _MERGED_AT_ONCE], key, pace, reverse)
            for start in range(0, len(runs), _MERGED_AT_ONCE)
        ]
    return runs[0]


def _merged(
    runs: list[list[_Value]], key: Callable[[_Value], Any], pace: Pace, reverse: bool
) -> list[_Value]:
    found: list[_Value] = []
    for value in heapq.merge(*runs, key=key, reverse=reverse):
        found.append(value)
        if not len(found) & 63:
            pace.worked(64)
    return found


@total_ordering
class Descending:
    """A sort key turned round."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.key == other.key

    def __lt__(self, other: Descending) -> bool:
        return other.key < self.key

    def __hash__(self) -> int:
        return hash(self.key)

"""Where in the hash space request units were used: one row of even slices for a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """A physical partition in the hash space, which is from 0 to 1, and what was spent on it where that is known."""

    low: float
    high: float
    spent_ru: float | None = None


def heat_row(keyed_ru: Sequence[float], spent_ru: float, stretches: Sequence[Stretch]) -> list[float]:
    """What was used in each slice: on its keys, and its part of what was spent without a key.

    The latter goes to the partitions by what each of them spent beyond its keys, where that is known of all, else by
    their width; within a partition it is spread evenly. All slices together have what was spent.
    """
    row = list(keyed_ru)
    rest_ru = spent_ru - sum(keyed_ru)
    if rest_ru <= 0 or not stretches:
        return row
    overlaps = [_overlaps(stretch, len(row)) for stretch in stretches]
    beyond = [
        max(0.0, stretch.spent_ru - sum(keyed_ru[slice] * part for slice, part in overlap))
        if stretch.spent_ru is not None
        else 0.0
        for stretch, overlap in zip(stretches, overlaps, strict=True)
    ]
    if any(stretch.spent_ru is None for stretch in stretches) or sum(beyond) <= 0:
        beyond = [stretch.high - stretch.low for stretch in stretches]
    for weight, overlap in zip(beyond, overlaps, strict=True):
        width = sum(part for _, part in overlap)
        if width > 0:
            for slice, part in overlap:
                row[slice] += rest_ru * weight / sum(beyond) * part / width
    return row


def spent_on(row: Sequence[float], stretch: Stretch) -> float:
    """What a row has in a stretch of the hash space; slices at its ends count by their part in it."""
    return sum(row[slice] * part for slice, part in _overlaps(stretch, len(row)))


def joined(row: Sequence[float], slices: int) -> list[float]:
    """The row in fewer slices, a divisor of how many it has."""
    step = len(row) // slices
    return [sum(row[place * step : (place + 1) * step]) for place in range(slices)]


def _overlaps(stretch: Stretch, slices: int) -> list[tuple[int, float]]:
    """The slices that a stretch touches, each with the part of it that is inside."""
    found = []
    low, high = stretch.low * slices, stretch.high * slices
    for slice in range(max(0, int(low)), min(slices, int(high) + 1)):
        part = min(high, slice + 1) - max(low, slice)
        if part > 0:
            found.append((slice, part))
    return found

"""Numbers that are chosen to fall into one place of Python's sets and dicts, where numbers have no secret hash.

A table of `2**bits` places looks at one place after the other until it finds a free one. Numbers that fill all places
on the way of one number make each look-up of that number a walk over them; so do other numbers whose ways end there.
"""

from __future__ import annotations

_LINEAR_PROBES = 10
"""The places that a set looks at in a row."""


def on_the_way_of_zero(bits: int, in_a_row: int = _LINEAR_PROBES) -> list[int]:
    """Numbers that fill half of a table along the way of 0; a dict looks at one place in a row."""
    size = 1 << bits
    filled: dict[int, None] = {}
    place = 0
    while len(filled) < size // 2:
        reach = in_a_row if place + in_a_row <= size else 1
        filled.update(dict.fromkeys(range(place, place + reach)))
        place = (place * 5 + 1) % size
    del filled[0]
    return [size, *filled]


def behind_zero(bits: int, count: int) -> list[int]:
    """Different numbers that begin at the same place as 0."""
    return [number << bits for number in range(2, count + 2)]

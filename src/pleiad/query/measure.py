"""How large a value is, and its JSON text where that is not too large.

A query can name the same large value many times, so that a small structure in memory has a text without end. The size
of a value is that of its text, roughly, and with what each part of it takes in memory: what is held or rendered is
measured before it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from pleiad import errors
from pleiad.limits import MB, size_text
from pleiad.query.pace import STEPS_OF_A_LOOK, Pace, in_turns, worked

RESULT_BYTES_MAX: Final = 16 * MB
"""One result, as text: four times what a page has room for."""
BYTES_OF_A_STEP: Final = 64
"""Bytes that are copied, decoded or written in the time of one step."""
_STRING_BYTES: Final = 60
_SCALAR_BYTES: Final = 30
_PART_BYTES: Final = 16
_SHORT_BYTES: Final = 32 * 1024
"""Longer texts take little more than they are long, and would take time to copy."""
TEXT_BYTES: Final = 50
"""What a text takes in memory beside its bytes."""


def size_of(value: Any, bytes_max: int = 1 << 62) -> int:
    """The size of a value; counting ends where it has passed a bound."""
    kind = value.__class__
    if kind is str:
        return _STRING_BYTES + len(value)
    if kind is not list and kind is not dict:
        return _SCALAR_BYTES
    size_bytes = 0
    left = [value]
    count = 0
    while left and size_bytes <= bytes_max:
        each = left.pop()
        size_bytes += _STRING_BYTES + _PART_BYTES * len(each)
        count += 1
        if not count % STEPS_OF_A_LOOK:
            worked(STEPS_OF_A_LOOK)
        if each.__class__ is dict:
            size_bytes += sum(map(len, each))
            each = each.values()
        for part in in_turns(each):
            kind = part.__class__
            if kind is str:
                size_bytes += _STRING_BYTES + len(part)
            elif kind is list or kind is dict:
                left.append(part)
            else:
                size_bytes += _SCALAR_BYTES
    return size_bytes


def text_of(value: Any) -> bytes:
    """The JSON text of a value, in about as much memory as it is long.

    What orjson gives was cut from a block of several times its length. The rest of the block is free, but too short for
    the next, and a query may have very many results, which are kept for its next pages.
    """
    text = orjson.dumps(value)
    return text if len(text) > _SHORT_BYTES else b"%b" % text


def rendered(value: Any, pace: Pace) -> bytes:
    """The JSON text of a result that may be of any size."""
    if size_of(value, RESULT_BYTES_MAX) > RESULT_BYTES_MAX:
        raise errors.QUERY_ERROR(
            reason=f"A result of the query is larger than {size_text(RESULT_BYTES_MAX)}. Let it return less."
        )
    text = text_of(value)
    pace.worked(1 + len(text) // BYTES_OF_A_STEP)
    return text


def all_rendered(values: Iterable[Any], pace: Pace) -> list[bytes]:
    """The texts of results, which are held: a JOIN may give millions of them."""
    texts: list[bytes] = []
    for value in values:
        text = rendered(value, pace)
        pace.hold(TEXT_BYTES + len(text))
        texts.append(text)
    return texts

"""Partition key values: comparing them, showing them, and what they may be.

A key value is a string, a number, true, false, null or UNDEFINED. All numbers are IEEE 754 doubles to the
hash, so a number that a double cannot tell from its neighbours is refused: two such keys would silently
become one logical partition, and a partition key cannot be corrected in place.
"""

from __future__ import annotations

import json
from decimal import Decimal
from math import copysign
from typing import TYPE_CHECKING

from pleiad import errors
from pleiad.limits import Limits
from pleiad.values.undefined import UNDEFINED, Undefined

if TYPE_CHECKING:
    from pleiad.keys.definition import KeyDefinition

KeyValue = str | int | float | bool | None | Undefined

_INTEGER_EXACT_MAX = 2**53
_UTF8_BYTES_PER_CHARACTER_MAX = 4


def check_number(value: object) -> None:
    """Refuse an integer that a double would change; floats come from a parser that keeps within doubles."""
    if not isinstance(value, int) or -_INTEGER_EXACT_MAX <= value <= _INTEGER_EXACT_MAX:
        return
    try:
        double = float(value)
    except OverflowError as error:
        raise number_refused("a number in it") from error
    # JavaScript prints 2**60 as 1152921504606847000, the shortest digits that name this double and no other.
    if int(double) != value and Decimal(repr(double)) != value:
        raise number_refused(str(value))


def number_refused(what: str) -> errors.PleiadError:
    return errors.BAD_PARTITION_KEY(
        reason=f"{what} is beyond what an IEEE 754 double holds; store such keys as strings."
    )


def to_json_text(values: tuple[KeyValue, ...]) -> str:
    """The values as compact JSON in ASCII, with ``{}`` for UNDEFINED."""
    return json.dumps([{} if value is UNDEFINED else value for value in values], separators=(",", ":"))


def check_size(values: tuple[KeyValue, ...], definition: KeyDefinition, limits: Limits) -> None:
    """Refuse values the key cannot hold: strings over the limit of its version, integers no double holds."""
    limit = limits.partition_key_bytes_v1 if definition.version == 1 else limits.partition_key_bytes_v2
    for value in values:
        if isinstance(value, str):
            if len(value) * _UTF8_BYTES_PER_CHARACTER_MAX > limit:
                size = len(value.encode("utf-8", "surrogatepass"))
                if size > limit:
                    raise errors.BAD_PARTITION_KEY(
                        reason=f"a value of {size} bytes is over the limit of {limit} bytes "
                        f"for keys of version {definition.version}."
                    )
        else:
            check_number(value)


def same(left: tuple[KeyValue, ...], right: tuple[KeyValue, ...]) -> bool:
    """Whether both name the same logical partition: equality as the hash sees it."""
    return len(left) == len(right) and all(map(_same_value, left, right))


def _same_value(left: KeyValue, right: KeyValue) -> bool:
    if left is right:
        return True
    if isinstance(left, str):
        return left == right
    if isinstance(left, bool | Undefined) or left is None:
        return False  # single objects, so equal ones are identical
    if isinstance(right, str | bool | Undefined) or right is None:
        return False
    a, b = float(left), float(right)
    return a == b and copysign(1.0, a) == copysign(1.0, b)

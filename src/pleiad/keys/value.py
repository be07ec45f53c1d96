"""Partition key values: reading them from a header, comparing them, and the sizes they may have.

A key value is a string, a number, true, false, null or UNDEFINED. All numbers are IEEE 754 doubles to the
hash, so a number that a double cannot tell from its neighbours is refused: two such keys would silently
become one logical partition, and a partition key cannot be corrected in place.
"""

from __future__ import annotations

import json
from decimal import Decimal
from math import copysign
from typing import TYPE_CHECKING

import orjson

from pleiad import errors
from pleiad.keys.undefined import UNDEFINED, Undefined
from pleiad.limits import Limits

if TYPE_CHECKING:
    from pleiad.keys.definition import KeyDefinition

KeyValue = str | int | float | bool | None | Undefined

_INTEGER_EXACT_MAX = 2**53
# orjson gives a float for an integer literal beyond 64 bits, and with that hides the digits it dropped.
_INTEGER_LITERAL_MAX = 2.0**63
_UTF8_BYTES_PER_CHARACTER_MAX = 4


def parse_header(text: str) -> tuple[KeyValue, ...]:
    """The key values of a partition key header: a JSON array of scalars, with ``{}`` for UNDEFINED."""
    inner = text[2:-2]
    if (
        len(text) >= 4
        and text[:2] == '["'
        and text[-2:] == '"]'
        and '"' not in inner
        and "\\" not in inner
        and inner.isprintable()
    ):
        return (inner,)
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "infinity" in str(error):
            raise _number_refused("a number in it") from error
        raise errors.BAD_PARTITION_KEY(reason=f"it is not a JSON array ({error}).") from error
    if not isinstance(values, list):
        raise errors.BAD_PARTITION_KEY(reason="it must be a JSON array with one value for each path.")
    components = tuple([_component(value) for value in values])
    # Nothing is nested at this point, so the recursive parser of the standard library is safe.
    if any(type(value) is float and abs(value) >= _INTEGER_LITERAL_MAX for value in values):
        for exact in json.loads(text):
            _check_number(exact)
    return components


def _component(value: object) -> KeyValue:
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        _check_number(value)
        return value
    if value == {}:
        return UNDEFINED
    raise errors.BAD_PARTITION_KEY(
        reason="each value must be a string, a number, true, false, null or {} for a missing property."
    )


def _check_number(value: object) -> None:
    """Refuse an integer that a double would change; floats come from a parser that keeps within doubles."""
    if not isinstance(value, int) or -_INTEGER_EXACT_MAX <= value <= _INTEGER_EXACT_MAX:
        return
    try:
        double = float(value)
    except OverflowError as error:
        raise _number_refused("a number in it") from error
    # JavaScript prints 2**60 as 1152921504606847000, the shortest digits that name this double and no other.
    if int(double) != value and Decimal(repr(double)) != value:
        raise _number_refused(str(value))


def _number_refused(what: str) -> errors.PleiadError:
    return errors.BAD_PARTITION_KEY(
        reason=f"{what} is beyond what an IEEE 754 double holds; store such keys as strings."
    )


def to_json_text(values: tuple[KeyValue, ...]) -> str:
    """The values as a header carries them: compact JSON in ASCII."""
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
            _check_number(value)


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

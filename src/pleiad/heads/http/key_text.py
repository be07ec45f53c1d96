"""A partition key as clients write it: a JSON array with one value for each path."""

from __future__ import annotations

import json

import orjson

from pleiad import errors
from pleiad.keys.value import KeyValue, check_number, number_refused
from pleiad.values.undefined import UNDEFINED

# orjson gives a float for an integer literal beyond 64 bits, and with that hides the digits it dropped.
_INTEGER_LITERAL_MAX = 2.0**63


def read(text: str) -> tuple[KeyValue, ...]:
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
            raise number_refused("a number in it") from error
        raise errors.BAD_PARTITION_KEY(reason=f"it is not a JSON array ({error}).") from error
    if not isinstance(values, list):
        raise errors.BAD_PARTITION_KEY(reason="it must be a JSON array with one value for each path.")
    components = tuple([component(value) for value in values])
    # Nothing is nested at this point, so the recursive parser of the standard library is safe.
    if any(type(value) is float and abs(value) >= _INTEGER_LITERAL_MAX for value in values):
        for exact in json.loads(text):
            check_number(exact)
    return components


def component(value: object) -> KeyValue:
    """One value of a key as JSON has it."""
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        check_number(value)
        return value
    if value == {}:
        return UNDEFINED
    raise errors.BAD_PARTITION_KEY(
        reason="each value must be a string, a number, true, false, null or {} for a missing property."
    )

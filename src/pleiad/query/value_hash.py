"""The 64-bit hash of a value that the HASH function gives.

It is built as the hash of DISTINCT is (``distinct_hash.py``), with 64 bits in place of 128 and constants of its own:
one lane of MurmurHash3, chained, so that each part of a value is hashed with the hash of what stands around it.
Nothing publishes it; it was found from the answers of the service's planner, and agrees with it on every type.

Two values that are equal have the same hash. What is undefined has the seed as its hash.
"""

from __future__ import annotations

from typing import Any, Final

from pleiad.query.distinct_hash import final, mixed, number_bytes, turned
from pleiad.query.pace import tick
from pleiad.query.values import exact
from pleiad.values.undefined import UNDEFINED

_MASK: Final = 2**64 - 1
_NULL: Final = 0xC9A62CDE5E5E46A9
_FALSE: Final = 0xB9D513F640374A9E
_TRUE: Final = 0xA966435DD651D0EF
_NUMBER: Final = 0x92D5E4F19FB0B3FE
_STRING: Final = 0xC495960B1BF3031D
_ARRAY: Final = 0x47F91C7636E3EACC
_OBJECT: Final = 0x048A1E6F4A51FDD4
_ARRAY_INDEX: Final = 0xA6A9465F699303C9
_PROPERTY_NAME: Final = 0x1DFCE123EF7F079E
_HASH_STEPS: Final = 4
_BLOCK_STEPS: Final = 64
"""What a hash takes, in steps, and what each 64 blocks of it take more."""


def value_hash(value: Any, seed: int = 0) -> int:
    """The hash of a value as a signed integer of 64 bits."""
    found = _hash(value, seed & _MASK)
    return found - 2**64 if found >= 2**63 else found


def _hash(value: Any, seed: int) -> int:
    kind = value.__class__
    if kind is str:
        return _murmur(value.encode("utf-8", "surrogatepass"), _of_number(_STRING, seed))
    if kind is bool:
        return _of_number(_TRUE if value else _FALSE, seed)
    if kind is int or kind is float:
        # A zero has no sign here.
        number = exact(value) if kind is int else value or 0
        return _murmur(number_bytes(number), _of_number(_NUMBER, seed))
    if value is None:
        return _of_number(_NULL, seed)
    if value is UNDEFINED:
        return seed
    if kind is dict:
        return _hash_object(value, seed)
    found = _of_number(_ARRAY, seed)
    for index, part in enumerate(value):
        found = _of_number(_hash(part, _ARRAY_INDEX + index), found)
    return found


def _hash_object(value: dict[str, Any], seed: int) -> int:
    both = 0
    for name, part in value.items():
        both ^= _hash(part, _murmur(name.encode("utf-8", "surrogatepass"), _NAME_SEED))
    found = _of_number(_OBJECT, seed)
    return _of_number(both, found) if both else found


def _of_number(number: int, seed: int) -> int:
    return _murmur(number.to_bytes(8, "little"), seed)


def _murmur(data: bytes, seed: int) -> int:
    """One lane of MurmurHash3 x64."""
    found = seed
    whole = len(data) & ~7
    tick(_HASH_STEPS)
    for start in range(0, whole, 8):
        if not (start + 8) & 511:
            tick(_BLOCK_STEPS)
        found ^= mixed(int.from_bytes(data[start : start + 8], "little"))
        found = (turned(found, 27) * 5 + 0x52DCE729) & _MASK
    if whole < len(data):
        found ^= mixed(int.from_bytes(data[whole:], "little"))
    return final(found ^ len(data))


_NAME_SEED: Final = _of_number(_STRING, _PROPERTY_NAME)

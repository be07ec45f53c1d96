"""The 128-bit hash of a value by which clients tell results of DISTINCT apart.

ORDER BY sorts arrays, and objects, by it: clients that merge partitions compare them so, and name the array or object
they have come to by its hash alone. The hash is MurmurHash3 (x64, 128 bits) with a seed of 128 bits, chained: each part
of a value is hashed with the hash of what stands around it as the seed. The constants are those of the clients.

Two values that are equal have the same hash. A property that is not there and one that is undefined are the same.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from pleiad.query.pace import tick
from pleiad.values.undefined import UNDEFINED

Halves = tuple[int, int]
"""The low and the high half, each of 64 bits."""

_MASK: Final = 2**64 - 1
_FACTORS: Final = (0x87C37B91114253D5, 0x4CF5AD432745937F)
_ROOT: Final[Halves] = (0xBFC2359EAFC0E2B7, 0x8846E00284C4CF1F)
_NULL: Final[Halves] = (0x1380F68BB3B0CFE4, 0x156C918BF564EE48)
_FALSE: Final[Halves] = (0xC1BE517FE893B40C, 0xE9FC8A4C531CD0DD)
_TRUE: Final[Halves] = (0xF86D4ABF9A412E74, 0x788488365C8A985D)
_NUMBER: Final[Halves] = (0x2400E8B894CE9C2A, 0x790BE1EABD7B9481)
_STRING: Final[Halves] = (0x61F53F0A44204CFB, 0x09481BE8EF4B56DD)
_ARRAY: Final[Halves] = (0xFA573B014C4DC18E, 0xA014512C858EB115)
_OBJECT: Final[Halves] = (0x77B285AC511AEF30, 0x3DCF187245822449)
_ARRAY_INDEX: Final[Halves] = (0xFE057204216DB999, 0x5B1CC3178BD9C593)
_PROPERTY_NAME: Final[Halves] = (0xC915DDE058492A8A, 0x7C8BE2EBA72E4634)
_INT64: Final = 2**63
_DOUBLE_BITS: Final = 53
_HASH_STEPS: Final = 8
_BLOCKS_STEPS: Final = 128
"""What a hash takes, in steps, and what each 64 blocks of it take more."""

_pack_halves = struct.Struct("<QQ").pack
_pack_number = struct.Struct("<dH").pack
_unpack_halves = struct.Struct("<QQ").unpack_from


def distinct_hash(value: Any) -> Halves:
    """The hash of a value."""
    return _hash(value, _ROOT)


def ordered_bytes(halves: Halves) -> bytes:
    """A hash as it is ordered: byte by byte, the lowest first."""
    return _pack_halves(*halves)


def _hash(value: Any, seed: Halves) -> Halves:
    kind = value.__class__
    if kind is str:
        return _murmur(value.encode("utf-8", "surrogatepass"), _of_halves(_STRING, seed))
    if kind is bool:
        return _of_halves(_TRUE if value else _FALSE, seed)
    if kind is int or kind is float:
        return _murmur(number_bytes(value), _of_halves(_NUMBER, seed))
    if value is None:
        return _of_halves(_NULL, seed)
    if value is UNDEFINED:
        return seed
    if kind is dict:
        return _hash_object(value, seed)
    found = _of_halves(_ARRAY, seed)
    for index, part in enumerate(value):
        if part is not UNDEFINED:
            found = _of_halves(_hash(part, (_ARRAY_INDEX[0] + index & _MASK, _ARRAY_INDEX[1])), found)
    return found


def _hash_object(value: dict[str, Any], seed: Halves) -> Halves:
    low = high = 0
    for name, part in value.items():
        if part is not UNDEFINED:
            name_hash = _murmur(name.encode("utf-8", "surrogatepass"), _NAME_SEED)
            part_low, part_high = _hash(part, name_hash)
            low, high = low ^ part_low, high ^ part_high
    found = _of_halves(_OBJECT, seed)
    return _of_halves((low, high), found) if low or high else found


def number_bytes(number: int | float) -> bytes:
    """A number as a double, and for an integer that needs more bits than a double has the ten bits that follow."""
    if number.__class__ is int and -_INT64 < number < _INT64:
        size = abs(number)
        bits = size.bit_length()
        if bits > _DOUBLE_BITS and bits - ((size & -size).bit_length() - 1) > _DOUBLE_BITS:
            mantissa = (size << (63 - bits)) & (2**62 - 1)
            double_bits = (bits - 1 + 1023) << 52 | mantissa >> 10 | (_INT64 if number < 0 else 0)
            double: float = struct.unpack("<d", double_bits.to_bytes(8, "little"))[0]
            return _pack_number(double, (mantissa & 0x3FF) << 6)
    return _pack_number(float(number), 0)


def _of_halves(halves: Halves, seed: Halves) -> Halves:
    return _murmur(_pack_halves(*halves), seed)


def _murmur(data: bytes, seed: Halves) -> Halves:
    """MurmurHash3 x64 128 with a seed for each half."""
    low, high = seed
    whole = len(data) & ~15
    tick(_HASH_STEPS)
    for start in range(0, whole, 16):
        if not (start + 16) & 1023:
            tick(_BLOCKS_STEPS)
        first, second = _unpack_halves(data, start)
        low ^= mixed(first)
        low = ((turned(low, 27) + high) * 5 + 0x52DCE729) & _MASK
        high ^= mixed(second, 33, _FACTORS[::-1])
        high = ((turned(high, 31) + low) * 5 + 0x38495AB5) & _MASK
    if whole < len(data):
        first, second = _unpack_halves(data[whole:].ljust(16, b"\0"))
        high ^= mixed(second, 33, _FACTORS[::-1])
        low ^= mixed(first)
    low, high = low ^ len(data), high ^ len(data)
    low = (low + high) & _MASK
    high = (high + low) & _MASK
    low, high = final(low), final(high)
    low = (low + high) & _MASK
    return low, (high + low) & _MASK


def turned(value: int, bits: int) -> int:
    """Rotated to the left in 64 bits."""
    return (value << bits | value >> (64 - bits)) & _MASK


def mixed(part: int, bits: int = 31, factors: tuple[int, int] = _FACTORS) -> int:
    """A block of data before it is taken into a lane."""
    return turned(part * factors[0] & _MASK, bits) * factors[1] & _MASK


def final(value: int) -> int:
    """The last mixing of a lane."""
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33


_NAME_SEED: Final = _of_halves(_STRING, _PROPERTY_NAME)

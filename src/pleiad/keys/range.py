"""Half-open ranges of effective partition keys, and how the space of hashes is divided into them.

Invariants: a range holds its min and not its max; the whole space is from the empty epk to ``FF``; the ranges
of ``even_ranges`` have no hole and no overlap and cover the whole space. Hashes of version 2 never use the
two top bits and hashes of version 1 are 32-bit numbers, so that space is divided, not the space of all bytes.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Iterable
from dataclasses import dataclass

from pleiad import errors
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import HASH_V1_MAX, HASH_V2_BYTES, HASH_V2_MAX, decode_hash_v1, encode_number, epk
from pleiad.keys.value import KeyValue

MIN = b""
MAX = b"\xff"

_HASH_V2_FIRST_BYTE_MAX = 0x3F


@dataclass(frozen=True, slots=True, order=True)
class EpkRange:
    """The epks from ``min`` up to and without ``max``."""

    min: bytes
    max: bytes

    def contains(self, epk: bytes) -> bool:
        return self.min <= epk < self.max

    @property
    def is_one_hash(self) -> bool:
        """Whether it holds a single hash, that of a full key."""
        return self.max == self.min + b"\x00"

    def overlaps(self, other: EpkRange) -> bool:
        return max(self.min, other.min) < min(self.max, other.max)

    def intersect(self, other: EpkRange) -> EpkRange | None:
        """What both ranges hold, or None."""
        low, high = max(self.min, other.min), min(self.max, other.max)
        return EpkRange(low, high) if low < high else None

    def to_hex(self) -> tuple[str, str]:
        """Min and max as clients write them: upper-case hex."""
        return self.min.hex().upper(), self.max.hex().upper()

    @classmethod
    def from_hex(cls, min_hex: str, max_hex: str) -> EpkRange:
        """The range a client wrote; BAD_REQUEST when it is not hex or holds nothing."""
        try:
            low, high = unhexlify(min_hex), unhexlify(max_hex)
        except ValueError as error:
            raise errors.BAD_REQUEST(
                reason=f"The effective partition key range '{min_hex}' to '{max_hex}' is not hexadecimal."
            ) from error
        if low >= high:
            raise errors.BAD_REQUEST(
                reason=f"The effective partition key range '{min_hex}' to '{max_hex}' is empty."
            )
        return cls(low, high)


WHOLE = EpkRange(MIN, MAX)


def even_ranges(count: int, definition: KeyDefinition) -> list[EpkRange]:
    """The whole space in that many ranges, each with an equal share of the hashes."""
    if count < 1:
        raise ValueError("the space is divided into one range or more")
    # The service adds up whole steps: a container of four has 05C1DFFFFFFFF8 in its middle, not the half of all hashes.
    if definition.version == 1:
        step = HASH_V1_MAX // count
        inner = [encode_number(float(step * k)) for k in range(1, count)]
    else:
        step = HASH_V2_MAX // count
        inner = [(step * k).to_bytes(HASH_V2_BYTES, "big") for k in range(1, count)]
    boundaries = [MIN, *inner, MAX]
    return [EpkRange(boundaries[k], boundaries[k + 1]) for k in range(count)]


def prefix_range(values: tuple[KeyValue, ...], definition: KeyDefinition) -> EpkRange:
    """The range of exactly this key: one epk for a full key, all keys beneath a MultiHash prefix."""
    low = epk(values, definition)
    if definition.kind == "MultiHash" and len(values) < definition.levels:
        return EpkRange(low, low + MAX)  # the hash of a next level never starts with FF
    return EpkRange(low, low + b"\x00")  # the next larger byte string


def disjoint(ranges: Iterable[EpkRange]) -> list[EpkRange]:
    """The same hashes in ranges that do not overlap, in order."""
    found: list[EpkRange] = []
    for each in sorted(ranges):
        if found and each.min < found[-1].max:
            found[-1] = EpkRange(found[-1].min, max(found[-1].max, each.max))
        else:
            found.append(each)
    return found


def midpoint(cut: EpkRange, definition: KeyDefinition) -> bytes | None:
    """Where a split cuts this range: half of its hashes on each side; None when it cannot be cut.

    A MultiHash range is cut between values of its first level while it has more than one of them, and inside
    one value, at the next level, when it has not. ValueError for a version 1 range whose ends are no hashes.
    """
    if definition.version == 1:
        return _midpoint_v1(cut)
    levels = definition.levels if definition.kind == "MultiHash" else 1
    for depth in range(1, levels + 1):
        low, high = _level_number(cut.min, depth), _level_number(cut.max, depth)
        middle = (low + high) // 2
        if low < middle < high:
            return _level_bytes(middle, depth)
    return None


def share(cut: EpkRange, definition: KeyDefinition) -> float:
    """How much of all hashes a range has, from 0 to 1; roughly where its ends are keys and not hashes."""
    if definition.version == 1:
        low, high = _hash_v1_near(cut.min, 0), _hash_v1_near(cut.max, HASH_V1_MAX)
        return (high - low) / HASH_V1_MAX
    return (_level_number(cut.max, 1) - _level_number(cut.min, 1)) / HASH_V2_MAX


def position(boundary: bytes, definition: KeyDefinition) -> float:
    """Where an epk or the end of a range lies among all hashes, from 0 to 1; of a MultiHash by its first level."""
    if boundary == MAX:
        return 1.0
    return share(EpkRange(MIN, boundary), definition) if boundary else 0.0


def _hash_v1_near(boundary: bytes, otherwise: int) -> int:
    try:
        return decode_hash_v1(boundary)
    except ValueError:
        return otherwise


def _midpoint_v1(cut: EpkRange) -> bytes | None:
    low = 0 if cut.min == MIN else decode_hash_v1(cut.min)
    high = HASH_V1_MAX if cut.max == MAX else decode_hash_v1(cut.max)
    middle = (low + high) // 2
    return encode_number(float(middle)) if low < middle < high else None


def _level_number(boundary: bytes, depth: int) -> int:
    """The first ``depth`` levels of a boundary as one number with a 126-bit digit for each level.

    A level that starts above every hash, as the FF behind a prefix does, stands for the last hash of that
    level and of all levels beneath it.
    """
    number = 0
    beyond = False
    for level in range(depth):
        digit_bytes = boundary[level * HASH_V2_BYTES : (level + 1) * HASH_V2_BYTES]
        beyond = beyond or (digit_bytes != b"" and digit_bytes[0] > _HASH_V2_FIRST_BYTE_MAX)
        digit = HASH_V2_MAX if beyond else int.from_bytes(digit_bytes.ljust(HASH_V2_BYTES, b"\x00"), "big")
        number = (number << 126) | digit
    return number


def _level_bytes(number: int, depth: int) -> bytes:
    digits = [(number >> (126 * level)) & HASH_V2_MAX for level in reversed(range(depth))]
    return b"".join([digit.to_bytes(HASH_V2_BYTES, "big") for digit in digits])

"""The effective partition key (epk): the hash of key values that decides which physical partition holds them.

Epks are raw bytes and compare as bytes, which is the order of the upper-case hex text clients see. Schemes:

- Hash version 2: MurmurHash3 x64 128 of all values together, big-endian, the two top bits cleared; 16 bytes.
- MultiHash: version 2 of each value alone, one after the other; 16 bytes a level.
- Hash version 1: MurmurHash3 x86 32 of the values, as an order-preserving number, followed by the values
  themselves in an order-preserving form; of a string only the first 100 UTF-16 units count.

No values at all (a migrated container without a key) have the empty epk. Numbers are IEEE 754 doubles.

MurmurHash3 is known to clients and made for speed: who wants to finds another value with a given hash of version 2 in
seconds. So a full key of a definition that is sealed has a seal behind its hash, which nobody can choose. Ranges of
hashes hold the same keys with it and without, since it stands behind all of the hash.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from itertools import repeat
from typing import TYPE_CHECKING, cast

import mmh3

from pleiad.keys.value import KeyValue
from pleiad.values.undefined import Undefined

if TYPE_CHECKING:
    from pleiad.keys.definition import KeyDefinition

HASH_V1_MAX = 2**32 - 1
HASH_V2_MAX = 2**126 - 1
HASH_V2_BYTES = 16
SEAL_BYTES = 12
_SEAL_FIRST_BYTE_MAX = 0x3F

_V1_STRING_UTF16_UNITS = 100
_V1_STRING_BYTES_TERMINATED = 100
V1_STRING_BYTES_MAX = 101
_SIGN_BIT = 2**63
_MASK_64 = 2**64 - 1

_TAG_UNDEFINED = b"\x00"
_TAG_NULL = b"\x01"
_TAG_FALSE = b"\x02"
_TAG_TRUE = b"\x03"
_TAG_NUMBER = b"\x05"
_TAG_STRING = b"\x08"

_pack_tagged_double = struct.Struct("<Bd").pack
_pack_double = struct.Struct(">d").pack
_unpack_bits = struct.Struct(">Q").unpack
# UTF-8 has no byte FF, so adding one never overflows and leaves 00 free as the end of a string.
_PLUS_ONE = bytes([*range(1, 256), 255])
_hash128 = mmh3.hash128
_digest128 = mmh3.mmh3_x64_128_digest
_HEADS = struct.Struct("<8xQ")
_NUMBERS = {int, float}
_TEXTS = {str}
HEAD_MAX = 2**62 - 1
"""The largest number that the first eight bytes of an epk are."""


def epk(values: tuple[KeyValue, ...], definition: KeyDefinition) -> bytes:
    """The effective partition key of these values; fewer values than paths give a MultiHash prefix."""
    if definition.version == 2:
        if len(values) == 1 == definition.levels:
            form = _hashed_form(values[0], b"\xff")
            return _hash_v2(form) + _seal(form) if definition.is_sealed else _hash_v2(form)
        forms = [_hashed_form(value, b"\xff") for value in values]
        if definition.kind == "MultiHash":
            hashed = b"".join(map(_hash_v2, forms))
        elif not values:
            return b""
        else:
            hashed = _hash_v2(b"".join(forms))
        is_sealed = definition.is_sealed and len(values) == definition.levels
        return hashed + _seal(b"".join(forms)) if is_sealed else hashed
    return _epk_v1(values)


def hash_of(epk: bytes, definition: KeyDefinition) -> bytes:
    """The part of an epk, or of the end of a range, that clients know: without the seal."""
    return epk[: HASH_V2_BYTES * definition.levels] if definition.is_sealed else epk


def hashed_forms(values: Sequence[KeyValue]) -> list[bytes]:
    """The bytes of each value alone that the hash of version 2 reads, for many values at once."""
    types = set(map(type, values))
    if types <= _NUMBERS:
        return list(map(_pack_tagged_double, repeat(5), values))
    if types == _TEXTS:
        try:
            # All texts become bytes in one piece; no value but one with a zero of its own falls apart at a zero.
            joined = "\0".join(cast(Sequence[str], values)).encode()
            forms = b"\x08%b\xff" % joined.replace(b"\0", b"\xff\0\x08")
            if (found := forms.split(b"\0")) and len(found) == len(values):
                return found
        except UnicodeEncodeError:
            pass
    return [_hashed_form(value, b"\xff") for value in values]


def hash_digests(forms: Sequence[bytes]) -> bytes:
    """The hashes of such forms, one after the other: 16 bytes each, its last eight the head of the epk as a number
    of the other byte order, two bits of it too many."""
    return b"".join(map(_digest128, forms))


def epk_heads(values: Sequence[KeyValue]) -> list[int]:
    """The first eight bytes of the epk of each value alone, as numbers: version 2, for many values at once."""
    digests = hash_digests(hashed_forms(values))
    return [head & HEAD_MAX for (head,) in _HEADS.iter_unpack(digests)]


def _hash_v2(data: bytes) -> bytes:
    return (_hash128(data, 0) & HASH_V2_MAX).to_bytes(HASH_V2_BYTES, "big")


def _seal(data: bytes) -> bytes:
    """Like the hash of a next level it never begins with FF, which ends the range beneath a prefix."""
    digest = blake2b(data, digest_size=SEAL_BYTES).digest()
    return b"%c%b" % (digest[0] & _SEAL_FIRST_BYTE_MAX, digest[1:])


def _hashed_form(value: KeyValue, string_end: bytes) -> bytes:
    """The bytes of one value that the hash reads."""
    if isinstance(value, str):
        try:
            return b"\x08%b%b" % (value.encode(), string_end)
        except UnicodeEncodeError:  # a lone surrogate: legal in JSON, and a key of its own
            return b"\x08%b%b" % (value.encode("utf-8", "surrogatepass"), string_end)
    return _tag(value) or _pack_tagged_double(5, value)


def _tag(value: KeyValue) -> bytes:
    """The one byte of a value that has no content; empty for numbers."""
    if value is None:
        return _TAG_NULL
    if value is True:
        return _TAG_TRUE
    if value is False:
        return _TAG_FALSE
    if isinstance(value, Undefined):
        return _TAG_UNDEFINED
    return b""


def _epk_v1(values: tuple[KeyValue, ...]) -> bytes:
    if not values:
        return b""
    cut = [_first_units(value) if isinstance(value, str) else value for value in values]
    hashed = mmh3.hash(b"".join([_hashed_form(value, b"\x00") for value in cut]), 0, False)
    return encode_number(float(hashed)) + b"".join([_ordered_form(value) for value in cut])


def _first_units(value: str) -> str:
    """The first 100 UTF-16 units of a string; a character beyond the BMP is two and may be cut in half."""
    if 2 * len(value) <= _V1_STRING_UTF16_UNITS:
        return value
    units = value.encode("utf-16-le", "surrogatepass")[: 2 * _V1_STRING_UTF16_UNITS]
    return units.decode("utf-16-le", "surrogatepass")


def _ordered_form(value: KeyValue) -> bytes:
    """The order-preserving bytes of one value that follow the hash in version 1."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        if len(data) <= _V1_STRING_BYTES_TERMINATED:
            return _TAG_STRING + data.translate(_PLUS_ONE) + b"\x00"
        return _TAG_STRING + data[:V1_STRING_BYTES_MAX].translate(_PLUS_ONE)
    tag = _tag(value)
    if tag or value is None or isinstance(value, Undefined):
        return tag
    return encode_number(float(value))


def encode_number(value: float) -> bytes:
    """A double as bytes in its order: tag, eight bits, then seven bits a byte, its last bit for "more"."""
    (bits,) = _unpack_bits(_pack_double(value))
    payload = (bits ^ _SIGN_BIT) if bits < _SIGN_BIT else (-bits & _MASK_64)
    encoded = bytearray(_TAG_NUMBER)
    encoded.append(payload >> 56)
    payload = (payload << 8) & _MASK_64
    while True:
        encoded.append((payload >> 56) | 1)
        payload = (payload << 7) & _MASK_64
        if not payload:
            break
    encoded[-1] &= 0xFE
    return bytes(encoded)


def decode_hash_v1(boundary: bytes) -> int:
    """The 32-bit hash at the head of a version 1 epk; ValueError when the bytes do not start with one."""
    if boundary[:1] != _TAG_NUMBER or len(boundary) < 3:
        raise ValueError("not the epk of a version 1 key")
    payload, shift = boundary[1] << 56, 56
    for byte in boundary[2:]:
        shift -= 7
        payload |= (byte >> 1) << max(shift, 0)
        if not byte & 1 or shift <= 0:
            break
    bits = (payload ^ _SIGN_BIT) if payload & _SIGN_BIT else (-payload & _MASK_64)
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    if not 0 <= value <= HASH_V1_MAX:
        raise ValueError("not the epk of a version 1 key")
    return int(value)

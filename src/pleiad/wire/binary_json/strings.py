"""The compressed forms of strings: digits, dates, GUIDs and Base64 text in fewer bits than a character has.

Everything here takes exactly the bytes of one value and gives the text, which is ASCII.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from typing import Final

from pleiad.wire import MalformedError


def _pairs(alphabet: str) -> list[str]:
    """The two characters of every byte, the one in the low half first."""
    return [alphabet[byte & 15] + alphabet[byte >> 4] for byte in range(256)]


LOWER_HEX: Final = _pairs("0123456789abcdef")
UPPER_HEX: Final = _pairs("0123456789ABCDEF")
DATE_TIME: Final = _pairs(" 0123456789:-.TZ")
_ASCII_MAX = 0x7F
_CHARACTERS_AT_ONCE = 8
"""Eight characters of n bits fill n bytes."""


def halved(raw: bytes, count: int, pairs: list[str]) -> str:
    """Text of an alphabet of sixteen characters, two in a byte."""
    if count % 2 and raw[-1] > 0x0F:
        raise MalformedError("the spare half of the last byte of a string is not zero")
    return "".join([pairs[byte] for byte in raw])[:count]


def guid(raw: bytes, pairs: list[str]) -> str:
    """A GUID as its text reads."""
    digits = halved(raw, 32, pairs)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def packed(raw: bytes, count: int, bits: int, base: int) -> str:
    """Text whose characters take some bits each, counted from a base character; lowest bits first."""
    if base > _ASCII_MAX:
        raise MalformedError("a packed string has a character that is not ASCII")
    mask = (1 << bits) - 1
    shifts = range(0, bits * _CHARACTERS_AT_ONCE, bits)
    characters = bytearray()
    for start in range(0, len(raw), bits):
        number = int.from_bytes(raw[start : start + bits], "little")
        characters += bytes([base + (number >> shift & mask) for shift in shifts])
    text = bytes(characters[:count])
    if not text.isascii():
        raise MalformedError("a packed string has a character that is not ASCII")
    return text.decode("ascii")


def base64_raw_bytes(groups: int, padding: int) -> int:
    """The number of bytes behind Base64 text of groups of four characters."""
    absent = padding if padding <= 2 else 0xFF - padding
    if absent > 2 or 4 * groups < absent:
        raise MalformedError(f"Base64 text cannot have a padding of {padding}")
    return (4 * groups - absent) * 3 // 4


def base64_text(raw: bytes, padding: int, is_url_safe: bool) -> str:
    """Base64 text from its bytes; a padding over 2 says how much of it the text leaves out."""
    text = (urlsafe_b64encode(raw) if is_url_safe else b64encode(raw)).decode("ascii")
    return text if padding <= 2 else text.rstrip("=")

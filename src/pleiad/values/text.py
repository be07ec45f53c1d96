"""Strings as bytes in their order: by code point, or by UTF-16 code unit; and bytes that end themselves.

UTF-8 has the order of code points. UTF-16 puts the characters beyond U+FFFF, which it writes as two surrogates,
before U+E000; written as those two in three bytes each, a string has that order in bytes too. Lone surrogates are
legal in JSON texts and are kept. Two that stand as a pair are the character they mean to UTF-16, and another string
to UTF-8.
"""

from __future__ import annotations

import re
from typing import Final

END: Final = b"\x00\x00"
"""The end of bytes that may have any byte: their own 00 are written 00 FF, so that shorter comes first."""
_ESCAPED: Final = b"\x00\xff"
_BEYOND_PLANE: Final = re.compile("[\U00010000-\U0010ffff]")


def surrogates(char: str) -> str:
    """The two surrogates of a character beyond U+FFFF, as characters of their own."""
    offset = ord(char) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def utf8_bytes(text: str) -> bytes:
    """Bytes in the order of code points."""
    return text.encode("utf-8", "surrogatepass")


def utf16_bytes(text: str) -> bytes:
    """Bytes in the order of UTF-16 code units."""
    if text.isascii():
        return text.encode()
    return _BEYOND_PLANE.sub(lambda found: surrogates(found.group()), text).encode("utf-8", "surrogatepass")


def utf8_text(data: bytes) -> str:
    """The string of ``utf8_bytes``; ValueError when it is of none."""
    return data.decode("utf-8", "surrogatepass")


def utf16_text(data: bytes) -> str:
    """The string of ``utf16_bytes``, pairs of surrogates joined; ValueError when it is of none."""
    text = data.decode("utf-8", "surrogatepass")
    if text.isascii():
        return text
    if _BEYOND_PLANE.search(text):
        raise ValueError("a character that should be two surrogates")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def ended(data: bytes) -> bytes:
    """The bytes with their end; none is the beginning of another."""
    return data.replace(b"\x00", _ESCAPED) + END if b"\x00" in data else data + END


def read_ended(data: bytes, start: int) -> tuple[bytes, int]:
    """The bytes that ``ended`` wrote there, and where they end; ValueError when they do not."""
    at = start
    while (at := data.index(b"\x00", at)) + 1 < len(data):
        if data[at + 1] == 0:
            return data[start:at].replace(_ESCAPED, b"\x00"), at + 2
        if data[at + 1] != 0xFF:
            break
        at += 2
    raise ValueError("bytes without an end")

"""Activity ids, sixteen bytes in the order of a .NET Guid (4, 2 and 2 reversed, 8 as they are), and their text."""

from __future__ import annotations

from pleiad.wire.rntbd import UnwritableToken

ACTIVITY_ID_BYTES = 16
_HEXADECIMAL_DIGITS = 32


def activity_id_text(raw: bytes) -> str:
    """The text of an activity id, as REST has it."""
    front = raw[7::-1].hex()
    back = raw[8:].hex()
    return f"{front[8:]}-{front[4:8]}-{front[:4]}-{back[:4]}-{back[4:]}"


def activity_id_bytes(text: str) -> bytes:
    """The bytes of an activity id; raises `UnwritableToken` when the text is none."""
    digits = text.replace("-", "")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raw = b""
    if len(digits) != _HEXADECIMAL_DIGITS or len(raw) != ACTIVITY_ID_BYTES:
        raise UnwritableToken("the text is no activity id")
    return raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]

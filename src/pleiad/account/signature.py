"""What a request is signed with a key of the account: the text that is signed, the proof, and the token around it."""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from hashlib import _Hash
else:
    # The interpreter's own SHA-256: OpenSSL's takes longer to begin than to hash a line.
    with suppress(ImportError):
        from _sha256 import sha256
    with suppress(ImportError):
        from _sha2 import sha256

_BLOCK_BYTES = 64
MASTER_TOKEN = "type=master&ver=1.0&sig="
"""The beginning of a token that proves a key of the account."""


def signed_text(verb: str, resource_type: str, link: str, date: str, plain_date: str = "") -> str:
    """The text that is signed for a request; `date` is that of `x-ms-date`, `plain_date` that of `Date`."""
    return f"{verb.lower()}\n{resource_type}\n{link}\n{date.lower()}\n{plain_date.lower()}\n"


def proof(secret: bytes, text: bytes) -> bytes:
    """The signature of a text, in base64."""
    return b2a_base64(hmac.digest(secret, text, "sha256"), newline=False)


def pads(secret: bytes) -> tuple[_Hash, _Hash]:
    """The inner and the outer hash of an HMAC-SHA-256 with the key in them, to be copied for each text."""
    key = sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret
    key = key.ljust(_BLOCK_BYTES, b"\0")
    return sha256(bytes([byte ^ 0x36 for byte in key])), sha256(bytes([byte ^ 0x5C for byte in key]))


def authorization(secret: bytes, verb: str, resource_type: str, link: str, date: str) -> str:
    """The header `authorization` of a signed request, as clients send it."""
    signature = proof(secret, signed_text(verb, resource_type, link, date).encode())
    return quote(MASTER_TOKEN + signature.decode(), safe="")

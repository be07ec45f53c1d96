"""What a request is signed with a key of the account: the text that is signed, the proof, and the token around it."""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from urllib.parse import quote

MASTER_TOKEN = "type=master&ver=1.0&sig="
"""The beginning of a token that proves a key of the account."""


def signed_text(verb: str, resource_type: str, link: str, date: str, plain_date: str = "") -> str:
    """The text that is signed for a request; `date` is that of `x-ms-date`, `plain_date` that of `Date`."""
    return f"{verb.lower()}\n{resource_type}\n{link}\n{date.lower()}\n{plain_date.lower()}\n"


def proof(secret: bytes, text: bytes) -> bytes:
    """The signature of a text, in base64."""
    return b2a_base64(hmac.digest(secret, text, "sha256"), newline=False)


def authorization(secret: bytes, verb: str, resource_type: str, link: str, date: str) -> str:
    """The header `authorization` of a signed request, as clients send it."""
    signature = proof(secret, signed_text(verb, resource_type, link, date).encode())
    return quote(MASTER_TOKEN + signature.decode(), safe="")

"""The seal of continuation tokens: what makes a token one of this account, for one request.

A token is base64 of a seal and a JSON object. The seal is a keyed hash, under the secret of the account, of the object
and of what was asked, so a token that was damaged, made up, or issued for another request is refused instead of giving
a wrong page. The secret is kept with the catalog: tokens outlive restarts and new account keys, and every server of
the account takes those of the others.

The token of a query that the server spreads over partitions stands in a JSON text, with the range it is for, as on the
service: clients look into such tokens to tell them from their own.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Protocol

import orjson

from pleiad import errors
from pleiad.errors import PleiadError

_SEAL_BYTES = 12
_MARK_BYTES = 8
_SHOWN_CHARS_MAX = 100


def fingerprint(*parts: object) -> int:
    """A number that tells requests apart, also those that somebody makes to look alike."""
    text = repr(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=_MARK_BYTES).digest(), "big")


class HasSecret(Protocol):
    """Who keeps the secret of an account."""

    @property
    def secret(self) -> bytes: ...


class Seal:
    """Makes and checks the tokens of one account."""

    __slots__ = ("_account",)

    def __init__(self, account: HasSecret) -> None:
        self._account = account

    def encode(self, mark: int, state: dict[str, Any]) -> str:
        """The token of a state; `mark` is the fingerprint of the request it belongs to."""
        text = orjson.dumps(state)
        return urlsafe_b64encode(self._proof(mark, text) + text).decode()

    def decode(self, token: str, mark: int) -> Any:
        """What was sealed in a token of the same request, as it is or in JSON; a forged or foreign one is refused."""
        try:
            sealed = orjson.loads(token)[0]["token"] if token.startswith("[") else token
            raw = urlsafe_b64decode(sealed.encode("ascii"))
        except (ValueError, Base64Error, LookupError, TypeError, AttributeError):
            raise bad(token) from None
        proof, text = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        if not compare_digest(proof, self._proof(mark, text)):
            raise bad(token)
        try:
            return orjson.loads(text)
        except ValueError:
            raise bad(token) from None

    def _proof(self, mark: int, text: bytes) -> bytes:
        marked = mark.to_bytes(_MARK_BYTES, "big") + text
        return blake2b(marked, key=self._account.secret, digest_size=_SEAL_BYTES).digest()


def as_json(token: str, low: str, high: str) -> str:
    """A token in a JSON text, with the range of hashes it is for."""
    return f'[{{"token":"{token}","range":{{"min":"{low}","max":"{high}"}}}}]'


def bad(token: str) -> PleiadError:
    return errors.BAD_CONTINUATION(token=token[:_SHOWN_CHARS_MAX])

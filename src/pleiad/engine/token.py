"""Continuation tokens: opaque to clients, checked when they come back.

A token is base64 of a JSON object. It carries a checksum of itself and of what was asked, so that a token that was
damaged, or that is of another request, is refused instead of giving a wrong page.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import orjson

from pleiad import errors
from pleiad.engine.scan import Piece
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange


def fingerprint(*parts: object) -> int:
    """A number that tells requests apart."""
    return crc32(repr(parts).encode("utf-8", "surrogatepass"))


def encode(mark: int, state: dict[str, Any]) -> str:
    checksum = crc32(orjson.dumps(state), mark)
    return urlsafe_b64encode(orjson.dumps({"f": checksum, **state})).decode()


def decode(token: str, mark: int) -> dict[str, Any]:
    """The state in a token of the same request; BAD_HEADER for a forged or foreign one."""
    try:
        state = orjson.loads(urlsafe_b64decode(token.encode("ascii")))
    except (ValueError, Base64Error):
        raise bad(token) from None
    if not isinstance(state, dict) or state.pop("f", None) != crc32(orjson.dumps(state), mark):
        raise bad(token)
    return state


def pieces_to_json(pieces: Sequence[Piece]) -> list[list[Any]]:
    return [[*piece.span.to_hex(), piece.after] for piece in pieces]


def pieces_from_json(given: Any, token: str) -> list[Piece]:
    try:
        pieces = [Piece(EpkRange.from_hex(low, high), after) for low, high, after in given]
    except (ValueError, TypeError, PleiadError):
        raise bad(token) from None
    if not pieces or not all(type(piece.after) is int and 0 <= piece.after < 2**62 for piece in pieces):
        raise bad(token)
    return pieces


def whole_number(state: dict[str, Any], name: str, token: str) -> int:
    """A count in a token's state; absent means none."""
    value = state.get(name, 0)
    if type(value) is not int or not 0 <= value < 2**62:
        raise bad(token)
    return value


def counts_by_number(state: dict[str, Any], name: str, token: str) -> dict[int, int]:
    """Counts by document number in a token's state; absent means none."""
    given = state.get(name, [])
    if not isinstance(given, list):
        raise bad(token)
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2:
            raise bad(token)
        if not all(type(each) is int and 0 <= each < 2**62 for each in pair):
            raise bad(token)
    return dict(given)


def bad(token: str) -> PleiadError:
    return errors.BAD_HEADER(
        name="x-ms-continuation",
        value=token[:100],
        hint=" It was not issued for this request by this server.",
    )

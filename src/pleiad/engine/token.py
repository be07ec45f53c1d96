"""What continuation tokens say: places in a walk, and counts, checked when they come back.

`seal` makes the tokens and refuses those it did not make; what stands in one is checked all the same, since it may
have been made by another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pleiad.engine.scan import Piece
from pleiad.engine.seal import bad, fingerprint
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange

__all__ = ["bad", "counts_by_number", "fingerprint", "pieces_from_json", "pieces_to_json", "whole_number"]


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

"""A shorter text that still differs: pieces are taken away as long as the difference stays."""

from __future__ import annotations

import re
from collections.abc import Callable

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|\s+|[^\w\s]')
_ATTEMPTS_MAX = 400


def shrunk(text: str, still_differs: Callable[[str], bool]) -> str:
    """The shortest text found by removing runs of tokens, longest runs first."""
    attempts = 0
    is_shorter = True
    while is_shorter and attempts < _ATTEMPTS_MAX:
        is_shorter = False
        pieces = _PIECE.findall(text)
        length = max(1, len(pieces) // 2)
        while length and attempts < _ATTEMPTS_MAX and not is_shorter:
            for start in range(0, len(pieces) - length + 1):
                attempts += 1
                candidate = "".join(pieces[:start] + pieces[start + length :])
                if attempts <= _ATTEMPTS_MAX and candidate.strip() and still_differs(candidate):
                    text, is_shorter = candidate, True
                    break
            length //= 2
    return text

"""REGEXMATCH: PCRE-like patterns, searched anywhere in the text, each search within a time limit.

A wrong pattern or modifier makes the result undefined. A pattern that is too long, uses what this engine does
not have, or takes too long on a text fails the query: a client must not take an unfinished search for "no".
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pleiad import errors
from pleiad.keys.undefined import UNDEFINED
from pleiad.query.functions.regex_syntax import BrokenPattern, UnsupportedSyntax, translate
from pleiad.query.functions.registry import register

if TYPE_CHECKING:
    from regex import Pattern  # type: ignore[import-untyped]

PATTERN_CHARS_MAX = 8_192
MATCH_SECONDS_MAX = 1.0

_MODIFIERS = frozenset("imsx")


@lru_cache(maxsize=256)
def _compiled(pattern: str, modifiers: str) -> Pattern[str] | None:
    """The pattern ready to search with, None when it is broken."""
    import regex  # loaded by the first call: most servers never run a pattern

    if not set(modifiers) <= _MODIFIERS:
        return None
    if len(pattern) > PATTERN_CHARS_MAX:
        raise errors.QUERY_ERROR(
            reason=f"The pattern of REGEXMATCH is longer than {PATTERN_CHARS_MAX} characters."
        )
    flags = regex.VERSION1
    for modifier in set(modifiers):
        flags |= {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL, "x": regex.VERBOSE}[
            modifier
        ]
    try:
        # Case folding stays one character to one character, as it is in the other string functions.
        return regex.compile("(?-f)" + translate(pattern, "x" in modifiers), flags)
    except UnsupportedSyntax as unsupported:
        raise errors.QUERY_ERROR(
            reason=f"The pattern of REGEXMATCH uses {unsupported}, which is not supported."
        ) from None
    except RecursionError:
        raise errors.QUERY_ERROR(reason="The pattern of REGEXMATCH is nested too deeply.") from None
    except (regex.error, BrokenPattern, ValueError, OverflowError):
        return None


@register("strings", "REGEXMATCH", 2, 3)
def regex_match(text: Any, pattern: Any, modifiers: Any = "") -> Any:
    """True when the pattern is found in the text."""
    if type(text) is not str or type(pattern) is not str or type(modifiers) is not str:
        return UNDEFINED
    compiled = _compiled(pattern, modifiers)
    if compiled is None:
        return UNDEFINED
    try:
        return compiled.search(text, timeout=MATCH_SECONDS_MAX) is not None
    except TimeoutError:
        raise errors.QUERY_ERROR(
            reason=f"The pattern of REGEXMATCH took too long: over {MATCH_SECONDS_MAX:g} second on one value."
        ) from None
    except (RecursionError, MemoryError):
        raise errors.QUERY_ERROR(
            reason="The pattern of REGEXMATCH needs too much memory on this value."
        ) from None

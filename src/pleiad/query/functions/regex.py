"""REGEXMATCH: PCRE-like patterns, searched anywhere in the text, each search within a time limit.

A wrong pattern or modifier makes the result undefined. A pattern that is too long, uses what this engine does
not have, or takes too long on a text fails the query: a client must not take an unfinished search for "no".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.keys.undefined import UNDEFINED
from pleiad.query.functions.regex_syntax import BrokenPattern, UnsupportedSyntax, translate
from pleiad.query.functions.registry import register
from pleiad.query.pace import current

if TYPE_CHECKING:
    from regex import Pattern  # type: ignore[import-untyped]

PATTERN_CHARS_MAX = 8_192
MATCH_SECONDS_MAX = 1.0
_AT_ONCE_SECONDS = 0.002
_SHORT_CHARS = 256
_AT_ONCE_PRODUCT = 2_000_000
_SLOW_SEARCH_STEPS = 10_000
"""What a search counts that was not done at once."""
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="pleiad-pattern")
_Answer = TypeVar("_Answer")

_MODIFIERS = frozenset("imsx")


def _ready(pattern: str, modifiers: str) -> Pattern[str] | None:
    """The pattern ready to search with; to make a long one ready takes so long that a thread does it."""
    if len(pattern) <= _SHORT_CHARS:
        return _kept_compiled(pattern, modifiers)
    pace = current()
    make = partial(_long_compiled, pattern, modifiers)
    return pace.wait(_in_a_thread(make, pace.seconds_left)) if pace.may_wait() else make()


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


_kept_compiled = lru_cache(maxsize=256)(_compiled)
_long_compiled = lru_cache(maxsize=8)(_compiled)


@register("strings", "REGEXMATCH", 2, 3)
def regex_match(text: Any, pattern: Any, modifiers: Any = "") -> Any:
    """True when the pattern is found in the text."""
    if type(text) is not str or type(pattern) is not str or type(modifiers) is not str:
        return UNDEFINED
    compiled = _ready(pattern, modifiers)
    if compiled is None:
        return UNDEFINED
    return bounded_search(compiled, text) is not None


def bounded_search(compiled: Any, text: str, start: int = 0, end: int | None = None) -> Any:
    """Where a pattern is found in a text, None when it is not: at once, or in a thread where it takes a while.

    The engine gives way to other threads only when it is told so, which costs too much for the usual search.
    """
    pace = current()
    seconds = max(min(MATCH_SECONDS_MAX, pace.seconds_left), _AT_ONCE_SECONDS)
    # Within one long literal of a pattern the engine does not look at the clock.
    if len(text) * len(compiled.pattern) <= _AT_ONCE_PRODUCT or not pace.may_wait():
        try:
            return compiled.search(text, start, end, timeout=_AT_ONCE_SECONDS)
        except TimeoutError:
            pass
        except (RecursionError, MemoryError):
            raise _out_of_memory() from None
    search = partial(compiled.search, text, start, end, timeout=seconds, concurrent=True)
    try:
        found = pace.wait(_in_a_thread(search, pace.seconds_left)) if pace.may_wait() else search()
    except TimeoutError:
        pace.look()
        raise errors.QUERY_ERROR(
            reason=f"The pattern took too long: over {MATCH_SECONDS_MAX:g} second on one value."
        ) from None
    except (RecursionError, MemoryError):
        raise _out_of_memory() from None
    pace.tick(_SLOW_SEARCH_STEPS)
    return found


async def _in_a_thread(work: Callable[[], _Answer], seconds: float) -> _Answer:
    return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_THREADS, work), seconds)


def _out_of_memory() -> PleiadError:
    return errors.QUERY_ERROR(reason="The pattern needs too much memory on this value.")

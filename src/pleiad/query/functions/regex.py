"""REGEXMATCH, REGEXEXTRACT and REGEXREPLACE: PCRE-like patterns, searched anywhere in the text, each search within a
time limit.

A wrong pattern or modifier makes the result undefined. A pattern that is too long, uses what this engine does
not have, or takes too long on a text fails the query: a client must not take an unfinished search for "no".

REGEXEXTRACT(ALL) and REGEXREPLACE(ALL) follow their documentation: the text of the first match, or an array of all; the
text with the first match, or all of them, replaced by a text that stands for itself. The fourth argument of an
extraction is the number of the group whose text is wanted.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.query.functions.numbers import whole
from pleiad.query.functions.regex_syntax import BrokenPattern, UnsupportedSyntax, translate
from pleiad.query.functions.registry import check_array_elements, check_text_chars, register
from pleiad.query.pace import Pace, current
from pleiad.values.undefined import UNDEFINED

if TYPE_CHECKING:
    from regex import Pattern  # type: ignore[import-untyped]

PATTERN_CHARS_MAX = 8_192
MATCH_SECONDS_MAX = 1.0
_AT_ONCE_SECONDS = 0.002
_SHORT_CHARS = 256
_AT_ONCE_PRODUCT = 2_000_000
_SLOW_SEARCH_SECONDS = 0.05
_SLOW_SEARCH_STEPS = 50_000
"""What a search counts whose pattern lets it try so long. A processor has a part in this one charge, the load has none:
it is far beyond what a search takes that ends at once where nothing else runs."""
_GROUPS_AGAIN = re.compile(r"\)[*+?{]|\(\?(?:[R0-9&]|P>)")
"""Groups that are repeated or called: the engine remembers each round of them until the search ends."""
_ROUND_BYTES = 128
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
    compiled = _pattern_for(pattern, modifiers, text)
    return UNDEFINED if compiled is None else bounded_search(compiled, text) is not None


def _pattern_for(pattern: Any, modifiers: Any, *texts: Any) -> Pattern[str] | None:
    """The compiled pattern, None when an argument is no text or the pattern is broken."""
    if any(type(value) is not str for value in (pattern, modifiers, *texts)):
        return None
    return _ready(pattern, modifiers)


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
    try:
        found, busy_seconds = _search_beside(pace, compiled, text, start, end, seconds)
    except TimeoutError:
        pace.look()
        raise errors.QUERY_ERROR(
            reason=f"The pattern took too long: over {MATCH_SECONDS_MAX:g} second on one value."
        ) from None
    except (RecursionError, MemoryError):
        raise _out_of_memory() from None
    if busy_seconds > _SLOW_SEARCH_SECONDS:
        pace.tick(_SLOW_SEARCH_STEPS)
    return found


def _search_beside(
    pace: Pace, compiled: Any, text: str, start: int, end: int | None, seconds: float
) -> tuple[Any, float]:
    """What a search finds beside the loop: few take long, and those only as much memory as a query has."""

    def search(seconds: float) -> tuple[Any, float]:
        work = partial(_timed_search, compiled, text, start, end, seconds)
        found: tuple[Any, float] = (
            pace.wait(_in_a_thread(work, pace.seconds_left)) if pace.may_wait() else work()
        )
        return found

    try:
        return search(min(seconds, _SLOW_SEARCH_SECONDS))
    except TimeoutError:
        if _GROUPS_AGAIN.search(compiled.pattern) is not None:
            pace.carry(_ROUND_BYTES * len(text) * (1 + compiled.groups))
        return search(seconds)


def _timed_search(compiled: Any, text: str, start: int, end: int | None, seconds: float) -> tuple[Any, float]:
    """What a search finds, and how long it kept the processor busy."""
    began_at = time.thread_time()
    found = compiled.search(text, start, end, timeout=seconds, concurrent=True)
    return found, time.thread_time() - began_at


async def _in_a_thread(work: Callable[[], _Answer], seconds: float) -> _Answer:
    return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_THREADS, work), seconds)


def _out_of_memory() -> PleiadError:
    return errors.QUERY_ERROR(reason="The pattern needs too much memory on this value.")


def _matches(compiled: Any, text: str) -> Iterator[Any]:
    """Every match from left to right, each found within the time of a search."""
    start = 0
    while start <= len(text) and (match := bounded_search(compiled, text, start)) is not None:
        yield match
        start = match.end() + (match.end() == match.start())


def _group_text(match: Any, group: int) -> Any:
    found = match[group] if group <= match.re.groups else None
    return UNDEFINED if found is None else found


@register("strings", "REGEXEXTRACT", 2, 4)
def regex_extract(text: Any, pattern: Any, modifiers: Any = "", group_value: Any = 0) -> Any:
    """The text of the first match, or of a group of it."""
    compiled, group = _pattern_for(pattern, modifiers, text), whole(group_value)
    if compiled is None or group is None or group < 0:
        return UNDEFINED
    match = bounded_search(compiled, text)
    return UNDEFINED if match is None else _group_text(match, group)


@register("strings", "REGEXEXTRACTALL", 2, 4)
def regex_extract_all(text: Any, pattern: Any, modifiers: Any = "", group_value: Any = 0) -> Any:
    """The texts of all matches, or of a group of each."""
    compiled, group = _pattern_for(pattern, modifiers, text), whole(group_value)
    if compiled is None or group is None or group < 0:
        return UNDEFINED
    found: list[Any] = []
    for match in _matches(compiled, text):
        part = _group_text(match, group)
        if part is not UNDEFINED:
            found.append(part)
            check_array_elements(len(found))
    return found


def _replaced(text: Any, pattern: Any, replacement: Any, modifiers: Any, count: int | None) -> Any:
    """The text with so many matches replaced, all for None; the replacement stands for itself."""
    compiled = _pattern_for(pattern, modifiers, text, replacement)
    if compiled is None:
        return UNDEFINED
    parts: list[str] = []
    position = chars = 0
    for match in islice(_matches(compiled, text), count):
        parts += (text[position : match.start()], replacement)
        chars += match.start() - position + len(replacement)
        check_text_chars(chars)
        position = match.end()
    check_text_chars(chars + len(text) - position)
    return "".join((*parts, text[position:]))


@register("strings", "REGEXREPLACE", 3, 4)
def regex_replace(text: Any, pattern: Any, replacement: Any, modifiers: Any = "") -> Any:
    """The text with the first match replaced."""
    return _replaced(text, pattern, replacement, modifiers, 1)


@register("strings", "REGEXREPLACEALL", 3, 4)
def regex_replace_all(text: Any, pattern: Any, replacement: Any, modifiers: Any = "") -> Any:
    """The text with all matches replaced."""
    return _replaced(text, pattern, replacement, modifiers, None)

"""REGEXMATCH, REGEXEXTRACT and REGEXREPLACE: PCRE-like patterns, searched anywhere in the text, each search within
a time limit.

The planner of the service knows the names of REGEXEXTRACT(ALL) and REGEXREPLACE(ALL) and their counts of arguments but
evaluates none of them, so what they give here is what their names say: the text of the first match, or an array of
all; the text with the first match, or all of them, replaced. A fourth argument of an extraction is the number of the
group whose text is wanted.

A wrong pattern or modifier makes the result undefined. A pattern that is too long, uses what this engine does
not have, or takes too long on a text fails the query: a client must not take an unfinished search for "no".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pleiad import errors
from pleiad.keys.undefined import UNDEFINED
from pleiad.query.functions.numbers import whole
from pleiad.query.functions.regex_syntax import BrokenPattern, UnsupportedSyntax, translate
from pleiad.query.functions.registry import check_array_elements, check_text_chars, register

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


def _within_time(search: Callable[[], Any]) -> Any:
    try:
        return search()
    except TimeoutError:
        raise errors.QUERY_ERROR(
            reason=f"The pattern of REGEXMATCH took too long: over {MATCH_SECONDS_MAX:g} second on one value."
        ) from None
    except (RecursionError, MemoryError):
        raise errors.QUERY_ERROR(
            reason="The pattern of REGEXMATCH needs too much memory on this value."
        ) from None


def _pattern_for(pattern: Any, modifiers: Any, *texts: Any) -> Pattern[str] | None:
    """The compiled pattern, None when an argument is no text or the pattern is broken."""
    if any(type(value) is not str for value in (pattern, modifiers, *texts)):
        return None
    return _compiled(pattern, modifiers)


@register("strings", "REGEXMATCH", 2, 3)
def regex_match(text: Any, pattern: Any, modifiers: Any = "") -> Any:
    """True when the pattern is found in the text."""
    compiled = _pattern_for(pattern, modifiers, text)
    if compiled is None:
        return UNDEFINED
    return _within_time(lambda: compiled.search(text, timeout=MATCH_SECONDS_MAX) is not None)


def _group_text(match: Any, group: int) -> Any:
    found = match[group] if group <= match.re.groups else None
    return UNDEFINED if found is None else found


@register("strings", "REGEXEXTRACT", 2, 4)
def regex_extract(text: Any, pattern: Any, modifiers: Any = "", group_value: Any = 0) -> Any:
    """The text of the first match, or of a group of it."""
    compiled, group = _pattern_for(pattern, modifiers, text), whole(group_value)
    if compiled is None or group is None or group < 0:
        return UNDEFINED
    match = _within_time(lambda: compiled.search(text, timeout=MATCH_SECONDS_MAX))
    return UNDEFINED if match is None else _group_text(match, group)


@register("strings", "REGEXEXTRACTALL", 2, 4)
def regex_extract_all(text: Any, pattern: Any, modifiers: Any = "", group_value: Any = 0) -> Any:
    """The texts of all matches, or of a group of each."""
    compiled, group = _pattern_for(pattern, modifiers, text), whole(group_value)
    if compiled is None or group is None or group < 0:
        return UNDEFINED
    found = []
    matches = _within_time(lambda: compiled.finditer(text, timeout=MATCH_SECONDS_MAX))
    while (match := _within_time(lambda: next(matches, None))) is not None:
        found.append(_group_text(match, group))
        check_array_elements(len(found))
    return [part for part in found if part is not UNDEFINED]


def _replaced(text: Any, pattern: Any, replacement: Any, modifiers: Any, count: int) -> Any:
    compiled = _pattern_for(pattern, modifiers, text, replacement)
    if compiled is None:
        return UNDEFINED
    # A function, so that the replacement stands for itself and no backslash in it means a group.
    replaced = _within_time(
        lambda: compiled.sub(lambda _: replacement, text, count=count, timeout=MATCH_SECONDS_MAX)
    )
    check_text_chars(len(replaced))
    return replaced


@register("strings", "REGEXREPLACE", 3, 4)
def regex_replace(text: Any, pattern: Any, replacement: Any, modifiers: Any = "") -> Any:
    """The text with the first match replaced."""
    return _replaced(text, pattern, replacement, modifiers, 1)


@register("strings", "REGEXREPLACEALL", 3, 4)
def regex_replace_all(text: Any, pattern: Any, replacement: Any, modifiers: Any = "") -> Any:
    """The text with all matches replaced."""
    return _replaced(text, pattern, replacement, modifiers, 0)

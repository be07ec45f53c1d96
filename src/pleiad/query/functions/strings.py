"""String functions. Positions and lengths count Unicode code points, so no function can cut a character in
two.

An argument of the wrong type makes the result undefined; nothing is converted. Comparisons are ordinal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pleiad.query.functions import casing
from pleiad.query.functions.numbers import whole, wrapped
from pleiad.query.functions.registry import (
    ARRAY_ELEMENTS_MAX,
    CHARS_OF_A_STEP,
    LARGE,
    check_array_elements,
    check_text_chars,
    register,
)
from pleiad.query.pace import in_turns, tick
from pleiad.query.values import and3, or3
from pleiad.values.undefined import UNDEFINED

_FAMILY = "strings"

REPLICATE_CHARS_MAX = 10_000
_AT_ONCE_PRODUCT = 1_000_000
"""Up to where the characters of one text, for each of another, are looked at in a moment."""


def _texts(*values: Any) -> bool:
    return all(type(value) is str for value in values)


@register(_FAMILY, "CONCAT", 2, None)
def concat(*texts: Any) -> Any:
    if not _texts(*texts):
        return UNDEFINED
    check_text_chars(sum(map(len, texts)))
    return "".join(texts)


def _compare(test: Callable[[str, str], bool]) -> Callable[..., Any]:
    last = ("", "")  # a part and what it is without case: mostly a constant, the same for every item

    def call(text: Any, part: Any, ignore_case: Any = False) -> Any:
        nonlocal last
        if type(text) is not str or type(part) is not str:
            return UNDEFINED
        if ignore_case is False:
            return test(text, part)
        if ignore_case is True:
            known, folded = last
            if known is not part:
                folded = casing.fold(part)
                if len(part) <= LARGE:
                    last = (part, folded)
            return test(text.upper() if text.isascii() else casing.fold(text), folded)
        return UNDEFINED

    return call


contains = register(_FAMILY, "CONTAINS", 2, 3)(_compare(lambda text, part: part in text))
register(_FAMILY, "ENDSWITH", 2, 3)(_compare(str.endswith))
register(_FAMILY, "STARTSWITH", 2, 3)(_compare(str.startswith))
register(_FAMILY, "STRINGEQUALS", 2, 3, also="STRING_EQUALS")(_compare(lambda text, other: text == other))


def _contains_each(text: Any, parts: tuple[Any, ...], ignore_case: bool) -> list[Any]:
    if type(text) is not str:
        return [UNDEFINED]
    whole_text = casing.fold(text) if ignore_case else text
    found: list[Any] = []
    for part in parts:
        tick(1 + len(whole_text) // CHARS_OF_A_STEP)
        if type(part) is not str:
            found.append(UNDEFINED)
        else:
            found.append((casing.fold(part) if ignore_case else part) in whole_text)
    return found


def _all_of(ignore_case: bool) -> Callable[..., Any]:
    def call(text: Any, *parts: Any) -> Any:
        return and3(*_contains_each(text, parts, ignore_case))

    return call


def _any_of(ignore_case: bool) -> Callable[..., Any]:
    def call(text: Any, *parts: Any) -> Any:
        return or3(*_contains_each(text, parts, ignore_case))

    return call


register(_FAMILY, "CONTAINS_ALL_CI", 2, None)(_all_of(ignore_case=True))
register(_FAMILY, "CONTAINS_ALL_CS", 2, None)(_all_of(ignore_case=False))
register(_FAMILY, "CONTAINS_ANY_CI", 2, None)(_any_of(ignore_case=True))
register(_FAMILY, "CONTAINS_ANY_CS", 2, None)(_any_of(ignore_case=False))


@register(_FAMILY, "INDEX_OF", 2, 3)
def index_of(text: Any, part: Any, start_value: Any = 0) -> Any:
    """The first position of the part at or after the start, -1 when there is none."""
    start = whole(start_value)
    if not _texts(text, part) or start is None:
        return UNDEFINED
    start = wrapped(start, 32)
    return text.find(part, start) if 0 <= start <= len(text) else -1


def _find_last(text: str, part: str) -> int:
    """The last position of the part, -1 when there is none.

    Python's search from the right takes the product of both lengths at worst, the one from the left their sum.
    """
    if len(text) * len(part) <= _AT_ONCE_PRODUCT:
        return text.rfind(part)
    position = text[::-1].find(part[::-1])
    return position if position < 0 else len(text) - len(part) - position


@register(_FAMILY, "LASTINDEXOF", 2, 3)
def last_index_of(text: Any, part: Any, *start_value: Any) -> Any:
    """The last position of the part that ends at or before the start, -1 when there is none."""
    if not _texts(text, part):
        return UNDEFINED
    if not start_value or start_value[0] is UNDEFINED:
        return _find_last(text, part) if part else max(0, len(text) - 1)
    start = whole(start_value[0])
    if start is None:
        return UNDEFINED
    start = wrapped(start, 32)
    if not 0 <= start <= len(text):
        return -1
    return _find_last(text[: start + 1], part) if part else min(start, max(0, len(text) - 1))


@register(_FAMILY, "LEFT", 2, 2)
def left(text: Any, count_value: Any) -> Any:
    count = whole(count_value)
    if type(text) is not str or count is None:
        return UNDEFINED
    return text[: max(0, count)]


@register(_FAMILY, "RIGHT", 2, 2)
def right(text: Any, count_value: Any) -> Any:
    count = whole(count_value)
    if type(text) is not str or count is None:
        return UNDEFINED
    return text[max(0, len(text) - count) :] if count > 0 else ""


@register(_FAMILY, "LENGTH", 1, 1)
def length(text: Any) -> Any:
    return len(text) if type(text) is str else UNDEFINED


@register(_FAMILY, "LOWER", 1, 1)
def lower(text: Any) -> Any:
    return casing.lower(text) if type(text) is str else UNDEFINED


@register(_FAMILY, "UPPER", 1, 1)
def upper(text: Any) -> Any:
    return casing.upper(text) if type(text) is str else UNDEFINED


WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace() and not 0x1C <= code <= 0x1F)


def _trim(strip: Callable[..., str]) -> Callable[..., Any]:
    def call(text: Any, characters: Any = "") -> Any:
        if not _texts(text, characters):
            return UNDEFINED
        if len(text) * len(characters) <= _AT_ONCE_PRODUCT:
            return strip(text, characters or WHITE_SPACE)
        return _trimmed(text, characters, strip is not str.rstrip, strip is not str.lstrip)

    return call


def _trimmed(text: str, characters: str, at_start: bool, at_end: bool) -> str:
    """The text without the characters at its ends, where looking for each of its own among all would take long."""
    members = set(in_turns(characters))
    start, end = 0, len(text)
    if at_start:
        start = next((index for index, char in enumerate(in_turns(text)) if char not in members), end)
    if at_end and start < end:
        backwards = in_turns(text[::-1])
        end -= next((index for index, char in enumerate(backwards) if char not in members), end)
    return text[start:end]


register(_FAMILY, "LTRIM", 1, 2)(_trim(str.lstrip))
register(_FAMILY, "RTRIM", 1, 2)(_trim(str.rstrip))
register(_FAMILY, "TRIM", 1, 2)(_trim(str.strip))


@register(_FAMILY, "REPLACE", 3, 3)
def replace(text: Any, find: Any, replacement: Any) -> Any:
    if not _texts(text, find, replacement) or find == "":
        return UNDEFINED
    growth = len(replacement) - len(find)
    if growth > 0:
        check_text_chars(len(text) + growth * text.count(find))
    return text.replace(find, replacement)


@register(_FAMILY, "REPLICATE", 2, 2)
def replicate(text: Any, count_value: Any) -> Any:
    count = whole(count_value)
    if type(text) is not str or count is None or count < 0 or len(text) * count > REPLICATE_CHARS_MAX:
        return UNDEFINED
    return text * count if text else ""


@register(_FAMILY, "REVERSE", 1, 1)
def reverse(text: Any) -> Any:
    return text[::-1] if type(text) is str else UNDEFINED


@register(_FAMILY, "STRINGJOIN", 2, 2, also="STRING_JOIN")
def string_join(texts: Any, separator: Any) -> Any:
    if type(texts) is not list or type(separator) is not str or not _texts(*texts):
        return UNDEFINED
    check_text_chars(sum(map(len, texts)) + len(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


@register(_FAMILY, "STRINGSPLIT", 2, 2, also="STRING_SPLIT")
def string_split(text: Any, separator: Any) -> Any:
    if not _texts(text, separator):
        return UNDEFINED
    if separator == "":
        return [text]
    # One split past the bound is enough to see that it is passed.
    parts = text.split(separator, ARRAY_ELEMENTS_MAX)
    check_array_elements(len(parts))
    return parts


@register(_FAMILY, "SUBSTRING", 3, 3)
def substring(text: Any, start_value: Any, count_value: Any) -> Any:
    """Characters from a zero-based start; a start outside the text gives the empty string."""
    start, count = whole(start_value), whole(count_value)
    if type(text) is not str or start is None or count is None:
        return UNDEFINED
    if not 0 <= start < len(text) or count <= 0:
        return ""
    return text[start : start + count]


def _part_beside(find: Callable[[str, str], int], is_before: bool) -> Callable[[Any, Any], Any]:
    def call(text: Any, part: Any) -> Any:
        if not _texts(text, part):
            return UNDEFINED
        position = find(text, part)
        if position < 0:
            return UNDEFINED
        return text[:position] if is_before else text[position + len(part) :]

    return call


register(_FAMILY, "SUBSTRINGBEFORE", 2, 2)(_part_beside(str.find, True))
register(_FAMILY, "SUBSTRINGAFTER", 2, 2)(_part_beside(str.find, False))
register(_FAMILY, "LASTSUBSTRINGBEFORE", 2, 2)(_part_beside(_find_last, True))
register(_FAMILY, "LASTSUBSTRINGAFTER", 2, 2)(_part_beside(_find_last, False))

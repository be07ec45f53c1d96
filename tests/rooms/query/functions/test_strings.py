"""String functions, patterns and conversions."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.query.functions import strings
from pleiad.query.functions.registry import TEXT_CHARS_MAX
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

U = UNDEFINED

STRINGS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("CONCAT", ("a", "b", "c"), "abc"),
    ("CONCAT", ("a", 1), U),
    ("CONTAINS", ("Straße", "STR", True), True),
    ("CONTAINS", ("Straße", "SS", True), False),
    ("CONTAINS", ("abc", ""), True),
    ("CONTAINS", ("abc", "B"), False),
    ("CONTAINS", ("abc", "b", None), U),
    ("CONTAINS", ("abc", "b", U), U),
    ("CONTAINS", ("ΑΣ", "ας", True), False),
    ("ENDSWITH", ("abc", "BC"), False),
    ("ENDSWITH", ("abc", "BC", True), True),
    ("STARTSWITH", ("abc", ""), True),
    ("STARTSWITH", (None, "a"), U),
    ("STRINGEQUALS", ("A", "a", True), True),
    ("STRINGEQUALS", ("A", "a"), False),
    ("STRINGEQUALS", (None, None), U),
    ("CONTAINS_ANY_CI", ("Road", "ROA", "x"), True),
    ("CONTAINS_ALL_CS", ("Road", "road"), False),
    ("CONTAINS_ANY_CS", ("Road", U, "x"), U),
    ("CONTAINS_ANY_CS", ("Road", U, "oad"), True),
    ("CONTAINS_ALL_CI", ("Have a day", U, "had"), False),
    ("CONTAINS_ALL_CI", ("Have a day", U, "HAVE"), U),
    ("CONTAINS_ALL_CI", (5, "a"), U),
    ("INDEX_OF", ("banana", "an"), 1),
    ("INDEX_OF", ("banana", "an", 2), 3),
    ("INDEX_OF", ("banana", "x"), -1),
    ("INDEX_OF", ("banana", "a", 99), -1),
    ("INDEX_OF", ("banana", "a", 0.5), U),
    ("LASTINDEXOF", ("banana", "an"), 3),
    ("LASTINDEXOF", ("banana", "an", 3), 1),
    ("LASTINDEXOF", ("banana", "an", 4), 3),
    ("LASTINDEXOF", ("abc", "bc", 3), 1),
    ("LASTINDEXOF", ("abc", "", 3), 2),
    ("LASTINDEXOF", ("", "", 0), 0),
    ("LASTINDEXOF", ("abc", "b", 4), -1),
    ("LEFT", ("abc", 2), "ab"),
    ("LEFT", ("abc", -1), ""),
    ("LEFT", ("abc", 99), "abc"),
    ("LEFT", ("abc", 1.5), U),
    ("RIGHT", ("abc", 2), "bc"),
    ("RIGHT", ("abc", 0), ""),
    ("RIGHT", ("abc", 99), "abc"),
    ("LENGTH", ("héllo",), 5),
    ("LENGTH", (5,), U),
    ("UPPER", ("aé",), "AÉ"),
    ("UPPER", ("straße",), "STRAßE"),
    ("LOWER", ("ΑΣ",), "ασ"),
    ("LTRIM", ("xxyabc", "xy"), "abc"),
    ("TRIM", ("--a-b--", "-"), "a-b"),
    ("TRIM", ("  a ",), "a"),
    ("TRIM", ("  a ", ""), "a"),
    ("RTRIM", ("abc  ",), "abc"),
    ("RTRIM", ("abc", None), U),
    ("REPLACE", ("aXbX", "X", "--"), "a--b--"),
    ("REPLACE", ("abc", "", "x"), U),
    ("REPLICATE", ("ab", 2), "abab"),
    ("REPLICATE", ("a", 0), ""),
    ("REPLICATE", ("a", -1), U),
    ("REPLICATE", ("a", 10_000), "a" * 10_000),
    ("REPLICATE", ("a", 10_001), U),
    ("REPLICATE", ("", 2**62), ""),
    ("REPLICATE", ("a", float("inf")), U),
    ("REVERSE", ("abc",), "cba"),
    ("STRINGJOIN", (["a", "b"], "-"), "a-b"),
    ("STRINGJOIN", (["a", 1], "-"), U),
    ("STRINGJOIN", ([], "-"), ""),
    ("STRINGSPLIT", ("a,b,,c", ","), ["a", "b", "", "c"]),
    ("STRINGSPLIT", ("ab", ""), ["ab"]),
    ("STRINGSPLIT", ("ab", U), U),
    ("SUBSTRING", ("abcdef", 2, 3), "cde"),
    ("SUBSTRING", ("abc", 1, 99), "bc"),
    ("SUBSTRING", ("abc", -1, 2), ""),
    ("SUBSTRING", ("abc", 3, 2), ""),
    ("SUBSTRINGBEFORE", ("a.b.c", "."), "a"),
    ("SUBSTRINGAFTER", ("a.b.c", "."), "b.c"),
    ("LASTSUBSTRINGBEFORE", ("a.b.c", "."), "a.b"),
    ("LASTSUBSTRINGAFTER", ("a.b.c", "."), "c"),
    ("LASTSUBSTRINGAFTER", ("abc", "."), U),
    ("REGEXEXTRACT", ("a1b22", "[0-9]+"), "1"),
    ("REGEXEXTRACTALL", ("a1b22", "[0-9]+"), ["1", "22"]),
    ("REGEXREPLACE", ("a1b22", "[0-9]+", "x"), "axb22"),
    ("REGEXREPLACEALL", ("a1b22", "[0-9]+", "x"), "axbx"),
    ("REGEXEXTRACT", ("sku-12 SKU-34", "SKU-([0-9]+)", "i", 1), "12"),
    ("REGEXEXTRACT", ("sku-12 SKU-34", "SKU-([0-9]+)", "", 0), "SKU-34"),
    ("REGEXEXTRACT", ("abc", "[0-9]"), U),
    ("REGEXEXTRACT", ("abc", "(b)", "", 2), U),
    ("REGEXEXTRACT", ("abc", "b", 1), U),
    ("REGEXEXTRACTALL", ("sku-12 SKU-34", "SKU-([0-9]+)", "i", 1), ["12", "34"]),
    ("REGEXEXTRACTALL", ("abc", "[0-9]"), []),
    ("REGEXREPLACE", ("aBb", "b", "$1", "i"), "a$1b"),
    ("REGEXREPLACEALL", ("aBb", "b", "", "i"), "a"),
    ("REGEXREPLACEALL", ("aBb", "b", 1), U),
    ("UPPER", ("ßıς µ",), "ßıς µ"),
    ("INDEX_OF", ("abc", "b", 2**32 + 1), 1),
    ("INDEX_OF", ("abc", "b", 2**31), -1),
    ("LASTINDEXOF", ("abc", "b", 2**32 + 2), 1),
    ("UPPER", ("ᾀᾳ",), "ᾈᾼ"),
    ("LOWER", ("ᾈᾼ",), "ᾀᾳ"),
    ("UPPER", ("ꭰაԥɐ",), "ꭰაԥⱯ"),
    ("LOWER", ("ᎠᲐԤ𐐀𞤀",), "ᎠᲐԤ𐐨𞤀"),
    ("CONTAINS", ("ꭰ", "Ꭰ", True), False),
    ("SUBSTRING", ("abc", 1, U), U),
    ("SUBSTRING", ("abc", 0.5, 1), U),
]

CONVERSIONS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("TOSTRING", ([1, {"a": None}],), '[1,{"a":null}]'),
    ("TOSTRING", (1.0,), "1"),
    ("TOSTRING", ([1.0, 0.1],), "[1,0.1]"),
    ("TOSTRING", (None,), "null"),
    ("TOSTRING", (True,), "true"),
    ("TOSTRING", ("a",), "a"),
    ("TOSTRING", (["a\n"],), '["a\\n"]'),
    ("TOSTRING", (float("nan"),), "NaN"),
    ("TOSTRING", (float("-inf"),), "-Infinity"),
    ("TOSTRING", (2**63 - 1,), "9223372036854775807"),
    ("TOSTRING", (U,), U),
    ("STRINGTONUMBER", (" -1e3 ",), -1000),
    ("STRINGTONUMBER", ("9223372036854775807",), 2**63 - 1),
    ("STRINGTONUMBER", ("1" * 5000,), U),
    ("STRINGTONUMBER", ("1e999",), U),
    ("STRINGTONUMBER", ("0x1F",), U),
    ("STRINGTONUMBER", ("01",), 1),
    ("STRINGTONUMBER", ("٣",), U),
    ("STRINGTONUMBER", (5,), U),
    ("STRINGTOARRAY", (" [1, [2]] ",), [1, [2]]),
    ("STRINGTOARRAY", ("{}",), U),
    ("STRINGTOARRAY", ("[" * 500 + "]" * 500,), U),
    ("STRINGTOARRAY", ("['a']",), U),
    ("STRINGTOARRAY", ("[01, -007, 00.5, 9007199254740993.0]",), [1, -7, 0.5, 9007199254740993]),
    ("STRINGTOARRAY", ('["a\tb\x01", "\\ud83d", "\\ud83d\\ude00"]',), ["a\tb\x01", "\ufffd", "😀"]),
    ("STRINGTOARRAY", ('["01", "a\\"01"]',), ["01", 'a"01']),
    ("STRINGTOARRAY", ("[+1]",), U),
    ("STRINGTOARRAY", ("[1.]",), U),
    ("STRINGTOARRAY", ('["a\n',), U),
    ("STRINGTOOBJECT", ('{"a": 01}',), {"a": 1}),
    ("STRINGTONUMBER", ("0" * 5000 + "9007199254740993",), 9007199254740993),
    ("STRINGTOBOOLEAN", ("\x0b\u00a0true\u2003",), True),
    ("STRINGTONULL", ("\u0085null",), None),
    ("STRINGTOOBJECT", ('{"a": 1}',), {"a": 1}),
    ("STRINGTOOBJECT", ("[]",), U),
    ("STRINGTOBOOLEAN", (" true",), True),
    ("STRINGTOBOOLEAN", ("TRUE",), U),
    ("STRINGTONULL", (" null",), None),
    ("STRINGTONULL", ("NULL",), U),
    ("STRINGTONULL", (None,), U),
]

PATTERNS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("REGEXMATCH", ("Cat", "^c.t$", "i"), True),
    ("REGEXMATCH", ("a\nb", "a.b"), False),
    ("REGEXMATCH", ("a\nb", "a.b", "s"), True),
    ("REGEXMATCH", ("a\nb", "^b", ""), False),
    ("REGEXMATCH", ("a\nb", "^b", "m"), True),
    ("REGEXMATCH", ("ab", "a b", "x"), True),
    ("REGEXMATCH", ("AB", "a b", "xi"), True),
    ("REGEXMATCH", ("a", "a", "q"), U),
    ("REGEXMATCH", ("a", "("), U),
    ("REGEXMATCH", ("a", "[a"), U),
    ("REGEXMATCH", ("a", "a**"), U),
    ("REGEXMATCH", ("a", None), U),
    ("REGEXMATCH", (U, "a"), U),
    ("REGEXMATCH", ("a", "a", U), U),
    ("REGEXMATCH", ("a.b", r"^\Qa.b\E$"), True),
    ("REGEXMATCH", ("axb", r"^\Qa.b\E$"), False),
    ("REGEXMATCH", ("A", r"\x{41}"), True),
    ("REGEXMATCH", ("aa", r"(?<n>a)\k<n>"), True),
    ("REGEXMATCH", ("aa", r"(a)\g{1}"), True),
    ("REGEXMATCH", ("a{e<=1}", r"^a{e<=1}$"), True),
    ("REGEXMATCH", ("b", r"^a{e<=1}$"), False),
    ("REGEXMATCH", ("[", "[[]"), True),
    ("REGEXMATCH", ("]", "^[]a]$"), True),
    ("REGEXMATCH", ("&", "^[a&&b]$"), True),
    ("REGEXMATCH", ("7", "^[[:digit:]]$"), True),
    ("REGEXMATCH", ("é", r"^\p{L}$"), True),
    ("REGEXMATCH", ("aB", "a(?i)b"), True),
    ("REGEXMATCH", ("AB", "a(?i)b"), False),
    ("REGEXMATCH", ("ab", "a(?#remark)b"), True),
    ("REGEXMATCH", ("ab", "ab # [remark\n", "x"), True),
    ("REGEXMATCH", ("straße", "STRASSE", "i"), False),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), STRINGS + CONVERSIONS + PATTERNS)
def test_string_function(
    name: str, arguments: tuple[Any, ...], expected: Any, call: Callable[..., Any]
) -> None:
    result = call(name, *arguments)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize("pattern", ["(*ACCEPT)a", "a(?C1)b", "(?J)a", "a" * 9000, "(" * 3000 + ")" * 3000])
def test_a_pattern_this_engine_does_not_have_fails_the_query(pattern: str, call: Callable[..., Any]) -> None:
    with pytest.raises(PleiadError) as raised:
        call("REGEXMATCH", "a", pattern)
    assert status_of(raised.value) == 400


def test_a_pattern_that_takes_too_long_is_cut_off_with_an_error(call: Callable[..., Any]) -> None:
    started = time.process_time()
    with pytest.raises(PleiadError, match="too long"):
        call("REGEXMATCH", "a" * 5000 + "!", "(.*a){20}$x")
    assert time.process_time() - started < 5


def test_no_function_builds_a_string_past_the_bound(call: Callable[..., Any]) -> None:
    large = "a" * (TEXT_CHARS_MAX // 2 + 1)
    for name, arguments in (
        ("CONCAT", (large, large)),
        ("REPLACE", (large, "a", "bbb")),
        ("STRINGJOIN", ([large, large], "")),
        ("TOSTRING", ([large, large],)),
        ("STRINGSPLIT", (large, "a")),
    ):
        with pytest.raises(PleiadError) as raised:
            call(name, *arguments)
        assert status_of(raised.value) == 400


FROM_THE_RIGHT = ("LASTINDEXOF", "LASTSUBSTRINGBEFORE", "LASTSUBSTRINGAFTER", "LTRIM", "RTRIM", "TRIM")


@pytest.mark.parametrize("name", FROM_THE_RIGHT)
def test_long_texts_are_searched_and_trimmed_like_short_ones(
    name: str, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [*map("".join, product("ab", repeat=2)), "a", "b", "aba", "abab", "ba", "c"]
    texts = [*map("".join, product("abc", repeat=4)), "", "ab" * 5, "aabb", "c" + "ab" * 3]
    short = [call(name, text, part) for text in texts for part in parts]
    monkeypatch.setattr(strings, "_AT_ONCE_PRODUCT", 0)
    assert [call(name, text, part) for text in texts for part in parts] == short


@pytest.mark.parametrize(
    ("name", "part", "found"),
    [
        ("LASTINDEXOF", "xy" + "x" * 400_000, -1),
        ("LASTSUBSTRINGAFTER", "xy" + "x" * 400_000, U),
        ("TRIM", "y" * 400_000 + "x", ""),
    ],
)
def test_no_text_takes_the_product_of_two_lengths(
    name: str, part: str, found: Any, call: Callable[..., Any]
) -> None:
    """As a product these take minutes of a processor, else a blink."""
    began_at = time.process_time()
    assert call(name, "x" * 1_000_000, part) == found
    assert time.process_time() - began_at < 20

"""Partition key values: the header, equality, and the sizes they may have."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.heads.http import key_text
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.value import KeyValue, check_size, same, to_json_text
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()
V1 = KeyDefinition(("/pk",), "Hash", 1)
V2 = KeyDefinition(("/pk",), "Hash", 2)

key_values = st.one_of(
    st.text(max_size=30),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.just(UNDEFINED),
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('["p0"]', ("p0",)),
        ('[""]', ("",)),
        (' [ "p0" ] ', ("p0",)),
        ('["p \\u00e9"]', ("p é",)),
        ('["p é"]', ("p é",)),
        ('["a\\"b"]', ('a"b',)),
        ('["a","b"]', ("a", "b")),
        ('["\\ud83d\\ude00"]', ("😀",)),
        ("[1.5]", (1.5,)),
        ("[1]", (1,)),
        ("[-0.0]", (-0.0,)),
        ("[true]", (True,)),
        ("[null]", (None,)),
        ("[{}]", (UNDEFINED,)),
        ("[]", ()),
        ('["t1","u1","s1"]', ("t1", "u1", "s1")),
        ('["a",{},null,2]', ("a", UNDEFINED, None, 2)),
        ("[9007199254740992]", (2**53,)),
        ("[1152921504606846976]", (2**60,)),
        ("[1e100]", (1e100,)),
        ("[1.7976931348623157e+308]", (1.7976931348623157e308,)),
    ],
)
@pytest.mark.requirement("R68")
def test_a_header_names_the_key_values(text: str, values: tuple[KeyValue, ...]) -> None:
    found = key_text.read(text)
    assert same(found, values)
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p0",
        '"p0"',
        "1",
        "null",
        "{}",
        '["]',
        '["',
        '["a"',
        '["a" "b"]',
        '["a\nb"]',
        '["\\ud800"]',
        '["\ud800"]',
        "[[]]",
        '[["a"]]',
        '[{"a":1}]',
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "[undefined]",
        "[" * 100_000,
        "[" * 200 + "]" * 200,
        "[1e30," + "[" * 1000 + "]" * 1000 + "]",
    ],
    ids=lambda text: text[:20].encode("ascii", "backslashreplace").decode() or "empty",
)
def test_a_header_that_is_no_array_of_scalars_is_refused(text: str) -> None:
    with pytest.raises(PleiadError) as caught:
        key_text.read(text)
    assert status_of(caught.value) == 400


@pytest.mark.requirement("R72")
@pytest.mark.parametrize(
    "text",
    [
        "[1e400]",
        "[-1e400]",
        "[9007199254740993]",
        "[-9007199254740993]",
        "[18446744073709551615]",
        "[18446744073709551617]",
        "[36893488147419103233]",
        "[" + "9" * 400 + "]",
    ],
    ids=lambda text: text[:30],
)
def test_a_number_that_no_double_holds_is_refused_with_the_advice_to_use_strings(text: str) -> None:
    with pytest.raises(PleiadError, match=r"IEEE 754 double holds; store such keys as strings"):
        key_text.read(text)


@pytest.mark.parametrize(
    "text", ["[1152921504606847000]", "[123456789012345680000]", "[100000000000000000000]"]
)
def test_a_large_number_in_the_shortest_digits_that_name_its_double_is_taken(text: str) -> None:
    assert same(key_text.read(text), (float(text[1:-1]),))


@pytest.mark.requirement("R72")
def test_an_integer_of_an_item_that_no_double_holds_is_refused_too() -> None:
    check_size((2**53, -(2**53), 2**60), V2, LIMITS)
    for value in (2**53 + 1, -(2**53) - 1, 10**400):
        with pytest.raises(PleiadError, match="store such keys as strings"):
            check_size((value,), V2, LIMITS)


@pytest.mark.requirement("R73")
@pytest.mark.parametrize(("definition", "limit"), [(V1, 101), (V2, 2048)])
def test_a_key_value_may_have_2048_bytes_or_where_that_is_kept_101_without_large_keys(
    definition: KeyDefinition, limit: int
) -> None:
    strict = dataclasses.replace(LIMITS, partition_key_bytes_v1=101)
    check_size(("a" * limit,), definition, strict)
    check_size(("é" * (limit // 2),), definition, strict)
    check_size(("a" * 2048,), definition, LIMITS)
    for value in ("a" * (limit + 1), "é" * (limit // 2 + 1), "\ud800" * limit):
        with pytest.raises(PleiadError, match=f"limit of {limit} bytes") as caught:
            check_size((value,), definition, strict)
        assert status_of(caught.value) == 400


def test_the_message_names_the_limit_in_force() -> None:
    limits = dataclasses.replace(LIMITS, partition_key_bytes_v2=10)
    check_size(("a" * 10, None, UNDEFINED, True, 1.5), V2, limits)
    with pytest.raises(PleiadError, match="a value of 11 bytes is over the limit of 10 bytes"):
        check_size(("a", "a" * 11), V2, limits)


@given(st.lists(key_values, max_size=3).map(tuple))
def test_values_written_as_a_header_are_read_back_the_same(values: tuple[KeyValue, ...]) -> None:
    text = to_json_text(values)
    assert text.isascii()
    assert same(key_text.read(text), values)


def test_values_are_written_as_compact_ascii() -> None:
    assert to_json_text(("é", 1, None, UNDEFINED, True)) == '["\\u00e9",1,null,{},true]'


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (None, UNDEFINED, False),
        (0.0, -0.0, False),
        (0, 0.0, True),
        (0, -0.0, False),
        ("1", 1, False),
        (1, "1", False),
        (1, None, False),
        (1.5, UNDEFINED, False),
        ("", None, False),
        ("a", "a", True),
        ("a", "A", False),
        (2**60, float(2**60), True),
    ],
)
def test_values_are_equal_as_the_hash_sees_them(left: KeyValue, right: KeyValue, equal: bool) -> None:
    assert same((left,), (right,)) is equal
    assert same((right,), (left,)) is equal


def test_keys_of_different_length_are_different() -> None:
    assert not same(("a",), ("a", "b"))


def test_null_and_missing_are_different_keys() -> None:
    assert not same(("t", None), ("t", UNDEFINED))

"""Joined keys: different parts are different keys, padded ones sort as their parts do, and bad parts are told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.limits import Limits
from pleiad.strategy import BadKeyPart, JoinedKey, MissingProperty, PaddedNumber, PaddedText
from pleiad.strategy.key_text import KEY_BYTES_MAX

texts = st.text(max_size=20)
# Texts of the characters that escaping is about meet each other far more often.
tricky_texts = st.text(st.sampled_from("a-%2D5.–;u"), max_size=8)
separators = st.sampled_from("-.|/ _–~")
words = st.text(st.sampled_from("abcäö"), max_size=6)


@pytest.mark.requirement("R102", "R104")
def test_device_and_year_are_joined_into_the_item_and_the_given_one_stays() -> None:
    reading = {"id": "1", "deviceId": "abc-123", "date": 2018}
    key = JoinedKey("deviceId", "date")
    assert key.value_of(reading) == key.value_from("abc-123", 2018) == "abc-123-2018"
    assert key.applied_to(reading) == {**reading, "partitionKey": "abc-123-2018"}
    assert key.applied_to(reading, "/keys/day")["keys"] == {"day": "abc-123-2018"}
    assert "partitionKey" not in reading


@pytest.mark.requirement("R101")
@given(first=st.tuples(tricky_texts, tricky_texts, tricky_texts), separator=separators, data=st.data())
def test_different_parts_never_make_the_same_key(
    first: tuple[str, str, str], separator: str, data: st.DataObject
) -> None:
    key = JoinedKey("a", "b", "c", separator=separator)
    second = data.draw(st.tuples(tricky_texts, tricky_texts, tricky_texts))
    assert (key.value_from(*first) == key.value_from(*second)) == (first == second)


@given(parts=st.tuples(texts, texts, texts), separator=separators)
def test_a_key_is_taken_apart_into_the_texts_it_was_joined_of(
    parts: tuple[str, str, str], separator: str
) -> None:
    key = JoinedKey("a", "b", "c", separator=separator)
    assert key.texts_of(key.value_from(*parts)) == parts


@given(parts=st.tuples(words, st.integers(0, 9_999), texts), separator=separators)
def test_padded_parts_between_others_are_taken_apart_too(parts: tuple[str, int, str], separator: str) -> None:
    key = JoinedKey(PaddedText("a", 6), PaddedNumber("b", 4), "c", separator=separator)
    assert key.texts_of(key.value_from(*parts)) == (parts[0], str(parts[1]), parts[2])


@pytest.mark.requirement("R103")
@given(
    pairs=st.lists(st.tuples(st.integers(0, 999_999), words, st.integers(0, 99))),
    separator=st.sampled_from(["", "-", "|"]),
)
def test_padded_keys_sort_as_their_parts_do(pairs: list[tuple[int, str, int]], separator: str) -> None:
    key = JoinedKey(PaddedNumber("n", 6), PaddedText("w", 6), PaddedNumber("m", 2), separator=separator)
    assert sorted(pairs, key=lambda parts: key.value_from(*parts)) == sorted(pairs)


@given(
    number=st.one_of(st.integers(-(2**53) + 1, 2**53 - 1), st.floats(allow_nan=False, allow_infinity=False))
)
def test_a_number_has_the_same_text_after_it_was_stored(number: float) -> None:
    key = JoinedKey("n")
    try:
        text = key.value_from(number)
    except BadKeyPart:
        assert abs(number) >= 2**53
    else:
        assert key.value_from(float(number)) == text


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "texts, numbers and booleans"),
        ({"x": 1}, "an object"),
        ([1], "an array"),
        (float("nan"), "cannot be stored"),
        (float("inf"), "cannot be stored"),
        (2**53 + 1, "not stored exactly"),
        ("\ud800", "half a character"),
        ("x" * 3_000, "at most 2048"),
    ],
)
def test_a_value_that_makes_no_key_is_refused_with_its_reason(value: Any, says: str) -> None:
    with pytest.raises(BadKeyPart, match=says):
        JoinedKey("value").value_of({"value": value})


@pytest.mark.parametrize("value", [-1, 1.5, 1_000, "7", True, None])
def test_only_a_whole_number_that_fits_is_padded_with_zeros(value: Any) -> None:
    with pytest.raises(BadKeyPart):
        JoinedKey(PaddedNumber("n", 3)).value_from(value)


@pytest.mark.parametrize("value", ["toolong", "no ", "a\tb", 7])
def test_only_a_text_that_stays_itself_is_padded_with_spaces(value: Any) -> None:
    with pytest.raises(BadKeyPart):
        JoinedKey(PaddedText("t", 3)).value_from(value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingProperty, match="'7' has no property /address/city"):
        JoinedKey("/address/city").value_of({"id": "7", "address": {"street": "x"}})


@pytest.mark.parametrize(
    ("parts", "separator"),
    [((), "-"), (("a", "b"), ""), (("a", "b"), "%"), (("a", "b"), "x"), (("a", "b"), "--"), (("",), "-")],
)
def test_a_key_that_could_not_be_told_apart_is_not_declared(parts: tuple[str, ...], separator: str) -> None:
    with pytest.raises(ValueError):
        JoinedKey(*parts, separator=separator)


@pytest.mark.parametrize("text", ["", "abc", "abc-7", "abc-07x"])
def test_what_is_no_key_is_not_taken_apart(text: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        JoinedKey("a", PaddedNumber("n", 2)).texts_of(text)


def test_keys_may_be_as_long_as_partition_key_values() -> None:
    assert Limits().partition_key_bytes_v2 == KEY_BYTES_MAX

"""Binary JSON: the published bytes, round trips, and input that means harm."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.wire import MalformedError
from pleiad.wire.binary_json import DEPTH_MAX, is_binary
from pleiad.wire.binary_json.read import SYSTEM_STRINGS, TextTooLongError, to_text, to_value
from pleiad.wire.binary_json.write import TooDeepError, to_binary

if TYPE_CHECKING:
    from tests.rooms.wire.conftest import Vectors

MUCH = 2**26
READ = ("rust_encoder", "dotnet_writer", "rust_golden", "compact_derived")

numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=20,
)


def read(hexadecimal: str) -> Any:
    return to_value(bytes.fromhex(hexadecimal), MUCH)


def kinds(value: Any) -> Iterator[type]:
    """The types in a value; integers and doubles are both numbers."""
    yield float if type(value) is int else type(value)
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from kinds(child)


# -- the vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("group", READ)
def test_published_bytes_are_read_to_their_values(binary_json_vectors: Vectors, group: str) -> None:
    for vector in binary_json_vectors[group]:
        found, wanted = read(vector["hex"]), json.loads(vector.get("decodes_to", vector["json"]))
        assert found == wanted, vector["name"]
        assert list(kinds(found)) == list(kinds(wanted)), vector["name"]
        if isinstance(wanted, dict):
            assert list(found) == list(wanted), vector["name"]


def test_malformed_bytes_are_refused(binary_json_vectors: Vectors) -> None:
    for vector in binary_json_vectors["must_reject"]:
        with pytest.raises(MalformedError):
            read(vector["hex"])


def test_values_are_written_as_the_rust_client_writes_them(binary_json_vectors: Vectors) -> None:
    for vector in binary_json_vectors["rust_encoder"]:
        if vector["name"] == "dbl_neg_0":
            continue  # The parser of texts gives the integer 0 for -0.
        assert to_binary(orjson.loads(vector["json"])).hex() == vector["hex"], vector["name"]


def test_large_values_are_written_as_the_rust_client_writes_them(binary_json_vectors: Vectors) -> None:
    large = {
        "str_len_65535": "y" * 65_535,
        "str_len_65536": "y" * 65_536,
        "arr_65535_null": [None] * 65_535,
        "arr_65536_null": [None] * 65_536,
        "obj_over_65535": {"blob": "z" * 66_000, "n": 1},
    }
    for vector in binary_json_vectors["rust_encoder_large"]:
        data = to_binary(large[vector["name"]])
        assert len(data) == vector["byte_length"]
        assert data.hex().startswith(vector["hex_head"])
        assert hashlib.sha256(data).hexdigest() == vector["sha256"]
        assert to_value(data, MUCH) == large[vector["name"]]


def test_published_bytes_cut_anywhere_are_refused(binary_json_vectors: Vectors) -> None:
    for group in READ:
        for vector in binary_json_vectors[group]:
            data = bytes.fromhex(vector["hex"])
            for size in range(min(len(data), 400)):
                with pytest.raises(MalformedError):
                    to_value(data[:size], MUCH)


def test_items_of_the_real_client_are_read(captured: Vectors) -> None:
    for item in captured["binary_json_items"]:
        assert json.loads(to_text(bytes.fromhex(item["body_hex"]), MUCH)) == item["means"], item["name"]


# -- what is written is read -----------------------------------------------------------------------


@given(value=values)
def test_any_value_comes_back_as_its_text_says(value: Any) -> None:
    data = to_binary(value)
    assert is_binary(data)
    found = to_value(data, MUCH)
    assert found == value
    assert list(kinds(found)) == list(kinds(value))
    assert orjson.loads(to_text(data, MUCH)) == found


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_has_the_shortest_text_that_means_it(number: float) -> None:
    text = to_text(to_binary(number), MUCH).decode()
    assert float(text) == number
    assert not text.endswith(".0") or abs(number) > 2**53 or text == "-0.0"
    assert text.startswith("-") == (math.copysign(1.0, number) < 0)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**53 + 1, -(2**63), 31, 32, 0])
def test_an_integer_keeps_all_its_digits(value: int) -> None:
    assert to_text(to_binary(value), MUCH) == str(value).encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_written_as_null(value: float) -> None:
    assert to_binary([value]).hex() == "80e50101d0"


def test_as_many_containers_may_be_open_as_every_reader_allows() -> None:
    deepest: list[Any] = []
    for _ in range(DEPTH_MAX - 1):
        deepest = [deepest]
    assert to_value(to_binary(deepest), MUCH) == deepest
    with pytest.raises(TooDeepError):
        to_binary([deepest])
    with pytest.raises(TooDeepError):
        to_binary({"a": deepest})


# -- forms that no encoder of ours writes ------------------------------------------------------------


@pytest.mark.parametrize(
    ("hexadecimal", "value"),
    [
        ("807a1413811cc4212eb4111bf1", "2007-03-01T13:00:00Z"),
        ("8075000102030405060708090a0b0c0d0e0f", "00102030-4050-6070-8090-a0b0c0d0e0f0"),
        ("80d333221100554477668899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"),
        ("80710100666f6f", "Zm9v"),
        ("8071010241", "QQ=="),
        ("807101fd41", "QQ"),
        ("80730100fbfffe", "-__-"),
        ("80dd03666f6f", "Zm9v"),
        ("80e205826869c303", ["hi", "hi"]),
        ("80f0d703010203", [1, 2, 3]),
        ("80f2f0d70203010203040506", [[1, 2], [3, 4], [5, 6]]),
        ("80f0ce01000000000000f83f", [1.5]),
        ("80f0cd010000c03f", [1.5]),
        ("80f3f1d700000200", [[], []]),
        ("80e92cd2", {"id": True}),
        ("80cc0000000000000840", 3),
    ],
)
def test_the_rarer_forms_are_read(hexadecimal: str, value: Any) -> None:
    assert read(hexadecimal) == value


def test_the_spare_bits_of_packed_text_mean_nothing() -> None:
    text = "ab" * 16 + "g"
    bits = sum((ord(character) - ord("a")) << (4 * place) for place, character in enumerate(text))
    raw = bits.to_bytes(17, "little")
    for last in (raw[-1], raw[-1] | 0xF0):
        assert to_value(b"\x80\x7b\x21a" + raw[:-1] + bytes((last,)), MUCH) == text


def test_every_system_string_is_a_byte() -> None:
    assert [read(f"80{marker:02x}") for marker in range(0x20, 0x40)] == list(SYSTEM_STRINGS)


def test_a_reference_may_be_a_name_and_lead_to_a_value() -> None:
    assert read("80ea08" + "8161" + "826869" + "c305" + "01") == {"a": "hi", "hi": 1}


# -- input that means harm ---------------------------------------------------------------------------


def nested(entries: bytes, marker: int = 0xE4) -> bytes:
    """A container with a length of four bytes around these entries."""
    return bytes((0x80, marker)) + len(entries).to_bytes(4, "little") + entries


def test_references_to_a_long_string_cannot_multiply_it() -> None:
    long = b"\xc2" + (100_000).to_bytes(4, "little") + b"x" * 100_000
    bomb = nested(long + b"\xc3\x06" * 100_000)
    with pytest.raises(TextTooLongError):
        to_text(bomb, 4_000_000)
    assert len(to_value(nested(long + b"\xc3\x06" * 10), 4_000_000)) == 11


def test_references_into_the_middle_of_a_string_cannot_multiply_it_either() -> None:
    inner = b"\xc2" + (90_000).to_bytes(4, "little") + b"x" * 90_000
    long = b"\xc2" + len(inner * 2).to_bytes(4, "little") + inner * 2
    places = [6 + 5 + len(inner) * n for n in range(2)]
    references = b"".join(b"\xc6" + place.to_bytes(4, "little") for place in places)
    with pytest.raises(TextTooLongError):
        to_text(nested(long + references * 1_000), 4_000_000)


def test_rows_of_no_numbers_cannot_multiply() -> None:
    with pytest.raises(TextTooLongError):
        to_text(nested(b"\xf3\xf1\xd7\x00\x00\xff\xff" * 1_000), 4_000_000)


def test_names_of_one_byte_cannot_multiply() -> None:
    with pytest.raises(TextTooLongError):
        to_text(nested(b"\x3e" * 1_000_000), 4_000_000)


def test_a_text_that_is_too_long_is_refused_however_it_came_to_be() -> None:
    with pytest.raises(TextTooLongError):
        to_text(nested(b"\xd0" * 1_000), 4_000)
    assert len(to_text(nested(b"\xd0" * 1_000), 6_000)) == 5_001


@pytest.mark.parametrize(
    ("hexadecimal", "reason"),
    [
        ("80c600ffffff", "no string is"),
        ("80e204826869c4", "beyond the end"),
        ("80ea06816101816102", "twice"),
        ("80ed0603816101816201", "2 entries and not 3"),
        ("80e7ffffffffffffffff", "beyond its end"),
        ("80e9016101", "not a string"),
        ("80ea028161", "value is missing"),
        ("80c7ffff", "beyond the end"),
        ("80f0d7ff", "beyond the end"),
        ("807f0000ff", "follow its value"),
        ("80710003", "padding of 3"),
        ("80710001", "padding of 1"),
        ("807b02ff00", "not ASCII"),
        ("807b027f11", "not ASCII"),
        ("80cd0000807f", "not finite"),
        ("808261ff", "not UTF-8"),
        ("8083eda080", "not UTF-8"),
        ("80dcffffffffff", "follow its value"),
        ("80e0e0", "follow its value"),
        ("80e1", "value is missing"),
    ],
)
def test_what_is_wrong_is_told(hexadecimal: str, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read(hexadecimal)


def assert_is_a_value(text: bytes) -> None:
    """What was read is JSON, and comes back when it is written."""
    value = orjson.loads(text)
    assert orjson.loads(to_text(to_binary(value), 100_000)) == value


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_value_or_malformed_and_nothing_else(data: bytes) -> None:
    for body in (data, b"\x80" + data, b"\x80\xea" + bytes((len(data),)) + data):
        try:
            text = to_text(body, 10_000)
        except MalformedError:
            continue
        assert len(text) <= 10_000
        assert_is_a_value(text)


@given(value=values, at=st.integers(1, 200), byte=st.integers(0, 255))
def test_a_good_body_with_one_wrong_byte_is_a_value_or_malformed(value: Any, at: int, byte: int) -> None:
    data = bytearray(to_binary(value))
    data[at % len(data)] = byte
    try:
        text = to_text(bytes(data), 10_000)
    except MalformedError:
        return
    assert_is_a_value(text)

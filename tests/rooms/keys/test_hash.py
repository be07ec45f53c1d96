"""The effective partition key against published vectors, and its promises for any key."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.heads.http import key_text
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import decode_hash_v1, encode_number, epk, hash_of
from pleiad.keys.range import MAX, prefix_range
from pleiad.keys.value import KeyValue, same
from pleiad.values.undefined import UNDEFINED
from tests.project import REFERENCE

VECTORS_FILE = REFERENCE / "epk_vectors.json"
VECTORS: dict[str, Any] = json.loads(VECTORS_FILE.read_text("utf-8")) if VECTORS_FILE.is_file() else {}
needs_vectors = pytest.mark.skipif(not VECTORS, reason="the file of hash vectors is not beside the checkout")

V1 = KeyDefinition(("/pk",), "Hash", 1)
V2 = KeyDefinition(("/pk",), "Hash", 2)
MULTI = KeyDefinition(("/a", "/b", "/c"), "MultiHash", 2)
SEALED = tuple(replace(definition, is_sealed=True) for definition in (V2, MULTI))
SCHEMES = {"hash_v1": V1, "hash_v2": V2, "multihash_v2": MULTI}

key_values = st.one_of(
    st.text(max_size=120),
    st.text(st.characters(), max_size=4),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.just(UNDEFINED),
)


def components(vector: dict[str, Any]) -> tuple[KeyValue, ...]:
    return tuple(UNDEFINED if part["type"] == "undefined" else part["value"] for part in vector["components"])


@needs_vectors
@pytest.mark.requirement("R57")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("vector", VECTORS.get("vectors", []), ids=lambda v: v["partitionKeyHeader"][:40])
def test_the_hash_of_a_key_is_the_published_one(vector: dict[str, Any], scheme: str) -> None:
    wanted = vector[scheme]["epk"]
    assert epk(components(vector), SCHEMES[scheme]).hex().upper() == wanted
    assert epk(key_text.read(vector["partitionKeyHeader"]), SCHEMES[scheme]).hex().upper() == wanted


@needs_vectors
def test_a_hierarchical_prefix_covers_the_published_range() -> None:
    for case in VECTORS["hierarchical_prefix"]:
        found = prefix_range(tuple(case["prefix"]), MULTI)
        assert found.to_hex() == (case["range"]["min"], case["range"]["max"])


@pytest.mark.requirement("R57", "R68")
@pytest.mark.parametrize(
    ("value", "v1", "v2"),
    [
        (UNDEFINED, "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"),
        (None, "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"),
        (True, "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"),
        ("", "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"),
        ("redmond", "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963"),
        (0, "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
        (5.5, "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"),
        (-1, "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"),
    ],
)
def test_strings_numbers_and_the_other_scalars_hash_as_the_service_hashes_them(
    value: KeyValue, v1: str, v2: str
) -> None:
    assert epk((value,), V1).hex().upper() == v1
    assert epk((value,), V2).hex().upper() == v2
    assert epk((value,), MULTI).hex().upper() == v2


def test_no_values_have_the_empty_epk() -> None:
    assert [epk((), definition) for definition in (V1, V2, MULTI)] == [b"", b"", b""]


def test_a_lone_surrogate_is_a_key_of_its_own() -> None:
    for definition in (V1, V2, MULTI):
        assert epk(("\ud800",), definition) != epk(("\ud801",), definition)


def test_version_1_sees_only_the_first_hundred_utf16_units() -> None:
    assert epk(("a" * 100 + "b",), V1) == epk(("a" * 100 + "c",), V1)
    assert epk(("a" * 99 + "b",), V1) != epk(("a" * 99 + "c",), V1)
    assert epk(("😀" * 50 + "b",), V1) == epk(("😀" * 50 + "c",), V1)
    assert epk(("a" * 100 + "b",), V2) != epk(("a" * 100 + "c",), V2)


@given(key_values)
def test_every_epk_lies_inside_the_space(value: KeyValue) -> None:
    for definition in (V1, V2, MULTI):
        assert b"" < epk((value,), definition) < MAX
    assert len(epk((value,), V2)) == 16
    assert epk((value,), V2)[0] <= 0x3F


@given(key_values, key_values)
def test_keys_that_are_the_same_have_the_same_epk_and_others_do_not(left: KeyValue, right: KeyValue) -> None:
    for definition in (V2, MULTI):
        assert (epk((left,), definition) == epk((right,), definition)) is same((left,), (right,))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_version_1_boundaries_keep_the_order_of_hashes_and_can_be_read_back(left: int, right: int) -> None:
    a, b = encode_number(float(left)), encode_number(float(right))
    assert (a < b) is (left < right)
    assert decode_hash_v1(a) == left


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_the_number_form_keeps_the_order_of_doubles(left: float, right: float) -> None:
    if left < right:
        assert encode_number(left) < encode_number(right)


@pytest.mark.parametrize(
    "boundary", [b"", b"\x05", b"\x08abc\x00", b"\xff", encode_number(-1.0), encode_number(2.0**33)]
)
def test_bytes_that_hold_no_version_1_hash_are_told_apart(boundary: bytes) -> None:
    with pytest.raises(ValueError):
        decode_hash_v1(boundary)


@given(st.lists(key_values, min_size=1, max_size=3), key_values)
def test_a_seal_stands_behind_the_whole_hash_and_parts_what_shares_it(
    values: list[KeyValue], other: KeyValue
) -> None:
    for plain, sealed in zip((V2, MULTI), SEALED, strict=True):
        key = tuple(values[: plain.levels])
        hashed, kept = epk(key, plain), epk(key, sealed)
        if len(key) < plain.levels:
            assert kept == hashed
            continue
        assert hash_of(kept, sealed) == hashed < kept < hashed + MAX
        assert prefix_range(key, sealed).contains(kept)
        changed = (*key[:-1], other)
        assert (epk(changed, sealed) == kept) is same(changed, key)
        for depth in range(1, len(key)):
            assert prefix_range(key[:depth], sealed).contains(kept)


def test_values_made_to_have_one_hash_have_other_seals() -> None:
    victim, twin = ("victim",), ("t7zfsqvnjzm7fbjJ\ud6d5\x12\x7f|+`f3q\x0e\u0259 ",)
    assert epk(victim, V2) == epk(twin, V2)
    assert epk(victim, SEALED[0]) != epk(twin, SEALED[0])

"""Reading, keeping and giving back the JSON text of items."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.item import body, scan, system
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of

LIMITS = Limits()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
names = st.one_of(
    st.sampled_from(["id", "_rid", "_ts", "_etag", 'a":', " :", '"', "_x", "\\"]), st.text("ab_:", max_size=3)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(names, values, max_size=5)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), ("\n,", "\t:\r")])


def exact(text: bytes | str) -> Any:
    """A value in which each number is its own text."""
    return json.loads(text, parse_int=lambda number: ("n", number), parse_float=lambda number: ("n", number))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"{}}", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"a":NaN}', "not valid JSON"),
        (b'{"a":1e999}', "infinity"),
        (b'{"a":"\xff"}', "not valid UTF-8"),
        (b'{"a":"\\ud800"}', "lone surrogate"),
        (b'{"a":"\\udc00"}', "lone surrogate"),
        (b'{"a":"\\ud800\\u0041"}', "lone surrogate"),
        (b'{"\\ud800":1}', "lone surrogate"),
        (b'{"a\\u0000":1}', "the name of a property has the character U\\+0000"),
        (b'{"a":[{"b":{"\\u0000c":1}}]}', "the name of a property has the character U\\+0000"),
        (b'\xef\xbb\xbf{"a":1}', "byte order mark"),
        (b'{"a":"\x01"}', "control character"),
    ],
)
def test_a_body_that_is_no_item_is_refused_with_its_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(PleiadError, match=reason) as refused:
        body.parse(raw, LIMITS)
    assert status_of(refused.value) == 400


@pytest.mark.parametrize(
    "raw", [b'{"a":":"}', b'{"a":"\\":"}', b'{"a" : 1}', b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}']
)
def test_texts_that_only_look_like_duplicates_are_kept_as_they_are(raw: bytes) -> None:
    assert body.parse(raw, LIMITS) == (raw, json.loads(raw))


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"\\u0061":2}', b'{"a":2}'),
        (b'{"a" :1,"a":2,"b":3}', b'{"a":2,"b":3}'),
        (b'{"a":":","a":2}', b'{"a":2}'),
        (
            b'{"x":[{"y":{"b":1,"b":[1.50,12345678901234567891,-0]}}]}',
            b'{"x":[{"y":{"b":[1.50,12345678901234567891,-0]}}]}',
        ),
        (b'{"x":"\\":","b":{},"b":"\\u00e9"}', '{"x":"\\":","b":"é"}'.encode()),
    ],
)
def test_of_a_property_named_twice_the_last_value_counts(raw: bytes, kept: bytes) -> None:
    assert body.parse(raw, LIMITS) == (kept, orjson.loads(kept))


def test_nesting_is_accepted_up_to_the_limit_and_refused_beyond() -> None:
    def nested(levels: int) -> bytes:
        return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    body.parse(nested(LIMITS.item_depth), LIMITS)
    for levels in (LIMITS.item_depth + 1, 1000, 100_000):
        with pytest.raises(PleiadError, match="nested") as refused:
            body.parse(nested(levels), LIMITS)
        assert status_of(refused.value) == 400


@given(objects, separators)
def test_a_duplicate_free_text_is_accepted_however_it_is_spaced(
    item: dict[str, Any], spacing: tuple[str, str]
) -> None:
    raw = json.dumps(item, separators=spacing).encode()
    assert body.parse(raw, LIMITS) == (raw, orjson.loads(raw))


@given(objects, separators, st.booleans())
def test_what_is_stored_is_the_text_without_system_properties(
    item: dict[str, Any], spacing: tuple[str, str], stripped_before: bool
) -> None:
    raw = b" \n" + json.dumps(item, separators=spacing, ensure_ascii=len(item) % 2 == 0).encode() + b"\r\n"
    _, parsed = body.parse(raw, LIMITS)
    if stripped_before:
        body.strip_system(parsed)
    stored = body.stored_body(raw, parsed)
    expected = {name: value for name, value in exact(raw).items() if name not in body.SYSTEM_PROPERTIES}
    assert exact(stored) == expected
    assert stored[:1] == b"{"
    assert stored[-1:] == b"}"
    body.strip_system(parsed)
    assert parsed.keys() == expected.keys()


def test_the_client_s_own_text_is_stored_when_it_has_no_system_properties() -> None:
    raw = b' { "id":"1", "n": 1.10, "big":12345678901234567890123, "_mine": 1E5 } '
    assert body.stored_body(*body.parse(raw, LIMITS)) == raw.strip()


def test_system_properties_are_cut_out_even_when_their_names_are_escaped() -> None:
    raw = b'{"\\u005frid":"x", "n" : 1.10 ,"_ts":1,"s":"\\u00e9 \\"_ts\\":1,","o":{"_ts":-0.0},"_etag":"0"}'
    assert body.stored_body(*body.parse(raw, LIMITS)) == (
        b'{"n" : 1.10,"s":"\\u00e9 \\"_ts\\":1,","o":{"_ts":-0.0}}'
    )


def test_an_item_of_system_properties_only_is_stored_as_the_empty_object() -> None:
    for raw in (b'{"_ts":1}', b'{ "_ts" : 1 , "_rid":"a" }', b"{ }"):
        assert body.stored_body(*body.parse(raw, LIMITS)) == b"{}"


@pytest.mark.parametrize("stored", [b"{}", b'{"id":"1","n":1.10}', '{"id":"é"}'])
def test_members_are_spliced_before_the_closing_brace(stored: bytes | str) -> None:
    assert json.loads(body.splice(stored, b',"_lsn":7}')) == {**json.loads(stored), "_lsn": 7}


def test_an_item_is_its_stored_text_with_its_system_properties() -> None:
    template = system.item_template("dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/", 70_000)
    rid, lsn, ts = b"AAAAAIAAAAAAAAAAAAAAAA==", 0x1234_5678_9ABC, 1_700_000_000
    text = template % (b'{"n":1.10', b",", rid, rid, lsn & 0xFFFFFFFF, lsn >> 32, ts, ts)
    assert text.startswith(b'{"n":1.10,')
    assert json.loads(text) == {
        "n": 1.1,
        "_rid": rid.decode(),
        "_self": f"dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/{rid.decode()}/",
        "_etag": system.etag_of(70_000, lsn, ts),
        "_attachments": "attachments/",
        "_ts": ts,
    }


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "-0.0",
        "1.10",
        "1e5",
        "1E+5",
        "18446744073709551615",
        "18446744073709551616",
        "12345678901234567890123",
    ],
)
def test_numbers_keep_their_texts_through_an_exact_round_trip(number: str) -> None:
    text = f'{{"a":[{number}],"b":{number}}}'.encode()
    value = body.parse_exact(text)
    assert body.dump_exact(value) == text
    assert float(value["b"]) == float(number)


@given(objects)
def test_an_exact_round_trip_keeps_every_value_and_number_text(item: dict[str, Any]) -> None:
    raw = json.dumps(item).encode()
    assert exact(body.dump_exact(body.parse_exact(raw))) == exact(raw)


def test_dump_writes_compact_json() -> None:
    assert body.dump({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()


@given(st.lists(values, max_size=4), separators)
def test_the_scanner_cuts_an_array_into_its_elements(array: list[Any], spacing: tuple[str, str]) -> None:
    pieces = scan.elements(json.dumps(array, separators=spacing).encode())
    assert [json.loads(piece, parse_float=Decimal) for piece in pieces] == json.loads(
        json.dumps(array), parse_float=Decimal
    )


@pytest.mark.parametrize("text", [b"[]", b"1", b'{"a":', b'{"a":[1'])
def test_the_scanner_refuses_what_is_no_whole_object(text: bytes) -> None:
    with pytest.raises(ValueError):
        scan.members(text)


def test_the_scanner_refuses_an_object_where_it_expects_an_array() -> None:
    with pytest.raises(ValueError):
        scan.elements(b"{}")


def test_etags_differ_by_container_lsn_and_time_and_look_like_quoted_guids() -> None:
    seen = {
        system.etag_of(container, lsn, ts)
        for container in (0, 1, 65536, 2**31)
        for lsn in (0, 1, 2**32, 2**40 + 1)
        for ts in (0, 1_700_000_000, 1_700_000_001)
    }
    assert len(seen) == 4 * 4 * 3
    for etag in seen:
        assert [len(part) for part in etag.strip('"').split("-")] == [8, 4, 4, 4, 12]
        assert etag[0] == etag[-1] == '"'

"""Resource ids have the service's form and lead back to their numbers."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.item import rid
from pleiad.server.http.failures import status_of

databases = st.integers(0, 2**32 - 1)
containers = st.integers(0, 2**31 - 1)


def test_a_rid_is_base64_with_a_dash_for_the_slash() -> None:
    assert rid.database_rid(0xFFFFFFFF) == "-----w=="
    assert rid.decode("-----w==") == b"\xff\xff\xff\xff"
    assert rid.container_rid(1, 1) == base64.b64encode(b"\0\0\0\1\x80\0\0\1").decode()


@given(databases, containers, st.integers(0, 2**20 - 1), st.integers(0, 2**36 - 1))
def test_a_document_rid_leads_back_to_its_numbers(
    database: int, container: int, partition: int, sequence: int
) -> None:
    text = rid.document_rid(database, container, partition, sequence)
    assert len(text) == 24
    assert rid.document_parts(text) == (database, container, partition << 36 | sequence)
    prefix = rid.document_rid_prefix(database, container)
    assert rid.document_rid_of(prefix, partition << 36 | sequence) == text


@given(databases, containers)
def test_containers_and_users_differ_in_the_high_bit_of_byte_four(database: int, number: int) -> None:
    container, user = rid.container_rid(database, number), rid.user_rid(database, number)
    assert len(container) == len(user) == 12
    assert rid.decode(container)[4] & 0x80
    assert not rid.decode(user)[4] & 0x80
    assert rid.decode(container)[:4] == rid.decode(rid.database_rid(database))


@pytest.mark.parametrize(
    ("kind", "nibble"),
    [
        (rid.KIND_CONFLICT, 4),
        (rid.KIND_PARTITION_KEY_RANGE, 5),
        (rid.KIND_UDF, 6),
        (rid.KIND_TRIGGER, 7),
        (rid.KIND_STORED_PROCEDURE, 8),
    ],
)
def test_the_kind_of_a_child_is_the_high_nibble_of_its_last_byte(kind: int, nibble: int) -> None:
    text = rid.child_rid(1, 2, kind, 3)
    assert rid.decode(text)[15] >> 4 == nibble
    with pytest.raises(PleiadError):
        rid.document_parts(text)


def test_offers_and_permissions_have_their_lengths() -> None:
    assert len(rid.offer_rid(1)) == 4
    assert len(rid.permission_rid(1, 2, 3)) == 24


@given(st.lists(st.integers(0, 2**56 - 1), min_size=2))
def test_document_rids_increase_with_the_number_as_clients_read_them(numbers: list[int]) -> None:
    prefix = rid.document_rid_prefix(1, 1)
    by_rid = sorted(numbers, key=lambda number: _as_clients_read(rid.document_rid_of(prefix, number)))
    assert by_rid == sorted(numbers)


def _as_clients_read(text: str) -> int:
    return int.from_bytes(rid.decode(text)[8:16], "little")


def test_a_document_is_of_the_kind_that_clients_look_for() -> None:
    assert rid.decode(rid.document_rid(1, 1, 2**20 - 1, 2**36 - 1))[15] >> 4 == rid.KIND_DOCUMENT


@given(databases, containers, st.integers(0, 2**56 - 1))
def test_a_document_rid_of_the_form_before_still_leads_to_its_document(
    database: int, container: int, number: int
) -> None:
    prefix = rid.document_rid_prefix(database, container)
    before = rid.encode(prefix + (number << 8).to_bytes(8, "big"))
    assert rid.document_parts(before) == (database, container, number)
    assert before != rid.document_rid_of(prefix, number)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("AAAAAQ==", True),
        ("-----w==", True),
        ("database", False),
        ("AAAA", False),
        ("A\u00e9AAAQ==", False),
        ("/////w==", False),
    ],
)
def test_only_eight_characters_of_four_bytes_look_like_a_database(text: str, answer: bool) -> None:
    assert rid.looks_like_database_rid(text) is answer


@pytest.mark.parametrize("text", ["", "A", "====", "AAAAAA==", "not a rid", "é"])
def test_a_text_that_is_no_document_rid_is_a_bad_request(text: str) -> None:
    with pytest.raises(PleiadError) as refused:
        rid.document_parts(text)
    assert status_of(refused.value) == 400


def test_numbers_that_do_not_fit_are_never_folded_into_another_rid() -> None:
    with pytest.raises(OverflowError):
        rid.container_rid(1, 2**31)
    with pytest.raises(OverflowError):
        rid.user_rid(1, 2**31)
    with pytest.raises(OverflowError):
        rid.document_rid(1, 1, 2**20, 0)
    with pytest.raises(OverflowError):
        rid.document_rid(1, 1, 0, 2**36)
    with pytest.raises(OverflowError):
        rid.database_rid(2**32)

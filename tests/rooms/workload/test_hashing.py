"""Hashes in place of values: nothing is told but what is equal to what."""

from __future__ import annotations

from pleiad.workload.hashing import Hasher
from pleiad.workload.record import Member, Operation, Request, decode, fields_of, line_of

_HASHER = Hasher(b"s" * 32)
_REQUEST = Request(
    at=1.0,
    operation=Operation.BATCH,
    container="shop/orders",
    key=("anna", None, {}, 1),
    id="anna",
    equals={"/name": ("anna", 1.0, True)},
    members=(Member(operation=Operation.READ, id="anna", key=("anna",)),),
    changed=("/name",),
)


def line_with_hashes() -> bytes:
    return line_of(_HASHER.fields(fields_of(_REQUEST)))


def test_equal_values_stay_equal_and_different_ones_different() -> None:
    request = decode(line_with_hashes())
    assert request.key is not None
    assert request.hashed
    anna, nothing, missing, one = request.key
    assert nothing is None
    assert missing == {}
    assert request.id == anna
    assert request.equals["/name"][:2] == (anna, one)
    assert len({anna, one, request.equals["/name"][2]}) == 3
    assert request.members[0].id == anna
    assert request.members[0].key == (anna,)


def test_no_value_is_left_and_paths_stay() -> None:
    line = line_with_hashes()
    assert b"anna" not in line
    assert b'"/name"' in line
    assert b"shop/orders" in line


def test_hashes_of_another_secret_are_others() -> None:
    another = Hasher(b"t" * 32)
    assert another.value("anna") != _HASHER.value("anna")


def test_hashes_are_not_hashed_again_and_values_that_say_they_are_none_are() -> None:
    hashed = _HASHER.fields(fields_of(_REQUEST))
    assert Hasher(b"t" * 32).fields(hashed) == hashed
    assert _HASHER.fields({**fields_of(_REQUEST), "hashed": False}) == hashed


def test_a_string_is_not_the_number_it_shows() -> None:
    assert _HASHER.value("1") != _HASHER.value(1)
    assert _HASHER.value(True) != _HASHER.value(1)

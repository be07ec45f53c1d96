"""Which ids and times to live are good, and when an item expires."""

from __future__ import annotations

import pytest

from pleiad.errors import PleiadError
from pleiad.item.id import check_item_id, check_resource_name
from pleiad.item.ttl import check_default_ttl, check_item_ttl, expires_at, ttl_from
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()


@pytest.mark.parametrize(
    "value", ["1", "a?b", "a b ", "é" * 511, "x" * 1023, "😀", "a%2Fb", "a/b", "a#b", "a\r\n\tb"]
)
def test_good_item_ids_are_given_back(value: str) -> None:
    assert check_item_id(value, LIMITS) == value


@pytest.mark.parametrize("value", [1, True, [], {}, "", "a\\b", "x" * 1024, "é" * 512, "\x00", "\ud800"])
def test_bad_item_ids_are_a_bad_request(value: object) -> None:
    with pytest.raises(PleiadError, match="invalid") as refused:
        check_item_id(value, LIMITS)
    assert status_of(refused.value) == 400


@pytest.mark.parametrize("value", [None, UNDEFINED])
def test_a_missing_id_is_named_as_missing(value: object) -> None:
    for check in (check_item_id, check_resource_name):
        with pytest.raises(PleiadError, match="'id; ' - are missing"):
            check(value, LIMITS)


@pytest.mark.parametrize("value", ["d", "a b", "x" * 255, "é" * 255])
def test_good_names_are_given_back(value: str) -> None:
    assert check_resource_name(value, LIMITS) == value


@pytest.mark.parametrize("value", [5, "", "x" * 256, "a/b", "a\\b", "a#b", "a?b", "a ", "a\tb"])
def test_bad_names_are_a_bad_request(value: object) -> None:
    with pytest.raises(PleiadError) as refused:
        check_resource_name(value, LIMITS)
    assert status_of(refused.value) == 400


@pytest.mark.parametrize(("value", "seconds"), [(-1, -1), (1, 1), (60.0, 60), (2_147_483_647, 2_147_483_647)])
def test_good_times_to_live_are_seconds(value: object, seconds: int) -> None:
    assert check_item_ttl({"ttl": value}, LIMITS) == seconds
    assert check_default_ttl(value, LIMITS) == seconds


@pytest.mark.parametrize("value", [0, -2, 1.5, "60", True, [], {}, 2_147_483_648, 1e300])
def test_other_times_to_live_are_a_bad_request(value: object) -> None:
    with pytest.raises(PleiadError, match="ttl") as refused:
        check_item_ttl({"ttl": value}, LIMITS)
    assert status_of(refused.value) == 400
    with pytest.raises(PleiadError, match="defaultTtl"):
        check_default_ttl(value, LIMITS)


def test_null_is_no_time_to_live_of_an_item() -> None:
    with pytest.raises(PleiadError, match="ttl"):
        check_item_ttl({"ttl": None}, LIMITS)


def test_an_item_or_container_may_have_no_time_to_live() -> None:
    assert check_item_ttl({"id": "1"}, LIMITS) is None
    assert check_default_ttl(None, LIMITS) is None


@pytest.mark.parametrize(
    ("item_ttl", "default_ttl", "expiry"),
    [
        (None, None, None),
        (10, None, None),
        (None, -1, None),
        (10, -1, 110),
        (None, 20, 120),
        (10, 20, 110),
        (-1, 20, None),
    ],
)
def test_expiry_counts_from_the_write_and_only_where_the_container_allows_it(
    item_ttl: int | None, default_ttl: int | None, expiry: int | None
) -> None:
    assert expires_at(100, item_ttl, default_ttl) == expiry


@pytest.mark.parametrize(
    ("base", "item_ttl", "default_ttl", "ttl"),
    [
        (90, None, 20, 10),
        (90.9, None, 20, 11),
        (90, 5, 20, 1),
        (150, 5, 20, 55),
        (90, -1, 20, -1),
        (90, None, -1, None),
        (90, 30, -1, 20),
        (90, 30, None, 30),
        ("90", 30, 20, 30),
        (True, None, 20, None),
        (None, None, 20, None),
        (1e300, None, 20, LIMITS.ttl_seconds_max),
        (-1e300, None, 20, 1),
        (10**40, 5, 20, LIMITS.ttl_seconds_max),
    ],
)
def test_a_number_of_the_item_moves_the_beginning_of_its_time_to_live(
    base: object, item_ttl: int | None, default_ttl: int | None, ttl: int | None
) -> None:
    assert ttl_from(base, 100, item_ttl, default_ttl, LIMITS) == ttl

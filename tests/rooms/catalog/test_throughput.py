"""Throughput: which figures are allowed, and how many physical partitions they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.catalog.throughput import (
    History,
    Throughput,
    from_autoscale_settings,
    from_offer_content,
    instant_maximum_ru,
    is_splittable,
    minimum_ru,
    partition_count,
    partitions_to_serve,
    raised_for_storage,
    shares,
    to_autoscale,
    to_manual,
)
from pleiad.errors import PleiadError
from pleiad.limits import GB, PROFILES, Limits
from pleiad.server.http.failures import status_of

DEFAULT = PROFILES["default"]
OF_2018 = PROFILES["2018"]


@pytest.mark.parametrize(
    ("ru", "count"),
    [(400, 1), (6_000, 1), (10_000, 1), (10_100, 2), (12_000, 2), (12_100, 3), (30_000, 5), (1_000_000, 167)],
)
def test_manual_throughput_above_one_partition_leaves_each_room_to_grow(ru: int, count: int) -> None:
    assert partition_count(Throughput(ru), DEFAULT) == count


@pytest.mark.parametrize(("ru", "count"), [(1_000, 1), (10_000, 1), (11_000, 2), (20_000, 2), (21_000, 3)])
def test_an_autoscale_maximum_is_divided_by_the_ceiling_of_one_partition(ru: int, count: int) -> None:
    assert partition_count(Throughput(ru, autoscale=True), DEFAULT) == count
    assert partition_count(Throughput(ru), DEFAULT, shared=True) == count


@pytest.mark.requirement("R46", "R130")
@pytest.mark.parametrize(("ru", "count"), [(10_000, 1), (20_000, 2), (20_100, 3), (35_000, 4), (100_000, 10)])
def test_in_the_2018_profile_the_count_is_the_throughput_over_the_partition_maximum(
    ru: int, count: int
) -> None:
    assert partition_count(Throughput(ru), OF_2018) == count


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        (Throughput(300), DEFAULT),
        (Throughput(0), DEFAULT),
        (Throughput(-400), DEFAULT),
        (Throughput(450), DEFAULT),
        (Throughput(1_000_100), DEFAULT),
        (Throughput(100_100), OF_2018),
        (Throughput(900, autoscale=True), DEFAULT),
        (Throughput(1_500, autoscale=True), DEFAULT),
        (Throughput(1_001_000, autoscale=True), DEFAULT),
    ],
)
def test_a_figure_outside_the_rules_is_a_bad_request(given: Throughput, limits: Limits) -> None:
    with pytest.raises(PleiadError) as caught:
        given.checked(limits)
    assert status_of(caught.value) == 400
    assert str(given.ru) in caught.value.message


@pytest.mark.parametrize(
    "given", [Throughput(400), Throughput(1_000_000), Throughput(1_000, True), Throughput(4_000, True, 10)]
)
def test_an_allowed_figure_goes_into_its_offer_and_back(given: Throughput) -> None:
    assert from_offer_content(given.checked(DEFAULT).offer_content()) == given


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"offerThroughput": None},
        {"offerThroughput": "400"},
        {"offerThroughput": 400.5},
        {"offerThroughput": True},
        {"offerAutopilotSettings": []},
        {"offerAutopilotSettings": {"maxThroughput": "1000"}},
        {
            "offerAutopilotSettings": {
                "maxThroughput": 1000,
                "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 101}},
            }
        },
    ],
)
def test_an_offer_that_says_nothing_is_a_bad_request(content: Any) -> None:
    with pytest.raises(PleiadError) as caught:
        from_offer_content(content)
    assert status_of(caught.value) == 400


def test_autoscale_settings_win_over_the_plain_figure() -> None:
    content = {"offerThroughput": 400, "offerAutopilotSettings": {"maxThroughput": 4000}}
    assert from_offer_content(content) == Throughput(4000, autoscale=True)
    settings = {"maxThroughput": 4000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 10}}}
    assert from_autoscale_settings(settings).increment_percent == 10


@pytest.mark.parametrize(
    ("history", "manual", "autoscale"),
    [
        (History(), 400, 1_000),
        (History(50_000, 20 * GB), 500, 5_000),
        (History(50_000, 2_000 * GB), 2_000, 20_000),
        (History(200_000), 2_000, 20_000),
        (History(45_100), 500, 5_000),
        (History(50_000, 5_001 * GB), 5_100, 51_000),
        (History(sharing_containers=25), 400, 1_000),
        (History(sharing_containers=30), 900, 6_000),
    ],
)
def test_the_minimum_follows_the_highest_ever_the_storage_and_the_containers_that_share(
    history: History, manual: int, autoscale: int
) -> None:
    assert minimum_ru(False, history, DEFAULT) == manual
    assert minimum_ru(True, history, DEFAULT) == autoscale
    Throughput(manual).checked(DEFAULT, history)
    with pytest.raises(PleiadError) as caught:
        Throughput(manual - 100).checked(DEFAULT, history)
    assert f"{manual - 100} is less than required minimum throughput {manual}." in caught.value.message


@pytest.mark.parametrize(
    ("manual", "history", "maximum"),
    [(400, History(400), 1_000), (10_500, History(10_500), 11_000), (400, History(100_000), 10_000)],
)
def test_migration_to_autoscale_takes_the_figure_and_the_history_and_back_the_maximum(
    manual: int, history: History, maximum: int
) -> None:
    migrated = to_autoscale(Throughput(manual), history, DEFAULT)
    assert migrated == Throughput(maximum, autoscale=True)
    assert to_manual(migrated) == Throughput(maximum)


def test_five_partitions_rise_to_50000_at_once_and_more_takes_a_split() -> None:
    assert instant_maximum_ru(5, DEFAULT) == 50_000
    assert partitions_to_serve(Throughput(50_000), DEFAULT) == 5
    assert partitions_to_serve(Throughput(50_100), DEFAULT) == 6


@pytest.mark.requirement("R37", "R38")
def test_r38_18000_over_three_partitions_is_6000_each() -> None:
    assert shares(18_000, [(0, ()), (1, ()), (2, ())], {}, DEFAULT) == [6_000, 6_000, 6_000]


@pytest.mark.requirement("R32", "R33")
def test_r32_no_share_is_above_what_a_physical_partition_serves() -> None:
    assert shares(24_000, [(0, ()), (1, ())], {}, DEFAULT) == [10_000, 10_000]


def test_a_storage_split_lowers_the_share_of_everyone() -> None:
    assert shares(20_000, [(0, ()), (1, ()), (2, ()), (3, ())], {}, DEFAULT) == [5_000] * 4
    after = [(0, ()), (1, ()), (2, ()), (4, (3,)), (5, (3,))]
    assert shares(20_000, after, {}, DEFAULT) == [4_000] * 5


def test_redistributed_shares_keep_their_proportions_and_the_ceiling() -> None:
    three = [(0, ()), (1, ()), (2, ())]
    weights = {0: 1_000.0, 1: 4_000.0, 2: 1_000.0}
    assert shares(6_000, three, weights, DEFAULT) == [1_000, 4_000, 1_000]
    assert shares(3_000, three, weights, DEFAULT) == [500, 2_000, 500]
    assert shares(24_000, three, weights, DEFAULT) == [4_000, 10_000, 4_000]


def test_redistributed_shares_pass_to_the_children_of_a_split_and_to_the_result_of_a_merge() -> None:
    weights = {0: 1_000.0, 1: 4_000.0, 2: 1_000.0}
    split = [(0, ()), (3, (1,)), (4, (1,)), (2, ())]
    assert shares(6_000, split, weights, DEFAULT) == [1_000, 2_000, 2_000, 1_000]
    merged = [(5, (0, 1, 3)), (4, (1,)), (2, ())]
    assert shares(6_000, merged, weights, DEFAULT) == [3_000, 2_000, 1_000]


@pytest.mark.requirement("R14", "R15")
def test_r14_a_container_splits_if_it_has_a_key_and_1000_from_the_start_or_shares() -> None:
    assert is_splittable(True, 1_000, False, OF_2018)
    assert is_splittable(True, 0, True, OF_2018)
    assert not is_splittable(True, 900, False, OF_2018)
    assert not is_splittable(False, 10_000, False, OF_2018)
    assert is_splittable(True, 400, False, DEFAULT)


@pytest.mark.parametrize(
    ("current", "stored_gb", "raised"),
    [
        (Throughput(50_000, True), 5_000, 50_000),
        (Throughput(50_000, True), 5_001, 51_000),
        (Throughput(50_000, True), 6_000, 60_000),
        (Throughput(1_000, True, 10), 150, 2_000),
        (Throughput(400), 400, 400),
        (Throughput(400), 401, 500),
        (Throughput(1_000_000, True), 10**9, 1_000_000),
    ],
)
def test_throughput_rises_by_itself_with_the_data_a_step_at_a_time(
    current: Throughput, stored_gb: int, raised: int
) -> None:
    after = raised_for_storage(current, stored_gb * GB, DEFAULT)
    assert after == Throughput(raised, current.autoscale, current.increment_percent)
    assert raised_for_storage(after, 0, DEFAULT) == after

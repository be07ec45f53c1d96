"""Throughput: which figures are allowed, and how many physical partitions they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.catalog.throughput import Throughput, from_autoscale_settings, from_offer_content, partition_count
from pleiad.errors import PleiadError
from pleiad.limits import PROFILES, Limits

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
    assert caught.value.status == 400
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
    assert caught.value.status == 400


def test_autoscale_settings_win_over_the_plain_figure() -> None:
    content = {"offerThroughput": 400, "offerAutopilotSettings": {"maxThroughput": 4000}}
    assert from_offer_content(content) == Throughput(4000, autoscale=True)
    settings = {"maxThroughput": 4000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 10}}}
    assert from_autoscale_settings(settings).increment_percent == 10

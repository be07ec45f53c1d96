"""Measures of generated data whose skew is known, compared with what they are by definition."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from pleiad.advise.advice import AdviceOptions, advise, assessments
from pleiad.advise.assess import Assessment
from pleiad.advise.demand import Demands
from pleiad.advise.key import parse
from pleiad.advise.recorded import RecordReader, record_demands
from pleiad.advise.report import Report, Verdict
from pleiad.advise.skew import rank_correlation, skew_of
from pleiad.advise.table import Table
from pleiad.advise.uniform import uniform_demands
from pleiad.keys.hash import epk
from pleiad.keys.range import even_ranges
from pleiad.limits import Limits
from pleiad.workload.record import Member, Operation, Request
from tests.rooms.advise.made_items import skewed_items, table_of

SHARES = {f"tenant-{n}": count for n, count in enumerate([3000, 1500, 750, 300, *[50] * 60])}


def assessed(key: str, table: Table, demands: Demands | None = None, **options: Any) -> Assessment:
    (found,) = assessments(
        [parse(key, Limits())], table, demands or uniform_demands(table, 10_000), AdviceOptions(**options)
    )
    return found


def recorded(table: Table, requests: list[Request], key_paths: tuple[str, ...] = ()) -> Demands:
    reader = RecordReader()
    reader.take(requests)
    return record_demands(reader.finish(), table, key_paths)


def user_query(at: float, user: int, charge: float, partitions: int) -> Request:
    equals = {"/userId": (f"user-{user:03d}",)}
    return Request(at=at, operation=Operation.QUERY, equals=equals, charge=charge, partitions=partitions)


def advised_within(limits: Limits, items: list[dict[str, Any]]) -> Report:
    table = table_of(items)
    options = AdviceOptions(candidates=(parse("/tenantId", limits),), limits=limits)
    return advise("x", table, uniform_demands(table, 10_000), options)


def test_a_file_of_few_items_has_no_hot_item_that_life_has_not() -> None:
    table = table_of([{"id": str(n), "pk": f"v{n % 20}"} for n in range(500)])
    demands = uniform_demands(table, 10_000)
    written = np.bincount(demands.rows[demands.is_write], minlength=500)
    assert written.max() <= written.min() + int(demands.seconds)
    assert assessed("/id", table).on(4).usable > 0.85


def test_skew_is_what_its_definition_says() -> None:
    amounts = [1.0, 2.0, 3.0, 10.0, 84.0]
    total, count = sum(amounts), len(amounts)
    found = skew_of(np.array(amounts))
    differences = sum(abs(a - b) for a in amounts for b in amounts)
    entropy = -sum(each / total * math.log(each / total) for each in amounts)
    assert found.gini == pytest.approx(differences / (2 * count * total))
    assert found.entropy == pytest.approx(entropy / math.log(count))
    assert found.top_share == pytest.approx(0.84)
    assert found.effective == pytest.approx(total**2 / sum(each**2 for each in amounts))


def test_evenly_spread_amounts_have_no_skew() -> None:
    found = skew_of(np.full(100, 7.0))
    assert (found.gini, found.entropy, found.effective) == pytest.approx((0.0, 1.0, 100.0))


def test_an_order_that_follows_another_correlates() -> None:
    rising = np.arange(100.0)
    assert rank_correlation(rising, rising**3) == pytest.approx(1)
    assert rank_correlation(rising, -rising) == pytest.approx(-1)


@pytest.mark.requirement("R74", "R75", "R153")
def test_cardinality_shares_and_gini_of_known_data_are_exact() -> None:
    items = skewed_items(SHARES)
    measures = assessed("/tenantId", table_of(items)).measures
    counts = sorted(SHARES.values())
    total, number = sum(counts), len(counts)
    lorenz = [each / total for each in accumulate(counts)]
    gini = 1 - (2 * sum(lorenz) - 1) / number
    assert measures.distinct == number
    assert measures.cardinality_ratio == pytest.approx(number / total)
    assert measures.coverage == 1
    assert measures.storage.top_share == pytest.approx(3000 / total, rel=0.02)
    assert measures.items.top_share == pytest.approx(3000 / total)
    assert measures.items.gini == pytest.approx(gini, rel=0.02)
    assert measures.items.top_ten_share == pytest.approx(sum(counts[-10:]) / total)
    assert measures.ru.top_share == pytest.approx(3000 / total, rel=0.02)


def test_items_lie_on_physical_partitions_as_a_server_places_them() -> None:
    items = skewed_items(SHARES)
    found = assessed("/tenantId", table_of(items))
    definition = parse("/tenantId", Limits()).definition()
    for count in (2, 8):
        ranges = even_ranges(count, definition)
        expected = [0.0] * count
        for item in items:
            place = epk((item["tenantId"],), definition)
            expected[next(n for n, each in enumerate(ranges) if each.contains(place))] += 1
        assert [each / sum(expected) for each in expected] == pytest.approx(
            [each / sum(found.on(count).storage_bytes) for each in found.on(count).storage_bytes], rel=0.02
        )


def test_a_missing_value_is_counted_and_disqualifies() -> None:
    items = skewed_items({"a": 900, "b": 100})
    for item in items[:410]:
        del item["tenantId"]
    report = advised(items, candidates=["/tenantId", "/userId"])
    found = {each.key: each for each in report.candidates}
    assert found["/tenantId"].measures.coverage == pytest.approx(0.59)
    assert found["/tenantId"].verdict is Verdict.DISQUALIFIED
    assert "missing in 41 % of the items" in found["/tenantId"].disqualified[0]


def advised(items: list[dict[str, Any]], requests: list[Request] | None = None, **given: Any) -> Report:
    keys = tuple(parse(each, Limits()) for each in given.pop("candidates", ()))
    paths = tuple(path for key in keys for path in key.paths)
    table = table_of(items, paths=paths)
    demands = (
        uniform_demands(table, 10_000)
        if requests is None
        else recorded(table, requests, given.pop("current", ()))
    )
    return advise("items", table, demands, AdviceOptions(candidates=keys, **given))


def test_a_value_that_changes_disqualifies() -> None:
    items = skewed_items({"a": 50, "b": 50})
    requests = [
        Request(
            at=n / 10,
            operation=Operation.REPLACE,
            id=f"{n:06d}",
            charge=10.0,
            changed=("/kind",) if n < 5 else (),
        )
        for n in range(50)
    ]
    report = advised(items, requests, candidates=["/kind", "/userId"])
    found = {each.key: each for each in report.candidates}
    assert found["/kind"].measures.changed_share == pytest.approx(0.1)
    assert "changes" in found["/kind"].disqualified[0]
    assert not found["/userId"].disqualified


def test_a_key_that_breaks_observed_batches_is_disqualified() -> None:
    items = skewed_items({"a": 50, "b": 50})
    members = tuple(Member(operation=Operation.CREATE, id=f"{n:06d}") for n in range(4))
    requests = [Request(at=n, operation=Operation.BATCH, charge=20.0, members=members) for n in range(3)]
    report = advised(items, requests, candidates=["/tenantId", "/userId"])
    found = {each.key: each for each in report.candidates}
    assert found["/tenantId"].measures.transaction_fit == 1
    assert found["/userId"].measures.transaction_fit == 0
    assert "breaks 3 transactions" in found["/userId"].disqualified[0]


@pytest.mark.requirement("R72", "R73")
def test_long_values_unsafe_numbers_and_colliding_ids_disqualify() -> None:
    items = [
        {"id": str(n % 60), "long": "x" * 3000 + str(n), "big": 2**53 + 2 * n, "group": n // 60}
        for n in range(120)
    ]
    report = advised(items, candidates=["/long", "/big", "/id", "/group"])
    against = {each.key: " ".join(each.disqualified) for each in report.candidates}
    assert "at most 2,048" in against["/long"]
    assert "beyond 2^53" in against["/big"]
    assert "60 items would have the id of another one" in against["/id"]
    assert against["/group"] == ""


@pytest.mark.requirement("R82", "R83", "R85", "R92")
def test_requests_are_routed_by_what_their_clients_know() -> None:
    items = skewed_items({"a": 500, "b": 500})
    requests = [
        Request(
            at=n / 10,
            operation=Operation.QUERY,
            equals={"/userId": (f"user-{n % 500:03d}",)},
            charge=7.0,
            partitions=1,
        )
        for n in range(60)
    ]
    requests += [
        Request(at=n / 10, operation=Operation.READ, id=f"{n:06d}", key=("a",), charge=1.0) for n in range(40)
    ]
    table = table_of(items)
    demands = recorded(table, requests)
    assert demands.known_paths == {"/tenantId"}, "the key of now follows from the record"
    routed = {
        key: assessed(key, table, demands).measures.routed.requests
        for key in ("/tenantId", "/userId", "/userId,/tenantId", "/tenantId,/id", "random(/tenantId,10)")
    }
    assert routed["/tenantId"] == pytest.approx(
        {"point": 0.4, "single": 0, "prefix": 0, "several": 0, "everywhere": 0.6}
    )
    assert routed["/userId"]["single"] == pytest.approx(0.6)
    assert routed["/userId"]["everywhere"] == pytest.approx(0.4), "who reads by id does not know the user"
    assert routed["/userId,/tenantId"]["prefix"] == pytest.approx(0.6)
    assert routed["/tenantId,/id"]["point"] == pytest.approx(0.4)
    assert routed["random(/tenantId,10)"]["several"] == pytest.approx(0.4), (
        "a random suffix is never known again"
    )


def test_a_visit_to_another_partition_costs_what_the_charge_formula_says() -> None:
    items = skewed_items({"a": 500, "b": 500})
    table = table_of(items)
    requests = [
        Request(
            at=float(n),
            operation=Operation.QUERY,
            equals={"/userId": (f"user-{n:03d}",)},
            charge=6.0,
            partitions=2,
        )
        for n in range(20)
    ]
    found = assessed("/tenantId", table, recorded(table, requests))
    for count in (1, 4, 64):
        judged = found.on(count)
        assert judged.total_ru == pytest.approx(6.0 - 2 * 2.5 + count * 2.5)
        assert judged.fan_out_tax_ru == pytest.approx((count - 1) * 2.5)


@pytest.mark.requirement("R160")
def test_a_date_is_hot_at_every_moment_though_its_data_is_even() -> None:
    items = [
        {"id": f"{n:06d}", "host": f"host-{n * 7919 % 400}", "at": f"2025-03-{1 + n // 1000:02d}T10:00:00Z"}
        for n in range(24_000)
    ]
    report = advised(items, candidates=["day(/at)", "/host"])
    found = {each.key: each for each in report.candidates}
    assert report.candidates[0].key == "/host"
    assert found["day(/at)"].measures.storage.gini < 0.01
    assert found["day(/at)"].judged.usable < 0.7 * found["/host"].judged.usable


@pytest.mark.requirement("R106", "R110")
def test_a_suffix_spreads_a_value_that_is_too_hot() -> None:
    items = skewed_items({"giant": 4000, **{f"t{n}": 10 for n in range(100)}})
    table = table_of(items)
    plain, spread = assessed("/tenantId", table), assessed("suffix(/tenantId,/id,100)", table)
    assert plain.on(8).usable < 0.3 < 0.6 < spread.on(8).usable
    assert spread.measures.storage.top_share < plain.measures.storage.top_share / 20


@pytest.mark.requirement("R105", "R108", "R109")
def test_a_computed_suffix_is_found_again_and_a_random_one_is_not() -> None:
    table = table_of(skewed_items({"a": 500, "b": 500}))
    requests = [
        Request(at=n / 10, operation=Operation.READ, id=f"{n:06d}", key=("a",), charge=1.0) for n in range(50)
    ]
    demands = recorded(table, requests, ("/tenantId",))
    assert assessed("suffix(/tenantId,/id,40)", table, demands).measures.routed.requests["point"] == 1
    assert assessed("random(/tenantId,40)", table, demands).measures.routed.requests["point"] == 0


def test_days_until_a_value_is_full_follow_from_its_growth() -> None:
    items = [
        {
            "id": f"{n:06d}",
            "tenantId": "a" if n % 2 else "b",
            "at": f"2025-01-{1 + n // 100:02d}T{n % 24:02d}:00:00Z",
            "text": "x" * 900,
        }
        for n in range(3000)
    ]
    limits = Limits(logical_partition_bytes=3_000_000)
    table = table_of(items)
    report = advise(
        "x",
        table,
        uniform_demands(table, 10_000),
        AdviceOptions(candidates=(parse("/tenantId", limits),), limits=limits),
    )
    top = report.candidates[0].top_values[0]
    days = report.days or 0.0
    assert days == pytest.approx(29.9, abs=0.2)
    assert top.growth_bytes_a_day == pytest.approx(top.bytes / days)
    assert top.days_to_full == pytest.approx((3_000_000 - top.bytes) / (top.bytes / days))


def test_refusals_are_those_of_the_real_governor() -> None:
    table = table_of(skewed_items({"a": 100}))
    requests = [
        Request(at=1000 + n / 100, operation=Operation.READ, id="000001", key=("a",), charge=2.0)
        for n in range(1000)
    ]
    demands = recorded(table, requests, ("/tenantId",))
    found = assessed("/tenantId", table, demands, throughput_ru=400).on(4)
    # 200 RU/s are wanted of a partition that has 100: a full bucket of 100 first, then half of them are served.
    assert found.refused == pytest.approx(0.5, abs=0.06)
    assert found.needed_ru == pytest.approx(4 * 200)
    assert sum(found.refused_by) == pytest.approx(found.refused * 1000)


@pytest.mark.requirement("R164")
def test_what_if_says_when_a_giant_outgrows_its_partition() -> None:
    limits = Limits(logical_partition_bytes=2_000_000)
    items = skewed_items({"giant": 3000, **{f"t{n}": 20 for n in range(150)}})
    table = table_of(items)
    report = advise(
        "x",
        table,
        uniform_demands(table, 10_000),
        AdviceOptions(candidates=(parse("/tenantId", limits),), limits=limits),
    )
    grown = report.candidates[0].what_if[-1]
    assert "10-fold" in grown.name
    assert grown.largest_bytes == pytest.approx(10 * report.candidates[0].measures.largest_bytes)
    assert "writes to it are refused" in grown.text


def test_twice_the_values_are_twice_the_load() -> None:
    found = advised(skewed_items(SHARES), candidates=["/tenantId"]).candidates[0]
    doubled = found.what_if[0]
    assert doubled.storage_bytes == pytest.approx(2 * sum(found.judged.storage_bytes))
    assert doubled.largest_bytes == pytest.approx(found.measures.largest_bytes)


def test_confidence_follows_from_how_much_was_looked_at() -> None:
    items = skewed_items(SHARES)
    whole, sample = table_of(items), table_of(items, rows_max=1000)
    options = AdviceOptions(candidates=(parse("/tenantId", Limits()),))
    sure = advise("x", whole, uniform_demands(whole, 10_000), options).confidence
    less = advise("x", sample, uniform_demands(sample, 10_000), options).confidence
    assert sure.share_margin == 0
    assert less.share_margin == pytest.approx(0.98 / math.sqrt(sample.rows))


def test_growth_makes_everything_larger() -> None:
    items = skewed_items(SHARES)
    from pleiad.advise.advice import Growth

    once, grown = (
        advised(
            items, candidates=["/tenantId"], throughput_ru=10_000, growth=Growth(factor=factor)
        ).candidates[0]
        for factor in (1.0, 50.0)
    )
    assert grown.measures.largest_bytes == pytest.approx(50 * once.measures.largest_bytes)
    assert grown.needed_ru == pytest.approx(50 * once.judged.needed_ru, rel=0.01)


def test_without_requests_what_keeps_items_together_is_best_and_a_moment_behind_the_id() -> None:
    items = [
        {
            "id": f"order-{n}",
            "customerId": f"customer-{n * 7919 % 700}",
            "orderedAt": f"2025-{1 + n // 420:02d}-{1 + n // 15 % 28:02d}T{n % 24:02d}:{n % 60:02d}:00Z",
        }
        for n in range(5000)
    ]
    ranks = {each.key: each.rank for each in advised(items).candidates}
    assert ranks["/customerId"] == 1
    assert ranks["/id"] < ranks["/orderedAt"]
    assert ranks["/id"] < ranks["hour(/orderedAt)"]


def test_an_amount_is_tried_as_key_where_a_query_asks_for_it_alone() -> None:
    items = [{**item, "total": n * 0.25} for n, item in enumerate(skewed_items(SHARES))]
    table = table_of(items)
    tried = {
        each.key for each in advise("x", table, uniform_demands(table, 10_000), AdviceOptions()).candidates
    }
    assert "/id" in tried
    assert not [key for key in tried if "/total" in key]
    query = Request(at=1.0, operation=Operation.QUERY, equals={"/total": (0.25,)}, charge=3.0, partitions=1)
    asked = advise("x", table, recorded(table, [query]), AdviceOptions())
    assert "/total" in {each.key for each in asked.candidates}


def test_many_values_are_no_praise_of_the_one_that_takes_most() -> None:
    table = table_of(skewed_items({"large": 3000, **{f"tenant-{n}": 10 for n in range(200)}}))
    options = AdviceOptions(candidates=(parse("/tenantId", Limits()),))
    (found,) = advise("x", table, uniform_demands(table, 10_000), options).candidates
    assert "201 values." in [reason.text for reason in found.reasons]

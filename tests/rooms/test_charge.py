"""The request-unit formula against the charges that are documented for the service."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad import charge
from pleiad.charge import Charge

KB = 1024

# size in KB, documented point read, documented write without index
SIZE_TABLE = [
    (1, 1.00, 4.95),
    (2, 1.04, 6.29),
    (4, 1.14, 6.67),
    (8, 1.33, 7.04),
    (16, 1.67, 9.52),
    (32, 2.19, 11.23),
    (64, 4.76, 22.67),
    (128, 9.95, 48.19),
    (256, 20.28, 98.29),
    (512, 40.95, 184.57),
    (1024, 145.90, 625.00),
    (2048, 291.80, 1250.00),
]

# documented case, documented RU, computed charge; where no term count is published, one that fits
OPERATION_TABLE = [
    ("create 1 KB, 10 terms", 7.0, charge.create(KB, 10)),
    ("replace 1 KB, 2 changed terms", 10.8, charge.replace(KB, KB, 2, 2)),
    ("patch 1 KB, 2 changed terms", 11.6, charge.patch(KB, KB, 2, 2, 2)),
    ("delete 1 KB, 10 terms", 7.0, charge.delete(KB, 10)),
    ("write 1 KB without index", 5.0, charge.create(KB, 0)),
    ("planner create", 5.71, charge.create(KB, 4)),
    ("planner update", 10.67, charge.replace(KB, KB, 2, 2)),
    ("planner delete", 5.71, charge.delete(KB, 4)),
    ("create a post", 8.76, charge.create(KB, 20)),
    ("create a comment", 8.57, charge.create(KB, 19)),
    ("create a like", 7.05, charge.create(KB, 11)),
    ("five 1 KB items of a feed", 5.0, charge.feed_page([KB] * 5, partitions=1)),
    ("query that finds nothing", 2.5, charge.query(partitions=1, index_lookups=1)),
    (
        "query with one item of 9,963 bytes",
        3.19,
        charge.query(
            partitions=1,
            items_loaded=1,
            bytes_loaded=9963,
            items_returned=1,
            bytes_returned=9963,
            index_lookups=1,
        ),
    ),
    (
        "query with one indexed hit of 5 KB",
        2.98,
        charge.query(
            partitions=1, items_loaded=1, bytes_loaded=5 * KB, items_returned=1, bytes_returned=5 * KB
        ),
    ),
    (
        "scan of 60,951 items of 6.4 KB for 7",
        4059.95,
        charge.query(
            partitions=1,
            items_loaded=60_951,
            bytes_loaded=int(60_951 * 6.4 * KB),
            items_returned=7,
            bytes_returned=int(7 * 6.4 * KB),
        ),
    ),
]

sizes = st.integers(min_value=0, max_value=4 * KB * KB)
terms = st.integers(min_value=0, max_value=2000)
multipliers = st.sampled_from([1, 2])


@pytest.mark.parametrize(("size_kb", "read_ru", "write_ru"), SIZE_TABLE)
def test_the_size_part_is_within_one_percent_of_the_documented_table(
    size_kb: int, read_ru: float, write_ru: float
) -> None:
    assert charge.read(size_kb * KB).ru == pytest.approx(read_ru, rel=0.01)
    assert charge.create(size_kb * KB, 0).ru == pytest.approx(write_ru, rel=0.01)


def test_an_item_of_100_kb_is_near_the_quoted_10_and_50() -> None:
    assert charge.read(100 * KB).ru == pytest.approx(10, rel=0.011)
    assert charge.create(100 * KB, 0).ru == pytest.approx(50, rel=0.041)


@pytest.mark.parametrize(
    ("documented_ru", "computed"),
    [row[1:] for row in OPERATION_TABLE],
    ids=[row[0] for row in OPERATION_TABLE],
)
def test_operations_are_within_five_percent_of_the_documented_charges(
    documented_ru: float, computed: Charge
) -> None:
    assert computed.ru == pytest.approx(documented_ru, rel=0.05)


def test_charges_look_like_the_service_prints_them() -> None:
    assert charge.create(500, 4).ru == 5.71
    assert charge.replace(500, 500, 2, 2).ru == 10.67
    assert charge.failed().ru == 1.24
    assert charge.metadata_read().ru == 1.0
    assert charge.metadata_write().ru == 4.95


def test_an_item_below_1_kb_costs_as_much_as_one_of_1_kb() -> None:
    assert charge.read(0).ru == charge.read(1).ru == charge.read(KB).ru == 1.0
    assert charge.create(1, 0) == charge.create(KB, 0)


def test_reading_two_replicas_costs_twice() -> None:
    assert charge.read(KB, 2).ru == 2.0
    assert charge.read_missing().ru == 1.0
    assert charge.read_missing(2).ru == 2.0
    assert charge.feed_page([KB, KB], 1, 2).ru == 4.0
    assert charge.query(partitions=2, multiplier=2).ru == 10.0


def test_polling_partitions_that_have_nothing_new_costs_one_read_each() -> None:
    assert charge.feed_page([], partitions=3).ru == 3.0
    assert charge.feed_page([KB], partitions=3).ru == 3.0
    assert charge.feed_page([KB] * 4, partitions=3).ru == 4.0


def test_each_partition_a_query_visits_adds_its_base_charge() -> None:
    one, five = charge.query(partitions=1).ru, charge.query(partitions=5).ru
    assert five == 5 * one


def test_the_first_index_lookup_of_each_partition_is_free() -> None:
    assert charge.query(partitions=2, index_lookups=2).ru == 5.0
    assert charge.query(partitions=2, index_lookups=5).ru == 5.03
    assert charge.query(partitions=1, udf_calls=3).ru == 2.56


def test_the_pages_of_a_query_cost_what_the_whole_query_costs() -> None:
    whole = charge.query(
        partitions=1,
        items_loaded=20,
        bytes_loaded=20 * KB,
        items_returned=10,
        bytes_returned=5 * KB,
        index_lookups=4,
    )
    first = charge.query(
        partitions=1,
        items_loaded=10,
        bytes_loaded=10 * KB,
        items_returned=5,
        bytes_returned=2 * KB,
        index_lookups=3,
    )
    second = charge.query(
        items_loaded=10, bytes_loaded=10 * KB, items_returned=5, bytes_returned=3 * KB, index_lookups=1
    )
    assert (first + second).ru == whole.ru


def test_a_script_adds_its_own_cost_to_cheaper_operations() -> None:
    inner = charge.create(KB, 4) + charge.read(KB)
    assert charge.script(inner).ru == pytest.approx(1.0 + 0.95 * (60 / 10.5 + 1.0), abs=0.005)


def test_added_charges_keep_one_part_for_each_name() -> None:
    batch = charge.create(KB, 1) + charge.create(KB, 2) + charge.delete(KB, 0)
    assert [name for name, _ in batch.parts] == ["write", "index terms", "delete"]
    assert batch.ru == pytest.approx((3 * 52 + 6) / 10.5, abs=0.005)
    assert (Charge() + batch) == batch


@given(sizes, sizes, terms, multipliers)
def test_a_bigger_item_is_never_cheaper(a: int, b: int, term_count: int, multiplier: int) -> None:
    small, big = sorted((a, b))
    assert charge.read(small, multiplier).ru <= charge.read(big, multiplier).ru
    assert charge.create(small, term_count).ru <= charge.create(big, term_count).ru
    assert charge.delete(small, term_count).ru <= charge.delete(big, term_count).ru
    assert charge.replace(small, small, 1, 1).ru <= charge.replace(small, big, 1, 1).ru


@given(sizes, terms)
def test_more_index_terms_are_dearer(size: int, term_count: int) -> None:
    assert charge.create(size, term_count + 1).ru > charge.create(size, term_count).ru


@given(sizes, sizes, terms, terms, st.integers(0, 10))
def test_the_parts_sum_to_the_total_and_the_charge_is_deterministic(
    old: int, new: int, removed: int, added: int, properties: int
) -> None:
    patched = charge.patch(old, new, removed, added, properties)
    assert sum(part_ru for _, part_ru in patched.parts) == pytest.approx(patched.ru, abs=0.005001)
    assert patched == charge.patch(old, new, removed, added, properties)

"""The request-unit formula: what an operation costs, as a pure function of what it did.

The charge depends on operation, stored size, index terms and consistency, and never on time or load.

Charges are counted in quanta of 1/10.5 RU, the grid on which the service's published charges lie, and
reported with two decimals. KB below is the stored size of an item in units of 1,024 bytes, never less than 1.

====================  ====================================================================================
point read            the read curve of the item's size
item not found        a read of 1 KB
create                the write curve + 2 quanta for each index term
replace               the write curve of the old and of the new item + 2 quanta for each term removed or added
patch                 a replace + 4 quanta for each patched property
delete                the write curve + 2 quanta for each index term
batch                 the sum of its operations
feed page             the reads of its items, at least a read of 1 KB for each physical partition polled
failed                13 quanta: a read of 1 KB and an index probe; the same whatever the state
query                 2.5 RU for each physical partition, once; 0.020 + 0.0072 a KB for each item loaded;
                      0.100 + 0.05 a KB for each item returned; 0.01 for each index look-up beyond
                      the first of each physical partition; 0.02 for each user-defined function
                      that it names and item loaded; 1 RU for each 1,000 steps of evaluation that an item
                      takes beyond 1,000 and one for each 16 bytes of it; a read of 1 KB at least for each page
script                1 RU + 0.95 of its operations; a trigger is charged like this beside its operation
metadata              1 RU to read, 4.95 RU to write
====================  ====================================================================================

Reads, feeds and queries are multiplied by 2 at strong and bounded staleness consistency, which read two
replicas. The curves are straight lines between the published sizes; past the last one the last line goes on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum
from operator import add

QUANTUM_RU = 1 / 10.5

_BYTES_PER_KB = 1024
_TERM_QUANTA = 2.0
_PATCHED_PROPERTY_QUANTA = 4.0
_INDEX_PROBE_QUANTA = 2.5

_QUERY_PARTITION_RU = 2.5
_QUERY_ITEM_LOADED_RU = 0.020
_QUERY_KB_LOADED_RU = 0.0072
_QUERY_ITEM_RETURNED_RU = 0.100
_QUERY_KB_RETURNED_RU = 0.05
_QUERY_INDEX_LOOKUP_RU = 0.01
_QUERY_UDF_CALL_RU = 0.02
STEPS_FREE = 1_000
"""Steps of evaluating an item that are a part of loading it, whatever its size."""
_ITEM_BYTES_OF_A_FREE_STEP = 16
_STEPS_OF_A_RU = 1_000

_SCRIPT_RU = 1.0
_SCRIPT_OPERATION_SHARE = 0.95

_METADATA_READ_RU = 1.0
_METADATA_WRITE_RU = 4.95

_SIZES_KB = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1024, 2048)
_READ_QUANTA = (10.5, 11.0, 12.0, 14.0, 17.5, 23.0, 50.0, 104.0, 104.5, 213.0, 430.0, 1532.0, 3064.0)
_WRITE_QUANTA = (52.0, 66.0, 70.0, 74.0, 100.0, 118.0, 238.0, 504.0, 506.0, 1032.0, 1938.0, 6562.5, 13125.0)


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge and what it is made of: names with their request units, not rounded."""

    parts: tuple[tuple[str, float], ...] = ()
    ru: float = field(init=False)
    """The request units a client is charged, rounded once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ru", round(fsum([part_ru for _, part_ru in self.parts]), 2))

    def __add__(self, other: Charge) -> Charge:
        """Both charges as one; parts of the same name become one part."""
        merged = dict(self.parts)
        for name, part_ru in other.parts:
            merged[name] = merged.get(name, 0.0) + part_ru
        return Charge(tuple(merged.items()))


@lru_cache(maxsize=65_536)
def read(size_bytes: int, multiplier: int = 1) -> Charge:
    """A point read of an item of that stored size; remembered, since reads are what there is most of."""
    return _charge(("read", multiplier * _read_quanta(size_bytes)))


def read_missing(multiplier: int = 1) -> Charge:
    """A point read that found nothing."""
    return _charge(("read missing", multiplier * _READ_QUANTA[0]))


@lru_cache(maxsize=65_536)
def create(size_bytes: int, terms: int) -> Charge:
    """A new item with that many index terms; remembered, since items of a container are much alike."""
    return _charge(("write", _write_quanta(size_bytes)), ("index terms", terms * _TERM_QUANTA))


@lru_cache(maxsize=65_536)
def replace(old_size_bytes: int, new_size_bytes: int, terms_removed: int, terms_added: int) -> Charge:
    """A new version of an item: the old one is removed, the new one written; remembered like a create."""
    return _charge(
        ("remove old version", _write_quanta(old_size_bytes)),
        ("write", _write_quanta(new_size_bytes)),
        ("index terms", (terms_removed + terms_added) * _TERM_QUANTA),
    )


@lru_cache(maxsize=65_536)
def patch(
    old_size_bytes: int, new_size_bytes: int, terms_removed: int, terms_added: int, properties: int
) -> Charge:
    """A replace that names the properties it changes."""
    return replace(old_size_bytes, new_size_bytes, terms_removed, terms_added) + _charge(
        ("patched properties", properties * _PATCHED_PROPERTY_QUANTA)
    )


@lru_cache(maxsize=65_536)
def delete(size_bytes: int, terms: int) -> Charge:
    """The removal of an item and its index terms."""
    return _charge(("delete", _write_quanta(size_bytes)), ("index terms", terms * _TERM_QUANTA))


def feed_page(sizes: Iterable[int], partitions: int, multiplier: int = 1) -> Charge:
    """A page of a read or change feed: item sizes in bytes, and how many physical partitions were polled."""
    items_quanta = fsum(map(_read_quanta, sizes))
    idle_quanta = max(0.0, partitions * _READ_QUANTA[0] - items_quanta)
    return _charge(("items", multiplier * items_quanta), ("idle poll", multiplier * idle_quanta))


def failed() -> Charge:
    """An operation that was refused after it was admitted: conflict, failed precondition, bad request."""
    return _charge(("read", _READ_QUANTA[0]), ("index probe", _INDEX_PROBE_QUANTA))


def query(
    *,
    partitions: int = 0,
    items_loaded: int = 0,
    bytes_loaded: int = 0,
    items_returned: int = 0,
    bytes_returned: int = 0,
    index_lookups: int = 0,
    udf_calls: int = 0,
    steps_beyond: int = 0,
    multiplier: int = 1,
) -> Charge:
    """One page of a query.

    ``partitions`` counts the physical partitions that this page is the first to visit, so that the pages of a
    query add up to the charge of the whole; the first index look-up of each of them is free. ``steps_beyond`` are
    steps of evaluation beyond those that are part of loading.
    """
    lookups_charged = max(0, index_lookups - partitions)
    return Charge(
        (
            ("partitions", multiplier * _QUERY_PARTITION_RU * partitions),
            (
                "items loaded",
                multiplier * (_QUERY_ITEM_LOADED_RU * items_loaded + _QUERY_KB_LOADED_RU * _kb(bytes_loaded)),
            ),
            (
                "items returned",
                multiplier
                * (_QUERY_ITEM_RETURNED_RU * items_returned + _QUERY_KB_RETURNED_RU * _kb(bytes_returned)),
            ),
            ("index look-ups", multiplier * _QUERY_INDEX_LOOKUP_RU * lookups_charged),
            ("user-defined functions", multiplier * _QUERY_UDF_CALL_RU * udf_calls),
            ("evaluation", multiplier * steps_beyond / _STEPS_OF_A_RU),
        )
    )


@dataclass(slots=True)
class Tally:
    """What a page of a query touched, or several together, which is what they are charged for."""

    partitions: int = 0
    items_loaded: int = 0
    bytes_loaded: int = 0
    items_returned: int = 0
    bytes_returned: int = 0
    index_lookups: int = 0
    udf_calls: int = 0
    steps_beyond: int = 0
    """What was evaluated beyond the steps that are part of loading."""

    def counts(self) -> tuple[int, ...]:
        """All of it, in the order of the fields."""
        return (
            self.partitions,
            self.items_loaded,
            self.bytes_loaded,
            self.items_returned,
            self.bytes_returned,
            self.index_lookups,
            self.udf_calls,
            self.steps_beyond,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, self.counts(), other.counts()))

    def charge(self, multiplier: int) -> Charge:
        return query(
            partitions=self.partitions,
            items_loaded=self.items_loaded,
            bytes_loaded=self.bytes_loaded,
            items_returned=self.items_returned,
            bytes_returned=self.bytes_returned,
            index_lookups=self.index_lookups,
            udf_calls=self.udf_calls,
            steps_beyond=self.steps_beyond,
            multiplier=multiplier,
        )


def query_partition(multiplier: int = 1) -> float:
    """What a query is charged for each physical partition that it goes to, once, whatever it finds there."""
    return multiplier * _QUERY_PARTITION_RU


@lru_cache(maxsize=16)
def query_page_least(multiplier: int = 1) -> float:
    """The least a page of a query is charged, in request units."""
    return read_missing(multiplier).ru


def evaluation(steps: int, items: int = 1, size_bytes: int = 0, multiplier: int = 1) -> Charge:
    """What a query on metadata or changes, or a condition, takes beyond what is part of loading what it is asked of."""
    beyond = steps_beyond(steps, items, size_bytes)
    return Charge((("evaluation", multiplier * beyond / _STEPS_OF_A_RU),))


def steps_beyond(steps: int, items: int = 1, size_bytes: int = 0) -> int:
    """Steps of evaluation beyond those that are part of loading items of that size together."""
    free = STEPS_FREE * max(1, items) + size_bytes // _ITEM_BYTES_OF_A_FREE_STEP
    return max(0, steps - free)


def script(inner: Charge) -> Charge:
    """A stored procedure or a trigger: itself, and the charges of its operations."""
    operations_ru = fsum(part_ru for _, part_ru in inner.parts)
    return Charge((("script", _SCRIPT_RU), ("script operations", _SCRIPT_OPERATION_SHARE * operations_ru)))


def metadata_read() -> Charge:
    """Reading an account, database, container, offer or other resource that is no item."""
    return Charge((("metadata read", _METADATA_READ_RU),))


def metadata_write() -> Charge:
    """Creating, changing or deleting a resource that is no item."""
    return Charge((("metadata write", _METADATA_WRITE_RU),))


def _charge(*parts_quanta: tuple[str, float]) -> Charge:
    return Charge(tuple([(name, quanta * QUANTUM_RU) for name, quanta in parts_quanta]))


def _kb(size_bytes: int) -> float:
    return size_bytes / _BYTES_PER_KB


def _read_quanta(size_bytes: int) -> float:
    return _on_curve(size_bytes, _READ_QUANTA)


def _write_quanta(size_bytes: int) -> float:
    return _on_curve(size_bytes, _WRITE_QUANTA)


def _on_curve(size_bytes: int, quanta: tuple[float, ...]) -> float:
    size_kb = size_bytes / _BYTES_PER_KB
    if size_kb <= 1:
        return quanta[0]
    right = min(bisect_left(_SIZES_KB, size_kb), len(_SIZES_KB) - 1)
    left = right - 1
    share = (size_kb - _SIZES_KB[left]) / (_SIZES_KB[right] - _SIZES_KB[left])
    return quanta[left] + share * (quanta[right] - quanta[left])

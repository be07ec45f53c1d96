"""Selections give exactly the rows a plain Python model gives, whatever the state of the indexes."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.item.ttl import is_expired
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.index_use import IndexSettings
from pleiad.store.postgres import select as postgres_select
from pleiad.store.postgres.select import NAMES_READ_MAX
from pleiad.store.rows import Mutation, PartitionWrite, Row, Verb
from pleiad.store.segments import Segment
from pleiad.store.selection import (
    NAMES_MAX,
    Bound,
    IndexedPath,
    OrderPosition,
    PathOrder,
    Predicate,
    Selection,
)
from pleiad.store.sqlite import order, select
from tests.stores import OpenStore, built

pytestmark = pytest.mark.every_store

NOW = 10_000
SEGMENTS = itertools.count()
MISSING = object()
EXAMPLES = 20
LONG_EXAMPLES = int(os.environ.get("PLEIAD_INDEX_EXAMPLES", "200"))

NAMES = [
    "a",
    "b",
    "",
    "0",
    'q"q',
    "back\\slash",
    "dot.ted",
    "[0]",
    "é",
    "\0",
    "emoji 😀",
    "it's",
    "$",
    "\\u0061",
]
NUMBERS = ["0", "1", "-0.0", "-1", "1.0", "1e0", "0.1", "2", "1e308", "9007199254740992", "9007199254740993"]
NUMBERS += ["9007199254740992.0", "-9007199254740993", "18446744073709551615", "1e-320", "1.5"]
LONG_NUMBERS = ["5.291547690904108147998208113678", "29742642222420435096617076114721348"]
LONG_NUMBERS += [
    "1.00000000000000011102230246251565404236316680908203125",
    "-20.944468518457115995460482600496",
]
STRINGS = ["", "a", "b", "A", "é", "😀", "\uffff", "[1]", "{}", "[", "1", "null", "true", "a\0b", "a\0", "aa"]


def number_texts() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(NUMBERS),
        st.sampled_from(LONG_NUMBERS),
        st.integers(-(2**70), 2**70).map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
    )


def escaped(text: str) -> str:
    """The JSON string with every character written as an escape."""
    units = text.encode("utf-16-be")
    return '"' + "".join(f"\\u{units[n]:02x}{units[n + 1]:02X}" for n in range(0, len(units), 2)) + '"'


def string_texts() -> st.SearchStrategy[str]:
    strings = st.one_of(st.sampled_from(STRINGS), st.text(st.characters(codec="utf-8"), max_size=3))
    return st.one_of(
        strings.map(json.dumps),
        strings.map(escaped),
        strings.map(lambda s: json.dumps(s, ensure_ascii=False)),
    )


def scalar_texts() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(["null", "true", "false"]), number_texts(), string_texts())


def name_texts(names: list[str]) -> st.SearchStrategy[str]:
    chosen_names = st.sampled_from(names)
    return st.one_of(chosen_names.map(json.dumps), chosen_names.map(escaped))


def object_text(members: list[tuple[str, str]]) -> str:
    unique = {orjson.loads(name): (name, value) for name, value in members}
    return "{" + ", ".join(f"{name} : {value}" for name, value in unique.values()) + "}"


def value_texts(names: list[str], scalars: list[str]) -> st.SearchStrategy[str]:
    scalar = st.sampled_from(scalars)
    array = st.lists(scalar | st.just("[1]"), max_size=4).map(lambda texts: "[" + ",".join(texts) + "]")
    nested = st.lists(st.tuples(name_texts(names), scalar | array), max_size=2).map(object_text)
    return st.one_of(scalar, scalar, array, nested)


def bound_pairs(scalars: list[Any]) -> st.SearchStrategy[tuple[Bound | None, Bound | None]]:
    def pair(values: list[Any]) -> st.SearchStrategy[tuple[Bound | None, Bound | None]]:
        bound = st.none() | st.builds(Bound, st.sampled_from(values), st.booleans())
        return st.tuples(bound, bound).filter(lambda ends: ends != (None, None))

    numbers = [
        scalar for scalar in scalars if isinstance(scalar, int | float) and not isinstance(scalar, bool)
    ]
    near = [math.nextafter(float(number), towards) for number in numbers for towards in (-math.inf, math.inf)]
    strings = [scalar for scalar in scalars if isinstance(scalar, str)]
    return pair([*numbers, *near, 1]) | pair([*strings, "a", "\ud800"])


def predicates(names: list[str], scalars: list[Any]) -> st.SearchStrategy[Predicate]:
    paths = st.lists(st.sampled_from(names), min_size=1, max_size=2).map(tuple)
    paths |= st.sampled_from([("id",), ("_ts",)])
    scalar = st.sampled_from([*scalars, "i1", NOW, True, 1])
    some = st.lists(scalar, max_size=3).map(tuple)
    many = some.map(
        lambda few: (*few, *(f"no {n}" for n in range(70)), *(n + 0.25 for n in range(70)), 10**400)
    )
    return st.one_of(
        st.tuples(paths, some | many, st.booleans()).map(
            lambda drawn: Predicate(drawn[0], one_of=drawn[1], element=drawn[2])
        ),
        paths.map(lambda path: Predicate(path, is_defined=True)),
        st.tuples(paths, bound_pairs(scalars)).map(
            lambda drawn: Predicate(drawn[0], low=drawn[1][0], high=drawn[1][1])
        ),
    )


# -- the model ---------------------------------------------------------------------------------


def at(row: Row, path: tuple[str, ...]) -> Any:
    if path == ("_ts",):
        return row.ts
    if path == ("id",):
        return row.id
    value = json.loads(row.body)
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def key(value: Any) -> tuple[int, Any]:
    """The (type rank, comparable value) of a JSON value."""
    if value is MISSING:
        return 0, 0
    if value is None:
        return 1, 0
    if isinstance(value, bool):
        return 2, int(value)
    if isinstance(value, int | float):
        return 3, double(value)
    if isinstance(value, str):
        return 4, value.encode(errors="surrogatepass")
    return (5, 0) if isinstance(value, list) else (6, 0)


def holds(predicate: Predicate, row: Row) -> bool:
    value = at(row, predicate.path)
    if predicate.element:
        wanted = [key(scalar) for scalar in predicate.one_of or ()]
        return isinstance(value, list) and any(
            key(element) in wanted for element in value if key(element)[0] < 5
        )
    if predicate.is_defined:
        return value is not MISSING
    if predicate.one_of is not None:
        return key(value)[0] < 5 and key(value) in [key(scalar) for scalar in predicate.one_of]
    for bound, is_low in ((predicate.low, True), (predicate.high, False)):
        if bound is None:
            continue
        own, end = key(value), key(bound.value)
        if own[0] != end[0]:
            return False
        if own == end:
            if not bound.inclusive:
                return False
        elif (own > end) != is_low:
            return False
    return True


def chosen(selection: Selection, rows: Sequence[Row]) -> list[Row]:
    return [
        row
        for row in rows
        if selection.span.contains(row.epk)
        and not is_expired(row.ts, row.ttl, selection.default_ttl, selection.now)
        and all(holds(predicate, row) for predicate in selection.predicates)
    ]


# -- what every state of the indexes must satisfy ----------------------------------------------


async def select_all(segment: Segment, selection: Selection, limit: int) -> list[Row]:
    found: list[Row] = []
    while page := await segment.select(selection, found[-1].number if found else 0, limit):
        found += page
        if len(page) < limit:
            break
    return found


async def ordered_all(
    segment: Segment, selection: Selection, order: PathOrder, limit: int
) -> list[Row] | None:
    found: list[Row] = []
    after: OrderPosition | None = None
    while True:
        page = await segment.ordered(selection, order, after, limit)
        if page is None:
            return None
        found += [row for row, _ in page]
        if len(page) < limit:
            return found
        after = OrderPosition.from_json(orjson.loads(orjson.dumps(page[-1][1].to_json())))


def seen(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    """What a glance at a row shows; with `repr`, since 1 and true are equal in Python."""
    value = orjson.loads(row.body)
    return (row.number, row.size_bytes, *(repr(value[name]) if name in value else MISSING for name in names))


async def glance_all(segment: Segment, selection: Selection, names: Sequence[str], limit: int) -> list[Any]:
    found: list[Any] = []
    while page := await segment.glance(selection, names, found[-1][0] if found else 0, limit):
        found += page
        if len(page) < limit:
            break
    return [
        (number, size_bytes, *(MISSING if text is None else repr(orjson.loads(text)) for text in texts))
        for number, size_bytes, *texts in found
    ]


async def check(segment: Segment, selection: Selection, is_ready: bool) -> None:
    rows = await segment.scan(WHOLE, 0, 10_000)
    expected = chosen(selection, rows)
    names = [*{name: None for row in rows for name in orjson.loads(row.body)}, "none"][:NAMES_MAX]
    for limit in (2, 100):
        assert await select_all(segment, selection, limit) == expected
        for few in (names, names[-NAMES_READ_MAX:], names[:1], ()):
            assert await glance_all(segment, selection, few, limit) == [seen(row, few) for row in expected]
    sizes = sum(row.size_bytes for row in expected)
    assert await segment.count(selection) == (len(expected), sizes)
    assert await segment.count(selection, count_only=True) == (len(expected), 0)
    for path, descending in itertools.product({p.path for p in selection.predicates}, (False, True)):
        by_path = sorted(expected, key=lambda row: (*key(at(row, path)), row.number), reverse=descending)
        found = await ordered_all(segment, selection, PathOrder(path, descending), 3)
        assert found == by_path or (found is None and not is_ready)


def write(mutations: list[Mutation]) -> PartitionWrite:
    return PartitionWrite(0, 1, NOW, tuple(mutations))


def put(number: int, body: str, ttl: int | None = None) -> Mutation:
    return Mutation(Verb.UPSERT, bytes([number % 3]) * 16, f"i{number}", body.encode(), 10 + number, ttl=ttl)


def remove(number: int) -> Mutation:
    return Mutation(Verb.DELETE, bytes([number % 3]) * 16, f"i{number}")


async def with_segment(
    open_store: OpenStore, eager: IndexSettings, directory: Path, work: Callable[[Segment], Awaitable[None]]
) -> None:
    store = await open_store(directory, eager)
    try:
        await work(store.segment(f"s{next(SEGMENTS)}"))
    finally:
        await store.close()


SPANS = [WHOLE, EpkRange(b"\x00", b"\x02"), EpkRange(b"\x01" * 16, b"\x01" * 16 + b"\xff")]
TTLS = st.sampled_from([None, None, -1, 1, 100])


@dataclass(frozen=True)
class Case:
    """Items, later changes of them, and a selection that speaks of the same names and values."""

    puts: list[Mutation]
    changes: list[Mutation]
    selection: Selection
    piece: int
    """How many rows are many, to see with a few items what else only large segments show."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    texts = draw(st.lists(scalar_texts(), min_size=2, max_size=6))
    bodies = st.lists(st.tuples(name_texts(names), value_texts(names, texts)), max_size=3).map(object_text)
    puts = draw(st.lists(st.tuples(bodies, TTLS), min_size=1, max_size=14))
    changes = draw(st.lists(st.tuples(st.integers(0, 16), bodies | st.none()), max_size=8))
    wanted = draw(st.lists(predicates(names, [json.loads(text) for text in texts]), max_size=2))
    default_ttl = draw(st.sampled_from([None, None, -1, 3, 10]))
    return Case(
        [put(number, body, ttl) for number, (body, ttl) in enumerate(puts)],
        [remove(number) if body is None else put(number, body) for number, body in changes],
        Selection(draw(st.sampled_from(SPANS)), tuple(wanted), NOW + 5, default_ttl),
        draw(st.sampled_from([1_000, 1, 2, 3])),
    )


IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@given(case=cases())
@settings(IN_ONE_FOLDER, max_examples=EXAMPLES)
async def test_a_selection_gives_the_same_rows_as_the_model_in_every_state_of_its_indexes(
    open_store: OpenStore, eager: IndexSettings, tmp_path: Path, case: Case
) -> None:
    await check_case(open_store, eager, tmp_path, case)


@pytest.mark.parametrize("string", ["river", 'q"q', "back\\slash", "é", "a\0b", "tab\t", "😀", "/"])
async def test_a_string_is_found_however_the_body_writes_it(
    open_store: OpenStore, eager: IndexSettings, tmp_path: Path, string: str
) -> None:
    spellings = [json.dumps(string), json.dumps(string, ensure_ascii=False), escaped(string)]
    others = [json.dumps(string + "x"), "1", "null"]
    bodies = [f'{{"a":{text},"b":[{text}]}}' for text in [*spellings, *others]]

    async def work(segment: Segment) -> None:
        await segment.commit(write([put(number, body) for number, body in enumerate(bodies)]))
        for path, is_element in (("a", False), ("b", True)):
            wanted = Predicate((path,), one_of=(string,), element=is_element)
            found = await select_all(segment, Selection(WHOLE, (wanted,), NOW), 10)
            assert [row.id for row in found] == ["i0", "i1", "i2"]

    await with_segment(open_store, eager, tmp_path, work)


@pytest.mark.long
@given(case=cases())
@settings(IN_ONE_FOLDER, max_examples=LONG_EXAMPLES)
async def test_a_selection_gives_the_same_rows_as_the_model_in_many_more_cases(
    open_store: OpenStore, eager: IndexSettings, tmp_path: Path, case: Case
) -> None:
    await check_case(open_store, eager, tmp_path, case)


async def check_case(open_store: OpenStore, eager: IndexSettings, directory: Path, case: Case) -> None:
    selection = case.selection

    async def work(segment: Segment) -> None:
        await segment.commit(write(case.puts))
        await check(segment, selection, is_ready=False)
        segment.note_use([IndexedPath(p.path, p.element) for p in selection.predicates])
        segment.note_use([IndexedPath(p.path) for p in selection.predicates])
        for change in case.changes[:4]:
            # The build takes a step between two commits.
            await segment.commit(write([change]))
            await check(segment, selection, is_ready=False)
        await built(segment)
        await check(segment, selection, is_ready=True)
        await segment.commit(write(case.changes[4:]))
        await check(segment, selection, is_ready=True)
        segment.drop_indexes(lambda path: path.element)
        await check(segment, selection, is_ready=False)

    names = (
        "FEW_MATCHES",
        "_PIECE_NUMBERS",
        "_PIECE_NUMBERS_MAX",
        "PIECE_ENTRIES",
        "_PIECE_ENTRIES_COUNTED",
        "_ROWS_SCANNED_PER_LOOKUP",
    )
    sizes: dict[str, Any] = dict.fromkeys(names, case.piece)
    with (
        patch.multiple(select, **sizes),
        patch.object(order, "PIECE_ENTRIES", case.piece),
        patch.object(postgres_select, "FEW_MATCHES", case.piece),
    ):
        await with_segment(open_store, eager, directory, work)

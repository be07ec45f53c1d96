"""Routing loses no item: whatever a query returns has one of the keys that it is routed to.

Random filters and whole queries are run over random items, each item alone; a query that is said to give nothing must
give the same over all items as over none.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from differential.queries import Queries
from differential.wild import Wild
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.bind.parameters import parameter_values
from pleiad.query.route.emptiness import gives_nothing
from pleiad.query.route.keys import key_values
from pleiad.query.run import Query
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()
LEAVES = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        -1,
        1.5,
        4,
        0.5,
        2**53,
        2**53 + 1,
        2**54 + 2,
        "",
        "a",
        "b",
        "A",
        "ab",
        "AB",
        "ba",
    ),
    *([], [1], ["a", 1], [[1]], {}, {"b": 1}, {"b": True, "a": "a"}, [{"b": 1}, 2]),
]
FILTERS = (
    *("c.pk * 2 = {0}", "c.pk / 4 = {0}", "c.pk * 0.5 = {0}", "c.pk * -2 = {0}", "c.pk / 3 = {0}"),
    *("(c.pk ?? {0}) = {1}", "({0} ?? c.pk) = {1}", "c.pk ?? {0}", "CHOOSE(1, c.pk = {0}, {1})"),
    *(
        "CHOOSE(2, {0}, c.pk) = {1}",
        "ARRAY_CONTAINS([{0}, {1}], c.pk, true)",
        "ARRAY_CONTAINS([{0}], c.pk, false)",
    ),
    *(
        "(c.pk = {0} OR c.a = {1}) AND (c.pk = {1} OR c.a = {0})",
        "(c.pk = {0} OR c.a) AND (c.pk != {0} OR c.b)",
    ),
    *("c.pk = {0} AND NOT (c.pk = {1})", "c.pk = {0} AND c.pk.b = {1}", "c.a.b = {0} AND c.a = {1}"),
    *(
        "IS_STRING(c.pk) AND c.pk IN ({0}, {1})",
        "NOT IS_STRING(c.pk) AND c.pk IN ({0}, {1})",
        "c AND c.pk = {0}",
    ),
    *("c.pk > {0} AND c.pk IN ({0}, {1}, 4)", "c.a[0] = {0} AND c.pk = {1}", "c[0] = {0} OR c.pk = {1}"),
    *("STARTSWITH(c.pk, {0}) OR c.pk = {1}", "c.pk LIKE '[' OR c.pk = {0}", "NOT (c.pk = {0} AND c.a = {1})"),
    *(
        "EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = {0}) AND c.pk = {1}",
        "NOT (c.pk <= {0} OR c.pk != {1})",
    ),
    *("EXISTS(SELECT VALUE 1 WHERE c.pk = {0}) = {1}", "(c.pk = {0}) != (c.a = {1})", "c.a + c.pk = {0}"),
    *(
        "(c.a.b = {0} OR c.pk = {1}) AND c.a = {1}",
        "UPPER(c.pk) != {0} AND c.pk = {1}",
        "-c.pk < {0} AND c.pk = {1}",
    ),
)
KEY_FILTERS = (
    *(
        "c.pk = {0}",
        "c.pk IN ({0}, {1})",
        "(c.pk BETWEEN {0} AND {1})",
        "NOT (c.pk != {0})",
        "c.pk <= {0}",
    ),
    *(
        "c.pk >= {0} AND c.pk <= {1}",
        "LOWER(c.pk) = {0}",
        "UPPER(c.pk) = {0}",
        "-c.pk = {0}",
        "ABS(c.pk) = {0}",
    ),
    *("[c.pk] = [{0}]", "[c.pk, c.a] = [{0}, [1]]", "c.pk = {0} OR c.pk = {1}", "(c.pk ?? {0}) = {1}"),
    *(
        "STRINGEQUALS(c.pk, {0}, true)",
        "REVERSE(c.pk) = {0}",
        "(c.pk = {0}) = true",
        "c.pk = {0} ? c.pk : false",
    ),
    *("NOT (c.pk < {0} OR c.pk > {1})", "EXISTS(SELECT VALUE x FROM x IN c.a WHERE c.pk = {0})", "c.pk"),
    *(
        "ARRAY_CONTAINS([{0}, {1}], c.pk)",
        "{{a: c.pk}} = {{a: {0}}}",
        "c.pk < {0} AND c.pk > {1}",
        "NOT c.pk",
    ),
)
KEY_CONSTANTS = (
    "1",
    "'a'",
    "'ab'",
    "null",
    "true",
    "false",
    "''",
    "-1",
    "1.5",
    "[1]",
    "{}",
    "9007199254740993",
    "'ba'",
)
CONSTANTS = (
    *(
        "1",
        "2",
        "'a'",
        "'AB'",
        "null",
        "true",
        "false",
        "''",
        "-1",
        "1.5",
        "[1]",
        "{}",
        "0",
        "undefined",
        "0/0",
    ),
    *("9007199254740993", "18014398509481986", "4503599627370496", "{b: 1}", "['a', 1]"),
)


def random_items(random: Random, count: int) -> list[dict[str, Any]]:
    names = ("pk", "a", "b", "name", "tags", "x y")
    items = [{name: random.choice(LEAVES) for name in names if random.random() < 0.75} for _ in range(count)]
    return [{"id": str(number), "pk": leaf, "a": leaf} for number, leaf in enumerate(LEAVES)] + items


def key_of(item: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = item
    for name in path:
        value = value.get(name, UNDEFINED) if isinstance(value, dict) else UNDEFINED
    return value


def is_routed(key: tuple[Any, ...], item_key: tuple[Any, ...]) -> bool:
    """Whether an item of a key is found where another key leads: numbers are doubles there."""
    for wanted, found in zip(key, item_key, strict=False):
        if wanted is UNDEFINED:
            # Arrays, objects and what is not there are not told apart.
            if not (found is UNDEFINED or isinstance(found, list | dict)):
                return False
        elif isinstance(wanted, bool) or isinstance(found, bool) or wanted is None or found is None:
            if wanted is not found:
                return False
        elif isinstance(wanted, int | float) and isinstance(found, int | float):
            if float(wanted) != float(found):
                return False
        elif wanted != found:
            return False
    return True


def lost(
    query: Query,
    parameters: dict[str, Any],
    paths: list[tuple[str, ...]],
    items: list[dict[str, Any]],
    context: Any,
) -> list[dict[str, Any]]:
    """The items that have rows and are not routed to."""
    keys = key_values(query.plan, parameters, paths)
    if keys is None:
        return []
    return [
        item
        for item in items
        if not any(is_routed(key, tuple(key_of(item, path) for path in paths)) for key in keys)
        and query.run([item], parameters, context)
    ]


@pytest.mark.parametrize("form", KEY_FILTERS)
def test_a_filter_on_the_key_is_routed_to_all_its_items(form: str, context: QueryContext) -> None:
    items = random_items(Random(1), 3)
    for first in KEY_CONSTANTS:
        for second in KEY_CONSTANTS:
            query = Query(f"SELECT * FROM c WHERE {form.format(first, second)}", LIMITS)
            assert lost(query, {}, [("pk",)], items, context) == [], query.text


@pytest.mark.parametrize("form", FILTERS)
def test_a_filter_is_routed_to_all_its_items(form: str, context: QueryContext) -> None:
    items = random_items(Random(1), 30)
    random = Random(form)
    for _ in range(40):
        text = form.format(random.choice(CONSTANTS), random.choice(CONSTANTS))
        query = Query(f"SELECT * FROM c WHERE {text}", LIMITS)
        assert lost(query, {}, [("pk",)], items, context) == [], text


@pytest.mark.parametrize("seed", range(4))
def test_a_random_query_is_routed_to_all_its_items(seed: int, context: QueryContext) -> None:
    made, items = Queries(seed), random_items(Random(seed), 30)
    tried = 0
    while tried < 150:
        case = made.case()
        parameters = parameter_values(case.parameters)
        try:
            query = Query(case.text, LIMITS)
            whole, empty = query.run(items, parameters, context), query.run([], parameters, context)
        except PleiadError:
            continue
        tried += 1
        block = query.plan.block
        paths = [tuple(path.strip("/").split("/")) for path in case.paths]
        if gives_nothing(query.plan, parameters):
            assert whole == empty, case.text
        is_counted = block.is_grouped or block.offset is not None
        if not is_counted and query.reads_items:
            assert lost(query, parameters, paths, items, context) == [], case.text


@pytest.mark.parametrize("seed", range(4))
def test_a_wild_query_has_the_same_rows_where_it_is_routed_to(seed: int) -> None:
    made, items = Wild(seed), random_items(Random(seed), 6)
    context = QueryContext(limits=LIMITS, udfs={"f": lambda value: value, "g": lambda value: value})
    tried = 0
    while tried < 250:
        case = made.case()
        if "RAND" in case.text.upper() or "GETCURRENT" in case.text.upper():
            continue
        try:
            parameters = parameter_values(case.parameters)
            query = Query(case.text, LIMITS)
            whole = query.run(items, parameters, context)
        except PleiadError:
            continue
        tried += 1
        paths = [tuple(path.strip("/").split("/")) for path in case.paths]
        keys = key_values(query.plan, parameters, paths)
        if keys is not None:
            kept = [
                item
                for item in items
                if any(is_routed(key, tuple(key_of(item, path) for path in paths)) for key in keys)
            ]
            assert query.run(kept, parameters, context) == whole, case.text
        if gives_nothing(query.plan, parameters):
            assert query.run([], parameters, context) == whole, case.text

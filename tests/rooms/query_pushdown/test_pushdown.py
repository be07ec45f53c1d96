"""What of a filter a store may apply, and when that is all of it."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.index.policy import ELEMENT, Steps
from pleiad.query import pushdown as pushdown_module
from pleiad.query.pushdown import Bound, PathOrder, Predicate, Pushdown, path_order, policy_paths, pushdown

A, FLAG, TAGS = ("a",), ("flag",), ("tags",)


def everything(place: Steps) -> bool:
    return True


def pushed(compiled: Any, where: str, **parameters: Any) -> Pushdown:
    plan = compiled(f"SELECT * FROM c WHERE {where}").plan
    return pushdown(plan, {f"@{name}": value for name, value in parameters.items()}, everything)


def one_of(*values: Any, path: tuple[str, ...] = A, element: bool = False) -> Predicate:
    return Predicate(path, one_of=values, element=element)


def between(low: Any = None, high: Any = None, includes: str = "[)") -> Predicate:
    return Predicate(
        A,
        low=None if low is None else Bound(low, includes[0] == "["),
        high=None if high is None else Bound(high, includes[1] == "]"),
    )


WHOLE = [
    ("c.a = 1", [one_of(1)]),
    ("1.0 = c.a", [one_of(1)]),
    ("c['a'] = 'x'", [one_of("x")]),
    ("c.a.b = null", [one_of(None, path=("a", "b"))]),
    ("c.a IN (1, 'x', true, 1.0, undefined)", [one_of(1, "x", True)]),
    ("c.a = 1 OR c.a = 2 OR c.a IN (2, 3)", [one_of(1, 2, 3)]),
    ("NOT (c.a != 1)", [one_of(1)]),
    ("c.a = 1 AND c.b = 2", [one_of(1), one_of(2, path=("b",))]),
    ("c.a = 1 AND c.a = true", [one_of(1), one_of(True)]),
    ("true AND c.a = 1", [one_of(1)]),
    ("c.a > 1", [between(1, includes="(]")]),
    ("1 > c.a", [between(None, 1)]),
    ("NOT (c.a < 5)", [between(5)]),
    ("c.a >= 1 AND c.a < 5", [between(1, 5)]),
    ("c.a BETWEEN 'k' AND 'm'", [between("k", "m", "[]")]),
    ("c.a > 1 AND c.a < 'x'", [between(1, includes="(]"), between(None, "x")]),
    ("c.a >= 1 AND c.a >= 2 AND c.a <= 3", [between(1), between(2, 3, "[]")]),
    ("c.a > -1e300", [between(-1e300, includes="(]")]),
    ("IS_DEFINED(c.a)", [Predicate(A, is_defined=True)]),
    ("IS_NULL(c.a)", [one_of(None)]),
    ("IS_BOOL(c.a)", [one_of(False, True)]),
    ("IS_STRING(c.a)", [between("")]),
    ("c.flag", [one_of(True, path=FLAG)]),
    ("NOT c.flag", [one_of(False, path=FLAG)]),
    ("NOT (c.flag OR c.a > 1)", [one_of(False, path=FLAG), between(None, 1, "[]")]),
    ("STARTSWITH(c.a, 'ab')", [between("ab", "ac")]),
    ("STARTSWITH(c.a, 'ab', false)", [between("ab", "ac")]),
    ("STARTSWITH(c.a, '')", [between("")]),
    ("c.a LIKE 'ab%'", [between("ab", "ac")]),
    ("c.a LIKE 'a!%%' ESCAPE '!'", [between("a%", "a&")]),
    ("c.a LIKE 'ab%%'", [between("ab", "ac")]),
    ("c.a LIKE 'ab'", [one_of("ab")]),
    ("StringEquals(c.a, 'x')", [one_of("x")]),
    ("STRINGEQUALS('x', c.a, false)", [one_of("x")]),
    ("ARRAY_CONTAINS(c.tags, 'x')", [one_of("x", path=TAGS, element=True)]),
    ("ARRAY_CONTAINS([1, 2], c.a)", [one_of(1, 2)]),
    (
        "ARRAY_CONTAINS(c.tags, 'x') OR ARRAY_CONTAINS(c.tags, 'y')",
        [one_of("x", "y", path=TAGS, element=True)],
    ),
    ("ARRAY_CONTAINS_ANY(c.tags, 'x', 'y')", [one_of("x", "y", path=TAGS, element=True)]),
    (
        "ARRAY_CONTAINS_ALL(c.tags, 'x', 'y')",
        [one_of("x", path=TAGS, element=True), one_of("y", path=TAGS, element=True)],
    ),
    (
        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t IN ('x', 1))",
        [one_of("x", 1, path=TAGS, element=True)],
    ),
    ("c._ts > 5", [Predicate(("_ts",), low=Bound(5, False))]),
    ("c.id = 'x'", [one_of("x", path=("id",))]),
]

IN_PART = [
    ("c.a = 9007199254740993", [one_of(2.0**53)]),
    ("c.a > 9007199254740993", [between(2.0**53, includes="[]")]),
    ("c.a = 1 AND UPPER(c.b) = 'X'", [one_of(1)]),
    ("(c.a = 1 AND c.b = 1) OR (c.a = 2 AND c.b > 5)", [one_of(1, 2)]),
    (
        "(c.id = 'x' AND c.k = 1) OR (c.id = 'y' AND c.k = 2)",
        [one_of("x", "y", path=("id",)), one_of(1, 2, path=("k",))],
    ),
    ("c.a LIKE 'ab_'", [between("ab", "ac")]),
    ("c.a LIKE 'ab%c%'", [between("ab", "ac")]),
    ("STARTSWITH(c.a, 'a\\ud7ff')", [between("a\ud7ff", "b")]),
    ("STARTSWITH(c.a, 'a\\ud83d\\ude00')", [between("a", "b")]),
    ("c.a > 'b\\ue000'", [between("b")]),
    ("c.a < 'b\\ue000'", [between(None, "c")]),
    ("c.a = 1 AND c.b = [1]", [one_of(1)]),
    ("c.a = 1 AND c.b = undefined", [one_of(1)]),
    (
        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1 AND c.a = 2)",
        [one_of(1, path=TAGS, element=True), one_of(2)],
    ),
    ("EXISTS(SELECT VALUE t.x FROM t IN c.tags WHERE t = 1)", [one_of(1, path=TAGS, element=True)]),
]

LEFT_OUT = [
    "c.a != 1",
    "c.a = c.b",
    "c.a = [1]",
    "c.a = {'x': 1}",
    "c.a = undefined",
    "c.a IN (1, [2])",
    "c.a IN (1, c.b)",
    "c.a = 1 OR c.b = 1",
    "c.a < 5 OR c.a > 9",
    "c.a > true",
    "c.a >= null",
    "c.a[0] = 1",
    "c = 1",
    "NOT IS_DEFINED(c.a)",
    "STARTSWITH(c.a, 'x', true)",
    "STARTSWITH('x', c.a)",
    "STARTSWITH(c.a, '\\ud83d\\ude00')",
    "c.a < '\\ue000'",
    "c.a LIKE '%x'",
    "ARRAY_CONTAINS(c.tags, {'x': 1})",
    "ARRAY_CONTAINS(c.tags, 1, true)",
    "EXISTS(SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t = 1)",
    "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.x = 1)",
    "c._etag = 'x'",
    "c._rid = 'x'",
    "c['a\\u0000'] = 1",
    "c._ts.x = 1",
    "false",
    "1",
]


@pytest.mark.parametrize(("where", "predicates"), WHOLE)
def test_these_filters_are_pushed_down_whole(compiled: Any, where: str, predicates: list[Predicate]) -> None:
    assert repr(pushed(compiled, where)) == repr(Pushdown(tuple(predicates), True))


@pytest.mark.parametrize(("where", "predicates"), IN_PART)
def test_these_filters_are_pushed_down_in_part(
    compiled: Any, where: str, predicates: list[Predicate]
) -> None:
    assert pushed(compiled, where) == Pushdown(tuple(predicates), False)


@pytest.mark.parametrize("where", LEFT_OUT)
def test_these_filters_are_left_to_the_compiled_query(compiled: Any, where: str) -> None:
    assert pushed(compiled, where) == Pushdown()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400, "\ud800", [1], {}])
def test_a_parameter_that_no_stored_scalar_can_equal_is_left_out(compiled: Any, value: Any) -> None:
    assert pushed(compiled, "c.a = @p", p=value) == Pushdown()


def test_a_parameter_counts_as_its_value(compiled: Any) -> None:
    assert pushed(compiled, "c[@name] = @value", name="a", value=2**60) == Pushdown((one_of(2.0**60),), False)
    assert pushed(compiled, "@yes AND c.a >= @low", yes=True, low="x") == Pushdown((between("x"),), True)


def test_a_query_without_a_filter_is_whole(compiled: Any) -> None:
    assert pushdown(compiled("SELECT VALUE COUNT(1) FROM c").plan, {}, everything) == Pushdown((), True)


@pytest.mark.parametrize(
    ("text", "predicates"),
    [
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.a = 1", [one_of(1)]),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 1", [one_of(1, path=TAGS, element=True)]),
        ("SELECT VALUE t FROM t IN c.tags WHERE t = 1", [one_of(1, path=TAGS, element=True)]),
        ("SELECT * FROM c.a WHERE a.x = 1", [one_of(1, path=("a", "x"))]),
        ("SELECT VALUE COUNT(1) FROM (SELECT VALUE c.k FROM c WHERE c.a = 1)", [one_of(1)]),
        ("SELECT VALUE x FROM (SELECT VALUE c.k FROM c) AS x WHERE x = 1", []),
        ("SELECT VALUE 1", []),
    ],
)
def test_a_query_with_more_than_the_items_as_source_is_never_whole(
    compiled: Any, text: str, predicates: list[Predicate]
) -> None:
    assert pushdown(compiled(text).plan, {}, everything) == Pushdown(tuple(predicates), False)


def test_only_paths_of_the_policy_count_besides_id_and_ts(compiled: Any, policy: Any) -> None:
    rules = policy(includedPaths=[{"path": "/*"}], excludedPaths=[{"path": "/a/?"}, {"path": "/tags/[]/?"}])
    plan = compiled(
        "SELECT * FROM c WHERE c.a = 1 AND c.a.b = 2 AND ARRAY_CONTAINS(c.tags, 1) AND ARRAY_CONTAINS(c.x, 1)"
    ).plan
    assert pushdown(plan, {}, policy_paths(rules)).predicates == (
        one_of(2, path=("a", "b")),
        one_of(1, path=("x",), element=True),
    )
    nothing = policy(indexingMode="none")
    plan = compiled("SELECT * FROM c WHERE c.a = 1 AND c.id = 'x' AND c._ts = 1").plan
    assert pushdown(plan, {}, policy_paths(nothing)).predicates == (
        one_of("x", path=("id",)),
        one_of(1, path=("_ts",)),
    )


def test_elements_are_asked_for_with_their_own_step(compiled: Any) -> None:
    asked: list[Steps] = []
    plan = compiled("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 1)").plan

    def nothing(place: Steps) -> bool:
        asked.append(place)
        return False

    assert pushdown(plan, {}, nothing) == Pushdown()
    assert asked == [("tags", ELEMENT)]


def test_computed_properties_are_never_pushed_down_nor_ordered_by(compiled: Any) -> None:
    plan = compiled("SELECT * FROM c WHERE c.a = 1 AND c.b.a = 2 ORDER BY c.a").plan
    assert pushdown(plan, {}, everything, ["a"]) == Pushdown((one_of(2, path=("b", "a")),), False)
    assert path_order(plan, computed=["a"]) is None


def test_the_number_of_predicates_and_of_their_values_is_bounded(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = " AND ".join(f"c.p{number} = 1" for number in range(40))
    found = pushed(compiled, many)
    assert (len(found.predicates), found.is_whole) == (pushdown_module.PREDICATES_MAX, False)
    monkeypatch.setattr(pushdown_module, "VALUES_MAX", 2)
    assert pushed(compiled, "c.a IN (1, 2, 3)") == Pushdown()
    assert pushed(compiled, "c.a IN (1, 2) OR c.a = 3") == Pushdown()


def test_a_long_or_of_keys_becomes_one_list_for_each_path(compiled: Any) -> None:
    found = pushed(compiled, " OR ".join(f"(c.id = '{n}' AND c.k = {n})" for n in range(1000)))
    assert [len(each.one_of or ()) for each in found.predicates] == [1000, 1000]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("SELECT * FROM c ORDER BY c.a", PathOrder(A)),
        ("SELECT * FROM c ORDER BY c.a.b DESC", PathOrder(("a", "b"), True)),
        ("SELECT * FROM c ORDER BY c._ts", PathOrder(("_ts",))),
        ("SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.a", PathOrder(A)),
        ("SELECT * FROM c", None),
        ("SELECT * FROM c ORDER BY c.a, c.b", None),
        ("SELECT * FROM c ORDER BY c.a[0]", None),
        ("SELECT * FROM c ORDER BY c", None),
        ("SELECT * FROM c ORDER BY c._etag", None),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a", None),
        ("SELECT * FROM (SELECT VALUE c FROM c) AS x ORDER BY x.a", None),
    ],
)
def test_one_plain_sort_path_can_be_read_in_order(compiled: Any, text: str, order: PathOrder | None) -> None:
    assert path_order(compiled(text).plan) == order

"""The clauses and operators of the language, by table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.index.policy import IndexingPolicy
from pleiad.limits import Limits
from pleiad.query import QueryContext, compile_condition, compile_query
from pleiad.query.order_rules import check_order_by
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import parse
from pleiad.query.syntax.print import print_expression
from pleiad.server.http.failures import status_of

Run = Callable[..., list[Any]]
ITEMS: list[dict[str, Any]] = [
    {
        "id": "1",
        "n": 3,
        "s": "b",
        "flag": True,
        "tags": ["x", "y"],
        "o": {"k": 1},
        "arr": [{"v": 1}, {"v": 2}],
    },
    {"id": "2", "n": 1, "s": "a", "flag": False, "tags": [], "o": {"k": None}},
    {"id": "3", "n": 2.0, "s": "B", "tags": ["y"], "arr": [{"v": 2}], "value": "v"},
    {"id": "4", "s": None, "tags": "no array"},
]

VALUES = [
    ("1 = 1.0", [True]),
    ("1 = true", [False]),
    ("null = null", [True]),
    ("1 = '1'", [False]),
    ("1 != '1'", [True]),
    ("undefined = undefined", []),
    ("null != 'x'", [True]),
    ("{a: 1, b: [2]} = {b: [2], a: 1}", [True]),
    ("[1, 2] = [2, 1]", [False]),
    ("[] = {}", [False]),
    ("[undefined] = []", [True]),
    ("1 < 'a'", []),
    ("[1] < [2]", []),
    ("null < null", [False]),
    ("null <= null", [True]),
    ("false < true", [True]),
    ("9007199254740993 = 9007199254740992", [False]),
    ("true AND 1", []),
    ("false AND undefined", [False]),
    ("true OR undefined", [True]),
    ("false OR undefined", []),
    ("NOT 0", []),
    ("NOT null", []),
    ("null ?? 5", [None]),
    ("undefined ?? 5", [5]),
    ("1 ? 'then' : 'else'", ["else"]),
    ("undefined ? 'then' : 'else'", ["else"]),
    ("true ? 1 : false ? 2 : 3", [1]),
    ("5 BETWEEN 9 AND 'z'", [False]),
    ("5 BETWEEN 1 AND 'z'", []),
    ("undefined IN (1)", []),
    ("null IN (null)", [True]),
    ("1 IN ('1', undefined)", [False]),
    ("1 NOT IN (1)", [False]),
    ("'a_c' LIKE 'a[_]c'", [True]),
    ("'abc' LIKE 'a[_]c'", [False]),
    ("'50%' LIKE '50!%' ESCAPE '!'", [True]),
    ("'B7' LIKE '[A-C]_'", [True]),
    ("'D7' LIKE '[^A-C]%'", [True]),
    ("'abc' LIKE 'B%'", [False]),
    ("'a]b' LIKE 'a]b'", [True]),
    ("'[' LIKE '[[]'", [True]),
    ("5 LIKE '5'", []),
    ("'abcabd' LIKE '%ab%d'", [True]),
    ("'a' NOT LIKE 'b'", [True]),
    ("7 % -4", [3]),
    ("-7 % 4", [-3]),
    ("1 / 0", []),
    ("IS_FINITE_NUMBER(1 / 0)", [False]),
    ("[1 / 0, 1]", [[1]]),
    ("1 + 'a'", []),
    ("0.5 + 0.5", [1]),
    ("-'a'", []),
    ("~5", [-6]),
    ("1 << 33", [2]),
    ("-1 >>> 0", [-1]),
    ("-8 >> 1", [-4]),
    ("'a' || 'b' || 'c'", ["abc"]),
    ("'a' || 1", []),
    ("1 + 2 * 3", [7]),
    ("0x1F", [31]),
    ("1. + .5", [1.5]),
    ("[1, 2, 3][1]", [2]),
    ("[1, 2, 3][3]", []),
    ("[1][-1]", []),
    ("{a: {b: 2}}.a.b", [2]),
    ("{a: 1}['a']", [1]),
    ("null.a", []),
    ("'\\u00e9\\n\\'\\\"'", ["é\n'\""]),
    ("'\\ud83d\\ude00'", ["😀"]),
    ("TOSTRING(NaN)", ["NaN"]),
    ("undefined", []),
    ("{a: undefined}", [{}]),
    ("EXISTS(SELECT VALUE undefined)", [False]),
    ("EXISTS(SELECT undefined)", [True]),
    ("ARRAY(SELECT VALUE x FROM x IN (SELECT VALUE [1, 2]))", [[1, 2]]),
    ("FIRST(SELECT VALUE x FROM x IN (SELECT VALUE [1, 2]))", [1]),
    ("LAST(SELECT VALUE x FROM x IN (SELECT VALUE [1, 2]))", [2]),
    ("ALL(SELECT VALUE x FROM x IN (SELECT VALUE [1, 2]) WHERE x > 0)", [True]),
    ("ALL(SELECT VALUE x FROM x IN (SELECT VALUE [1, 2]) WHERE x > 1)", [False]),
    ("(SELECT VALUE 1 WHERE false)", []),
    ("1 -- b", [1]),
    # What is not a number counts inside an array, and is left out where results are written.
    ("ARRAY_LENGTH([0/0])", [1]),
    ("TOSTRING([0/0, {a: 1/0}])", ['[NaN,{"a":Infinity}]']),
    ("[0/0] = [0/0]", [False]),
    ("[0/0, 1, [1/0], {a: 0/0, b: 4/2}]", [[1, [], {"b": 2}]]),
    ("ARRAY_CONCAT([0/0], [4/2])", [[2]]),
    ("[[0/0, 1]][0]", [[1]]),
    ("[0/0][0]", []),
    ("TOSTRING(SETUNION([0/0], [0/0, 1]))", ["[NaN,NaN,1]"]),
    ("TOSTRING(ARRAY_MAX([1, 0/0]))", ["NaN"]),
    ("ARRAY_MIN([0/0, 1])", [1]),
    # An index is a number of 32 bits.
    ("[1, 2, 3][-0.5]", [1]),
    ("[1, 2, 3][4294967297]", [2]),
    ("[1, 2, 3][-4294967295]", [2]),
    # Doubles without a fraction have 17 digits.
    ("TOSTRING(1e23)", ["9.9999999999999992e+22"]),
    ("TOSTRING(1e17)", ["1e+17"]),
    ("TOSTRING(1e16)", ["10000000000000000"]),
    # Integers are summed exactly; what overflows is computed with doubles.
    ("TOSTRING((1e16 % 3) + 9007199254740993)", ["9007199254740994"]),
    ("TOSTRING(9007199254740993 - (7 % 4.0))", ["9007199254740990"]),
    ("TOSTRING(9007199254740993 + (7.5 % 1.5))", ["9007199254740993"]),
    ("TOSTRING((9007199254740992 % 1e16) + 9007199254740993)", ["18014398509481984"]),
    ("TOSTRING((4.0 / 2) + 9007199254740993)", ["9007199254740994"]),
    ("TOSTRING(ARRAY_SUM([9007199254740993]))", ["9007199254740993"]),
    ("TOSTRING(ARRAY_AVG([9007199254740993, 9007199254740994]))", ["9007199254740994"]),
    ("TOSTRING(ARRAY_MEDIAN([9007199254740993]))", ["9007199254740993"]),
    ("TOSTRING(SQUARE(9007199254740993))", ["8.1129638414606682e+31"]),
    # Rounded numbers are integers where 64 bits hold them, and the least one where they do not.
    ("TOSTRING(ROUND(1e17))", ["100000000000000000"]),
    ("TOSTRING(ROUND(-0.4))", ["0"]),
    ("ROUND(123456789.125, 4294967297)", [123456789.12499999]),
    ("TOSTRING(ROUND(12345, -309))", ["NaN"]),
    ("ROUND(-1e300)", [-9223372036854775808]),
    ("ROUND(1e300)", [1e300]),
    ("TOSTRING(NUMBERBIN(1e17))", ["100000000000000000"]),
    ("NUMBERBIN(-9223372036854775808, 3)", [9223372036854775807]),
    ("NUMBERBIN(-9223372036854775808, 1e15)", [9222744073709551616]),
    ("TOSTRING(NUMBERBIN(-6.5, -50))", ["0"]),
    ("TOSTRING(ARRAY_SUM([-281.0, -522996157874874922]))", ["-5.229961578748752e+17"]),
    ("[1.0, {a: 2.0}]", [[1, {"a": 2}]]),
    ("ARRAY_CONCAT([1.0], [[2.0]])", [[1, [2]]]),
    ("{a: [1.0]}.a", [[1]]),
    # Bit operators give doubles, SIGN and texts without a fraction integers.
    ("TOSTRING((1 | 0) * 9007199254740993)", ["9007199254740992"]),
    ("TOSTRING(~2 * 9007199254740991)", ["-27021597764222972"]),
    ("3 & 1", [1]),
    ("TOSTRING(SIGN(5) * 9007199254740993)", ["9007199254740993"]),
    ("SIGN(0/0)", []),
    ("TOSTRING(STRINGTONUMBER('9007199254740993.0'))", ["9007199254740993"]),
    # A set that is not closed matches nothing, not even itself.
    ("'[' LIKE '['", [False]),
    ("'x[' LIKE 'x%['", [False]),
    ("'[]' LIKE '[]'", [False]),
    ("']' LIKE '[]]'", [True]),
    ("'[' LIKE '[[]'", [True]),
]


@pytest.mark.parametrize(("expression", "expected"), VALUES, ids=[text for text, _ in VALUES])
def test_an_expression_has_its_value(run: Run, expression: str, expected: list[Any]) -> None:
    assert run(f"SELECT VALUE {expression}") == expected


QUERIES = [
    ("SELECT 1, c.id, 2 FROM c WHERE c.id = '1'", [{"$1": 1, "id": "1", "$2": 2}]),
    ("SELECT c.arr[0] FROM c WHERE c.id = '1'", [{"$1": {"v": 1}}]),
    ("SELECT c.o.k, c['value'] FROM c WHERE c.id = '3'", [{"value": "v"}]),
    ("SELECT c.nope FROM c WHERE c.n = 1", [{}]),
    ("SELECT VALUE c.nope FROM c", []),
    ("SELECT VALUE c.id FROM c WHERE c.flag", ["1"]),
    ("SELECT VALUE c.id FROM c WHERE 1", []),
    ("SELECT VALUE c.id FROM c WHERE NOT c.flag", ["2"]),
    ("SELECT VALUE c.id FROM c WHERE c.n = 2", ["3"]),
    ("SELECT VALUE c.id FROM c WHERE c.s != null", ["1", "2", "3"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.n", ["4", "2", "3", "1"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.n DESC", ["1", "3", "2", "4"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.s", ["4", "3", "2", "1"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.flag DESC, c.id", ["1", "2", "3", "4"]),
    ("SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2", ["2", "3"]),
    ("SELECT TOP 2 VALUE c.id FROM c", ["1", "2"]),
    ("SELECT TOP 0 VALUE c.id FROM c", []),
    (
        "SELECT c.id, t FROM c JOIN t IN c.tags",
        [{"id": "1", "t": "x"}, {"id": "1", "t": "y"}, {"id": "3", "t": "y"}],
    ),
    ("SELECT VALUE t FROM t IN c.tags", ["x", "y", "y"]),
    ("SELECT VALUE tags FROM c.tags", [["x", "y"], [], ["y"], "no array"]),
    ("SELECT * FROM c.o", [{"k": 1}, {"k": None}]),
    ("SELECT VALUE x.v FROM c JOIN (SELECT VALUE a FROM a IN c.arr WHERE a.v > 1) x", [2, 2]),
    ("SELECT VALUE c.id FROM c JOIN (SELECT VALUE c.flag) f", ["1", "2"]),
    ("SELECT DISTINCT VALUE t FROM t IN c.tags", ["x", "y"]),
    ("SELECT DISTINCT c.nope FROM c", [{}]),
    ("SELECT COUNT(1), SUM(c.n), AVG(c.n), MIN(c.n), MAX(c.n) FROM c WHERE false", [{"$1": 0, "$2": 0}]),
    ("SELECT VALUE AVG(c.n) FROM c", [2]),
    ("SELECT VALUE SUM(c.s) FROM c", []),
    ("SELECT VALUE COUNT(c.s) FROM c", [4]),
    ("SELECT VALUE MIN(c.o) FROM c", []),
    ("SELECT VALUE COUNTIF(c.n > 1) FROM c", [2]),
    ("SELECT VALUE MAKESET(t) FROM t IN c.tags", [["x", "y"]]),
    ("SELECT VALUE {n: COUNT(1)} FROM c", [{"n": 4}]),
    (
        "SELECT c.flag, COUNT(1) AS n FROM c GROUP BY c.flag",
        [{"flag": True, "n": 1}, {"flag": False, "n": 1}, {"n": 2}],
    ),
    ("SELECT VALUE c.flag FROM c GROUP BY c.flag", [True, False]),
    (
        "SELECT UPPER(c.s) AS u, COUNT(1) AS n FROM c WHERE IS_STRING(c.s) GROUP BY UPPER(c.s)",
        [{"u": "B", "n": 2}, {"u": "A", "n": 1}],
    ),
    ("SELECT c.o.k + 1 AS k FROM c GROUP BY c.o", [{"k": 2}, {}, {}]),
    ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.flag FROM c)", [2]),
    ("SELECT g.k FROM (SELECT c.o.k FROM c GROUP BY c.o.k) g WHERE g.k = 1", [{"k": 1}]),
    ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c", [2, 0, 1, 0]),
    ("SELECT c.n FROM c GROUP BY c.n ORDER BY c.n DESC", [{"n": 3}, {"n": 2}, {"n": 1}, {}]),
    ("SELECT VALUE ALL.id FROM ALL WHERE ALL.id = '1'", ["1"]),
    ("SELECT VALUE root.id FROM root WHERE root.id = '1'", ["1"]),
    ("select value c.id from c where c.id = '1' order by c.id desc offset 0 limit 1", ["1"]),
    ("SELECT VALUE k.k FROM c JOIN k IN (SELECT VALUE OBJECTTOARRAY(c.o))", ["k", "k"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), QUERIES, ids=[text for text, _ in QUERIES])
def test_a_query_gives_its_rows(run: Run, text: str, expected: list[Any]) -> None:
    assert run(text, ITEMS) == expected


PARAMETERS = [
    ("SELECT TOP @n VALUE c.id FROM c", {"@n": 1}, ["1"]),
    ("SELECT VALUE c.id FROM c OFFSET @o LIMIT @l", {"@o": 1, "@l": 1}, ["2"]),
    ("SELECT VALUE c.id FROM c WHERE c.n IN (@a, @b)", {"@a": 3, "@b": "3"}, ["1"]),
    ("SELECT VALUE c[@name] FROM c", {"@name": "id"}, ["1", "2", "3", "4"]),
    ("SELECT VALUE c.arr[@i].v FROM c", {"@i": 1}, [2]),
    ("SELECT VALUE c.id FROM c WHERE c.o = @o", {"@o": {"k": 1}}, ["1"]),
    ("SELECT VALUE c.id FROM c WHERE c.n = @n", {"@n": True}, []),
    ("SELECT VALUE c.id FROM c WHERE c.n >= @n", {"@n": 2}, ["1", "3"]),
    ("SELECT VALUE c.id FROM c WHERE c.s LIKE @p", {"@p": "_"}, ["1", "2", "3"]),
    ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id)", {"@ids": ["1", "4"]}, ["1", "4"]),
    ("SELECT VALUE c.id FROM c WHERE c.s = @s", {"@s": None}, ["4"]),
]


@pytest.mark.parametrize(
    ("text", "parameters", "expected"), PARAMETERS, ids=[text for text, _, _ in PARAMETERS]
)
def test_parameters_stand_for_values(
    run: Run, text: str, parameters: dict[str, Any], expected: list[Any]
) -> None:
    assert run(text, ITEMS, parameters) == expected


def test_one_text_serves_parameters_of_every_type(run: Run) -> None:
    text = "SELECT VALUE c.v FROM c WHERE c.v = @v"
    values = [None, True, 1, 1.5, "a", "\U0001f600", [1], {"a": 1}, 2**60]
    items = [{"v": value} for value in values]
    for value in values:
        assert run(text, items, {"@v": value}) == [value]


FAILURES = [
    ("SELECT", "SC1002", (6, 6)),
    ("SELECT 1,", "SC1002", (9, 9)),
    ("SELECT VALUE 1, 2", "SC1001", (14, 15)),
    ("SELECT c.value FROM c", "SC1001", (9, 14)),
    ("SELECT * FROM c OFFSET 1", "SC1002", (24, 24)),
    ("SELECT * FROM c LIMIT 1", "SC1001", (16, 21)),
    ("SELECT TOP 1 * FROM c OFFSET 0 LIMIT 1", "SC2205", (0, 38)),
    ("SELECT 'open", "SC1012", (7, 12)),
    ("SELECT # FROM c", "SC1010", (7, 8)),
    ("SELECT /* open", "SC1001", (7, 8)),
    ("SELECT '\\u12'", "SC1012", (7, 13)),
    ("SELECT 1e400", "SC1011", (7, 12)),
    ("SELECT 1 a b ;", "SC1001", (11, 12)),
    ("SELECT VALUE x.id FROM c", "SC2001", (13, 14)),
    ("SELECT products.id FROM products p", "SC2001", (7, 15)),
    ("SELECT c.id FROM c JOIN t IN d.tags", "SC2001", (29, 30)),
    ("SELECT NOPE(1)", "SC2005", (7, 11)),
    ("SELECT VALUE LENGTH()", "SC2050", (13, 21)),
    ("SELECT VALUE COUNT(1, 2) FROM c", "SC2050", (13, 24)),
    ("SELECT * FROM c GROUP BY c.id", "SC2041", (7, 8)),
    ("SELECT *", "SC1021", (7, 8)),
    ("SELECT * FROM c JOIN t IN c.tags", "SC2042", (7, 8)),
    ("SELECT c.a FROM c GROUP BY c.b", "SC2102", (7, 10)),
    ("SELECT c.a, COUNT(1) FROM c", "SC2102", (7, 10)),
    ("SELECT c.b FROM c GROUP BY c.b ORDER BY c.a", "SC2103", (40, 43)),
    ("SELECT 1 FROM c GROUP BY c.tags[0] ORDER BY c.tags[0]", "SC2103", (44, 50)),
    ("SELECT SUM(COUNT(1)) FROM c", "SC2101", (7, 20)),
    ("SELECT * FROM c ORDER BY VectorDistance(c.v, [1, 'a'])", 2206, None),
    ("SELECT * FROM c ORDER BY VectorDistance(c.v, c.w)", 2206, None),
    ("SELECT 1 FROM c WHERE COUNT(1) > 1", "SC2104", (22, 30)),
    ("SELECT (SELECT VALUE 1 FROM c ORDER BY c.a) FROM c", "SC2202", (30, 42)),
    ("SELECT (SELECT TOP 1 VALUE 1) FROM c", "SC2203", (15, 20)),
    ("SELECT (SELECT VALUE 1 OFFSET 0 LIMIT 1) FROM c", "SC2204", (23, 39)),
    ("SELECT TOP 1.5 * FROM c", "SC2060", (11, 14)),
    ("SELECT TOP 4294967296 * FROM c", "SC2060", (11, 21)),
    ("SELECT * FROM c OFFSET 0 LIMIT 4294967296", "SC2061", (31, 41)),
    ("SELECT * FROM c OFFSET 4294967296 LIMIT 0", "SC2062", (23, 33)),
    ("SELECT 1 FROM c JOIN c IN c.tags", "SC2021", (21, 22)),
    ("SELECT VALUE DATETIMEADD('10', '2020-01-01')", "SC2053", (13, 44)),
    ("SELECT * FROM c ORDER BY LOWER(c.a)", 2206, None),
    ("SELECT FullTextScore(c.a, 'b') FROM c", "SC2240", (7, 30)),
    ("SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'b'))", "SC2233", (16, 58)),
    (
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'b'), RRF(FullTextScore(c, 'b'), FullTextScore(c, 'b')))",
        "SC2005",
        (59, 62),
    ),
    ("SELECT * FROM c ORDER BY RANK RRF(NOPE(c.a), FullTextScore(c.a, 'b'))", "SC2005", (34, 38)),
    ("SELECT * FROM c ORDER BY RANK RRF(LOWER(c.a), FullTextScore(c.a, 'b'))", "SC2221", (16, 70)),
    ("SELECT * FROM t IN c.t ORDER BY RANK FullTextScore(t.a, 'b')", "SC2223", (14, 22)),
    ("SELECT c[1 + 1] FROM c", "SC2990", (7, 15)),
    ("SELECT c.a, c.b.a FROM c", "SC2022", (16, 17)),
    ("SELECT (SELECT VALUE x FROM x IN c.a) FROM c", "SC2201", (8, 36)),
    ("SELECT 1 FROM c GROUP BY 1", "SC2110", (25, 26)),
    ("SELECT c.a BETWEEN 1 AND 2 AND true FROM c", "SC1001", (27, 30)),
    ("SELECT c.when FROM c", "SC1001", (9, 13)),
    ("SELECT (LET c = 1 IN c) FROM c", "SC2023", (12, 13)),
]  # fmt: skip


GROUPINGS = [
    ("c.n = 'a' || 'b'", '(c.n = ("a" || "b"))'),
    ("c.f & 1 = 1", "((c.f & 1) = 1)"),
    ("1 + 2 & 3 - 4 | 5", "((((1 + 2) & 3) - 4) | 5)"),
    ("2 = c.a << 1", "((2 = c.a) << 1)"),
    ("c.a << 1 = 2", "((c.a << 1) = 2)"),
    ("NOT c.a = c.b", "((NOT c.a) = c.b)"),
    ("NOT c.a IN (1)", "((NOT c.a) IN (1))"),
    ("1 ?? 2 ?? 3", "(1 ?? (2 ?? 3))"),
    ("1 ? 2 ?? 3 : 4 ? 5 : 6", "(1 ? (2 ?? 3) : (4 ? 5 : 6))"),
    ("c.a OR c.b AND c.d", "(c.a OR (c.b AND c.d))"),
    ("c.a LIKE 'a' = 'b'", '(c.a LIKE ("a" = "b"))'),
    ("c.a NOT BETWEEN 1 AND 2 ?? 3", "((c.a NOT BETWEEN 1 AND 2) ?? 3)"),
    ("- -1 * ~2", "((- -1) * (~ 2))"),
    ("c.a NOT IN (1)", "(c.a NOT  IN (1))"),
]


@pytest.mark.parametrize(("text", "printed"), GROUPINGS, ids=[text for text, _ in GROUPINGS])
def test_operators_group_as_the_service_groups_them(text: str, printed: str) -> None:
    selection = parse(f"SELECT VALUE {text} FROM c", Limits()).selection
    assert isinstance(selection, ast.SelectValue)
    assert print_expression(selection.expression) == printed


def test_several_faults_come_in_one_answer_in_the_order_of_the_clauses(run: Run) -> None:
    text = "SELECT x1, {a: 1, a: 2} FROM c JOIN j IN zz WHERE w1 AND ABS() GROUP BY g1 ORDER BY o1"
    with pytest.raises(PleiadError) as raised:
        run(text)
    found = [error["code"] for error in json.loads(raised.value.message)["errors"]]
    assert found == ["SC2001", "SC2001", "SC2050", "SC2001", "SC2110", "SC2001", "SC2001", "SC2022"]


@pytest.mark.parametrize(("text", "code", "place"), FAILURES, ids=[text for text, _, _ in FAILURES])
def test_a_wrong_query_names_its_fault_and_its_place(
    limits: Limits, text: str, code: str | int, place: tuple[int, int] | None
) -> None:
    with pytest.raises(PleiadError) as raised:
        compile_query(text, limits)
    assert status_of(raised.value) == 400
    (entry,) = json.loads(raised.value.message)["errors"]
    assert entry["code"] == code
    assert entry.get("location") == (None if place is None else {"start": place[0], "end": place[1]})


def test_a_scalar_subquery_with_two_rows_fails(run: Run) -> None:
    with pytest.raises(PleiadError, match="cardinality"):
        run("SELECT VALUE (SELECT VALUE t FROM t IN c.tags) FROM c", ITEMS)


def test_order_by_over_a_joined_alias_is_refused(limits: Limits) -> None:
    query = compile_query("SELECT c.id FROM c JOIN t IN c.tags ORDER BY t", limits)
    with pytest.raises(PleiadError, match="correlated"):
        check_order_by(query.plan, IndexingPolicy.from_json(None, limits), {})


def test_a_parameter_that_is_not_given_is_undefined(run: Run) -> None:
    assert run("SELECT VALUE @gone") == []
    assert run("SELECT VALUE c.id FROM c WHERE c.id = (@gone ?? '1')", ITEMS) == ["1"]


@pytest.mark.parametrize("count", [-1, 1.5, "1", None, True, 2**40])
def test_a_count_must_be_a_whole_number(run: Run, count: Any) -> None:
    with pytest.raises(PleiadError):
        run("SELECT TOP @n * FROM c", ITEMS, {"@n": count})


def test_a_condition_is_a_query_without_its_select(limits: Limits, context: QueryContext) -> None:
    condition = compile_condition("from c where c.n = @n", limits)
    assert [condition.matches(item, {"@n": 2}, context) for item in ITEMS] == [False, False, True, False]
    assert compile_condition("FROM root r WHERE r.flag", limits).matches(ITEMS[0], {}, context)


def test_a_user_defined_function_is_called_with_evaluated_arguments(run: Run, limits: Limits) -> None:
    context = QueryContext(limits=limits, udfs={"twice": lambda value: value * 2})
    assert run("SELECT VALUE udf.twice(c.n) FROM c WHERE IS_DEFINED(c.n)", ITEMS, {}, context) == [6, 2, 4]
    with pytest.raises(PleiadError, match="gone"):
        run("SELECT VALUE udf.gone(1)", ITEMS, {}, context)


def test_a_computed_property_goes_before_a_stored_one_except_in_star(run: Run, limits: Limits) -> None:
    lower = compile_query("SELECT VALUE LOWER(c.s) FROM c", limits)
    context = QueryContext(limits=limits, computed_properties=(("s2", lower), ("flag", lower)))
    assert run("SELECT VALUE c.s2 FROM c WHERE c.s2 = 'b'", ITEMS, {}, context) == ["b", "b"]
    assert run("SELECT VALUE c.flag FROM c WHERE c.id = '3'", ITEMS, {}, context) == ["b"]
    assert run("SELECT VALUE c['s2'] FROM c ORDER BY c.s2 OFFSET 0 LIMIT 1", ITEMS, {}, context) == ["a"]
    assert run("SELECT * FROM c WHERE c.s2 = 'a'", ITEMS, {}, context) == [ITEMS[1]]
    assert run("SELECT VALUE c[@p] FROM c WHERE c.id = '1'", ITEMS, {"@p": "s2"}, context) == ["b"]


def test_strings_are_ordered_by_utf16_code_unit(run: Run) -> None:
    items = [{"s": text} for text in ("\ue000", "\U0001f600", "z", "é")]
    assert run("SELECT VALUE c.s FROM c ORDER BY c.s", items) == ["z", "é", "\U0001f600", "\ue000"]
    assert run("SELECT VALUE c.s FROM c WHERE c.s < '\ue000'", items) == ["\U0001f600", "z", "é"]


def test_order_by_puts_types_in_their_order(run: Run) -> None:
    values = [{}, [], "a", 1, True, None]
    items = [*({"v": value} for value in values), {}]
    ordered = run("SELECT c.v FROM c ORDER BY c.v", items)
    assert ordered == [{}, *({"v": value} for value in reversed(values))]
    assert run("SELECT c.v FROM c ORDER BY c.v DESC", items) == ordered[::-1]


def test_what_is_not_a_number_stays_out_of_lists_and_keys_of_groups(
    limits: Limits, context: QueryContext
) -> None:
    items = [{"n": 1}, {"n": 0}, {"n": 0}]
    listed = compile_query("SELECT VALUE MAKELIST({x: [c.n / 0]}) FROM c", limits)
    assert listed.run(items, {}, context) == [[{"x": []}, {"x": []}, {"x": []}]]
    grouped = compile_query("SELECT COUNT(1) AS n, [c.n / 0] AS k FROM c GROUP BY [c.n / 0]", limits)
    assert grouped.run(items, {}, context) == [{"n": 3, "k": []}]


@pytest.mark.parametrize(
    ("call", "given", "problem"),
    [
        ("VectorDistance(c.v, @given)", [1, 2], None),
        ("VectorDistance(@given, c.v)", [], None),
        ("VectorDistance(c.v, @given)", [1, "a"], "2206"),
        ("VectorDistance(c.v, @given)", "a", "2206"),
        ("VectorDistance(c.v, [1], false, @given)", {}, None),
        ("VectorDistance(c.v, [1], false, @given)", {"distanceFunction": "euclidean"}, None),
        ("VectorDistance(c.v, [1], false, @given)", {"x": 1}, "'x' is not a valid option name"),
        ("VectorDistance(c.v, [1], false, @given)", {"searchListSizeMultiplier": 101}, "SC2213"),
        ("VectorDistance(c.v, [1], false, @given)", 1, "SC2210"),
    ],
)
def test_a_vector_and_options_of_nearness_may_be_parameters_of_the_right_kind(
    run: Run, call: str, given: Any, problem: str | None
) -> None:
    items = [{"id": "far", "v": [5]}, {"id": "near", "v": [1]}]
    text = f"SELECT VALUE c.id FROM c ORDER BY {call}"
    if problem is None:
        assert sorted(run(text, items, {"@given": given})) == ["far", "near"]
        return
    with pytest.raises(PleiadError) as raised:
        run(text, items, {"@given": given})
    assert problem in raised.value.message

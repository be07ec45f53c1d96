"""A query made of a syntax tree is the query of its text: answers, routes, pushdown, plans and errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from differential.queries import Queries
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import Query, QueryContext, compile_query, compile_tree
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.pushdown import path_order, pushdown
from pleiad.query.route.keys import key_values
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import parse
from pleiad.query.syntax.print import print_query
from pleiad.query.syntax.shape import counts
from pleiad.query.syntax.tree import constant, identity
from pleiad.server.http.failures import status_of
from pleiad.values.scalars import Binary, DateTime, Decimal128, Int64, ObjectId
from pleiad.values.stored import to_stored
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()
CASES = 400
KEY_PATHS = (("pk",), ("a",), ("id",))
C = ast.Identifier("c")
FROM_C = (ast.Source(C, None, False),)


def without_places(node: Any) -> Any:
    """The tree as a head would make it, which knows of no text."""
    if isinstance(node, tuple):
        return tuple(map(without_places, node))
    if not isinstance(node, ast.Node):
        return node
    fields = {
        field.name: without_places(getattr(node, field.name))
        for field in dataclasses.fields(node)
        if counts(field.name)
    }
    return type(node)(**fields)


def outcome(work: Any) -> Any:
    """What comes of it: a value, or the reasons for which it was refused without their places."""
    try:
        return ("value", work())
    except PleiadError as error:
        return ("refused", status_of(error))


def facts(query: Query, parameters: dict[str, Any]) -> list[Any]:
    """What a query decides before it reads an item."""
    return [
        query.plan.block,
        query.parameters,
        query.aliases,
        (query.gives_items, query.filters_plainly, query.builds, query.leaves, query.filter_names),
        query.text_without_filter,
        outcome(lambda: pushdown(query.plan, parameters, lambda place: True, ())),
        outcome(lambda: path_order(query.plan, parameters, ())),
        outcome(lambda: key_values(query.plan, parameters, KEY_PATHS)),
        outcome(lambda: gateway_plan(query, parameters, [("pk",)], lambda keys: [{"keys": repr(keys)}])),
    ]


def check(text: str, parameters: dict[str, Any], items: list[Any], canon: Any) -> None:
    """A text and its tree are one query; without ``canon`` its answers are of the moment, and not compared."""
    try:
        syntax = parse(text, LIMITS)
    except PleiadError:
        return
    alone = without_places(syntax)
    assert identity(alone) == identity(syntax)
    by_text = outcome(lambda: Query(text, LIMITS))
    by_tree = outcome(lambda: Query.of_tree(alone, LIMITS))
    if by_text[0] == "refused":
        assert by_tree == by_text, text
        return
    one, two = by_text[1], by_tree[1]
    assert repr(facts(two, parameters)) == repr(facts(one, parameters)), text
    assert two.text == print_query(syntax)
    if canon is None:
        return
    context = QueryContext(limits=LIMITS)

    def answers(query: Query) -> Any:
        return outcome(lambda: [canon(value) for value in query.run(items, parameters, context)])

    assert answers(two) == answers(one), text


def test_random_queries_are_the_same_by_text_and_by_tree(oracle: Any, generator: Any) -> None:
    for seed in range(CASES):
        made = generator.Generator(seed)
        items = made.items()
        text, parameters = made.query()
        check(text, parameters, items, oracle.canon)


def test_random_filters_on_keys_are_the_same_by_text_and_by_tree(oracle: Any) -> None:
    queries = Queries(15)
    items = [{"id": "1", "pk": "a", "a": {"b": 1}, "tags": [1, "a"]}, {"id": "2", "pk": 1, "b": True}]
    for _ in range(CASES):
        case = queries.case()
        check(case.text, {each["name"]: each["value"] for each in case.parameters}, items, oracle.canon)


def test_a_public_example_is_the_same_by_text_and_by_tree(example: dict[str, Any], oracle: Any) -> None:
    parameters = {each["name"]: each["value"] for each in example.get("parameters") or ()}
    check(
        example["query"],
        parameters,
        example["dataset"] or [],
        oracle.canon if example["deterministic"] else None,
    )


def test_the_text_of_a_tree_is_a_query_that_says_the_same(oracle: Any, generator: Any) -> None:
    for seed in range(CASES):
        text, _ = generator.Generator(seed).query()
        try:
            query = Query.of_tree(without_places(parse(text, LIMITS)), LIMITS)
        except PleiadError:
            continue
        assert Query.of_tree(parse(query.text, LIMITS), LIMITS).text == query.text


# -- trees that no text was parsed to --------------------------------------------------------------


def select(where: ast.Expression | None = None, **more: Any) -> ast.Query:
    more = {"selection": ast.SelectStar(), "sources": FROM_C, **more}
    return ast.Query(where=where, **more)


def found(syntax: ast.Query, items: list[Any], **parameters: Any) -> list[Any]:
    given = {f"@{name}": value for name, value in parameters.items()}
    return Query.of_tree(syntax, LIMITS).run(items, given, QueryContext(limits=LIMITS))


@pytest.mark.parametrize(
    "name", ["plain", "a.b", 'a"] OR true OR c["b', "'", "\\", "\0", "\n--", "", "é😀", "SELECT"]
)
def test_a_property_may_have_any_name(name: str) -> None:
    items = [{name: 1, "n": 0}, {"n": 1}]
    syntax = select(ast.Binary("=", ast.Property(C, name), ast.Literal(1)))
    assert found(syntax, items) == items[:1]
    assert (
        compile_query(Query.of_tree(syntax, LIMITS).text, LIMITS).run(items, {}, QueryContext()) == items[:1]
    )


def test_an_alias_is_printed_whether_or_not_it_has_a_place() -> None:
    source = ast.Source(ast.Property(C, "o"), "x", False)
    syntax = select(
        ast.Binary("=", ast.Property(ast.Identifier("x"), "n"), ast.Parameter("@n")), sources=(source,)
    )
    assert Query.of_tree(syntax, LIMITS).text == "SELECT *\nFROM c.o AS x\nWHERE (x.n = @n)"
    assert found(syntax, [{"o": {"n": 1}}, {"o": {"n": 2}}], n=2) == [{"n": 2}]


@pytest.mark.parametrize(
    "value",
    [Int64(5), Decimal128("1.50"), DateTime(7), ObjectId(bytes(12)), Binary(b"\0", 4), [Int64(1)], {"$t": 9}],
)
def test_a_value_beyond_json_is_found_as_items_keep_it(value: Any) -> None:
    items = [{"v": to_stored(value)}, {"v": 5}, {"v": None}, {}]
    assert found(select(ast.Binary("=", ast.Property(C, "v"), constant(value))), items) == items[:1]


def test_equal_trees_are_compiled_once_and_others_are_not_taken_for_them() -> None:
    def tree(value: Any) -> ast.Query:
        return select(ast.Binary("=", ast.Property(C, "n"), ast.Literal(value)))

    values = [1, 1.0, True, "1", "True", None, UNDEFINED, 0.0, -0.0]
    compiled = [compile_tree(tree(value), LIMITS) for value in values]
    assert len(set(map(id, compiled))) == len(values)
    assert [compile_tree(tree(value), LIMITS) for value in values] == compiled
    by_text = compile_query("SELECT * FROM c WHERE c.n = 1", LIMITS)
    assert by_text is not compiled[0]
    assert [query.run([{"n": 1}, {"n": True}], {}, QueryContext()) for query in compiled[:3]] == [
        [{"n": 1}],
        [{"n": 1}],
        [{"n": True}],
    ]


def test_names_that_print_alike_are_told_apart() -> None:
    path = ast.Property(ast.Property(C, "a"), "b")
    assert identity(select(path)) != identity(select(ast.Property(C, "a.b")))
    assert identity(select(ast.Chain("AND", (path, path)))) != identity(select(ast.Chain("OR", (path, path))))


DEEP: Any = C
for _ in range(5_000):
    DEEP = ast.Unary("NOT", DEEP)


@pytest.mark.parametrize(
    "syntax",
    [
        select(DEEP),
        select(ast.Identifier("a b")),
        select(ast.Identifier("c.n")),
        select(ast.Identifier("select")),
        select(ast.Identifier("")),
        select(ast.Parameter("p")),
        select(ast.Parameter("@")),
        select(ast.Parameter("@a b")),
        select(ast.FunctionCall("__import__('os').system", (C,))),
        select(ast.FunctionCall("NO_SUCH_FUNCTION", (C,))),
        select(ast.Unary("not", C)),
        select(ast.Binary("**", C, C)),
        select(ast.Chain("AND", (C,))),
        select(ast.Chain("XOR", (C, C))),
        select(ast.In(C, (), False)),
        select(ast.In(C, (C,) * 16_001, False)),
        select(ast.Literal(2**63)),
        select(ast.Literal([1])),
        select(ast.Literal(Int64(1))),
        select(ast.Literal(b"bytes")),
        select(ast.Placeholder("{filter}")),
        select(ast.Property(C, 1)),  # type: ignore[arg-type]
        select(ast.ObjectLiteral((("a", C), ("a", C)))),
        select(ast.ObjectLiteral(((1, C),))),  # type: ignore[arg-type]
        select("c.n = 1"),  # type: ignore[arg-type]
        select(limit=ast.Literal(1)),
        select(top=ast.Literal("1")),
        select(top=ast.Literal(-1)),
        select(top=ast.Binary("+", C, C)),
        select(order_by=(ast.SortItem(ast.Property(C, "n"), "desc"),)),
        select(order_by=(ast.SortItem(C), ast.SortItem(C)), is_rank=True),
        select(selection=ast.SelectList(())),
        select(sources=(ast.Source(C, "a b", False),)),
        select(sources=(ast.Source(ast.Property(C, "t"), None, True),)),
        select(sources=(ast.Source(ast.Literal(1), "x", False),)),
        select(sources=()),
        select(ast.Literal("x" * 300_000)),
    ],
    ids=lambda syntax: f"{syntax.where.__class__.__name__}{len(syntax.sources)}",
)
def test_a_tree_that_no_text_is_parsed_to_is_refused(syntax: ast.Query) -> None:
    """With a 400, whether it is compiled alone or through the cache."""
    for compiled in (Query.of_tree, compile_tree):
        with pytest.raises(PleiadError) as caught:
            compiled(syntax, LIMITS)
        assert status_of(caught.value) == 400

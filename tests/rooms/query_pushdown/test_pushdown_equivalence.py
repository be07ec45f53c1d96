"""Random filters over random items: a pushdown never loses an item, and a whole one is the filter itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.limits import Limits
from pleiad.query import Query, QueryContext
from pleiad.query.pushdown import Bound, Predicate, pushdown

LIMITS = Limits()
CONTEXT = QueryContext(limits=LIMITS)
MISSING = object()

NAMES = ("a", "b", "flag", "tags")
SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 1.0, -1, 2, 2.5, 2**53, 2**53 + 1, 2**63, 1e300, -1e300),
    *(
        "",
        "a",
        "ab",
        "abc",
        "b",
        "A",
        "é",
        "a%",
        "\ud7ff",
        "a\ud7ff",
        "\ue000",
        "a\ue000b",
        "\U0001f600",
        "a\U0001f600",
    ),
)
TEXTS = [value for value in SCALARS if isinstance(value, str)]
values = st.sampled_from(SCALARS)
nested = st.one_of(
    values,
    values,
    st.lists(st.one_of(values, st.lists(values, max_size=1)), max_size=3),
    st.dictionaries(st.sampled_from(("a", "b")), values, max_size=2),
)
items = st.lists(st.dictionaries(st.sampled_from(NAMES), nested), min_size=1, max_size=8)
constants = st.one_of(
    values, values, values, st.sampled_from(([1], {"a": 1}, float("nan"), float("inf"), 10**400))
)

paths = st.sampled_from(("c.a", "c.b", "c.flag", "c.tags", "c.a.b", "c['b']", "c.tags[0]"))
FORMS = (
    *("{path} = {0}", "{0} = {path}", "{path} != {0}", "{path} < {0}", "{path} <= {0}", "{path} > {0}"),
    *(
        "{0} >= {path}",
        "({path} BETWEEN {0} AND {1})",
        "({0} BETWEEN {path} AND {other})",
        "{path} IN ({0}, {1}, {2})",
    ),
    *(
        "IS_DEFINED({path})",
        "IS_NULL({path})",
        "IS_BOOL({path})",
        "IS_STRING({path})",
        "{path}",
        "{path} = {other}",
    ),
    *(
        "STARTSWITH({path}, {0})",
        "STARTSWITH({path}, {0}, true)",
        "StringEquals({path}, {0})",
        "{path} LIKE {like}",
    ),
    *(
        "ARRAY_CONTAINS({path}, {0})",
        "ARRAY_CONTAINS([{0}, {1}], {path})",
        "ARRAY_CONTAINS_ANY({path}, {0}, {1})",
    ),
    *("ARRAY_CONTAINS_ALL({path}, {0}, {1})", "EXISTS(SELECT VALUE t FROM t IN {path} WHERE t = {0})"),
    *("EXISTS(SELECT VALUE 1 FROM t IN {path} WHERE t IN ({0}, {1}) AND {other} = {2})", "{0}"),
    *("EXISTS(SELECT VALUE t.a FROM t IN {path} WHERE t = {0})", "NOT ({path} >= {0})", "NOT {path}"),
)
PATTERNS = (
    "'a%'",
    "'%'",
    "'ab'",
    "'a_%'",
    "'a[b]%'",
    "'a\ue000%'",
    "'\U0001f600%'",
    "'a\ud7ff%'",
    "'a!%%' ESCAPE '!'",
)


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A filter of one to four parts and the values of its parameters."""
    parameters: dict[str, Any] = {}

    def part() -> str:
        names = []
        for _ in range(3):
            names.append(f"@p{len(parameters)}")
            parameters[names[-1]] = draw(constants)
        text = draw(st.sampled_from(FORMS)).format(
            *names, path=draw(paths), other=draw(paths), like=draw(st.sampled_from(PATTERNS))
        )
        return f"(NOT ({text}))" if draw(st.integers(0, 5)) == 0 else f"({text})"

    text = part()
    for _ in range(draw(st.integers(0, 3))):
        text = f"({text} {draw(st.sampled_from(('AND', 'AND', 'OR')))} {part()})"
    return text, parameters


def value_at(item: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        item = item.get(name, MISSING) if isinstance(item, dict) else MISSING
    return item


def kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__


def same(value: Any, scalar: Any) -> bool:
    if kind(value) != kind(scalar):
        return False
    return float(value) == float(scalar) if kind(value) == "number" else bool(value == scalar)


def inside(value: Any, bound: Bound | None, sign: int) -> bool:
    """Whether the value is on the right side of a bound, strings by their UTF-8 bytes."""
    if bound is None:
        return True
    if kind(value) != kind(bound.value) or kind(value) not in ("number", "str"):
        return False
    one: Any = value.encode() if isinstance(value, str) else float(value)
    two: Any = bound.value.encode() if isinstance(bound.value, str) else float(bound.value)
    return (one == two and bound.inclusive) or (one > two if sign > 0 else one < two)


def holds(predicate: Predicate, item: dict[str, Any]) -> bool:
    """The meaning of a predicate, as a store has it."""
    value = value_at(item, predicate.path)
    if predicate.element:
        elements = value if isinstance(value, list) else []
        return any(same(each, scalar) for each in elements for scalar in predicate.one_of or ())
    if predicate.one_of is not None:
        return any(same(value, scalar) for scalar in predicate.one_of)
    if predicate.is_defined:
        return value is not MISSING
    return inside(value, predicate.low, 1) and inside(value, predicate.high, -1)


def compare(text: str, parameters: dict[str, Any], candidates: list[dict[str, Any]]) -> bool:
    """Check one query on the items; returns whether the pushdown was whole."""
    query = Query(f"SELECT * FROM c WHERE {text}", LIMITS)
    found = pushdown(query.plan, parameters, lambda place: True)
    execution = query.execution({name: parameters[name] for name in query.parameters}, CONTEXT)
    for item in candidates:
        is_returned = execution.matches(item)
        is_selected = all(holds(predicate, item) for predicate in found.predicates)
        assert is_selected or not is_returned, (text, parameters, item, found)
        if found.is_whole:
            assert is_selected == is_returned, (text, parameters, item, found)
    return found.is_whole


@settings(max_examples=250, deadline=None)
@given(filters(), items)
def test_a_pushdown_keeps_every_item_that_the_query_returns(
    given_filter: tuple[str, dict[str, Any]], candidates: list[dict[str, Any]]
) -> None:
    compare(*given_filter, candidates)


def test_every_form_agrees_with_every_scalar() -> None:
    """Each form once for each constant, on items that have each scalar: the odd characters need no luck."""
    candidates: list[dict[str, Any]] = [{"a": value, "b": value, "tags": [value]} for value in SCALARS]
    candidates += [{}, {"a": [1, "a"]}, {"a": {"b": "ab"}}, {"a": []}]
    whole_count = 0
    for form in FORMS:
        for number, constant in enumerate(SCALARS):
            parameters = {"@p": constant, "@q": SCALARS[number - 1], "@r": SCALARS[number - 2]}
            pattern = PATTERNS[number % len(PATTERNS)]
            text = form.format("@p", "@q", "@r", path="c.a", other="c.b", like=pattern)
            whole_count += compare(text, parameters, candidates)
            whole_count += compare(f"NOT ({text})", parameters, candidates)
    assert whole_count > 300


def test_text_ranges_agree_for_every_pair_of_texts() -> None:
    candidates = [
        {"a": text + tail} for text in TEXTS for tail in ("", "\x00", "z", "\ud7ff", "\ue000", "\U0010ffff")
    ]
    for operator in ("<", "<=", ">", ">="):
        for text in TEXTS:
            compare(f"c.a {operator} @p", {"@p": text}, candidates)
    for text in TEXTS:
        compare("STARTSWITH(c.a, @p)", {"@p": text}, candidates)

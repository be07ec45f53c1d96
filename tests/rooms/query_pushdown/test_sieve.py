"""Which strings an item must have to pass a filter, and that leaving out the others leaves out none that passes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pleiad.query import QueryContext
from pleiad.query.sieve import NEEDLES_MAX, Needle, needles

FOUND = [
    ("CONTAINS(c.a, 'x y')", [Needle("a", "x y", False)]),
    ("CONTAINS(c.a, 'X', true)", [Needle("a", "x", True)]),
    ("CONTAINS(c.a, 'X', false)", [Needle("a", "X", False)]),
    ("STARTSWITH(c.a, @part)", [Needle("a", '"xy', False)]),
    ("ENDSWITH(c.a, 'x', @yes)", [Needle("a", 'x"', True)]),
    ("STRINGEQUALS(c['a b'], 'X', true)", [Needle("a b", '"x"', True)]),
    ("CONTAINS(c.a, 'é')", [Needle("a", "é", False)]),
    ("c.n > 1 AND CONTAINS(c.a, 'x')", [Needle("a", "x", False)]),
    ("CONTAINS(c.a, 'x') AND CONTAINS(c.b, 'y')", [Needle("a", "x", False), Needle("b", "y", False)]),
    ("CONTAINS(c.a, 'x') AND ARRAY_LENGTH(c.b) > 1 AND CONTAINS(c.b, 'y')", [Needle("a", "x", False)]),
]
NOT_FOUND = [
    "CONTAINS(c.a, '')",
    "CONTAINS(c.a, 'say \"x\"')",
    "CONTAINS(c.a, 'a\\\\b')",
    "CONTAINS(c.a, 'a\\nb')",
    "CONTAINS(c.a, @lone)",
    "CONTAINS(c.a, 'É', true)",
    "CONTAINS(c.a, 1)",
    "CONTAINS(c.a, @none)",
    "CONTAINS(c.a, 'x', @none)",
    "CONTAINS(c.a, c.b)",
    "CONTAINS('x', c.a)",
    "CONTAINS(c.a.b, 'x')",
    "CONTAINS(c.a[0], 'x')",
    "CONTAINS(LOWER(c.a), 'x')",
    "CONTAINS(c.a, 'x') OR c.n = 1",
    "NOT CONTAINS(c.a, 'x')",
    "ARRAY_LENGTH(c.b) > 1 AND CONTAINS(c.a, 'x')",
    "c.b = [1] AND CONTAINS(c.a, 'x')",
    "c.b = @list AND CONTAINS(c.a, 'x')",
    "udf.f(c.b) AND CONTAINS(c.a, 'x')",
]
PARAMETERS = {"@part": "xy", "@yes": True, "@list": [1], "@lone": "\ud800"}


@pytest.mark.parametrize(("where", "expected"), FOUND)
def test_strings_that_an_item_must_have(compiled: Any, where: str, expected: list[Needle]) -> None:
    assert list(needles(compiled(f"SELECT * FROM c WHERE {where}").plan, PARAMETERS)) == expected


@pytest.mark.parametrize("where", NOT_FOUND)
def test_what_is_not_such_a_string(compiled: Any, where: str) -> None:
    assert needles(compiled(f"SELECT * FROM c WHERE {where}").plan, PARAMETERS) == ()


def test_elements_of_a_join_have_no_needle(compiled: Any) -> None:
    text = "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE CONTAINS(c.a, 'x')"
    assert needles(compiled(text).plan, {}) == ()


def test_no_text_with_the_string_is_left_out(compiled: Any, limits: Any) -> None:
    source = random.Random(7)
    letters = 'aAbBxıİſsSKkßé"\\\n\t /\u2028😀'
    values: list[Any] = [1, None, True, ["ab"], {"ab": "x"}, "", "ab"]
    values += ["".join(source.choices(letters, k=source.randrange(6))) for _ in range(1500)]
    texts = []
    for value in values:
        text = json.dumps(value, ensure_ascii=source.random() < 0.3)
        # Any character may be written as an escape.
        texts.append(text.replace("a", "\\u0061") if source.random() < 0.1 else text)
    passing = 0
    for name in ("CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"):
        for part in ("ab", "A", "s", "k", "é", "x s", "/"):
            for option in ("", ", true", ", false"):
                query = compiled(f"SELECT VALUE c.at FROM c WHERE {name}(c.v, '{part}'{option})")
                items = [{"at": at, "v": value} for at, value in enumerate(values)]
                for start in (0, 3, 700):
                    found = query.run(items[start:], {}, QueryContext(limits=limits))
                    for needle in needles(query.plan, {}):
                        places = needle.places("\n".join(texts[start:]))
                        assert places == sorted(set(places))
                        assert places == [] or 0 <= places[0] <= places[-1] < len(values) - start
                        assert {at - start for at in found} <= set(places), (name, part, option)
                    passing += len(found)
    assert passing > 1000


def test_lines_are_counted_wherever_the_string_stands() -> None:
    needle = Needle("a", "x", False)
    assert needle.places("x\nx x\n\nbx\nb\nx") == [0, 1, 3, 5]
    assert needle.places("x\nx x\n\n\\\nb\nx") == [0, 1, 3, 5]
    assert needle.places("b") == needle.places("") == needle.places("\n\n") == []


def test_a_long_filter_is_not_looked_through(compiled: Any) -> None:
    many = " AND ".join(f"CONTAINS(c.a, 'x{number}')" for number in range(200))
    assert len(needles(compiled(f"SELECT * FROM c WHERE {many}").plan, {})) == NEEDLES_MAX
    late = " AND ".join(["c.n > 1"] * 200 + ["CONTAINS(c.a, 'x')"])
    assert needles(compiled(f"SELECT * FROM c WHERE {late}").plan, {}) == ()
    deep = f"c.n = {' + '.join(['c.n'] * 40)} AND CONTAINS(c.a, 'x')"
    assert needles(compiled(f"SELECT * FROM c WHERE {deep}").plan, {}) == ()

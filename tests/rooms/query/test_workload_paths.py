"""What a workload record keeps of filters and of changes: paths and values."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pleiad.limits import Limits
from pleiad.query import compile_query
from pleiad.query.paths.changed import PATHS_MAX, changed_paths
from pleiad.query.paths.compared import VALUES_MAX

_MANY = ", ".join(map(str, range(VALUES_MAX + 1)))


@pytest.mark.parametrize(
    ("where", "equals", "others"),
    [
        ("c.a = 1", {"/a": (1,)}, ()),
        ("1 = c.a", {"/a": (1,)}, ()),
        ("c.a = @p AND c.b.c = 'x'", {"/a": ("p",), "/b/c": ("x",)}, ()),
        ("c['first name'] = null", {'/"first name"': (None,)}, ()),
        ("c.a IN (1, 2, @p)", {"/a": (1, 2, "p")}, ()),
        ("c.a = 1 OR c.a = 2 OR c.a IN (3)", {"/a": (1, 2, 3)}, ()),
        ("c.a = 1 OR c.b = 2", {}, ("/a", "/b")),
        ("c.a > 1 AND (c.b BETWEEN 1 AND 2)", {}, ("/a", "/b")),
        ("c.a = 1 AND c.a > 0", {"/a": (1,)}, ()),
        ("c.a IN (1, 2) AND c.a = 2", {"/a": (2,)}, ()),
        ("c.isOpen AND NOT c.isLate", {"/isOpen": (True,), "/isLate": (False,)}, ()),
        ("c.a != 1", {}, ("/a",)),
        ("NOT (c.a = 1)", {}, ("/a",)),
        ("c.a = c.b", {}, ("/a", "/b")),
        ("STARTSWITH(c.a.b, 'x') AND CONTAINS(c.d, @p)", {}, ("/a/b", "/d")),
        ("c.a = [1]", {}, ("/a",)),
        ("c.a = @list", {}, ("/a",)),
        (f"c.a IN ({_MANY})", {}, ("/a",)),
        ("ARRAY_CONTAINS(c.tags, 'x')", {}, ("/tags",)),
        ("c.tags[0] = 'x'", {}, ()),
        ("1 = 1", {}, ()),
    ],
)
def test_the_paths_and_values_of_a_filter(
    where: str, equals: dict[str, tuple[Any, ...]], others: tuple[str, ...]
) -> None:
    query = compile_query(f"SELECT * FROM c WHERE {where}", Limits())
    found = query.filter_paths.with_values({"@p": "p", "@list": [1]})
    assert (found[0], tuple(sorted(found[1]))) == (equals, others)


def test_elements_of_arrays_and_other_blocks_are_no_paths_of_the_item() -> None:
    text = "SELECT c.id FROM c JOIN t IN c.tags WHERE t.name = 'x' AND c.a = 1"
    assert compile_query(text, Limits()).filter_paths.with_values({}) == ({"/a": (1,)}, ())
    assert compile_query("SELECT 1", Limits()).filter_paths.with_values({}) == ({}, ())
    inner = "SELECT VALUE COUNT(1) FROM (SELECT * FROM c WHERE c.a = 1) AS d"
    assert compile_query(inner, Limits()).filter_paths.with_values({}) == ({"/a": (1,)}, ())


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2, "b": 3}, ["/a", "/b"]),
        ({"a": 1}, {}, ["/a"]),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 2, "d": 2}}}, ["/a/b/c"]),
        ({"a": {"b": 1}}, {"a": 1}, ["/a"]),
        ({"a": [1]}, {"a": [2]}, []),
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, {"a": {"b": {"c": {"d": {"e": 2}}}}}, []),
        ({"a b": 1}, {"a b": 2}, ['/"a b"']),
    ],
)
def test_the_paths_that_a_write_changed(
    old: dict[str, object], new: dict[str, object], paths: list[str]
) -> None:
    assert changed_paths(orjson.dumps(old), orjson.dumps(new)) == paths


def test_many_changes_are_some() -> None:
    new = orjson.dumps({f"p{number}": number for number in range(1_000)})
    assert len(changed_paths(b"{}", new)) == PATHS_MAX
    assert changed_paths(b"nonsense", new) == []

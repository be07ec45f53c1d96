"""A query that looks at a few properties only is answered and charged as if it had looked at whole items."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pleiad.engine import items
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.query import job
from pleiad.query import Query, QueryContext
from pleiad.store.sqlite import glancing

pytestmark = pytest.mark.every_store

ODD_TEXTS = (
    rb'{"id":"o1","pk":"p1","\u0067":"a","n":1.5,"say \"hi\"\\":1,"tags":["x","y"]}',
    rb'{"id":"o2","pk":"p2","g":"\u0061","n":15e-1,"say \"hi\"\\":{"deep":[1,{"er":null}]},"tags":[]}',
    rb'{"id":"o3","pk":"p3","g":"a\u0000b","n":-0.0,"na\u00efve \u0001":[true],"tags":["\ud83d\ude00"]}',
    rb'{"id":"o4","pk":"p4","g":null,"n":12345678901234567890,"tags":"none"}',
    rb'{"id":"o5","pk":"p5","g":{"a":1.0},"n":"text","tags":[["x"],{"x":1}]}',
    rb'{"id":"o6","pk":"p6","g":{"a":1},"n":null,"tags":["x"]}',
    '{"id":"o7","pk":"p7","g":"É Kß","n":8,"tags":[]}'.encode(),
    rb'{"id":"o8","pk":"p8","g":"\u00e9 \u006B \/ \" d","n":8,"tags":[]}',
)
QUERIES = (
    "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
    "SELECT c.g, c.pk, COUNT(c.n) AS n, COUNTIF(c.n > 3) AS m FROM c GROUP BY c.g, c.pk",
    "SELECT c.g, MIN(c.n) AS low, MAX(c.n) AS high FROM c GROUP BY c.g",
    "SELECT c.g, SUM(c.n) AS total, AVG(c.n) AS mean FROM c WHERE IS_NUMBER(c.n) GROUP BY c.g",
    "SELECT c.g, MAKELIST(c.n) AS list, MAKESET(c.n) AS kinds FROM c GROUP BY c.g",
    "SELECT c.g, c.n, SUM(c.n) AS total, AVG(c.n) AS mean, MIN(c.n) AS low, MAX(c.n) AS high FROM c GROUP BY c.g, c.n",
    "SELECT c.g, SUM(c.wide) AS total, AVG(c.wide) AS mean, MAX(c.wide) AS high FROM c GROUP BY c.g",
    "SELECT c.g, MIN(c.n * 1.5) AS low, SUM(1 / c.n) AS parts, COUNTIF(c.n = 3) AS n FROM c GROUP BY c.g",
    "SELECT c.n % 3 AS rest, COUNT(1) AS n FROM c GROUP BY c.n % 3",
    "SELECT c.g FROM c GROUP BY c.g",
    "SELECT t, SUM(c.n) AS total, MIN(t) AS low FROM c JOIN t IN c.tags GROUP BY t",
    "SELECT t, COUNT(1) AS n FROM c JOIN t IN c.tags WHERE c.n < 4 GROUP BY t",
    "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE STARTSWITH(t, 'X', true)",
    "SELECT c.pk, t FROM c JOIN t IN c.tags WHERE c.n = 5 AND t = 'x'",
    "SELECT VALUE c.pk FROM c WHERE STARTSWITH(c.g, 'A', true)",
    "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.x = 1)",
    "SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.tags, {'x': 1}, true) OR CONTAINS(c.g, 'e')",
    "SELECT VALUE c.n FROM c WHERE CONTAINS(c.g, 'b') OFFSET 4 LIMIT 7",
    "SELECT TOP 5 c.n, c.g FROM c WHERE CONTAINS(c.g, 'd') ORDER BY c.n DESC",
    "SELECT DISTINCT c.g, t FROM c JOIN t IN c.tags WHERE c.n > 1",
    "SELECT VALUE MAX(c.g) FROM c WHERE c.n / c.n = 1",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.g, 'A', true)",
    "SELECT DISTINCT VALUE c.g FROM c",
    "SELECT DISTINCT c.g, c.n FROM c WHERE c.n > 2 OR IS_NULL(c.g)",
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g",
    "SELECT c.g, COUNT(1) AS n FROM c JOIN t IN c.tags WHERE t != 'y' GROUP BY c.g",
    "SELECT c.g AS g, c['say \"hi\"\\\\'] AS said FROM c WHERE IS_DEFINED(c['say \"hi\"\\\\'])",
    "SELECT VALUE c['na\u00efve \\u0001'] FROM c",
    "SELECT VALUE c.g.a FROM c WHERE c.g.a = 1",
    "SELECT c.id, c.tags[0] AS first FROM c WHERE LENGTH(c.pk) = 2",
    "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.g FROM c WHERE c.n >= 0) AS g",
    "SELECT c.n FROM c ORDER BY c.n DESC",
    "SELECT c.pk, ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t > 'w') AS late FROM c ORDER BY c.pk",
    "SELECT VALUE c.n FROM c WHERE CONTAINS(c.g, 'É', true) OR CONTAINS(c.g, 'é')",
    "SELECT VALUE c.n FROM c WHERE CONTAINS(c.g, 'K', true)",
    "SELECT VALUE c.n FROM c WHERE ENDSWITH(c.g, '\" d')",
    "SELECT VALUE c.n FROM c WHERE STRINGEQUALS(c.g, 'D', true) AND c.n > 2",
    "SELECT VALUE c.n FROM c WHERE c.n >= 1 AND ENDSWITH(c.g, 'd') AND CONTAINS(c.pk, '5')",
    "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.g, '\u0000')",
    "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.g, 'nowhere')",
    "SELECT c.pk, SUM(c.n) AS n FROM c WHERE CONTAINS(c.g, 'c') GROUP BY c.pk",
    "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.g, 'a') "
    "AND ARRAY_LENGTH(ARRAY(SELECT VALUE 1 FROM a IN c.many JOIN b IN c.many)) > 5",
    "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_LENGTH(ARRAY(SELECT VALUE 1 FROM a IN c.many JOIN b IN c.many)) > 5 "
    "AND CONTAINS(c.g, 'zz')",
    "SELECT * FROM c WHERE CONTAINS(c.g, 'd')",
    "SELECT * FROM c WHERE CONTAINS(c.g, 'e') OR c.n > 4",
    "SELECT VALUE c FROM c WHERE ABS(c.n) < 1 AND c.tags[0] = 'x'",
    "SELECT DISTINCT * FROM c WHERE CONTAINS(c.g, 'c')",
    "SELECT TOP 9 * FROM c WHERE STARTSWITH(c.g, 'A', true)",
    "SELECT * FROM c WHERE CONTAINS(c.g, 'b') OFFSET 7 LIMIT 8",
    "SELECT * FROM c WHERE ARRAY_LENGTH(ARRAY(SELECT VALUE 1 FROM a IN c.many JOIN b IN c.many)) > 5",
    "SELECT * FROM c OFFSET 40 LIMIT 7",
    "SELECT * FROM c WHERE c.n >= 3 OFFSET 11 LIMIT 30",
    "SELECT c.id, c.n FROM c OFFSET 50 LIMIT 20",
    "SELECT c.id, c.n FROM c WHERE CONTAINS(c.g, 'c') OFFSET 3 LIMIT 20",
    "SELECT VALUE c.g FROM c OFFSET 10 LIMIT 9",
    "SELECT * FROM c ORDER BY c.n",
    "SELECT * FROM c ORDER BY c.n DESC",
    "SELECT * FROM c ORDER BY c.g",
    "SELECT TOP 20 * FROM c ORDER BY c.g DESC",
    "SELECT TOP 20 * FROM c ORDER BY c.wide",
    "SELECT * FROM c ORDER BY c.n OFFSET 30 LIMIT 25",
    "SELECT TOP 12 * FROM c WHERE CONTAINS(c.g, 'd') ORDER BY c.n",
    "SELECT TOP 12 * FROM c WHERE c.n > 2 ORDER BY c.pk DESC",
    "SELECT TOP 12 c.id, c.g FROM c WHERE c.n > 2 ORDER BY c.g DESC",
    "SELECT TOP 12 VALUE c.wide FROM c ORDER BY c.n",
    "SELECT * FROM c ORDER BY c.tags[0] DESC",
    "SELECT TOP 30 * FROM c WHERE c.n > 1 ORDER BY c.many",
    "SELECT TOP 5 c.id, UPPER(c.g) AS g FROM c ORDER BY c.n",
    "SELECT * FROM c WHERE CONTAINS(c.g, 'd') ORDER BY c._ts",
    "SELECT DISTINCT * FROM c WHERE CONTAINS(c.g, 'd') ORDER BY c.n",
    "SELECT * FROM c WHERE CONTAINS(c.g, 'd') AND c._ts > 0",
    "SELECT DISTINCT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE 1 FROM a IN c.many JOIN b IN c.many)) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_LENGTH(ARRAY(SELECT VALUE 1 FROM a IN c.many JOIN b IN c.many)) > 5",
)


async def fill(w: Any, count: int) -> None:
    for text in ODD_TEXTS:
        key = w.container.key.extract(orjson.loads(text))
        await items.upsert(w.container, text, key, NO_CONDITIONS)
    for number in range(count):
        item = {
            "id": f"i{number}",
            "pk": f"p{number % 9}",
            "g": "abcde"[number % 5],
            "n": number % 7,
            "tags": ["x"],
        }
        if number % 11 == 0:
            item["n"] = number / 10
        if number % 17 == 0:
            item["wide"] = (2**53 + number, 1e308, -(2**63), number + 0.1)[number % 4]
        if number % 100 == 0:
            item["many"] = list(range(number // 10))
        if number % 13 == 0:
            del item["g"]
        await w.put(item)


@pytest.mark.parametrize(
    ("page_items", "count"), [(3, 110), (10**6, 400), pytest.param(3, 700, marks=pytest.mark.long)]
)
async def test_looking_at_some_properties_is_looking_at_whole_items(
    world: Any, monkeypatch: pytest.MonkeyPatch, page_items: int, count: int
) -> None:
    async with world(partitions=2) as w:
        await fill(w, count)
        for text in QUERIES:
            found = await w.query(text, page_items=lambda: page_items)
            with monkeypatch.context() as patched:
                patched.setattr(job, "NAMES_MAX", -1)
                whole = await w.query(text, page_items=lambda: page_items)
            assert [page.results for page in found.pages] == [page.results for page in whole.pages], text
            assert [page.charge_ru for page in found.pages] == [page.charge_ru for page in whole.pages], text


async def test_glances_that_are_cut_are_gone_on_with(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(partitions=2) as w:
        await fill(w, 110)
        by_keys = "SELECT c.n FROM c WHERE c.pk IN ('p1', 'p2', 'p3', 'p5') AND CONTAINS(c.g, 'a')"
        for text in (*QUERIES, by_keys):
            whole = await w.query(text)
            with monkeypatch.context() as patched:
                patched.setattr(glancing, "_CHARS_MAX", 300)
                cut = await w.query(text)
            assert [page.results for page in cut.pages] == [page.results for page in whole.pages], text
            assert [page.charge_ru for page in cut.pages] == [page.charge_ru for page in whole.pages], text


async def test_a_whole_item_and_a_system_property_are_no_few_properties(world: Any) -> None:
    async with world() as w:
        limits = w.container.limits
        few = (
            "SELECT c.a.b, c['d'] FROM c",
            "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags",
            "SELECT VALUE 1 FROM c.a",
        )
        assert [sorted(Query(text, limits).read_names or ()) for text in few] == [["a", "d"], ["tags"], ["a"]]
        for text in (
            "SELECT * FROM c",
            "SELECT c FROM c",
            "SELECT c._ts FROM c",
            "SELECT c[@name] FROM c",
            "SELECT VALUE COUNT(c) FROM c",
            "SELECT VALUE (SELECT VALUE d FROM (SELECT VALUE c) AS d) FROM c",
        ):
            assert Query(text, limits).read_names is None, text
        assert Query("SELECT c.a FROM c", limits).run(
            [{"a": 1, "b": 2}], {}, QueryContext(limits=limits)
        ) == [{"a": 1}]

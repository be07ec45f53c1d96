"""A syntax tree in place of a text: the engine gives the same pages, charges, tokens and routes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pleiad.engine.query.job import prepare
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import TreeText
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import parse

TEXTS = (
    *("SELECT * FROM c", "SELECT * FROM c WHERE c.n = @n", "SELECT * FROM c WHERE c.pk = 'p1'"),
    *(
        "SELECT * FROM c WHERE c.pk = 'p1' AND c.id = 'i1'",
        "SELECT VALUE c.n FROM c WHERE c.n > 5 ORDER BY c.n DESC",
    ),
    *("SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g", "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g"),
    *("SELECT TOP 3 c.id, t FROM c JOIN t IN c.tags WHERE t != @n", "SELECT VALUE SUM(c.n) FROM c"),
    "SELECT * FROM c WHERE CONTAINS(c.g, 'a') ORDER BY c.n OFFSET 2 LIMIT 7",
)
PARAMETERS = {"@n": 4}


def seen(answer: Any) -> list[Any]:
    """All of the pages but how long they took, and the tokens, which name the query."""
    return [
        (page.results, page.charge, page.charge_ru, page.token is None, page.tally) for page in answer.pages
    ]


@pytest.mark.parametrize("text", TEXTS)
async def test_the_pages_of_a_tree_are_those_of_its_text(world: Any, text: str) -> None:
    tree = TreeText(parse(text, Limits()))
    source = random.Random(15)
    async with world(partitions=2) as w:
        for number in range(40):
            tags = [source.randrange(6) for _ in range(3)]
            await w.put(
                {
                    "id": f"i{number}",
                    "pk": f"p{number % 7}",
                    "n": number % 10,
                    "g": "abc"[number % 3],
                    "tags": tags,
                }
            )
        for size in (3, 1_000):
            by_text = await w.query(text, PARAMETERS, page_items=lambda size=size: size)
            by_tree = await w.query(tree, PARAMETERS, page_items=lambda size=size: size)
            assert by_tree.results == by_text.results
            assert seen(by_tree) == seen(by_text)
        asked = [prepare(w.container, w.request(each, PARAMETERS)) for each in (text, tree)]
        assert len({repr((job.spans, job.lookups, job.pushdown, job.order)) for job in asked}) == 1


async def test_a_token_belongs_to_its_tree(world: Any) -> None:
    def tree(value: Any) -> TreeText:
        where = ast.Binary("<", ast.Property(ast.Identifier("c"), "n"), ast.Literal(value))
        return TreeText(
            ast.Query(ast.SelectStar(), sources=(ast.Source(ast.Identifier("c"), None, False),), where=where)
        )

    async with world() as w:
        for number in range(6):
            await w.put({"id": f"i{number}", "pk": "p", "n": number})
        first = await w.page(tree(9), items_max=2)
        rest = await w.query(tree(9), token=first.token)
        assert [item["n"] for item in rest.results] == [2, 3, 4, 5]
        with pytest.raises(PleiadError):
            await w.query(tree(9.0), token=first.token)

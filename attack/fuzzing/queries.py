"""Query texts from a seed: by the grammar, by the grammar and then bent, from pieces, and calls of every function.

One seed is one query. The grammar is that of the tests which compare queries with an oracle.
"""

from __future__ import annotations

import random
from typing import Any

from pleiad.query.functions.registry import REGISTRY
from tests.rooms.query.generator import Generator

PIECES = (
    "SELECT", "VALUE", "FROM", "WHERE", "GROUP", "BY", "ORDER", "JOIN", "IN", "AS", "TOP", "OFFSET", "LIMIT",
    "DISTINCT", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "EXISTS", "ARRAY", "ALL", "FIRST", "RANK",
    "c", "c.a", "t", "1", "2.5", "'x'", '"y"', "@p0", "true", "null", "undefined", "udf.f(", "COUNT(", "SUM(",
    "(", ")", "[", "]", "{", "}", ",", ".", "*", "+", "-", "/", "%", "=", "<", ">=", "??", "?", ":", "||", "|",
    "\\", "'", '"', "#", "é", "\U0001f600", "\n", "--", "/*", "*/", "1e", "0x", "ABS(", "RRF(", "FullTextScore(",
)  # fmt: skip
ODD_ARGUMENTS = (
    "c", "c.a", "c.s", "c.n", "c.tags", "c.o", "undefined", "null", "true", "''", "'a'", "'%'", "'(a+)+$'", "'['", "-1",
    "0", "1", "1.5", "1e308", "-1e308", "9007199254740993", "9999999999999999999999", "[]", "[1,'a',null]", "{}",
    "{'type':'Point','coordinates':[1,2]}", "{'type':'Polygon','coordinates':[[[0,0],[1,0],[1,1],[0,0]]]}",
    "{'type':'Point','coordinates':[1e308,'x']}", "'2020-02-30T00:00:00Z'", "'9999-12-31T23:59:59.9999999Z'", "'yyyy'",
    "'\\ud800'", "'\\u0000'", "ARRAY(SELECT VALUE x FROM x IN c.tags)", "c.tags[0]", "REPLICATE('x', 1000)", "@p0",
)  # fmt: skip


def mutated(text: str, dice: random.Random) -> str:
    """A text with parts taken out, doubled and put in."""
    for _ in range(dice.randrange(1, 4)):
        place = dice.randrange(len(text) + 1)
        kind = dice.randrange(4)
        if kind == 0:
            text = text[:place] + text[place + dice.randrange(1, 6) :]
        elif kind == 1:
            text = f"{text[:place]} {dice.choice(PIECES)} {text[place:]}"
        elif kind == 2:
            other = dice.randrange(len(text) + 1)
            text = text[:place] + text[min(place, other) : max(place, other)] + text[place:]
        else:
            text = text[:place] + chr(dice.choice((0, 10, 34, 39, 92, 0xE9, 0xFFFF, 0x1F600))) + text[place:]
    return text


class QueryMaker:
    """The query of one seed, with its parameters."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._grammar = Generator(seed)

    def make(self) -> tuple[str, dict[str, Any]]:
        """One of the four kinds."""
        kind = self._dice.random()
        if kind < 0.3:
            return self._grammar.query()
        if kind < 0.6:
            text, parameters = self._grammar.query()
            return mutated(text, self._dice), parameters
        if kind < 0.75:
            return self._pieces(), {"@p0": 1}
        return self._calls(), {"@p0": self._grammar.value()}

    def _pieces(self) -> str:
        dice = self._dice
        return "SELECT " + " ".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 14)))

    def _call(self, depth: int = 0) -> str:
        dice = self._dice
        function = dice.choice(_FUNCTIONS)
        most = function.max_args if function.max_args is not None else function.min_args + 3
        count = dice.randint(function.min_args, max(function.min_args, most))
        if dice.random() < 0.03:
            count += 1
        arguments = [
            self._call(depth + 1) if depth < 2 and dice.random() < 0.25 else dice.choice(ODD_ARGUMENTS)
            for _ in range(count)
        ]
        return f"{function.name}({', '.join(arguments)})"

    def _calls(self) -> str:
        dice = self._dice
        form = dice.choice(
            (
                "SELECT VALUE {} FROM c",
                "SELECT {} AS v FROM c WHERE {}",
                "SELECT VALUE 1 FROM c WHERE {} = {}",
                "SELECT DISTINCT VALUE {} FROM c",
                "SELECT COUNT(1) AS n FROM c GROUP BY {}",
                "SELECT VALUE MAX({}) FROM c",
                "SELECT VALUE {} FROM c ORDER BY c.n",
            )
        )
        while "{}" in form:
            form = form.replace("{}", self._call(), 1)
        return form


_FUNCTIONS = [REGISTRY[name] for name in sorted(REGISTRY)]

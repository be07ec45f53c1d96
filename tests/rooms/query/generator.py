"""Random items and random queries from one seed, made to meet: few names, few values, every construct."""

from __future__ import annotations

import random
from typing import Any

NAMES = ("a", "b", "n", "s", "tags", "o")
SORTED_NAMES = ("n", "s")
SCALARS = (
    *(None, True, False, 0, 1, 1.0, 2, -1, 1.5, 2**53, 2**53 + 1, 1e300),
    *("", "a", "b", "ab", "A", "é", "\ue000", "\U0001f600"),
)
LITERALS = (
    *("null", "true", "false", "undefined", "0", "1", "1.0", "2", "-1", "1.5", "9007199254740993", "1e300"),
    *('""', '"a"', "'b'", '"ab"', '"A"', '"é"', '"\\ue000"', '"\\ud83d\\ude00"'),
)
BINARY = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    ">>>",
    "||",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "??",
)
FUNCTIONS = (
    *(("IS_DEFINED", 1), ("IS_NULL", 1), ("IS_NUMBER", 1), ("IS_STRING", 1), ("IS_ARRAY", 1), ("ABS", 1)),
    *(("ARRAY_LENGTH", 1), ("ARRAY_CONTAINS", 2), ("CONTAINS", 2), ("UPPER", 1), ("LENGTH", 1), ("IIF", 3)),
)
LIKE_PATTERNS = ("'%'", "'a%'", "'_'", "'%b'", "'a_%'", "'%a%b%'", "''")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET")


class Generator:
    """Queries and items of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.parameters: dict[str, Any] = {}

    def value(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if depth > 2 or kind < 0.7:
            return self.random.choice(SCALARS)
        if kind < 0.85:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice(NAMES): self.value(depth + 1) for _ in range(self.random.randrange(3))}

    def item(self) -> dict[str, Any]:
        item = {name: self.value() for name in NAMES if self.random.random() < 0.75}
        # Sort keys are scalars: the order of arrays or objects among themselves has no meaning.
        item.update({name: self.random.choice(SCALARS) for name in SORTED_NAMES if name in item})
        if self.random.random() < 0.7:
            item["tags"] = [self.value(1) for _ in range(self.random.randrange(4))]
        return item

    def items(self) -> list[dict[str, Any]]:
        return [self.item() for _ in range(self.random.randrange(7))]

    # -- expressions -----------------------------------------------------------------------------

    def path(self, aliases: list[str]) -> str:
        text = self.random.choice(aliases)
        for _ in range(self.random.choice((0, 1, 1, 1, 2))):
            text += self.random.choice(
                (f".{self.random.choice(NAMES)}", f'["{self.random.choice(NAMES)}"]', "[0]")
            )
        return text

    def constant(self) -> str:
        if self.random.random() < 0.3:
            name = f"@p{len(self.parameters)}"
            self.parameters[name] = self.value(1)
            return name
        return self.random.choice(LITERALS)

    def expression(self, aliases: list[str], depth: int = 0) -> str:
        choose = self.random.random
        if depth > 3 or choose() < 0.3:
            return self.path(aliases) if aliases and choose() < 0.7 else self.constant()

        def part() -> str:
            return self.expression(aliases, depth + 1)

        forms = (
            lambda: f"({part()} {self.random.choice(BINARY)} {part()})",
            lambda: f"({part()} {self.random.choice(('=', '!=', '<', '>=', '<=', '>'))} {self.constant()})",
            lambda: f"({part()} {self.random.choice(('AND', 'OR'))} {part()})",
            lambda: f"({part()} AND {part()} AND NOT {part()})",
            lambda: f"(NOT {part()})",
            lambda: f"({self.random.choice('+-~')} {part()})",
            lambda: f"({part()} ? {part()} : {part()})",
            lambda: f"({part()} {self.random.choice(('IN', 'NOT IN'))} ({part()}, {self.constant()}))",
            lambda: f"({part()} IN ({self.constant()}, {self.constant()}, {self.constant()}))",
            lambda: f"({part()} {self.random.choice(('', 'NOT '))}BETWEEN {self.constant()} AND {part()})",
            lambda: f"({part()} BETWEEN {self.constant()} AND {self.constant()})",
            lambda: f"({part()} LIKE {self.random.choice(LIKE_PATTERNS)})",
            lambda: f"[{part()}, {part()}]",
            lambda: f'{{"a": {part()}, b: {part()}}}',
            lambda: self.call(aliases, depth),
            lambda: self.subquery(aliases, depth),
        )
        return self.random.choice(forms)()

    def call(self, aliases: list[str], depth: int) -> str:
        name, count = self.random.choice(FUNCTIONS)
        return f"{name}({', '.join(self.expression(aliases, depth + 1) for _ in range(count))})"

    def subquery(self, aliases: list[str], depth: int) -> str:
        word = self.random.choice(("EXISTS", "ARRAY", "FIRST", "LAST", "ALL", ""))
        if not aliases:
            return f"{word}(SELECT VALUE {self.expression([], depth + 2)})"
        alias = f"x{depth}{self.random.randrange(3)}"
        inner = [*aliases, alias]
        where = f" WHERE {self.expression(inner, depth + 2)}" if self.random.random() < 0.6 else ""
        distinct = "DISTINCT " if self.random.random() < 0.2 else ""
        # A scalar subquery over the elements of an array is refused unless it aggregates them.
        if self.random.random() < 0.25 or not word:
            selection = f"VALUE {self.random.choice(AGGREGATES)}({self.path(inner)})"
            distinct = ""
        elif word == "ALL" or self.random.random() < 0.7:
            selection = f"VALUE {self.expression(inner, depth + 2)}"
        else:
            selection = f"{self.expression(inner, depth + 2)} AS v"
        source = f"{alias} IN {self.random.choice(aliases)}.tags"
        if word == "ALL":
            selection, distinct = "VALUE 1", ""
        return f"{word}(SELECT {distinct}{selection} FROM {source}{where})"

    # -- queries ---------------------------------------------------------------------------------

    def query(self) -> tuple[str, dict[str, Any]]:
        self.parameters = {}
        source, aliases = self.source()
        where = f" WHERE {self.expression(aliases)}" if self.random.random() < 0.7 else ""
        if aliases and self.random.random() < 0.25:
            text = self.grouped(aliases, source + where)
        else:
            text = self.plain(aliases, source + where)
        return text + self.window(), self.parameters

    def source(self) -> tuple[str, list[str]]:
        kind = self.random.random()
        if kind < 0.05:
            return "", []
        if kind < 0.6:
            return " FROM c", ["c"]
        if kind < 0.8:
            return " FROM c JOIN t IN c.tags", ["c", "t"]
        if kind < 0.87:
            return " FROM t IN c.tags", ["t"]
        if kind < 0.93:
            return " FROM c.o AS z", ["z"]
        inner = self.expression(["c"], 2)
        return f" FROM (SELECT VALUE {inner} FROM c) AS y", ["y"]

    def plain(self, aliases: list[str], rest: str) -> str:
        distinct = "DISTINCT " if self.random.random() < 0.2 else ""
        kind = self.random.random()
        if kind < 0.2 and len(aliases) == 1:
            selection = "*"
        elif kind < 0.6:
            selection = f"VALUE {self.expression(aliases)}"
        else:
            selection = f"{self.expression(aliases)} AS v, {self.expression(aliases)} AS w"
        order = ""
        if aliases == ["c"] and self.random.random() < 0.4:
            keys = [f"c.{name}" for name in self.random.sample(SORTED_NAMES, self.random.choice((1, 1, 2)))]
            order = " ORDER BY " + ", ".join(
                f"{key} {self.random.choice(('', 'ASC', 'DESC'))}" for key in keys
            )
        return f"SELECT {distinct}{selection}{rest}{order}"

    def grouped(self, aliases: list[str], rest: str) -> str:
        calls = [
            f"{self.random.choice(AGGREGATES)}({self.expression_without_subquery(aliases)}) AS v{number}"
            for number in range(self.random.randrange(1, 4))
        ]
        if self.random.random() < 0.4:
            return f"SELECT {', '.join(calls)}{rest}"
        if aliases[0] == "c" and self.random.random() < 0.3:
            key = f"c.{self.random.choice(SORTED_NAMES)}"
            order = f" ORDER BY {key} {self.random.choice(('ASC', 'DESC'))}"
        else:
            key, order = f"{self.random.choice(aliases)}.{self.random.choice(NAMES)}", ""
        return f"SELECT {key} AS k, {', '.join(calls)}{rest} GROUP BY {key}{order}"

    def expression_without_subquery(self, aliases: list[str]) -> str:
        while "SELECT" in (text := self.expression(aliases, 2)):
            pass
        return text

    def window(self) -> str:
        if self.random.random() < 0.2:
            return f" OFFSET {self.random.randrange(3)} LIMIT {self.random.randrange(4)}"
        return ""

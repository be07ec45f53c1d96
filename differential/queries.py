"""Random queries, right and wrong ones: every clause, subqueries, aggregates, filters on partition keys."""

from __future__ import annotations

from random import Random

from differential.expressions import Expressions
from differential.ours import Case

_PATHS = ("c.a", "c.b", 'c["x y"]', "c.pk", "c.a.b", "c.tags[0]", "c", "c.name", "zz", "c.tags", "c['b']")
_KEYS = ("1", "'a'", "null", "true", "false", "1.5", "''", "[1]", "{}", "undefined", "@p", "2", "'b'", "1+1")
_AGGREGATES = ("COUNT", "SUM", "min", "Max", "AVG", "COUNTIF", "MAKESET")
_PARAMETERS = ({"name": "@p", "value": "a"}, {"name": "@n", "value": 5})


class Queries:
    """Makes queries from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._expressions = Expressions(seed)

    def case(self) -> Case:
        """One query with its parameters and key paths."""
        random = self._random
        text = self._query(0)
        if random.random() < 0.04:
            place = random.randrange(len(text))
            text = (
                text[:place]
                + random.choice(("", "(", ")", ",", ";", "'", "1a", " AND ", "."))
                + text[place + 1 :]
            )
        paths = random.choice((("/pk",), ("/pk",), ("/pk",), ("/pk", "/a"), ("/a/b",)))
        return Case(text, _PARAMETERS if "@" in text else (), paths)

    def _path(self, aliases: tuple[str, ...]) -> str:
        path = self._random.choice(_PATHS)
        alias = self._random.choice(aliases)
        return path if self._random.random() < 0.7 else path.replace("c", alias, 1)

    def _value(self, aliases: tuple[str, ...], depth: int) -> str:
        random = self._random
        kind = random.random()
        if kind < 0.5:
            return self._path(aliases)
        if kind < 0.6:
            return self._expressions.atom()
        if kind < 0.7:
            return self._expressions.call(2)
        if kind < 0.8:
            operator = random.choice(("+", "||", "=", "<", "??", "&"))
            return f"({self._path(aliases)} {operator} {self._expressions.atom()})"
        if kind < 0.85:
            name = random.choice(
                ("UPPER", "abs", "IS_DEFINED", "ARRAY_LENGTH", "ToString", "Nope", "CONTAINS")
            )
            return f"{name}({self._path(aliases)})"
        if kind < 0.9 and depth < 2:
            return self._subquery(aliases, depth)
        if kind < 0.95:
            return f"{{a: {self._path(aliases)}, b: [{self._path(aliases)}]}}"
        return f"{self._path(aliases)} IN ({self._expressions.atom()}, {self._path(aliases)})"

    def _subquery(self, aliases: tuple[str, ...], depth: int) -> str:
        random = self._random
        alias = random.choice(("x", "y", "z"))
        inner = (*aliases, alias)
        word = random.choice(("EXISTS", "ARRAY", "", "FIRST", "ALL"))
        where = f" WHERE {self._filter(inner, depth + 1)}" if random.random() < 0.5 else ""
        selected = f"VALUE {self._value(inner, depth + 1)}"
        if random.random() < 0.3:
            selected = f"VALUE {random.choice(_AGGREGATES)}({alias})"
        return f"{word}(SELECT {selected} FROM {alias} IN {random.choice(aliases)}.tags{where})"

    def _filter(self, aliases: tuple[str, ...], depth: int) -> str:
        random = self._random
        kind = random.random()
        key = random.choice(_KEYS)
        if kind < 0.35:
            return f"c.pk {random.choice(('=', '=', '=', '!=', '<', '<=', '>', '>='))} {key}"
        if kind < 0.45:
            return f"c.pk IN ({key}, {random.choice(_KEYS)})"
        if kind < 0.5:
            return f"(c.pk BETWEEN {key} AND {random.choice(_KEYS)})"
        if kind < 0.6:
            return f"c.a = {key}"
        if kind < 0.75 and depth < 3:
            operator = random.choice(("AND", "OR"))
            return f"({self._filter(aliases, depth + 1)} {operator} {self._filter(aliases, depth + 1)})"
        if kind < 0.8:
            call = random.choice(
                ("IS_NULL(c.pk)", "IS_BOOL(c.pk)", "LOWER(c.pk) = 'ab'", "ARRAY_CONTAINS([1,'a'], c.pk)")
            )
            return random.choice(
                (call, f"NOT ({call})", "STRINGEQUALS(c.pk, 'a', true)", "ABS(c.pk) = 1", "c.pk")
            )
        return f"({self._value(aliases, depth + 1)})"

    def _query(self, depth: int) -> str:
        random = self._random
        source, aliases = random.choice(
            (
                (" FROM c", ("c",)),
                (" FROM c", ("c",)),
                (" FROM root c", ("c",)),
                (" FROM c JOIN t IN c.tags", ("c", "t")),
                (" FROM t IN c.tags", ("t",)),
                ("", ("c",)),
                (" FROM (SELECT VALUE c FROM c) c", ("c",)),
                (" FROM c JOIN (SELECT VALUE u FROM u IN c.tags) v", ("c", "v")),
            )
        )
        distinct = "DISTINCT " if random.random() < 0.15 else ""
        top = random.choice(("TOP 5 ", "TOP @n ", "TOP 1.5 ")) if random.random() < 0.15 else ""
        where = f" WHERE {self._filter(aliases, depth)}" if random.random() < 0.65 else ""
        group = order = cut = ""
        if random.random() < 0.2:
            key = self._path(aliases)
            group = f" GROUP BY {key}"
            items = [key, f"{random.choice(_AGGREGATES)}({self._path(aliases)}) AS n"][: random.randint(1, 2)]
            selected = ", ".join(items)
        elif random.random() < 0.2:
            selected = (
                f"{random.choice(('VALUE ', ''))}{random.choice(_AGGREGATES)}({self._value(aliases, 1)})"
            )
        elif random.random() < 0.3:
            selected = "*"
        else:
            word = random.choice(("VALUE ", ""))
            selected = word + self._value(aliases, depth)
            if not word and random.random() < 0.5:
                selected += f", {self._value(aliases, depth)} AS k"
        if random.random() < 0.25:
            keys = [
                self._path(aliases) + random.choice(("", " DESC", " ASC"))
                for _ in range(random.randint(1, 2))
            ]
            order = f" ORDER BY {', '.join(keys)}"
        if random.random() < 0.12:
            cut = random.choice((" OFFSET 1 LIMIT 2", " OFFSET 0 LIMIT @n", " OFFSET 1"))
        return f"SELECT {distinct}{top}{selected}{source}{where}{group}{order}{cut}"

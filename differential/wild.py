"""Random queries beyond the common ones: every function with arguments of every type, unusual names, spaces, comments
and literals, subqueries in subqueries, LET, filters on keys in all forms, and now and then a broken text.

Such texts find causes that nobody has thought of. They are rare in what clients write, so their differences are counted
and shown, and only their rates are bounded.
"""

from __future__ import annotations

from random import Random
from typing import Any

from differential import words
from differential.ours import Case
from pleiad.query.functions import REGISTRY

_FUNCTIONS = sorted(REGISTRY)
_ESCAPES = ("", "", " ESCAPE '!'")
_MEMBERS = ("b", "'x y'", "order")
Aliases = tuple[str, ...]


class Wild:
    """Makes queries from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._aliases = 0

    def case(self) -> Case:
        """One query with its parameters and key paths."""
        random = self._random
        self._aliases = 0
        source, aliases = self._source()
        text = self._body(aliases, source, 0)
        kind = random.random()
        if kind < 0.04:
            place = random.randrange(len(text))
            text = text[:place] + self._one(*words.BREAKS) + text[place + random.choice((0, 1, 3)) :]
        elif kind < 0.14:
            text = self._disguised(text)
        given: tuple[dict[str, Any], ...] = ()
        if "@" in text:
            given = tuple({"name": name, "value": random.choice(words.VALUES)} for name in ("@p", "@q", "@n"))
            given += ({"name": "@arr", "value": random.choice(words.ARRAYS)},)
        paths = self._one(*words.PATHS).split(" ")
        return Case(text, given, tuple(path.replace("%20", " ") for path in paths))

    def _chance(self, part: float) -> bool:
        return self._random.random() < part

    def _one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _disguised(self, text: str) -> str:
        """The text with other spaces between its words, and comments."""
        found: list[str] = []
        quote = ""
        for char in text:
            if quote:
                quote = "" if char == quote else quote
            elif char in "\"'":
                quote = char
            is_free = char == " " and not quote and self._chance(0.5)
            found.append(self._one(*words.SPACES) if is_free else char)
        return "".join(found) + self._one("", " ", "\n", " -- end", "--")

    # -- expressions -----------------------------------------------------------------------------

    def _path(self, aliases: Aliases) -> str:
        path = self._one(*aliases) if self._chance(0.98) else self._one("zz", "C", "ROOT", '"c"')
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 3))):
            path += self._one(*words.STEPS) if self._chance(0.2) else "." + self._one(*words.NAMES)
        return path

    def _leaf(self, aliases: Aliases) -> str:
        kind = self._random.random()
        if kind < 0.6:
            return self._path(aliases)
        return self._one(*(words.NUMBERS if kind < 0.74 else words.TEXTS if kind < 0.86 else words.OTHERS))

    def _leaves(self, aliases: Aliases) -> str:
        return ", ".join(self._leaf(aliases) for _ in range(self._random.randint(1, 3)))

    def _chain(self, aliases: Aliases) -> str:
        """Operators without parentheses."""
        text = self._leaf(aliases)
        for _ in range(self._random.randint(1, 3)):
            text += f" {self._one(*words.OPERATORS)} {self._leaf(aliases)}"
        return text

    def _call(self, aliases: Aliases, depth: int) -> str:
        name = self._one(*_FUNCTIONS)
        function = REGISTRY[name]
        most = function.max_args if function.max_args is not None else function.min_args + 2
        count = self._random.randint(function.min_args, most) + (0 if self._chance(0.97) else 1)
        arguments = [
            self._expression(aliases, depth + 1) if self._chance(0.4) else self._leaf(aliases)
            for _ in range(count)
        ]
        written = self._one(name, name, name.lower(), name.title())
        return f"{written}{self._one('', '', ' ')}({self._one(', ', ',').join(arguments)})"

    def _expression(self, aliases: Aliases, depth: int = 0) -> str:
        if depth > 3 or self._chance(0.4):
            return self._leaf(aliases)

        def leaf() -> str:
            return self._leaf(aliases)

        def inner() -> str:
            return self._expression(aliases, depth + 1)

        variable = f"v{depth}"
        forms = (
            lambda: self._call(aliases, depth),
            lambda: self._call(aliases, depth),
            lambda: f"({inner()} {self._one(*words.OPERATORS)} {inner()})",
            lambda: self._chain(aliases),
            lambda: self._one(*words.PREFIXES) + leaf(),
            lambda: f"{leaf()} {self._one('IN', 'NOT IN', 'in')} ({self._leaves(aliases)})",
            lambda: f"({leaf()} {self._one('BETWEEN', 'NOT BETWEEN')} {leaf()} AND {leaf()})",
            lambda: (
                f"({leaf()} {self._one('LIKE', 'NOT LIKE')} {self._one(*words.TEXTS)}{self._one(*_ESCAPES)})"
            ),
            lambda: f"({inner()} ? {inner()} : {inner()})",
            lambda: f"[{inner()}, {leaf()}]{self._one('', '', '[0]', '[1]', '.a')}",
            lambda: f"{{a: {inner()}, {self._one(*_MEMBERS)}: {leaf()}}}{self._one('', '.a', '.b')}",
            lambda: f"(LET {variable} = {inner()} IN {self._expression((*aliases, variable), depth + 1)})",
            lambda: f"{self._one('udf.f', 'UDF.g')}({leaf()})",
            lambda: self._subquery_value(aliases, depth),
        )
        return self._random.choice(forms)()

    # -- queries ---------------------------------------------------------------------------------

    def _alias(self) -> str:
        self._aliases += 1
        return f"{self._one('x', 'y', 't')}{self._aliases}"

    def _subquery_value(self, aliases: Aliases, depth: int) -> str:
        word = self._one("EXISTS", "EXISTS ", "ARRAY", "", "", "FIRST", "LAST", "ALL", "NOT EXISTS")
        step = self._one("", "", "[0]") if word == "ARRAY" else ""
        return f"{word}({self._subquery(aliases, depth + 1)}){step}"

    def _subquery(self, aliases: Aliases, depth: int) -> str:
        alias = self._alias()
        kind = self._random.random()
        if kind < 0.25:
            return self._body(aliases, "", depth)
        path = self._path(aliases)
        source = f" FROM {path} {alias}" if kind < 0.45 else f" FROM {alias} IN {path}"
        return self._body((*aliases, alias), source, depth)

    def _source(self) -> tuple[str, Aliases]:
        root = self._one("c", "c", "c", "r", "root", "Families")
        kind = self._random.random()
        if kind < 0.08:
            return f" FROM {root}.a d", ("d",)
        if kind < 0.16:
            return f" FROM t IN {root}.tags", ("t",)
        if kind < 0.26:
            return f" FROM ({self._body((root,), f' FROM {root}', 1)}) AS y", ("y",)
        if kind < 0.3:
            return f" FROM x IN ({self._body((root,), f' FROM {root}', 1)})", ("x",)
        if kind < 0.34:
            return "", (root,)
        source = f" FROM items AS {root}" if kind < 0.4 else f" FROM {root}"
        aliases: Aliases = (root,)
        while self._chance(0.25):
            alias = self._alias()
            joined = f"{alias} IN {self._path(aliases)}"
            if self._chance(0.3):
                joined = f"({self._subquery(aliases, 1)}) {self._one(alias, alias, alias, aliases[-1])}"
            elif self._chance(0.2):
                joined = f"{alias} IN ({self._subquery(aliases, 1)})"
            source, aliases = f"{source} JOIN {joined}", (*aliases, alias)
        return source, aliases

    def _filter(self, aliases: Aliases, depth: int) -> str:
        kind = self._random.random()
        if kind < 0.25 and depth < 4:
            return f"({self._filter(aliases, depth + 1)} {self._one('AND', 'OR')} {self._filter(aliases, depth + 1)})"
        if kind < 0.3 and depth < 4:
            return f"NOT ({self._filter(aliases, depth + 1)})"
        path = aliases[0] + self._one(*words.KEY_PATHS)
        if kind < 0.5:
            return f"{path} {self._one('=', '=', '=', '!=', '<', '<=', '>', '>=')} {self._one(*words.KEYS)}"
        if kind < 0.75:
            form = self._one(*words.KEY_TESTS)
            return form.format(k=path, v=self._one(*words.KEYS), w=self._one(*words.KEYS))
        return self._expression(aliases, depth + 1)

    def _selection(self, aliases: Aliases, depth: int) -> tuple[str, str]:
        """A select list, and the GROUP BY that it needs."""
        kind = self._random.random()
        count = self._random.randint(1, 3)
        if kind < 0.14:
            keys = [self._path(aliases) for _ in range(self._random.randint(1, 2))]
            items = [self._one(*keys), *(self._aggregate(aliases, depth) for _ in range(count - 1))]
            group = f" GROUP BY {', '.join(keys)}"
            if self._chance(0.2):
                return f"VALUE {items[0]}", group
            return ", ".join(f"{item} AS n{number}" for number, item in enumerate(items)), group
        if kind < 0.28:
            return f"{self._one('VALUE ', '')}{self._aggregate(aliases, depth)}", ""
        if kind < 0.45:
            return "*", ""
        if kind < 0.75:
            return f"VALUE {self._expression(aliases, depth)}", ""
        items = [
            f"{self._expression(aliases, depth)} AS {self._one('k', 'é')}{number}" for number in range(count)
        ]
        return ", ".join(items), ""

    def _aggregate(self, aliases: Aliases, depth: int) -> str:
        arguments = ("1", self._path(aliases), self._path(aliases), self._expression(aliases, depth + 1))
        return f"{self._one(*words.AGGREGATES)}({self._one(*arguments)})"

    def _body(self, aliases: Aliases, source: str, depth: int) -> str:
        is_outside = depth == 0
        distinct = "DISTINCT " if self._chance(0.12) else ""
        top = order = cut = ""
        if is_outside and self._chance(0.12):
            top = self._one("TOP 5 ", "TOP 5 ", "TOP @n ", "TOP 1e2 ", "TOP 1.5 ")
        selected, group = self._selection(aliases, depth)
        where = f" WHERE {self._filter(aliases, depth)}" if self._chance(0.6 if is_outside else 0.35) else ""
        if is_outside and self._chance(0.25):
            count = self._random.randint(1, 2)
            keys = [self._path(aliases) + self._one("", " DESC", " asc") for _ in range(count)]
            order = f" ORDER BY {', '.join(keys)}"
            if self._chance(0.1):
                scores = [self._one(*words.SCORES).format(a=self._one(*aliases, "zz")) for _ in range(3)]
                fused = f"RRF({', '.join(scores[:2])}{self._one('', ', [1, 2]', ', ' + scores[2])})"
                order = f" ORDER BY RANK {self._one(scores[0], fused)}{self._one('', '', ' DESC')}"
        if is_outside and self._chance(0.12):
            cut = self._one(" OFFSET 1 LIMIT 2", " OFFSET 0 LIMIT @n", " OFFSET 1", " offset 0 limit 0")
        return f"SELECT {distinct}{top}{selected}{source}{where}{group}{order}{cut}"

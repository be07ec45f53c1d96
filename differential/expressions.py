"""Random constant expressions: operators with and without parentheses, functions with arguments of every type."""

from __future__ import annotations

from random import Random

from differential import words
from pleiad.query.functions import REGISTRY

_NUMBERS = (
    *words.NUMBERS,
    *(
        "0",
        "1",
        "2",
        "3",
        "-1",
        "-2",
        "7",
        "10",
        "1.5",
        "-0.5",
        "0.1",
        "2.5",
        "-2.5",
        "1e2",
        "1e-7",
        "0x10",
        "33",
    ),
    *(
        "2147483647",
        "2147483648",
        "-2147483649",
        "4294967296",
        "9007199254740991",
        "9007199254740992",
        "1e15",
    ),
    *(
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1e16",
        "-0.0",
        "1e308",
    ),
)
_STRINGS = (
    *words.TEXTS,
    *words.DATES,
    *(
        '""',
        '"a"',
        '"A"',
        '"b"',
        '"abc"',
        '"ABC"',
        '"abcabc"',
        '" a "',
        '"10"',
        '"1.5"',
        '"-1"',
        '"null"',
        '"true"',
    ),
    *(
        '"[1,2]"',
        '"{\\"a\\":1}"',
        '"é"',
        '"ß"',
        '"İ"',
        '"ı"',
        '"Σσς"',
        '"日本語"',
        '"😀a"',
        '"a,b,,c"',
        '","',
        '"yyyy"',
    ),
    *(
        '"2020-01-02T03:04:05.1234567Z"',
        '"2020-02-29"',
        '"1601-01-01"',
        '"2021-12-31 23:59:59+01:30"',
        '"1969-07-20Z"',
    ),
    *(
        '"d"',
        '"dd"',
        '"hh"',
        '"mi"',
        '"ms"',
        '"ns"',
        '"yy"',
        '"m"',
        '"dw"',
        '"i"',
        '"fff"',
        '"FFF tt"',
        '"1d"',
        '"-2hour"',
    ),
)
_OTHERS = (
    *(
        "true",
        "false",
        "null",
        "undefined",
        "[]",
        "[1]",
        "[3,1,2,1]",
        '["b","a","B"]',
        '[1,"a",null,true]',
        "{}",
    ),
    *("{a:1}", "{b:2,a:1}", "{a:{b:1,c:2}}", "[[1],[1]]", "[{a:1},{a:1,b:2}]", "(0/0)", "[undefined,1]"),
)
_BINARY = (
    *("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "=", "!=", "<>", "<", "<=", ">", ">="),
    *("AND", "OR", "||", "??"),
)
_PREFIXES = ("-", "+", "~", "NOT ")
_LEFT_OUT = frozenset(
    (
        *(
            "RAND",
            "NOW",
            "AGO",
            "DOCUMENTID",
            "REGEXMATCH",
            "REGEXEXTRACT",
            "REGEXEXTRACTALL",
            "REGEXREPLACE",
        ),
        *("REGEXREPLACEALL", "VECTORDISTANCE", "GENERATEEMBEDDINGS"),
    )
)
"""Not constant, or not folded by the planner."""


def _names() -> list[str]:
    return sorted(
        name
        for name, function in REGISTRY.items()
        if function.name not in _LEFT_OUT
        and function.deterministic
        and not function.needs_context
        and function.family not in ("spatial", "fulltext")
    )


_LETTERS = "abcXYZ09 _-,'éßİıſKΣσςǅŉﬀ日\u00a0\u2003\u200b\u0301😀𐐀𐐨ꭰᎠაᲐԥᾀᾈ"
_SEPARATORS = ("T", "T", "T", "t", " ", "")
_ZONES = ("Z", "Z", "Z", "", "z", "+00:00", "+05:30", "-08:00", "+24:00", "+0530", " Z")


class Odd:
    """Makes the literals that no list has: texts of any letters, numbers of any size, dates in any form, JSON."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def text(self) -> str:
        random = self._random
        return '"' + "".join(random.choice(_LETTERS) for _ in range(random.choice((0, 1, 2, 3, 8)))) + '"'

    def number(self) -> str:
        random = self._random
        kind = random.random()
        if kind < 0.3:
            return str(random.choice((-1, 1)) * (2 ** random.randrange(1, 66) + random.randrange(-3, 4)))
        if kind < 0.6:
            return repr(random.uniform(-1, 1) * 10.0 ** random.randrange(-320, 309))
        if kind < 0.8:
            return repr(round(random.uniform(-100, 100), random.randrange(0, 8)))
        return f"0x{random.randrange(2 ** random.randrange(1, 64)):x}"

    def date(self) -> str:
        random = self._random
        year = random.choice((1, 1600, 1601, 1969, 2000, 2024, 9999))
        day = f"{year:04}-{random.randrange(1, 14):02}-{random.choice((1, 15, 28, 29, 30, 31)):02}"
        digits = "".join(random.choice("0123456789") for _ in range(random.choice((0, 1, 3, 7, 8, 10))))
        clock = f"{random.randrange(25):02}:{random.randrange(61):02}:{random.randrange(61):02}"
        fraction = f".{digits}" if random.random() < 0.6 else ""
        return f'"{day}{random.choice(_SEPARATORS)}{clock}{fraction}{random.choice(_ZONES)}"'

    def value(self, depth: int = 0) -> str:
        """An array or object of odd values, or one of them."""
        random = self._random
        kind = random.random()
        if depth > 2 or kind < 0.4:
            return random.choice((self.text, self.number, self.date))()
        if kind < 0.5:
            return random.choice(("true", "false", "null", "undefined", "(0/0)", "(1/0)"))
        parts = [self.value(depth + 1) for _ in range(random.randrange(4))]
        if kind < 0.75:
            return "[" + ", ".join(parts) + "]"
        named = zip(('"x y"', "b", '"é"'), parts, strict=False)
        return "{" + ", ".join(f"{name}: {part}" for name, part in named) + "}"


class Expressions:
    """Makes expressions from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._odd = Odd(self._random)
        self._functions = _names()

    def atom(self) -> str:
        kind = self._random.random()
        if self._random.random() < 0.15:
            return self._odd.value()
        if kind < 0.4:
            return self._random.choice(_NUMBERS)
        return self._random.choice(_STRINGS if kind < 0.75 else _OTHERS)

    def expression(self, depth: int = 0) -> str:
        """One expression."""
        kind = self._random.random()
        if depth > 2 or kind < 0.1:
            return self.atom()
        if kind < 0.55:
            return self.call(depth)
        if kind < 0.7:
            return (
                f"({self.expression(depth + 1)} {self._random.choice(_BINARY)} {self.expression(depth + 1)})"
            )
        if kind < 0.9:
            return self.chain()
        forms = (
            lambda: f"({self.atom()} IN ({self.atom()}, {self.atom()}))",
            lambda: f"({self.atom()} BETWEEN {self.atom()} AND {self.atom()})",
            lambda: f"({self.atom()} ? {self.atom()} : {self.atom()})",
            lambda: f"[{self.expression(depth + 1)}, {self.atom()}][{self._random.choice('01')}]",
            lambda: f"{{a: {self.expression(depth + 1)}}}.a",
            lambda: f"(LET v = {self.expression(depth + 1)} IN [{self.atom()}, v][1])",
            lambda: f"ARRAY(SELECT VALUE {self.expression(depth + 1)} WHERE {self.expression(depth + 1)})",
            lambda: f"EXISTS(SELECT VALUE {self.expression(depth + 1)})",
            lambda: f"(SELECT VALUE COUNT(x) FROM (SELECT VALUE {self.expression(depth + 1)}) x)",
            lambda: f"{self._odd.value()}[{self.atom()}]",
        )
        return self._random.choice(forms)()

    def chain(self) -> str:
        """Operators without parentheses."""
        text = self._operand()
        for _ in range(self._random.randrange(1, 5)):
            text += f" {self._random.choice(_BINARY)} {self._operand()}"
        return f"({text})"

    def _operand(self) -> str:
        text = self.atom()
        return self._random.choice(_PREFIXES) + text if self._random.random() < 0.2 else text

    def call(self, depth: int) -> str:
        """A function with a legal number of arguments, mostly of the types it takes."""
        name = self._random.choice(self._functions)
        function = REGISTRY[name]
        most = function.max_args if function.max_args is not None else function.min_args + 2
        count = self._random.randint(function.min_args, most)
        arguments = [self._argument(function.family, depth) for _ in range(count)]
        return f"{name}({', '.join(arguments)})"

    def _argument(self, family: str, depth: int) -> str:
        if self._random.random() < 0.25:
            return self.expression(depth + 1) if depth < 2 else self.atom()
        if family in ("math", "integers"):
            is_odd = self._random.random() < 0.3
            return self._odd.number() if is_odd else self._random.choice(_NUMBERS)
        if family == "conversions" and self._random.random() < 0.4:
            return self._random.choice(words.JSON_TEXTS)
        if family in ("strings", "dates") and self._random.random() < 0.3:
            return self._odd.text() if family == "strings" else self._odd.date()
        if family in ("strings", "dates", "conversions"):
            return self._random.choice(_STRINGS if self._random.random() < 0.75 else _NUMBERS)
        return self.atom()

"""Whatever a client sends, the answer is a result or a 400, and it comes soon."""

from __future__ import annotations

import random
import time
from typing import Any

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.gateway_plan import gateway_plan
from pleiad.query.run import Query

PIECES = (
    *(
        "SELECT",
        "VALUE",
        "FROM",
        "WHERE",
        "GROUP",
        "BY",
        "ORDER",
        "JOIN",
        "IN",
        "AS",
        "TOP",
        "OFFSET",
        "LIMIT",
    ),
    *("DISTINCT", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "EXISTS", "ARRAY", "ALL", "FIRST", "RANK"),
    *(
        "c",
        "c.a",
        "t",
        "1",
        "2.5",
        "'x'",
        '"y"',
        "@p0",
        "true",
        "null",
        "undefined",
        "udf.f(",
        "COUNT(",
        "SUM(",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        "*",
        "+",
        "-",
        "/",
        "%",
        "=",
        "<",
        ">=",
        "??",
        "?",
        ":",
        "||",
        "|",
    ),
    *(
        "\\",
        "'",
        '"',
        "#",
        "é",
        "\U0001f600",
        "\n",
        "--",
        "/*",
        "*/",
        "1e",
        "0x",
        "ABS(",
        "RRF(",
        "FullTextScore(",
    ),
)
SECONDS_MAX = 1.0


def attempt(text: str, parameters: dict[str, Any], items: list[Any]) -> None:
    """Run and plan the text; anything but a result or a 400 escapes."""
    started = time.perf_counter()
    status = 200
    try:
        query = Query(text, Limits())
        query.run(items, parameters, QueryContext())
        gateway_plan(query, parameters, [("a",)], lambda keys: [])
    except PleiadError as error:
        status = error.status
    assert status in (200, 400), text
    assert time.perf_counter() - started < SECONDS_MAX, text


def mutated(text: str, dice: random.Random) -> str:
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


def test_random_pieces_give_a_result_or_a_400(generator: Any) -> None:
    dice = random.Random(7)
    items = generator.Generator(7).items()
    for _ in range(3_000):
        text = "SELECT " + " ".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 14)))
        attempt(text, {"@p0": 1}, items)


def test_mutated_queries_give_a_result_or_a_400(generator: Any) -> None:
    dice = random.Random(11)
    for seed in range(3_000):
        made = generator.Generator(seed)
        items = made.items()
        text, parameters = made.query()
        attempt(mutated(text, dice), parameters, items)

"""Whatever a client sends, the answer is a result or a 400, and it comes soon."""

from __future__ import annotations

import random
import time
from typing import Any

from attack.fuzzing.queries import PIECES, mutated
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.run import Query
from pleiad.server.http.failures import status_of

SECONDS_MAX = 1.0


def attempt(text: str, parameters: dict[str, Any], items: list[Any]) -> None:
    """Run and plan the text; anything but a result or a 400 escapes."""
    started = time.thread_time()
    status = 200
    try:
        query = Query(text, Limits())
        query.run(items, parameters, QueryContext())
        gateway_plan(query, parameters, [("a",)], lambda keys: [])
    except PleiadError as error:
        status = status_of(error)
    assert status in (200, 400), text
    assert time.thread_time() - started < SECONDS_MAX, text


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

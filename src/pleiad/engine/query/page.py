"""A page of a query as its client gets it: the results, what is charged for them, and the token of the next page."""

from __future__ import annotations

import time
from typing import NamedTuple

from pleiad import charge
from pleiad.charge import Charge, Tally
from pleiad.engine.container import Container
from pleiad.engine.pages.query import QueryPageState, QueryState, Scope
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.seal import as_json, fingerprint
from pleiad.partition.partition import Partition
from pleiad.query import Query

BETWEEN_PAGES = "between pages"
"""The part of a charge that pages pay for each other, so that each pays something and all together what is due."""
NOTHING_BEFORE = Tally()


class QueryPage(NamedTuple):
    """One page of results as JSON texts, and what it cost."""

    results: list[bytes]
    charge: Charge
    charge_ru: float
    token: str | None
    partitions: list[Partition]
    tally: Tally
    is_falling: bool | None
    """For an ordered query whether its first key is descending."""
    milliseconds: float
    """The time it took to run."""
    prepared_ms: float = 0.0
    """The time before, in which it was compiled and routed."""

    @property
    def own_ru(self) -> float:
        """What the work of the page is worth, without what pages pay for each other."""
        return self.charge_ru - dict(self.charge.parts).get(BETWEEN_PAGES, 0.0)


class Before(NamedTuple):
    """What the pages before one touched, and left to pay, below 0 where they paid ahead."""

    touched: Tally = NOTHING_BEFORE
    left_ru: float = 0.0


FIRST = Before()


def mark_of(container: Container, query: Query, request: QueryRequest) -> int:
    """What tells the tokens of a query from those of others.

    A client that merges partitions puts a filter of its own into the query when it goes on, so that the rest of an
    ordered query is another text; a place in the order means the same for both.
    """
    parameters = sorted(request.parameters.items(), key=str)
    return fingerprint(container.resource.rid, query.text_without_filter or request.text, parameters)


def page_of(
    container: Container,
    request: QueryRequest,
    results: list[bytes],
    next_state: QueryPageState | None,
    tally: Tally,
    partitions: list[Partition],
    query: Query,
    *,
    is_falling: bool | None,
    began_at: float,
    asked_at: float,
    before: Before = FIRST,
    mark: int | None = None,
) -> QueryPage:
    """The page that has these results; `tally` is what it touched to find them, `mark` that of the query if known.

    A page costs what it adds to the pages before it, so that their sum is the charge of the query exactly.
    """
    tally.items_returned = len(results)
    tally.bytes_returned = sum(map(len, results))
    if before is FIRST:
        total, cost = tally, tally.charge(request.multiplier)
        own_ru = cost.ru
    else:
        total = before.touched + tally
        cost, paid = total.charge(request.multiplier), before.touched.charge(request.multiplier)
        own_ru = round(cost.ru - paid.ru, 2)
        cost += Charge(tuple((name, -ru) for name, ru in paid.parts))
    page_ru, left_ru = _paid(request, own_ru + before.left_ru, len(results), next_state is not None)
    if page_ru != own_ru:
        cost += Charge(((BETWEEN_PAGES, page_ru - own_ru),))
    token = None
    if next_state is not None:
        span = request.span
        state = QueryState(next_state, Scope.of(span), total, round(left_ru * 100))
        mark = mark_of(container, query, request) if mark is None else mark
        token = container.seal.encode(mark, state.to_state())
        if not request.is_confined:
            token = as_json(token, span.min.hex().upper(), span.max.hex().upper())
    milliseconds = (time.perf_counter() - began_at) * 1000
    prepared_ms = (began_at - asked_at) * 1000
    return QueryPage(results, cost, page_ru, token, partitions, tally, is_falling, milliseconds, prepared_ms)


def _paid(request: QueryRequest, due_ru: float, results: int, has_next: bool) -> tuple[float, float]:
    """What a page pays of what is due, and what it leaves to the pages behind it, below 0 when it pays ahead for them.

    A page pays at least what the service's cheapest request does. Each but the last leaves as much to the next, so
    that one without results has something to pay and the sum stays what it is. A page that ended before it was full
    did so by the time it took or by load; these must not make a query dearer, so it has no least charge.
    """
    least_ru = charge.query_page_least(request.multiplier)
    is_cut = has_next and results < request.items_max
    page_ru = round(max(0.0 if is_cut else least_ru, due_ru - (least_ru if has_next else 0.0)), 2)
    return page_ru, round(due_ru - page_ru, 2)

"""A route: the operation a request is, and the function that answers it. There is no route without an operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pleiad.engine.operation import Operation
from pleiad.heads.nosql.call import Call
from pleiad.server.http.message import Response

Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """One operation, whose right is asked for before the handler runs."""

    operation: Operation
    handler: Handler


class Choice:
    """A path and method that is several operations, which only the headers of a request tell apart.

    Who may do what is decided after the choice, by the operation that was chosen and is run.
    """

    __slots__ = ("_choose", "routes")

    def __init__(self, choose: Callable[[Call], Route], *routes: Route) -> None:
        self._choose = choose
        self.routes = routes
        """All that may be chosen."""

    def __call__(self, call: Call) -> Route:
        return self._choose(call)


Methods = Mapping[str, Route | Choice]
"""The routes of one path by method."""

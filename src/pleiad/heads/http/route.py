"""A route: the operation a request is, and the function that answers it. There is no route without an operation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pleiad.engine.operation import Operation
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response

Call = TypeVar("Call", bound=HttpCall, contravariant=True)
"""What a head knows of a request; a route that asks for less can be one of any head."""
Handler = Callable[[Call], Response | Coroutine[Any, Any, Response]]
"""Answers a call: at once, or by a coroutine where something has to be waited for."""


@dataclass(frozen=True, slots=True)
class Route(Generic[Call]):
    """One operation, whose right is asked for before the handler runs."""

    operation: Operation
    handler: Handler[Call]


class Choice(Generic[Call]):
    """A path and method that is several operations, which only the headers of a request tell apart.

    Who may do what is decided after the choice, by the operation that was chosen and is run.
    """

    __slots__ = ("choose", "routes")

    def __init__(self, choose: Callable[[Call], Route[Call]], *routes: Route[Call]) -> None:
        self.choose = choose
        self.routes = routes
        """All that may be chosen."""


Methods = Mapping[str, Route[Call] | Choice[Call]]
"""The routes of one path by method."""

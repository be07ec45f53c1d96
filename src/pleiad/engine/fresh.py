"""Changes of the catalog beside other servers: made again on what those changed when it came between."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from pleiad import errors
from pleiad.catalog.catalog import StaleCatalogError

_ATTEMPTS = 5

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class Looks(Protocol):
    """Who can look at what other servers have changed."""

    async def look(self) -> bool:
        """Takes over what others changed; whether there was something."""


class ChangesCatalog(Protocol):
    """What `on_a_fresh_catalog` asks of the class of its methods."""

    @property
    def looks(self) -> Looks: ...


_Self = TypeVar("_Self", bound=ChangesCatalog)


def on_a_fresh_catalog(
    change: Callable[Concatenate[_Self, _Arguments], Coroutine[Any, Any, _Answer]],
) -> Callable[Concatenate[_Self, _Arguments], Coroutine[Any, Any, _Answer]]:
    """A change of the catalog that is made again when another server's change came between."""

    @functools.wraps(change)
    async def whole(self: _Self, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        for _ in range(_ATTEMPTS):
            try:
                return await change(self, *arguments, **named)
            except StaleCatalogError:
                await self.looks.look()
        raise errors.UNAVAILABLE(reason="Other servers are changing the catalog; retry.")

    return whole

"""A query on a change feed: which changes a client wants to be told of.

The query selects items as they are by a filter. A change passes when its item passes; in a feed of all versions the
item as it is now, or, where the client asks for that, as it was before: a delete has no other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.engine.feed.image import current_image, previous_image
from pleiad.item.body import load
from pleiad.query import Query, compile_query
from pleiad.query.pace import Pace
from pleiad.store.rows import Row, Version


class ChangeFilter:
    """The filter of one request."""

    def __init__(
        self, container: Container, text: str, parameters: Mapping[str, Any], on_previous: bool, pace: Pace
    ) -> None:
        query = compile_query(text, container.limits)
        _check(query)
        self._container = container
        self._pace = pace
        self._ends_at = time.perf_counter() + container.limits.operation_seconds
        self._execution = query.execution(parameters, container.query_context(pace))
        self._on_previous = on_previous

    def is_over(self) -> bool:
        """Whether the request has looked at changes for long enough."""
        return time.perf_counter() > self._ends_at

    def steps(self) -> int:
        """What the filter has taken so far."""
        return self._pace.steps

    async def rows(self, changes: list[Row]) -> list[Row]:
        """The items that pass."""
        return await self._pace.run(lambda: [row for row in changes if self._passes(row)])

    async def versions(self, changes: list[Version]) -> list[Version]:
        """The changes that pass."""
        return await self._pace.run(lambda: [each for each in changes if self._passes_version(each)])

    def _passes(self, row: Row) -> bool:
        item: dict[str, Any] = load(row.body)
        item.update(self._container.system_properties(row))
        return self._execution.matches(item)

    def _passes_version(self, version: Version) -> bool:
        images = [current_image(version)]
        if self._on_previous:
            images.append(previous_image(version))
        return any(image is not None and self._passes(image) for image in images)


def _check(query: Query) -> None:
    block = query.block
    is_collected = query.is_aggregate or query.order_by or query.is_ranked or query.distinct
    is_cut = block.top is not None or block.offset is not None or block.limit is not None
    if not query.gives_items or is_collected or is_cut or query.plan.udfs:
        raise errors.QUERY_ERROR(
            reason="A query on a change feed selects whole items by a filter: SELECT * FROM c WHERE …, without "
            "ORDER BY, TOP, DISTINCT, groups and user-defined functions."
        )

"""A query on a change feed: which changes a client wants to be told of.

The query selects items as they are by a filter. A change passes when its item passes; in a feed of all versions the
item as it is now, or, where the client asks for that, as it was before: a delete has no other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.engine.image import current_image, previous_image
from pleiad.item.body import load
from pleiad.query import Execution, Query, compile_query, compile_turn
from pleiad.query.pace import Pace
from pleiad.store.contract import Row, Version


class ChangeFilter:
    """The filter of one request; `is_over` says when it has looked at changes for long enough."""

    def __init__(self, container: Container, execution: Execution, on_previous: bool) -> None:
        self._container = container
        self._execution = execution
        self._on_previous = on_previous
        self._ends_at = time.perf_counter() + container.limits.operation_seconds

    @classmethod
    async def of(
        cls, container: Container, text: str, parameters: Mapping[str, Any], on_previous: bool, pace: Pace
    ) -> Self:
        """The filter of a query text, evaluated at the pace of its request."""
        async with compile_turn(pace, text):
            query = await pace.run(compile_query, text, container.limits)
            _check(query)
            execution = await pace.run(query.execution, parameters, container.query_context(pace))
        return cls(container, execution, on_previous)

    @property
    def pace(self) -> Pace:
        return self._execution.context.pace

    @property
    def is_over(self) -> bool:
        return time.perf_counter() > self._ends_at

    def passes(self, row: Row) -> bool:
        """Whether an item passes."""
        item: dict[str, Any] = load(row.body)
        item.update(self._container.system_properties(row))
        return self._execution.matches(item)

    def passes_version(self, version: Version) -> bool:
        """Whether a change passes."""
        images = [current_image(version)]
        if self._on_previous:
            images.append(previous_image(version))
        return any(image is not None and self.passes(image) for image in images)


def _check(query: Query) -> None:
    block = query.block
    is_collected = query.is_aggregate or query.order_by or query.is_ranked or query.distinct
    is_cut = block.top is not None or block.offset is not None or block.limit is not None
    if not query.gives_items or is_collected or is_cut or query.plan.udfs:
        raise errors.QUERY_ERROR(
            reason="A query on a change feed selects whole items by a filter: SELECT * FROM c WHERE …, without "
            "ORDER BY, TOP, DISTINCT, groups and user-defined functions."
        )

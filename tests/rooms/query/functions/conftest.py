"""A way to call a built-in function by name, and the places of the public examples."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from pleiad.query.context import QueryContext
from pleiad.query.functions import REGISTRY
from pleiad.query.values import finite

Call = Callable[..., Any]


@pytest.fixture
def context() -> QueryContext:
    return QueryContext(now=datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC))


@pytest.fixture
def call(context: QueryContext) -> Call:
    def call_by_name(name: str, *arguments: Any) -> Any:
        function = REGISTRY[name]
        assert len(arguments) >= function.min_args
        assert function.max_args is None or len(arguments) <= function.max_args
        given = (context, *arguments) if function.needs_context else arguments
        # As results show it: a whole double without its fraction.
        result = function.call(*given)
        is_finite = type(result) is float and math.isfinite(result)
        return finite(result) if is_finite else result

    return call_by_name

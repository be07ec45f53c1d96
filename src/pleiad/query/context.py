"""What one execution of a query knows beside its text, parameters and items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pleiad.limits import Limits
from pleiad.query.pace import Pace

if TYPE_CHECKING:
    from pleiad.query.run import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """Fixed for one execution; ``pace`` is told of every step and may stop a query that has no end."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    limits: Limits = field(default_factory=Limits)
    udfs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    computed_properties: tuple[tuple[str, Query], ...] = ()
    vector_policy: Mapping[str, Any] | None = None
    full_text_policy: Mapping[str, Any] | None = None
    is_planar: bool = False
    """whether the container's geometries lie in a plane and not on the globe"""
    pace: Pace = field(default_factory=Pace)

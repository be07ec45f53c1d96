"""The log of requests and of slow queries: one line of names and values for each.

Requests go to the logger `pleiad.request` at the level info, queries that took longer than wanted to `pleiad.slow` at
the level warning. The values stand beside the line too, as `fields` of the record, for who writes JSON.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pleiad.engine.log_line import log_line
from pleiad.engine.operation import Operation
from pleiad.engine.watch.observer import Seen

REQUESTS = "pleiad.request"
SLOW = "pleiad.slow"
QUERY_CHARACTERS_MAX = 1_000
_KEY_CHARACTERS_MAX = 200
_ACTIVITY_CHARACTERS_MAX = 100
"""A client may send any text as its activity id."""

_requests = logging.getLogger(REQUESTS)
_slow = logging.getLogger(SLOW)


@dataclass(frozen=True, slots=True)
class RequestLog:
    """Logs every request, or slow queries, or both."""

    every: bool
    slow_seconds: float | None

    @property
    def is_over(self) -> bool:
        return False

    def saw(self, seen: Seen) -> None:
        if self.every:
            _log(_requests, logging.INFO, _fields(seen))
        if (
            self.slow_seconds is not None
            and seen.operation == Operation.QUERY_ITEMS.word
            and seen.seconds >= self.slow_seconds
        ):
            _log(_slow, logging.WARNING, {**_fields(seen), "query": seen.query[:QUERY_CHARACTERS_MAX]})


def _fields(seen: Seen) -> dict[str, Any]:
    fields = {
        "operation": seen.operation,
        "container": seen.path,
        "key": seen.key[:_KEY_CHARACTERS_MAX],
        "partitions": list(seen.partitions),
        "status": seen.status,
        "ru": round(seen.charge_ru, 2),
        "ms": round(1_000 * seen.seconds, 3),
        "activity": seen.activity_id[:_ACTIVITY_CHARACTERS_MAX],
    }
    return {name: value for name, value in fields.items() if value not in ("", [])}


def _log(logger: logging.Logger, level: int, fields: dict[str, Any]) -> None:
    logger.log(level, "%s", log_line(**fields), extra={"fields": fields})

"""What an advice is asked for, and how far it is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson

from pleiad.limits import Limits


class AdviceState(Enum):
    """What has become of an advice."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AdviceStep(Enum):
    """What an advice is at."""

    READING = "reading"
    """Items, and what is recorded of requests."""
    TRYING = "trying"
    """One key after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePlan:
    """What somebody may say beside the container."""

    candidates: tuple[str, ...] = ()
    """Keys as texts, instead of those that are found."""
    growth: float = 1.0
    """How many times as large everything becomes before keys are judged."""
    throughput_ru: float | None = None
    sample: int | None = None
    """How many items are kept for measuring; None for as many as may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceTask:
    """An advice as the process beside the server is given it."""

    source: str
    plan: AdvicePlan
    key_paths: tuple[str, ...]
    indexing: Any
    throughput_ru: float | None
    rows_max: int
    limits: Limits

    def to_json(self) -> bytes:
        return orjson.dumps(dataclasses.asdict(self))


def task_from_json(text: bytes) -> AdviceTask:
    """The task in a frame."""
    given = orjson.loads(text)
    plan = given["plan"]
    return AdviceTask(
        source=given["source"],
        plan=AdvicePlan(**{**plan, "candidates": tuple(plan["candidates"])}),
        key_paths=tuple(given["key_paths"]),
        indexing=given["indexing"],
        throughput_ru=given["throughput_ru"],
        rows_max=given["rows_max"],
        limits=Limits(**given["limits"]),
    )


@dataclass(slots=True, kw_only=True)
class AdviceProgress:
    """An advice that is made, or was."""

    database: str
    container: str
    plan: AdvicePlan
    began_at: float
    ended_at: float = 0.0
    state: AdviceState = AdviceState.RUNNING
    step: AdviceStep = AdviceStep.READING
    what: str = ""
    """The key that is tried."""
    done: int = 0
    total: int = 0
    """In items while reading, in keys while trying."""
    charge_ru: float = 0.0
    """What reading has cost."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MadeReport:
    """What came of an advice: a report as JSON, and as a page that needs nothing else."""

    json: bytes = field(repr=False)
    page: bytes = field(repr=False)
    made_at: float

"""A copy of a container as the catalog remembers it: what is asked for, how far it is, and how it ended.

The record is the truth of a copy: whoever works on it writes it with a token of its own, and every later step expects
it as it was written last. So a server that was taken for dead cannot go on beside the one that took the copy over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pleiad.catalog.catalog import CONTAINER_COPY
from pleiad.catalog.throughput import Throughput
from pleiad.job.copy.plan import ContainerName, CopyPlan
from pleiad.keys.range import EpkRange
from pleiad.store.catalog import Record


class CopyState(Enum):
    """What has become of a copy."""

    PLANNED = "planned"
    RUNNING = "running"
    SWITCHING = "switching"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OVER = frozenset({CopyState.DONE, CopyState.FAILED, CopyState.CANCELLED})


class CopyStep(Enum):
    """What a copy is at."""

    PREPARING = "preparing"
    """Makes the target, and chooses the moment that is copied."""
    COPYING = "copying"
    """Copies what was there at that moment."""
    FOLLOWING = "following"
    """Repeats what has changed since; an online copy that is ready goes on with it until it is completed."""
    VERIFYING = "verifying"
    """Compares every item."""
    ENDING = "ending"


class Asked(Enum):
    """What somebody wants of a copy that is under way."""

    COMPLETE = "complete"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """How far a range of hashes of the source is copied.

    Rows up to `goal` were there when the copy began. Those up to `rows_after` are in the target, and so is what
    happened up to `versions_after`.
    """

    span: EpkRange
    goal: int
    rows_after: int
    versions_after: int

    @property
    def has_rows(self) -> bool:
        return self.rows_after < self.goal


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyJob:
    """One copy at one moment of its life."""

    id: str
    plan: CopyPlan
    state: CopyState = CopyState.PLANNED
    step: CopyStep = CopyStep.PREPARING
    asked: Asked | None = None
    token: str = ""
    """Of the one who works on it."""
    source_rid: str = ""
    target_rid: str = ""
    makes_target: bool = False
    """Whether the copy makes its target; one that was there is never removed."""
    places: tuple[CopyPlace, ...] = ()
    done: int = 0
    total: int = 0
    """In items, of those that were there at the beginning."""
    followed: int = 0
    """Changes that were repeated."""
    is_ready: bool = False
    """Whether an online copy has nothing left but to be completed."""
    began_at: float = 0.0
    ended_at: float = 0.0
    problem: str = ""
    items: tuple[str, ...] = ()
    """The items that stood in the way."""
    verified: int = 0
    checksum: str = ""
    """Of all items, in no order."""
    held_ms: int = 0
    """How long the writers of the source were kept waiting at the end."""
    resumed: int = 0
    """How often another process went on with it."""

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    def changed(self, **changes: Any) -> CopyJob:
        return replace(self, **changes)

    def to_record(self) -> Record:
        body: dict[str, Any] = {
            "plan": _plan_body(self.plan),
            "state": self.state.value,
            "step": self.step.value,
            "asked": None if self.asked is None else self.asked.value,
            "places": [
                [*place.span.to_hex(), place.goal, place.rows_after, place.versions_after]
                for place in self.places
            ],
            "items": list(self.items),
            **{name: getattr(self, name) for name in _PLAIN},
        }
        return Record(CONTAINER_COPY, self.id, "", self.id, body)


_PLAIN = (
    *("token", "source_rid", "target_rid", "makes_target", "done", "total", "followed", "is_ready"),
    *("began_at", "ended_at", "problem", "verified", "checksum", "held_ms", "resumed"),
)


def job_from_record(record: Record) -> CopyJob:
    """The copy that a catalog record holds."""
    body = record.body
    asked = body["asked"]
    return CopyJob(
        id=record.rid,
        plan=_plan_from_body(body["plan"]),
        state=CopyState(body["state"]),
        step=CopyStep(body["step"]),
        asked=None if asked is None else Asked(asked),
        places=tuple(
            CopyPlace(EpkRange.from_hex(low, high), goal, rows_after, versions_after)
            for low, high, goal, rows_after, versions_after in body["places"]
        ),
        items=tuple(body["items"]),
        **{name: body[name] for name in _PLAIN},
    )


def _plan_body(plan: CopyPlan) -> dict[str, Any]:
    throughput = plan.throughput
    return {
        "source": [plan.source.database, plan.source.container],
        "target": [plan.target.database, plan.target.container],
        "key": list(plan.key_paths),
        "sets": dict(plan.sets),
        "online": plan.is_online,
        "switch": plan.is_switch,
        "share": plan.share,
        "throughput": None if throughput is None else [throughput.ru, throughput.autoscale],
        "shared": plan.is_shared,
        "definition": dict(plan.definition),
    }


def _plan_from_body(body: Mapping[str, Any]) -> CopyPlan:
    throughput = body["throughput"]
    return CopyPlan(
        source=ContainerName(*body["source"]),
        target=ContainerName(*body["target"]),
        key_paths=tuple(body["key"]),
        sets=body["sets"],
        is_online=body["online"],
        is_switch=body["switch"],
        share=body["share"],
        throughput=None if throughput is None else Throughput(*throughput),
        is_shared=body["shared"],
        definition=body["definition"],
    )

"""How far a change of physical partitions is, for who looks on."""

from __future__ import annotations

from dataclasses import dataclass, field

from pleiad.engine.phase import Phase
from pleiad.engine.reshape.pieces import Source

_PERCENT_UNFINISHED = 99.0


@dataclass(slots=True)
class Progress:
    """A change that is under way: what it is, of which partitions, and where it is."""

    kind: str
    partitions: tuple[int, ...]
    phase: Phase = Phase.PREPARING
    sources: dict[int, Source] = field(default_factory=dict)
    """What is being copied or has been, by partition."""

    def copied_percent(self, id: int) -> float | None:
        """How much of a partition's rows has been copied, about; None where nothing is."""
        source = self.sources.get(id)
        if source is None:
            return 0.0 if self.phase is Phase.COPYING else None
        if self.phase is not Phase.COPYING:
            return 100.0
        items = source.partition.items_seen
        return min(_PERCENT_UNFINISHED, 100 * source.move.items / items) if items else 0.0

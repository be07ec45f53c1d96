"""Where the worker processes of one server meet: a directory that the process above them made."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

_STATE = "state.json"
_HANDOVER = "handover"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlace:
    """Which worker of how many this process is, and where they meet."""

    number: int
    count: int
    directory: Path

    @property
    def handover(self) -> Path:
        """Where the token of the link to the page is known by its hash."""
        return self.directory / _HANDOVER


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersState:
    """What the process above the workers knows of them."""

    wanted: int
    running: int
    restarts: int

    def keep(self, directory: Path) -> None:
        """Puts the state where workers look for it, at once."""
        beside = directory / f"{_STATE}.new"
        beside.write_text(json.dumps(dataclasses.asdict(self)), encoding="ascii")
        beside.replace(directory / _STATE)

    @classmethod
    def kept(cls, place: WorkerPlace) -> WorkersState:
        """The state that was put there last."""
        try:
            return cls(**json.loads((place.directory / _STATE).read_bytes()))
        except (OSError, ValueError, TypeError):
            return cls(wanted=place.count, running=1, restarts=0)

"""The phases of a change of physical partitions, which splits, merges and rehomes report and may be held at."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """The steps of a change, in their order; each is reported when it begins."""

    PREPARING = "preparing"
    DIVIDING = "dividing"
    COPYING = "copying"
    CATCHING_UP = "catching-up"
    FENCED = "fenced"
    COMMITTING = "committing"
    CLEANING = "cleaning"


HOLDABLE = {phase.value: phase for phase in Phase if phase is not Phase.CLEANING}
"""Where a change can be made to wait, by its word: anywhere before it is done, and cleaning comes after that."""

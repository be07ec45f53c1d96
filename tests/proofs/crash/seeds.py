"""What chance follows in tests that kill: the same in every `make test`, another one in every `make crash`."""

from __future__ import annotations

import os
import random

_EVERY_TIME = 1


def chosen_seed() -> int:
    """The seed of PLEIAD_CRASH_SEED, which repeats a run; where kills are counted by PLEIAD_CRASH_KILLS, a new one."""
    given = int(os.environ.get("PLEIAD_CRASH_SEED", "0"))
    if given or "PLEIAD_CRASH_KILLS" not in os.environ:
        return given or _EVERY_TIME
    return random.SystemRandom().getrandbits(32)

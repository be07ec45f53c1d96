"""Seeds of the simulation: after any order of events and any crash the invariants hold.

A failing seed is named in the failure; PLEIAD_SEED=n runs that one alone, exactly as it was.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.world import World

SEEDS = 50
SEEDS_LONG = 1_000


def run_seed(seed: int, directory: Path) -> World:
    world = World(seed, directory / "life0")
    try:
        world.run()
    except BaseException as error:
        error.add_note(f"PLEIAD_SEED={seed}")
        raise
    return world


def seeds(first: int, count: int) -> range:
    chosen = os.environ.get("PLEIAD_SEED")
    return range(int(chosen), int(chosen) + 1) if chosen else range(first, first + count)


@pytest.mark.timeout(300)
def test_the_invariants_hold_for_every_seed(tmp_path: Path) -> None:
    for seed in seeds(0, SEEDS):
        directory = tmp_path / str(seed)
        directory.mkdir()
        run_seed(seed, directory)

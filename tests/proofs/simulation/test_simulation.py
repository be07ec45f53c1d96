"""Seeds of the simulation: after any order of events and any crash the invariants hold.

A failing seed is named in the failure; PLEIAD_SEED=n runs that one alone, exactly as it was. The simulator itself is
put to the test by breaking what it watches over.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

from pleiad.engine.reshape.failure import MismatchError
from pleiad.store.postgres.segment import PostgresSegment
from pleiad.store.sqlite.segment import SqliteSegment
from tests.postgres_server import PostgresServer
from tests.proofs.simulation.faults import FAULTS
from tests.proofs.simulation.ground import Ground, PostgresGround, SqliteGround
from tests.proofs.simulation.history import ViolationError
from tests.proofs.simulation.loop import StuckError
from tests.proofs.simulation.world import World

SEEDS = {"sqlite": 8, "postgres": 3}
SEEDS_LONG = {"sqlite": 1_000, "postgres": 200}
SEEDS_ACROSS = {"sqlite": 4, "postgres": 2}
SEEDS_TO_FIND_A_FAULT = 40

# The driver complains of the connections that a simulated crash has cut.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


Grounds = Callable[[Path], AbstractContextManager[Ground]]


@pytest.fixture
def grounds(store_kind: str, request: pytest.FixtureRequest) -> Grounds:
    """`with grounds(directory) as ground:` is nothing yet on the store of the run."""

    @contextmanager
    def ground(directory: Path) -> Iterator[Ground]:
        if store_kind == "sqlite":
            try:
                yield SqliteGround(directory)
            finally:
                shutil.rmtree(directory)
            return
        server: PostgresServer = request.getfixturevalue("postgres_server")
        dsn = server.new_database()
        try:
            yield PostgresGround(dsn)
        finally:
            server.give_back(dsn)

    return ground


def run_seed(seed: int, directory: Path, grounds: Grounds) -> World:
    """Runs one seed in a directory that it leaves empty."""
    with grounds(directory) as ground:
        world = World(seed, ground)
        try:
            world.run()
        except BaseException as error:
            error.add_note(f"repeat it with PLEIAD_SEED={seed}")
            raise
    return world


def run_seeds(first: int, count: int, directory: Path, grounds: Grounds) -> None:
    chosen = os.environ.get("PLEIAD_SEED")
    seeds = [int(chosen)] if chosen else range(first, first + count)
    worlds = [run_seed(seed, directory / str(seed), grounds) for seed in seeds]
    if len(worlds) > 1:
        assert sum(world.crashes for world in worlds) > count / 3, "hardly anything crashed"
        assert sum(world.changes for world in worlds) > count, "hardly anything was split, merged or rehomed"


@pytest.mark.every_store
def test_the_invariants_hold_for_every_seed(tmp_path: Path, grounds: Grounds, store_kind: str) -> None:
    run_seeds(0, SEEDS[store_kind], tmp_path, grounds)


@pytest.mark.every_store
def test_the_invariants_hold_when_rows_move_as_if_between_nodes(
    tmp_path: Path, grounds: Grounds, store_kind: str
) -> None:
    nowhere: dict[str, Any] = {"return_value": False}
    with (
        mock.patch.object(SqliteSegment, "can_copy_from", **nowhere),
        mock.patch.object(PostgresSegment, "can_copy_from", **nowhere),
    ):
        run_seeds(0, SEEDS_ACROSS[store_kind], tmp_path, grounds)


@pytest.mark.every_store
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_invariants_hold_for_many_seeds(tmp_path: Path, grounds: Grounds, store_kind: str) -> None:
    run_seeds(SEEDS[store_kind], SEEDS_LONG[store_kind], tmp_path, grounds)


@pytest.mark.parametrize("store_kind", ["sqlite"])
def test_a_seed_repeats_itself_exactly(tmp_path: Path, grounds: Grounds) -> None:
    first, second = (run_seed(5, tmp_path / name, grounds) for name in ("first", "second"))
    assert first.crashes > 0
    assert first.history.trace == second.history.trace


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_within_few_seeds(
    fault: str, store_kind: str, tmp_path: Path, grounds: Grounds
) -> None:
    # Without the checking wrapper, which would find some of them before the simulator does.
    with (
        FAULTS[fault][store_kind](),
        mock.patch("tests.proofs.simulation.ground.checked", lambda store: store),
    ):
        for seed in range(SEEDS_TO_FIND_A_FAULT):
            try:
                run_seed(seed, tmp_path / str(seed), grounds)
            except (ViolationError, StuckError, MismatchError, apsw.ConstraintError):
                return
    pytest.fail(f"{SEEDS_TO_FIND_A_FAULT} seeds did not find the fault")

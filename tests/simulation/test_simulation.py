"""Seeds of the simulation: after any order of events and any crash the invariants hold.

A failing seed is named in the failure; PLEIAD_SEED=n runs that one alone, exactly as it was. The simulator itself is
put to the test by breaking what it watches over.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

import apsw
import pytest

from pleiad.engine.reshape import Reshaper, _Source
from pleiad.engine.reshape_failure import MismatchError
from pleiad.store.contract import PartitionState, PartitionWrite, Segment
from pleiad.store.sqlite import relocate
from pleiad.store.sqlite.mutate import Applier, Counters
from pleiad.store.sqlite.segment import SqliteSegment
from tests.simulation.history import ViolationError
from tests.simulation.loop import StuckError
from tests.simulation.world import World

SEEDS = 50
SEEDS_LONG = 1_000
SEEDS_TO_FIND_A_FAULT = 40


def run_seed(seed: int, directory: Path) -> World:
    """Runs one seed in a directory that it leaves empty."""
    directory.mkdir()
    world = World(seed, directory / "life0")
    try:
        world.run()
    except BaseException as error:
        error.add_note(f"repeat it with PLEIAD_SEED={seed}")
        raise
    finally:
        shutil.rmtree(directory)
    return world


def run_seeds(first: int, count: int, directory: Path) -> None:
    chosen = os.environ.get("PLEIAD_SEED")
    seeds = [int(chosen)] if chosen else range(first, first + count)
    worlds = [run_seed(seed, directory / str(seed)) for seed in seeds]
    if len(worlds) > 1:
        assert sum(world.crashes for world in worlds) > count / 3, "hardly anything crashed"
        assert sum(world.changes for world in worlds) > count, "hardly anything was split, merged or rehomed"


@pytest.mark.timeout(300)
def test_the_invariants_hold_for_every_seed(tmp_path: Path) -> None:
    run_seeds(0, SEEDS, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_invariants_hold_for_many_seeds(tmp_path: Path) -> None:
    run_seeds(SEEDS, SEEDS_LONG, tmp_path)


def test_a_seed_repeats_itself_exactly(tmp_path: Path) -> None:
    first, second = (run_seed(5, tmp_path / name) for name in ("first", "second"))
    assert first.crashes > 0
    assert first.history.trace == second.history.trace


# -- the simulator finds what is broken ----------------------------------------------------------------


def writes_under_any_epoch() -> AbstractContextManager[object]:
    """Writers who know an old epoch are let in."""
    apply = Applier.apply

    def careless(self: Applier, counters: Counters, write: PartitionWrite) -> object:
        return apply(self, counters, write._replace(epoch=counters.epoch))

    return mock.patch.object(Applier, "apply", careless)


def fences_nothing() -> AbstractContextManager[object]:
    """A fence says that it closed the partition, and did not."""

    def open_fence(writer: apsw.Connection, partition: int, epoch: int) -> PartitionState | None:
        found = writer.execute(
            "SELECT lsn, next_sequence, items, size_bytes FROM partition WHERE id = ?1", (partition,)
        ).fetchone()
        return PartitionState(partition, epoch + 1, *(found or (0, 1, 0, 0)))

    return mock.patch.object(relocate, "_fence", open_fence)


def skips_the_last_catch_up() -> AbstractContextManager[object]:
    """What was written between the last round and the fence is not copied, and nobody compares."""
    catch_up = Reshaper._catch_up

    async def hasty(self: Reshaper, target: Segment, sources: list[_Source]) -> int:
        if all(source.fenced is None for source in sources):
            return await catch_up(self, target, sources)
        for source in sources:
            assert source.fenced is not None
            source.items, source.size_bytes = source.fenced.items, source.fenced.size_bytes
        return 0

    return mock.patch.object(Reshaper, "_catch_up", hasty)


def forgets_deletes() -> AbstractContextManager[object]:
    """Rows deleted while a copy is made stay in the copy."""
    catch_up = SqliteSegment.catch_up

    async def forgetful(self: SqliteSegment, *given: object) -> object:
        source = given[0]
        assert isinstance(source, SqliteSegment)
        assert source._file is not None
        source._file.applier.deleted = []
        return await catch_up(self, *given[:3], 0)

    return mock.patch.object(SqliteSegment, "catch_up", forgetful)


def mends_nothing() -> AbstractContextManager[object]:
    """What a crash interrupted stays as it is."""

    async def idle(self: Reshaper, container: object) -> None:
        return None

    return mock.patch.object(Reshaper, "mend", idle)


@pytest.mark.parametrize(
    "fault",
    [writes_under_any_epoch, fences_nothing, skips_the_last_catch_up, forgets_deletes, mends_nothing],
)
def test_a_fault_is_found_within_few_seeds(
    fault: Callable[[], AbstractContextManager[object]], tmp_path: Path
) -> None:
    with fault():
        for seed in range(SEEDS_TO_FIND_A_FAULT):
            try:
                run_seed(seed, tmp_path / str(seed))
            except (ViolationError, StuckError, MismatchError):
                return
    pytest.fail(f"{SEEDS_TO_FIND_A_FAULT} seeds did not find the fault")

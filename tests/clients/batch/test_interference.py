"""Writes that come between the snapshot of a batch and its commit: it starts over, or gives up in words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from pleiad.engine import items
from pleiad.engine.batch import Answer, ItemOperation, ItemVerb, run_transaction
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS, ItemAnswer
from pleiad.errors import PleiadError
from pleiad.limits import PROFILES, Limits
from pleiad.partition.partition import Partition
from pleiad.server.http.failures import status_of
from pleiad.store.rows import Outcome, PartitionWrite
from tests.stores import PATIENT, OpenStore

pytestmark = pytest.mark.every_store

KEY = ("a",)
Story = Callable[[Container], Coroutine[Any, Any, None]]
Meddle = Callable[[], Awaitable[object]]


def text(id: str, **more: Any) -> bytes:
    return json.dumps({"id": id, "pk": "a", **more}).encode()


def increment(id: str) -> ItemOperation:
    body = json.dumps([{"op": "incr", "path": "/n", "value": 1}]).encode()
    return ItemOperation(ItemVerb.PATCH, id, body)


def number(answer: Answer) -> int:
    assert isinstance(answer, ItemAnswer)
    assert answer.row is not None
    found: int = json.loads(answer.row.body)["n"]
    return found


def status(answer: Answer) -> int:
    return status_of(answer) if isinstance(answer, PleiadError) else 0


@pytest.fixture
def tell(tmp_path: Path, open_store: OpenStore) -> Callable[..., None]:
    """Runs a story on a container of its own."""

    def run(story: Story, limits: Limits | None = None) -> None:
        async def main() -> None:
            engine = Engine(await open_store(tmp_path / "data"), limits or PATIENT)
            await engine.open()
            try:
                database = await engine.create_database({"id": "db"}, None)
                body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
                await engine.create_container(database, body, None)
                await story(await engine.container("db", "c"))
            finally:
                await engine.close()

        asyncio.run(main())

    return run


@pytest.fixture
def meddle_before_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Meddle, int], list[int]]:
    """Does something just before each of the first commits of a batch; the list counts those commits."""

    def arrange(meddle: Meddle, times: int) -> list[int]:
        commit = Partition.commit
        commits: list[int] = []

        async def meddled(partition: Partition, write: PartitionWrite) -> Sequence[Outcome]:
            if write.atomic:
                commits.append(len(commits))
                if len(commits) <= times:
                    await meddle()
            return await commit(partition, write)

        monkeypatch.setattr(Partition, "commit", meddled)
        return commits

    return arrange


def test_a_patch_is_computed_anew_when_the_item_changed_meanwhile(
    tell: Callable[..., None], meddle_before_commit: Callable[[Meddle, int], list[int]]
) -> None:
    async def story(container: Container) -> None:
        await items.create(container, text("x", n=1), KEY)
        commits = meddle_before_commit(
            lambda: items.upsert(container, text("x", n=10), KEY, NO_CONDITIONS), 2
        )
        answer = await run_transaction(container, KEY, [increment("x")])
        assert (number(answer.answers[0]), len(commits)) == (11, 3)

    tell(story)


def test_an_item_read_and_then_written_is_read_again_when_it_changed_meanwhile(
    tell: Callable[..., None], meddle_before_commit: Callable[[Meddle, int], list[int]]
) -> None:
    async def story(container: Container) -> None:
        await items.create(container, text("x", n=1), KEY)
        meddle_before_commit(lambda: items.upsert(container, text("x", n=10), KEY, NO_CONDITIONS), 1)
        operations = [
            ItemOperation(ItemVerb.READ, "x"),
            ItemOperation(ItemVerb.UPSERT, body=text("x", n=2)),
        ]
        answer = await run_transaction(container, KEY, operations)
        assert [number(each) for each in answer.answers] == [10, 2]

    tell(story)


def test_an_item_deleted_or_created_meanwhile_fails_the_batch_as_it_is_now(
    tell: Callable[..., None], meddle_before_commit: Callable[[Meddle, int], list[int]]
) -> None:
    async def story(container: Container) -> None:
        await items.create(container, text("x", n=1), KEY)
        meddle_before_commit(lambda: items.delete(container, "x", KEY, NO_CONDITIONS), 1)
        answer = await run_transaction(
            container, KEY, [ItemOperation(ItemVerb.CREATE, body=text("y")), increment("x")]
        )
        assert [status(each) for each in answer.answers] == [424, 404]
        meddle_before_commit(lambda: items.create(container, text("y"), KEY), 1)
        answer = await run_transaction(container, KEY, [ItemOperation(ItemVerb.CREATE, body=text("y"))])
        assert [status(each) for each in answer.answers] == [409]

    tell(story)


def test_a_write_that_does_not_depend_on_the_old_item_needs_no_second_attempt(
    tell: Callable[..., None], meddle_before_commit: Callable[[Meddle, int], list[int]]
) -> None:
    async def story(container: Container) -> None:
        commits = meddle_before_commit(
            lambda: items.upsert(container, text("x", n=10), KEY, NO_CONDITIONS), 5
        )
        upsert = ItemOperation(ItemVerb.UPSERT, body=text("x", n=2))
        answer = await run_transaction(container, KEY, [upsert, increment("x")])
        assert [number(each) for each in answer.answers] == [2, 3]
        assert len(commits) == 1
        first = answer.answers[0]
        assert isinstance(first, ItemAnswer)
        assert not first.created, "the other one had created it"

    tell(story)


def test_a_batch_that_is_always_overtaken_gives_up(
    tell: Callable[..., None], meddle_before_commit: Callable[[Meddle, int], list[int]]
) -> None:
    async def story(container: Container) -> None:
        await items.create(container, text("x", n=1), KEY)
        meddle_before_commit(lambda: items.upsert(container, text("x", n=10), KEY, NO_CONDITIONS), 1_000_000)
        with pytest.raises(PleiadError) as caught:
            await run_transaction(container, KEY, [increment("x")])
        assert status_of(caught.value) == 449

    tell(story)


def test_a_batch_that_would_overfill_the_logical_partition_changes_nothing(
    tell: Callable[..., None],
) -> None:
    async def story(container: Container) -> None:
        creates = [ItemOperation(ItemVerb.CREATE, body=text(str(n), pad="x" * 9_000)) for n in range(3)]
        answer = await run_transaction(container, KEY, creates)
        assert [status(each) for each in answer.answers] == [424, 424, 403]
        assert answer.has_failure
        assert (await answer.partition.state()).items == 0
        answer = await run_transaction(container, KEY, creates[:2])
        assert not answer.has_failure

    tell(story, PROFILES["tiny"])

"""What is remembered of queries has an end, whatever texts and parameters readers ask with, in how many containers."""

from __future__ import annotations

import gc
from typing import Any

from pleiad.engine.query.prepared import learn
from pleiad.engine.remembered import Remembered, RememberedRoom
from pleiad.limits import MB, Limits
from pleiad.query import Query, compile_query

TEXT = "SELECT * FROM c WHERE c.n = @p AND c.m != 2"
PADDED = "SELECT * FROM c WHERE c.n = @p AND c.m != 2 AND c." + "x" * 1_000
LIMITS = Limits()


async def test_long_parameters_are_not_remembered(world: Any) -> None:
    async with world() as w:
        await w.query(TEXT, {"@p": "x" * 1_500_000})
        await w.query(TEXT, {"@p": 1, "@" + "q" * 3_000: 2})
        assert w.container.prepared == {}
        await w.query(TEXT, {"@p": "x" * 100})
        assert len(w.container.prepared) == 1


async def test_a_query_is_counted_as_large_as_it_is_compiled(world: Any) -> None:
    async with world() as w:
        await w.query(PADDED, {"@p": 1})
        compiled_bytes = compile_query(PADDED, w.container.limits).size_bytes
        assert compiled_bytes > 100_000
        assert w.container.prepared.size_bytes > compiled_bytes
        filtered = "SELECT * FROM c WHERE c." + "y" * 1_000 + " = @p"
        learn(w.container, filtered)
        assert w.container.value_filters[filtered] is not None
        assert w.container.value_filters.size_bytes > 100_000


def _filled(room: RememberedRoom, count: int) -> Remembered:
    memory = Remembered(room)
    for number in range(count):
        text = f"SELECT {number} FROM c"
        memory.keep(text, number, Query(text, LIMITS), len(text))
    return memory


def test_all_memories_together_have_one_bound() -> None:
    room = RememberedRoom(2 * MB)
    memories = [_filled(room, 150) for _ in range(5)]
    assert 0 < room.size_bytes <= 2 * MB
    assert room.size_bytes == sum(each.size_bytes for each in memories)
    assert not all(memories)  # the largest have forgotten


def test_a_memory_that_is_let_go_leaves_its_room() -> None:
    room = RememberedRoom()
    memory = _filled(room, 20)
    assert room.size_bytes == memory.size_bytes > 0
    del memory
    gc.collect()
    assert room.size_bytes == 0


def test_one_query_of_many_parameters_is_counted_once_and_again_when_it_grows() -> None:
    memory, query = Remembered(RememberedRoom()), Query("SELECT * FROM c WHERE c.n = @p", LIMITS)
    for number in range(100):
        memory.keep(number, number, query, 0)
    before_bytes = memory.size_bytes
    assert before_bytes < 100 * query.size_bytes
    query.size_bytes += 50_000
    memory.keep("more", "more", query, 0)
    assert memory.size_bytes > before_bytes + 50_000
    memory.clear()
    assert memory.size_bytes == 0
    assert not memory

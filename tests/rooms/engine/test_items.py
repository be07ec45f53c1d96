"""Operations on items: what each does to an absent, a present and a changed item, and what it costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pleiad import charge
from pleiad.engine import items, logical_delete, patching, reading
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS, Conditions, ItemAnswer
from pleiad.errors import PleiadError
from pleiad.heads.nosql import session_token
from pleiad.heads.nosql.failures import substatus_of
from pleiad.keys.hash import V1_STRING_BYTES_MAX
from pleiad.keys.range import WHOLE
from pleiad.limits import PROFILES, Limits
from pleiad.partition.partition import Partition
from pleiad.server.http.failures import status_of

pytestmark = pytest.mark.every_store

Opened = Callable[..., AbstractAsyncContextManager[Engine]]

PK = ("p",)


async def new_container(engine: Engine, **more: Any) -> Container:
    database = await engine.create_database({"id": "db"}, None)
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}, **more}
    await engine.create_container(database, body, None)
    return await engine.container("db", "c")


def text(id: str = "a", pk: Any = "p", **more: Any) -> bytes:
    return json.dumps({"id": id, "pk": pk, **more}).encode()


def operations(*listed: dict[str, Any], condition: str | None = None) -> bytes:
    extra = {} if condition is None else {"condition": condition}
    return json.dumps({"operations": list(listed), **extra}).encode()


async def value(container: Container, id: str = "a", key: tuple[Any, ...] = PK) -> dict[str, Any]:
    answer = await reading.read(container, id, key)
    assert answer.row is not None
    seen: dict[str, Any] = json.loads(container.render(answer.row))
    return seen


def etag(container: Container, answer: ItemAnswer) -> str:
    assert answer.row is not None
    return container.etag(answer.row)


async def do(container: Container, name: str, conditions: Conditions = NO_CONDITIONS) -> ItemAnswer:
    if name == "read":
        return await reading.read(container, "a", PK, conditions)
    if name == "create":
        return await items.create(container, text(v=2), PK)
    if name == "upsert":
        return await items.upsert(container, text(v=2), PK, conditions)
    if name == "replace":
        return await items.replace(container, "a", text(v=2), PK, conditions)
    if name == "patch":
        change = operations({"op": "set", "path": "/v", "value": 2})
        return await patching.patch(container, "a", change, PK, conditions)
    return await items.delete(container, "a", PK, conditions)


async def status(container: Container, name: str, conditions: Conditions = NO_CONDITIONS) -> int:
    """How an operation ends: the error's status, or 201 created, 204 deleted, 304 not modified, 200."""
    try:
        answer = await do(container, name, conditions)
    except PleiadError as error:
        return status_of(error)
    if answer.not_modified:
        return 304
    return 201 if answer.created else 204 if name == "delete" else 200


@pytest.mark.parametrize(
    ("name", "absent", "present"),
    [
        ("read", 404, 200),
        ("create", 201, 409),
        ("upsert", 201, 200),
        ("replace", 404, 200),
        ("patch", 404, 200),
        ("delete", 404, 204),
    ],
)
async def test_each_operation_on_an_absent_and_on_a_present_item(
    engine: Opened, name: str, absent: int, present: int
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        assert await status(container, name) == absent
        if absent == 201:
            assert (await value(container))["v"] == 2
            await items.delete(container, "a", PK, NO_CONDITIONS)
        await items.create(container, text(v=1), PK)
        assert await status(container, name) == present
        if name == "delete":
            assert await status(container, "read") == 404
        else:
            assert (await value(container))["v"] == (1 if name in ("read", "create") else 2)


@pytest.mark.parametrize("name", ["upsert", "replace", "patch", "delete"])
async def test_a_write_may_demand_a_version(engine: Opened, name: str) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        old = etag(container, await items.create(container, text(v=0), PK))
        new = etag(container, await items.replace(container, "a", text(v=1), PK, NO_CONDITIONS))
        assert old != new
        for refused in (
            Conditions(if_match=old),
            Conditions(if_match='"nonsense"'),
            Conditions(if_match=""),
            Conditions(if_none_match="*"),
            Conditions(if_none_match=new),
        ):
            assert await status(container, name, refused) == 412, refused
            assert (await value(container))["v"] == 1
        assert await status(container, name, Conditions(if_match=new)) in (200, 204)


@pytest.mark.parametrize("name", ["upsert", "replace", "patch", "delete"])
async def test_a_write_may_demand_any_version_or_another_one(engine: Opened, name: str) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        await items.create(container, text(v=0), PK)
        assert await status(container, name, Conditions(if_match="*")) in (200, 204)
        await items.upsert(container, text(v=0), PK, NO_CONDITIONS)
        assert await status(container, name, Conditions(if_none_match='"other"')) in (200, 204)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(if_match="*"), 412),
        (Conditions(if_match='"x"'), 201),
        (Conditions(if_none_match="*"), 201),
        (Conditions(if_none_match='"x"'), 201),
    ],
)
async def test_an_upsert_of_an_absent_item_creates_it_unless_one_must_exist(
    engine: Opened, conditions: Conditions, expected: int
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        assert await status(container, "upsert", conditions) == expected


async def test_a_read_of_a_known_version_is_not_modified(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        tag = etag(container, await items.create(container, text(v=0), PK))
        assert await status(container, "read", Conditions(if_none_match=tag)) == 304
        assert await status(container, "read", Conditions(if_none_match="*")) == 304
        await items.upsert(container, text(v=1), PK, NO_CONDITIONS)
        assert await status(container, "read", Conditions(if_none_match=tag)) == 200


async def test_long_keys_of_version_1_that_begin_alike_share_a_logical_partition_and_this_is_said_once(
    engine: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    alike = "k" * V1_STRING_BYTES_MAX
    async with engine() as opened:
        container = await new_container(opened, partitionKey={"paths": ["/pk"]})
        await items.create(container, text("a", alike + "1"), (alike + "1",))
        with pytest.raises(PleiadError) as caught:
            await items.create(container, text("a", alike + "2"), (alike + "2",))
        assert status_of(caught.value) == 409
        await items.create(container, text("b", alike + "2"), (alike + "2",))
    assert caplog.text.count("share one logical partition") == 1
    strict = Limits(partition_key_bytes_v1=V1_STRING_BYTES_MAX)
    async with engine(strict) as opened:
        container = await opened.container("db", "c")
        with pytest.raises(PleiadError) as caught:
            await items.create(container, text("c", alike + "1"), (alike + "1",))
        assert status_of(caught.value) == 400


async def test_the_same_id_in_two_logical_partitions_is_two_items(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        await items.create(container, text(pk="one", v=1), ("one",))
        await items.create(container, text(pk="two", v=2), ("two",))
        assert (await value(container, key=("one",)))["v"] == 1
        assert (await value(container, key=("two",)))["v"] == 2
        await items.delete(container, "a", ("one",), NO_CONDITIONS)
        assert (await value(container, key=("two",)))["v"] == 2


@pytest.mark.parametrize(
    ("raw", "key", "expected"),
    [
        (b"{", PK, (400, 0)),
        (b"[]", PK, (400, 0)),
        (b'{"pk":"p"}', PK, (400, 0)),
        (text(id=""), PK, (400, 0)),
        (text(id="a\\b"), PK, (400, 0)),
        (text(pk="other"), PK, (400, 1001)),
        (text(), None, (400, 0)),
        (text(), ("p", "q"), (400, 1001)),
        (text(ttl=0), PK, (400, 0)),
        (text(ttl="5"), PK, (400, 0)),
        (text(big="x" * 2 * 1024 * 1024), PK, (413, 0)),
    ],
)
async def test_a_bad_item_is_refused_with_its_row_of_the_error_table(
    engine: Opened, raw: bytes, key: tuple[Any, ...] | None, expected: tuple[int, int]
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        with pytest.raises(PleiadError) as caught:
            await items.create(container, raw, key)
        assert (status_of(caught.value), substatus_of(caught.value)) == expected
        assert (await container.map.partitions[0].state()).lsn == 0


async def test_a_replace_may_rename_an_item_but_not_move_it_to_another_key(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        first = await items.create(container, text("a", n=1), PK)
        await items.create(container, text("taken"), PK)
        with pytest.raises(PleiadError) as caught:
            await items.replace(container, "a", text("a", pk="q"), PK, NO_CONDITIONS)
        assert (status_of(caught.value), substatus_of(caught.value)) == (400, 1001)
        with pytest.raises(PleiadError) as caught:
            await items.replace(container, "a", text("taken"), PK, NO_CONDITIONS)
        assert status_of(caught.value) == 409
        assert "'taken'" in caught.value.message
        renamed = await items.replace(container, "a", text("b", n=2), PK, NO_CONDITIONS)
        assert first.row is not None
        assert renamed.row is not None
        assert renamed.row.number == first.row.number
        assert await status(container, "read") == 404
        assert (await value(container, "b"))["n"] == 2
        assert (await container.map.partitions[0].state()).items == 2


async def test_fifty_increments_at_one_moment_add_up_to_fifty(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        await items.create(container, text(n=0), PK)
        increment = operations({"op": "incr", "path": "/n", "value": 1})
        await asyncio.gather(
            *(patching.patch(container, "a", increment, PK, NO_CONDITIONS) for _ in range(50))
        )
        assert (await value(container))["n"] == 50


async def test_patches_and_replaces_of_one_item_never_undo_each_other_silently(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        await items.create(container, text(n=0, seen=[]), PK)

        async def append(number: int) -> None:
            await patching.patch(
                container,
                "a",
                operations({"op": "add", "path": "/seen/-", "value": number}),
                PK,
                NO_CONDITIONS,
            )

        async def swap() -> int:
            while True:
                answer = await reading.read(container, "a", PK)
                assert answer.row is not None
                seen = json.loads(answer.row.body)
                seen["n"] += 1
                try:
                    match = Conditions(if_match=etag(container, answer))
                    await items.replace(container, "a", json.dumps(seen).encode(), PK, match)
                    return 1
                except PleiadError as error:
                    if status_of(error) != 412:
                        raise

        await asyncio.gather(*(append(number) for number in range(30)), *(swap() for _ in range(10)))
        final = await value(container)
        assert (sorted(final["seen"]), final["n"]) == (list(range(30)), 10)


async def test_a_patch_condition_decides_on_the_item_of_that_moment(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        await items.create(container, text(n=3), PK)
        change = {"op": "incr", "path": "/n", "value": 1}
        await patching.patch(
            container, "a", operations(change, condition="FROM c WHERE c.n = 3"), PK, NO_CONDITIONS
        )
        again = operations(change, condition="FROM c WHERE c.n = 3")
        with pytest.raises(PleiadError) as caught:
            await patching.patch(container, "a", again, PK, NO_CONDITIONS)
        assert (status_of(caught.value), substatus_of(caught.value)) == (412, 1110)
        assert (await value(container))["n"] == 4


async def test_numbers_of_an_item_come_back_as_they_were_sent_and_survive_a_patch(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        sent = b'{"id":"a","pk":"p","x":1.1,"y":1234567890123456789,"z":100000,"s":"\\u00e9"}'
        await items.create(container, sent, PK)
        row = (await reading.read(container, "a", PK)).row
        assert row is not None
        assert row.body == sent
        await patching.patch(
            container, "a", operations({"op": "set", "path": "/n", "value": 1}), PK, NO_CONDITIONS
        )
        row = (await reading.read(container, "a", PK)).row
        assert row is not None
        assert b'"x":1.1,"y":1234567890123456789,"z":100000' in row.body


async def test_unique_keys_hold_within_a_logical_partition(engine: Opened) -> None:
    policy = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/first", "/name/last"]}]}
    async with engine() as opened:
        container = await new_container(opened, uniqueKeyPolicy=policy)
        await items.create(container, text("a", email="x", first=1, name={"last": 2}), PK)
        for fields in ({"email": "x"}, {"email": "y", "first": 1.0, "name": {"last": 2.0}}):
            with pytest.raises(PleiadError) as caught:
                await items.create(container, text("b", **fields), PK)
            assert (status_of(caught.value), substatus_of(caught.value)) == (409, 3301)
        await items.create(container, text("a", pk="q", email="x"), ("q",))
        await items.create(container, text("b", email="y", first=1, name={"last": 3}), PK)
        with pytest.raises(PleiadError):
            await items.create(container, text("c", email=None, first=1, name={"last": 3}), PK)
        await items.create(container, text("c", first=9), PK)
        with pytest.raises(PleiadError):
            await items.create(container, text("d", email=None, first=10), PK)
        with pytest.raises(PleiadError):
            await patching.patch(
                container, "b", operations({"op": "set", "path": "/email", "value": "x"}), PK, NO_CONDITIONS
            )
        assert (await value(container, "b"))["email"] == "y"


async def test_a_logical_partition_is_full_at_its_limit_and_others_are_not(engine: Opened) -> None:
    async with engine(PROFILES["tiny"]) as opened:
        container = await new_container(opened)
        pad = "x" * 1_000
        first = await items.create(container, text("i00", pad=pad), PK)
        assert first.row is not None
        for number in range(1, 20 * 1024 // first.row.size_bytes):
            await items.create(container, text(f"i{number:02}", pad=pad), PK)
        with pytest.raises(PleiadError) as caught:
            await items.create(container, text("one more", pad=pad), PK)
        assert (status_of(caught.value), substatus_of(caught.value)) == (403, 1014)
        assert caught.value.message == "Partition key reached maximum size of 20 KB."
        await items.create(container, text("i", pk="q", pad=pad), ("q",))
        await items.delete(container, "i00", PK, NO_CONDITIONS)
        await items.create(container, text("again", pad=pad[:900]), PK)


async def test_deleting_a_partition_key_takes_all_its_items_and_no_other(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        for number in range(450):
            await items.create(container, text(f"i{number}", n=number), PK)
        await items.create(container, text("kept", pk="q"), ("q",))
        answer = await logical_delete.delete_partition_key(container, PK)
        (partition,) = container.map.partitions
        assert [row.id for row in await partition.scan(WHOLE, 0, 1_000)] == ["kept"]
        assert (await partition.state()).items == 1
        assert answer.charge.ru > 450 * charge.delete(10, 0).ru * 0.99
        empty = await logical_delete.delete_partition_key(container, PK)
        assert empty.charge.ru == 0


async def test_the_charge_is_the_formula_of_what_was_done(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        created = await items.create(container, text(n=1), PK)
        assert created.row is not None
        size, terms = created.row.size_bytes, created.row.terms
        assert created.charge == charge.create(size, terms)
        assert (await reading.read(container, "a", PK)).charge == charge.read(size)
        assert (await reading.read(container, "a", PK, multiplier=2)).charge == charge.read(size, 2)
        replaced = await items.replace(container, "a", text(n=2), PK, NO_CONDITIONS)
        removed, added = container.terms.changed(
            {"id": "a", "pk": "p", "n": 1}, {"id": "a", "pk": "p", "n": 2}
        )
        assert replaced.charge == charge.replace(size, size, removed, added)
        deleted = await items.delete(container, "a", PK, NO_CONDITIONS)
        assert deleted.charge == charge.delete(size, terms)
        with pytest.raises(PleiadError) as caught:
            await items.delete(container, "a", PK, NO_CONDITIONS)
        assert caught.value.charge_ru == charge.failed().ru
        with pytest.raises(PleiadError) as caught:
            await reading.read(container, "a", PK)
        assert caught.value.charge_ru == charge.read_missing().ru


async def test_the_same_operation_costs_the_same_every_time_and_under_load(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)

        async def life(number: int) -> tuple[float, ...]:
            id = f"i{number:03}"
            answers = [
                await items.create(container, text(id, n=1), PK),
                await reading.read(container, id, PK),
                await items.upsert(container, text(id, n=2), PK, NO_CONDITIONS),
                await items.delete(container, id, PK, NO_CONDITIONS),
            ]
            return tuple(answer.charge.ru for answer in answers)

        alone = await life(0)
        together = await asyncio.gather(*(life(number) for number in range(1, 40)))
        assert set(together) == {alone}


def token_of(container: Container, partition: Partition) -> str:
    return session_token.written(partition.range_id, container.resource.number, partition.lsn)


async def test_a_session_token_of_the_future_is_refused_and_of_the_past_is_served(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        answer = await items.create(container, text(), PK)
        token = token_of(container, answer.partition)
        number = container.resource.number
        assert token == f"0:{number}#1"
        for good in (token, f"0:{number - 1}#99", "0:1", "7:0#99", f" 7:0#99 , {token}", f"{token}#0=5"):
            assert (await reading.read(container, "a", PK, seen=session_token.read(good))).row is not None
        for future in (f"0:{number}#2", f"0:{number + 1}#0", "0:0#2", "0:2", f"7:0#1,0:{number}#2"):
            with pytest.raises(PleiadError) as caught:
                await reading.read(container, "a", PK, seen=session_token.read(future))
            assert (status_of(caught.value), substatus_of(caught.value)) == (404, 1002)
        for bad in ("0", "0:x", "0:0#x", "0:0#", ","):
            with pytest.raises(PleiadError) as caught:
                await reading.read(container, "a", PK, seen=session_token.read(bad))
            assert status_of(caught.value) == 400


async def test_a_session_token_is_good_after_a_restart(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        answer = await items.create(container, text(), PK)
        token = token_of(container, answer.partition)
    async with engine(Limits()) as opened:
        container = await opened.container("db", "c")
        assert (await reading.read(container, "a", PK, seen=session_token.read(token))).row is not None
        assert token_of(container, container.map.partitions[0]) == token

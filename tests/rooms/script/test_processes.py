"""Script processes: what they have, how they end, and that a server leaves none behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import orjson
import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.script import worker
from pleiad.script.pool import ScriptPool
from pleiad.script.process import ScriptProcess
from pleiad.server.http.failures import status_of
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, until, wait_until

on_linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")


def start_text(source: str) -> bytes:
    settings = {"source": source, "arguments": "[]", "hasResponse": True, "acceptMs": 1000, "bodyChars": 1000}
    return orjson.dumps(
        {**settings, "isSpent": False, "selfLink": "dbs/a/colls/b/", "altLink": "dbs/x/colls/y"}
    )


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@on_linux
async def test_a_process_has_one_socket_and_nothing_else_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLEIAD_KEY", "secret")
    pool = ScriptPool(Limits())
    async with pool.lease() as process:
        assert (await process.ask(worker.START, start_text("function () {}"), SECONDS_MAX))["done"]
        directory = Path(f"/proc/{process.id}")
        if os.geteuid() != 0:
            pytest.skip("the process lets none but root look into it")
        assert b"secret" not in (directory / "environ").read_bytes()
        opened = [os.readlink(each) for each in (directory / "fd").iterdir()]
        assert len([target for target in opened if target.startswith("socket:")]) == 1
        assert {target for target in opened if not target.startswith("socket:")} == {"/dev/null"}
        assert os.readlink(directory / "cwd") == "/"
    pool.close()
    assert not is_running(process.id)


async def test_a_process_whose_script_gave_up_before_it_was_started_is_kept_for_the_next_one() -> None:
    pool = ScriptPool(Limits())

    async def lease() -> None:
        async with pool.lease():
            pass

    waiting = asyncio.create_task(lease())
    for _ in range(10):  # turns, after which it has its place and waits for the process
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await until(lambda: pool._idle)
    (kept,) = pool._idle
    async with pool.lease() as process:
        assert process is kept
        assert (await process.ask(worker.START, start_text("function () {}"), SECONDS_MAX))["done"]
    pool.close()
    assert not is_running(kept.id)


async def test_a_process_that_died_while_idle_is_replaced() -> None:
    pool = ScriptPool(Limits())
    async with pool.lease() as first:
        await first.ask(worker.START, start_text("function () {}"), SECONDS_MAX)
    os.kill(first.id, signal.SIGKILL)
    assert await until(lambda: not is_running(first.id))
    async with pool.lease() as second:
        assert second.id != first.id
        assert (await second.ask(worker.START, start_text("function () {}"), SECONDS_MAX))["done"]
    pool.close()


def processor_ticks(process_id: int) -> int:
    """The processor time that a process has used, in hundredths of a second on the usual systems."""
    return int(Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[11])


async def test_a_process_that_breaks_while_it_works_is_an_error_of_the_table() -> None:
    async def ask(process: ScriptProcess, kill_by: signal.Signals) -> PleiadError:
        asking = asyncio.create_task(
            process.ask(worker.START, start_text("function () { while (true) {} }"), SECONDS_MAX)
        )
        ticks = processor_ticks(process.id)
        assert await until(lambda: processor_ticks(process.id) > ticks + 5), "it does not work"
        os.kill(process.id, kill_by)
        with pytest.raises(PleiadError) as caught:
            await asking
        assert not process.is_alive
        return caught.value

    pool = ScriptPool(Limits())
    async with pool.lease() as process:
        assert status_of(await ask(process, signal.SIGSEGV)) == 400
    async with pool.lease() as process:
        assert status_of(await ask(process, signal.SIGALRM)) == 408
    pool.close()


async def test_whoever_gives_up_waiting_takes_the_script_down() -> None:
    pool = ScriptPool(Limits())
    async with pool.lease():
        pass
    with pytest.raises(TimeoutError):  # noqa: PT012 - the time begins when there is a process
        async with asyncio.timeout(None) as patience, pool.lease() as process:
            patience.reschedule(asyncio.get_running_loop().time() + 0.3)
            await process.ask(worker.START, start_text("function () { while (true) {} }"), SECONDS_MAX)
    assert not process.is_alive
    async with pool.lease() as process:
        assert (await process.ask(worker.START, start_text("function () {}"), SECONDS_MAX))["done"]
    pool.close()


@on_linux
def test_a_killed_server_leaves_no_process_behind(tmp_path: Path, start_server: StartServer) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("operation_seconds = 60.0\n")
    with start_server(limits=str(limits), child_process=True) as server:
        container = (
            CosmosClient(server.endpoint, server.key)
            .create_database("d")
            .create_container("c", PartitionKey("/pk"))
        )
        container.scripts.create_stored_procedure(
            {"id": "p", "body": "function () { __.response.setBody(1); }"}
        )
        assert container.scripts.execute_stored_procedure("p", "a") == 1
        found = {
            int(pid)
            for task in Path(f"/proc/{server.process_id}/task").iterdir()
            for pid in (task / "children").read_text().split()
        }
        assert found
        os.kill(server.process_id, signal.SIGKILL)
        assert wait_until(lambda: not any(map(is_running, found)))

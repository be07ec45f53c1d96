"""Advice on the partition key of a container over the admin API: worked out beside the server, one at a time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from click.testing import CliRunner

from pleiad.cli.advise import advise
from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection
from pleiad.job.advice import advices
from pleiad.limits import Limits
from pleiad.testing.start import RunningServer
from tests.rooms.heads.admin.conftest import Running
from tests.waiting import wait_until

ITEMS = 400
READ_ONLY_KEY = base64.b64encode(b"read" * 16).decode()


def names_of(container: ContainerProxy) -> tuple[str, str]:
    parts = container.container_link.split("/")
    return parts[1], parts[3]


def fill(container: ContainerProxy, count: int = ITEMS) -> None:
    for number in range(count):
        container.upsert_item(
            {"id": f"{number}", "pk": "hot" if number % 5 else "cold", "user": f"u{number % 97}"}
        )


def made(admin: Admin, names: tuple[str, str], **plan: Any) -> dict[str, Any]:
    """What is told of an advice once it is over."""
    admin.start_advice(*names, plan)
    assert wait_until(lambda: admin.advice(*names)["advice"]["state"] != "running")
    told: dict[str, Any] = admin.advice(*names)["advice"]
    return told


@pytest.fixture
def names(container: ContainerProxy) -> tuple[str, str]:
    fill(container)
    return names_of(container)


@pytest.mark.every_store
def test_an_advice_is_the_one_of_the_command_line(
    admin: Admin, server: RunningServer, names: tuple[str, str]
) -> None:
    assert admin.advice(*names) == {"missing": None, "advice": None, "reportAt": None, "underWay": None}
    told = made(admin, names)
    assert (told["state"], told["step"], told["problem"]) == ("done", "trying", None)
    assert told["chargeRu"] > 0
    report = admin.advice_report(*names)
    assert admin.advice(*names)["reportAt"] is not None
    assert report["candidates"][0]["paths"] == ["/user"]
    assert next(each for each in report["candidates"] if each["isCurrent"])["paths"] == ["/pk"]
    options = ["--endpoint", server.endpoint, "--key", server.key, "--json", "--quiet"]
    printed = CliRunner().invoke(advise, ["/".join(names), *options])
    assert json.loads(printed.stdout)["candidates"] == report["candidates"]


def test_a_report_is_also_a_page(admin: Admin, server: RunningServer, names: tuple[str, str]) -> None:
    made(admin, names)
    path = ("_pleiad", "v1", "dbs", names[0], "colls", names[1], "advice", "page")
    with Connection(server.endpoint, server.key) as connection:
        page = connection.request("GET", path, "advice", path, {})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"With /user as key" in page.body
    assert b"record those of the container" in page.body
    assert b"--queries" not in page.body, "it speaks of no command line to who is at a page"


def test_keys_and_growth_may_be_asked_for(admin: Admin, names: tuple[str, str]) -> None:
    told = made(admin, names, candidates=["/pk", "concat(/pk,/user)"], growth=10, throughput=5000, sample=200)
    assert (told["candidates"], told["growth"]) == (["/pk", "concat(/pk,/user)"], 10)
    report = admin.advice_report(*names)
    assert {each["key"] for each in report["candidates"]} == {"/pk", "concat(/pk,/user)"}
    assert (report["growth"], report["throughputRu"]) == (10, 5000)
    assert report["rows"] < report["items"] == ITEMS + 1  # the one that was there


def test_what_was_recorded_of_the_requests_is_used(admin: Admin, container: ContainerProxy) -> None:
    names = names_of(container)
    admin.switch_workload(*names, "values")
    fill(container)
    made(admin, names)
    assert admin.advice_report(*names)["workload"]["basis"] == "record"


def test_a_container_without_items_has_no_advice_and_the_report_of_before_stays(
    admin: Admin, container: ContainerProxy
) -> None:
    names = names_of(container)
    fill(container, 10)
    made(admin, names)
    for item in list(container.read_all_items()):
        container.delete_item(item["id"], item["pk"])
    told = made(admin, names)
    assert (told["state"], told["problem"]) == ("failed", f"{'/'.join(names)} has no items.")
    assert admin.advice_report(*names)["items"] == 11


@pytest.mark.parametrize(
    "plan",
    [
        {"candidates": "/pk"},
        {"candidates": ["pk"]},
        {"candidates": ["random(/pk,1)"]},
        {"candidates": ["/a"] * 21},
        {"growth": 0},
        {"growth": "10"},
        {"throughput": True},
        {"sample": 99},
        {"sample": 10**9},
        {"cadidates": []},
    ],
)
def test_nonsense_is_refused_with_a_sentence(
    admin: Admin, container: ContainerProxy, plan: dict[str, Any]
) -> None:
    with pytest.raises(RequestRefusedError) as told:
        admin.start_advice(*names_of(container), plan)
    assert told.value.status == 400
    assert admin.advice(*names_of(container))["advice"] is None


def test_what_is_not_there_is_not_found(admin: Admin, container: ContainerProxy) -> None:
    database, name = names_of(container)
    for ask in (admin.advice, admin.cancel_advice, admin.advice_report):
        with pytest.raises(RequestRefusedError) as told:
            ask(database, "nothing")
        assert told.value.status == 404
    with pytest.raises(RequestRefusedError) as told:
        admin.advice_report(database, name)
    assert told.value.status == 404
    with pytest.raises(RequestRefusedError, match="No advice on this container is being made") as told:
        admin.cancel_advice(database, name)
    assert told.value.status == 400


class Slow:
    """A server whose reading is slow because the throughput is spent by others."""

    def __init__(self, running: Running) -> None:
        self.running = running
        server = self.running.server
        self.client = CosmosClient(server.endpoint, server.key)
        database = self.client.create_database("shop")
        self.containers = [
            database.create_container(name, PartitionKey("/pk"), offer_throughput=400) for name in ("a", "b")
        ]
        for container in self.containers:
            fill(container, 20)
        self.engine = self.running.node.engine
        self.admin = Admin(Connection(server.endpoint, server.key))

    def spend(self, name: str) -> None:
        """Leaves nothing of the throughput of a container, for long."""

        async def spent() -> None:
            container = await self.engine.container("shop", name)
            for partition in container.map.partitions:
                partition.spend(1_000_000.0)

        self.running.ask(spent())

    def processes(self) -> int:
        """How many processes the server has started that are still there."""
        found = 0
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                is_ours = f"\nPPid:\t{os.getpid()}\n" in status.read_text()
                found += is_ours and b"pleiad.advise.process" in (status.parent / "cmdline").read_bytes()
        return found


@pytest.fixture
def slow(run: Callable[..., Running]) -> Slow:
    return Slow(run(throttle="enforce", read_only_key=READ_ONLY_KEY))


def test_there_is_one_at_a_time_and_a_cancelled_one_leaves_no_process(slow: Slow) -> None:
    slow.spend("a")
    told = slow.admin.start_advice("shop", "a", {})
    assert told["advice"]["state"] == "running"
    assert told["underWay"] == "shop/a"
    assert slow.admin.advice("shop", "b")["underWay"] == "shop/a"
    for name in ("a", "b"):
        with pytest.raises(RequestRefusedError, match="An advice on 'shop/a' is being made") as refused:
            slow.admin.start_advice("shop", name, {})
        assert refused.value.status == 423
    assert wait_until(lambda: slow.processes() == 1)
    cancelled = slow.admin.cancel_advice("shop", "a")
    assert (cancelled["advice"]["state"], cancelled["underWay"]) == ("cancelled", None)
    assert wait_until(lambda: slow.processes() == 0)
    assert made(slow.admin, ("shop", "b"))["state"] == "done"


def test_whoever_begins_and_cancels_again_and_again_has_one_process_at_most(slow: Slow) -> None:
    slow.spend("a")
    for _ in range(5):
        slow.admin.start_advice("shop", "a", {})
        assert slow.admin.cancel_advice("shop", "a")["advice"]["state"] == "cancelled"
        assert slow.processes() == 0


def test_an_advice_on_a_container_that_is_gone_is_in_the_way_of_no_other(slow: Slow) -> None:
    slow.spend("a")
    slow.admin.start_advice("shop", "a", {})
    slow.client.get_database_client("shop").delete_container("a")
    assert made(slow.admin, ("shop", "b"))["state"] == "done"


def test_a_server_that_stops_takes_the_process_with_it(slow: Slow) -> None:
    slow.spend("a")
    slow.admin.start_advice("shop", "a", {})
    assert wait_until(lambda: slow.processes() == 1)
    slow.running.ask(slow.running.node.advices.close())
    assert wait_until(lambda: slow.processes() == 0)


def test_a_deleted_container_ends_its_advice(slow: Slow) -> None:
    slow.spend("a")
    slow.admin.start_advice("shop", "a", {})
    progress = slow.running.node.advices.running
    assert progress is not None
    slow.client.get_database_client("shop").delete_container("a")
    assert wait_until(lambda: progress.state.value == "failed")
    assert "deleted" in progress.problem


def test_a_container_that_always_leaves_nothing_for_low_priority_is_measured_all_the_same(slow: Slow) -> None:
    is_over = threading.Event()

    async def keep_busy() -> None:
        container = await slow.engine.container("shop", "a")
        while not is_over.is_set():
            for partition in container.map.partitions:
                partition.governor._level = min(partition.governor._level, 1.0)
            await asyncio.sleep(0.001)  # it takes the throughput, and not the loop

    busy = threading.Thread(target=lambda: slow.running.ask(keep_busy()))
    busy.start()
    try:
        assert made(slow.admin, ("shop", "a"))["state"] == "done"
    finally:
        is_over.set()
        busy.join()


def test_the_read_only_key_may_begin_read_and_cancel_it(slow: Slow) -> None:
    with Connection(slow.running.server.endpoint, READ_ONLY_KEY) as connection:
        reader = Admin(connection)
        assert made(reader, ("shop", "b"))["state"] == "done"
        assert reader.advice_report("shop", "b")["items"] == 20
        slow.spend("a")
        reader.start_advice("shop", "a", {})
        assert reader.cancel_advice("shop", "a")["advice"]["state"] == "cancelled"


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (Limits(advice_seconds=0.001), "It took more than the 0.001 seconds"),
        (Limits(advice_memory_bytes=1), "It needs more than the 0.0 GB that it may"),
    ],
)
def test_time_and_memory_have_limits(run: Callable[..., Running], limits: Limits, problem: str) -> None:
    running = run(limits=limits)
    client = CosmosClient(running.server.endpoint, running.server.key)
    container = client.create_database("shop").create_container("a", PartitionKey("/pk"))
    fill(container, 5)
    with Connection(running.server.endpoint, running.server.key) as connection:
        told = made(Admin(connection), ("shop", "a"))
    assert told["state"] == "failed"
    assert problem in told["problem"]


def test_without_the_extra_it_is_said_what_to_install(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advices, "_LIBRARY", "a_library_that_nobody_has")
    assert "pip install numpy msgspec datasketches" in slow.admin.advice("shop", "a")["missing"]
    with pytest.raises(RequestRefusedError, match="pip install") as told:
        slow.admin.start_advice("shop", "a", {})
    assert told.value.status == 400

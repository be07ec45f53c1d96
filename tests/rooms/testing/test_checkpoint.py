"""Checkpoints of a test server: back to what was loaded, with the clients and connections that there are."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
from azure.cosmos.exceptions import CosmosResourceNotFoundError

import pleiad
from pleiad.client.admin import Admin
from pleiad.testing.start import RunningServer
from tests.waiting import wait_until


def loaded(server: RunningServer) -> ContainerProxy:
    """A container with two items."""
    database = CosmosClient(server.endpoint, server.key).create_database("shop")
    orders = database.create_container("orders", PartitionKey("/customerId"))
    for number in range(2):
        orders.create_item({"id": str(number), "customerId": "a", "total": 1})
    return orders


def totals(orders: ContainerProxy) -> dict[str, int]:
    return {item["id"]: item["total"] for item in orders.read_all_items()}


def test_items_are_what_they_were_as_often_as_one_likes() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        server.checkpoint()
        for _ in range(3):
            orders.create_item({"id": "9", "customerId": "a", "total": 9})
            orders.upsert_item({"id": "0", "customerId": "a", "total": 5})
            orders.delete_item("1", "a")
            assert totals(orders) == {"0": 5, "9": 9}
            server.rollback()
            assert totals(orders) == {"0": 1, "1": 1}


def test_a_session_of_an_open_client_goes_on() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        server.checkpoint()
        for number in range(20):
            orders.upsert_item({"id": "0", "customerId": "a", "total": number})
        token = orders.client_connection.last_response_headers["x-ms-session-token"]
        server.rollback()
        assert orders.read_item("0", "a", session_token=token)["total"] == 1
        assert orders.read_item("0", "a")["total"] == 1
        orders.upsert_item({"id": "0", "customerId": "a", "total": 7})
        assert orders.read_item("0", "a")["total"] == 7


def test_what_was_made_since_is_gone_and_its_rid_is_not_used_again() -> None:
    with pleiad.start() as server:
        loaded(server)
        server.checkpoint()
        database = CosmosClient(server.endpoint, server.key).get_database_client("shop")
        rids = set()
        for path in ("/a", "/b", "/c"):
            made = database.create_container("new", PartitionKey(path))
            made.create_item({"id": "1", path[1:]: "x"})
            assert made.read_item("1", "x")
            rids.add(made.read()["_rid"])
            server.rollback()
            with pytest.raises(CosmosResourceNotFoundError):
                made.read()
        assert len(rids) == 3


def test_what_was_deleted_since_is_there_again() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        client = CosmosClient(server.endpoint, server.key)
        server.checkpoint()
        client.delete_database("shop")
        server.rollback()
        assert totals(orders) == {"0": 1, "1": 1}


def test_a_second_checkpoint_takes_the_place_of_the_first() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        server.checkpoint()
        orders.delete_item("0", "a")
        server.checkpoint()
        orders.delete_item("1", "a")
        server.rollback()
        assert totals(orders) == {"1": 1}


def test_a_split_is_undone() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        orders.create_item({"id": "2", "customerId": "b", "total": 1})
        server.checkpoint()
        with server.faults.connection() as connection:
            Admin(connection).split("shop", "orders", {})
        assert len(list(orders.read_feed_ranges(force_refresh=True))) == 2
        server.rollback()
        # The client still knows the partitions of the split.
        assert totals(orders) == {"0": 1, "1": 1, "2": 1}
        assert len(list(orders.read_feed_ranges(force_refresh=True))) == 1


def test_clients_at_work_only_wait() -> None:
    failures: list[BaseException] = []
    rounds = 0
    is_over = threading.Event()
    with pleiad.start() as server:
        loaded(server)
        server.checkpoint()

        def work() -> None:
            nonlocal rounds
            # The official client is not made for several threads at once.
            client = CosmosClient(server.endpoint, server.key)
            orders = client.get_database_client("shop").get_container_client("orders")
            try:
                while not is_over.is_set():
                    orders.upsert_item({"id": "0", "customerId": "a", "total": 1})
                    totals(orders)
                    rounds += 1
            except BaseException as error:
                failures.append(error)

        def has_gone_on(seen: int) -> bool:
            return rounds > seen + 3 or bool(failures)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            seen = rounds
            assert wait_until(partial(has_gone_on, seen))
            server.rollback()
        is_over.set()
        for thread in threads:
            thread.join()
    assert failures == []


async def test_an_asynchronous_client_keeps_its_connections() -> None:
    with pleiad.start() as server:
        loaded(server)
        server.checkpoint()
        async with AsyncCosmosClient(server.endpoint, server.key) as client:
            orders = client.get_database_client("shop").get_container_client("orders")
            for number in range(3):
                await orders.create_item({"id": f"new-{number}", "customerId": "a"})
                server.rollback()
                await orders.create_item({"id": f"new-{number}", "customerId": "a"})


def test_a_request_under_way_ends_before_the_account_goes_back() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        server.checkpoint()
        fault = server.faults.add("late", delay_ms=200, operation="create")
        answers: list[Any] = []
        late = threading.Thread(
            target=lambda: answers.append(orders.create_item({"id": "late", "customerId": "a"}))
        )
        late.start()
        assert wait_until(lambda: fault.hits == 1)
        server.rollback()
        late.join()
        assert [answer["id"] for answer in answers] == ["late"]
        assert totals(orders) == {"0": 1, "1": 1}


def test_faults_end() -> None:
    with pleiad.start() as server:
        orders = loaded(server)
        server.checkpoint()
        server.throttled("shop", "orders")
        server.rollback()
        assert server.faults.list() == []
        assert totals(orders)


def test_without_a_checkpoint_there_is_nothing_to_go_back_to() -> None:
    with pleiad.start() as server, pytest.raises(RuntimeError, match="no checkpoint yet"):
        server.rollback()


@pytest.mark.parametrize("option", ["data", "child_process"])
def test_only_temporary_data_of_this_process_has_checkpoints(option: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": tmp_path} if option == "data" else {"child_process": True}
    with pleiad.start(**options) as server:
        for call in (server.checkpoint, server.rollback):
            with pytest.raises(RuntimeError, match="runs in this process with temporary data"):
                call()


def test_nothing_of_a_checkpoint_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pleiad.start() as server:
        loaded(server)
        server.checkpoint()
        server.checkpoint()
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []

"""`pleiad.start()` and the pytest fixtures, as the tests of a Python team use them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

import pleiad
from pleiad.limits import Limits
from pleiad.testing import start
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX

pytest_plugins = ["pytester"]


_fresh = start._command


@pytest.fixture(autouse=True)
def _children_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process here is started as the tests of others start it."""
    monkeypatch.setattr(start, "_command", _fresh)


def create_one(endpoint: str, key: str) -> None:
    database = CosmosClient(endpoint, key).create_database("d")
    database.create_container("c", PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})


def read_one(endpoint: str, key: str) -> str:
    container = CosmosClient(endpoint, key).get_database_client("d").get_container_client("c")
    return str(container.read_item("1", "a")["id"])


@pytest.mark.parametrize("child_process", [False, True])
def test_a_database_is_one_line_away(child_process: bool, start_server: StartServer) -> None:
    with start_server(child_process=child_process) as server:
        create_one(server.endpoint, server.key)
        assert read_one(server.endpoint, server.key) == "1"
        assert (server.process_id == os.getpid()) is not child_process
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), timeout=1)


@pytest.mark.parametrize("child_process", [False, True])
def test_a_server_without_a_block_runs_until_it_is_stopped(child_process: bool) -> None:
    server = pleiad.start(child_process=child_process)
    create_one(server.endpoint, server.key)
    server.stop()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), timeout=1)
    server.stop()


@pytest.mark.parametrize("child_process", [False, True])
def test_a_server_that_nobody_stops_ends_with_its_process(child_process: bool, tmp_path: Path) -> None:
    program = f"import pleiad; print(pleiad.start(child_process={child_process}).port)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(done.stdout)), timeout=1)
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_is_printed_of_a_server_tells_its_key() -> None:
    with pleiad.start() as server:
        assert server.key not in repr(server)


@pytest.mark.parametrize("child_process", [False, True])
def test_given_a_directory_the_data_stays(
    child_process: bool, tmp_path: Path, start_server: StartServer
) -> None:
    with start_server(data=tmp_path, child_process=child_process) as server:
        create_one(server.endpoint, server.key)
    with start_server(data=tmp_path, child_process=child_process) as server:
        assert read_one(server.endpoint, server.key) == "1"


def test_two_databases_run_side_by_side(start_server: StartServer) -> None:
    with start_server() as first, start_server() as second:
        assert first.port != second.port
        create_one(first.endpoint, first.key)
        assert list(CosmosClient(second.endpoint, second.key).list_databases()) == []


def test_temporary_data_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pleiad.start() as server:
        create_one(server.endpoint, server.key)
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_exception_in_the_block_stops_the_server_too(tmp_path: Path, start_server: StartServer) -> None:
    with pytest.raises(ZeroDivisionError), start_server(data=tmp_path):
        raise ZeroDivisionError
    with start_server(data=tmp_path):
        pass


def test_limits_are_a_profile_a_file_or_in_process_an_object(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text("item_bytes = 100")
    for limits in ("tiny", str(tmp_path / "limits.toml"), Limits(item_bytes=100)):
        with pleiad.start(limits=limits):
            pass
    with (
        pytest.raises(TypeError, match="profile name or file"),
        pleiad.start(limits=Limits(), child_process=True),
    ):
        pass
    with pytest.raises(ValueError, match="no limits profile"), pleiad.start(limits="none"):
        pass


@pytest.mark.parametrize("child_process", [False, True])
def test_the_account_has_the_consistency_level_asked_for(child_process: bool) -> None:
    with pleiad.start(consistency="bounded-staleness", child_process=child_process) as server:
        account = CosmosClient(server.endpoint, server.key).get_database_account()
        policy = account.ConsistencyPolicy
        assert policy is not None
        assert policy["defaultConsistencyLevel"] == "BoundedStaleness"
    with (
        pytest.raises(ValueError, match="no consistency level 'perfect'"),
        pleiad.start(consistency="perfect"),
    ):
        pass


@pytest.mark.parametrize("child_process", [False, True])
def test_faults_are_at_hand(child_process: bool, start_server: StartServer) -> None:
    with start_server(child_process=child_process) as server:
        create_one(server.endpoint, server.key)
        with server.faults.add(429, count=2, retry_after_ms=1) as fault:
            assert read_one(server.endpoint, server.key) == "1"
            assert fault.hits == 2
        assert server.faults.list() == []


def test_a_container_is_throttled_and_its_neighbours_are_not(start_server: StartServer) -> None:
    with start_server() as server:
        create_one(server.endpoint, server.key)
        database = CosmosClient(server.endpoint, server.key).get_database_client("d")
        container = database.get_container_client("c")
        neighbour = database.create_container("neighbour", PartitionKey("/pk"))
        with server.throttled("d", "c") as fault:
            with pytest.raises(CosmosHttpResponseError) as caught:
                container.read_item("1", "a")
            assert caught.value.status_code == 429
            assert fault.hits > 1  # the client has tried again, in vain
            neighbour.create_item({"id": "1", "pk": "a"})
        assert container.read_item("1", "a")["id"] == "1"
        with server.throttled("d", "c", operation="create", count=2) as fault:
            assert container.read_item("1", "a")["id"] == "1"
            assert fault.hits == 0
            container.create_item({"id": "2", "pk": "a"})
            assert fault.hits == 2


def test_a_child_that_cannot_start_says_so(tmp_path: Path) -> None:
    with (
        pleiad.start(data=tmp_path),
        pytest.raises(RuntimeError, match="did not start"),
        pleiad.start(data=tmp_path, child_process=True),
    ):
        pass


def test_the_fixtures_give_a_fresh_database_to_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from azure.cosmos import PartitionKey

        seen = set()

        def use(database):
            assert database.id not in seen
            seen.add(database.id)
            assert list(database.list_containers()) == []
            orders = database.create_container("orders", PartitionKey("/customerId"))
            orders.create_item({"id": "1", "customerId": "a"})

        def test_first(pleiad_database):
            use(pleiad_database)

        def test_second(pleiad_database):
            use(pleiad_database)

        def test_all_are_gone(pleiad_client):
            assert len(seen) == 2
            assert list(pleiad_client.list_databases()) == []

        def test_the_server_is_known(pleiad_server):
            assert pleiad_server.connection_string.startswith("AccountEndpoint=http://localhost:")
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=4)


def test_tests_find_the_data_of_the_folder_that_a_fixture_names(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("seed") / "shop"
    folder.mkdir()
    (folder / "orders.jsonl").write_text('{"id": "1", "customerId": "c-7"}\n')
    (folder / "orders.container.json").write_text('{"partitionKey": {"paths": ["/customerId"]}}')
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def pleiad_load():
            return "seed"

        def test_the_order_is_there(pleiad_client):
            orders = pleiad_client.get_database_client("shop").get_container_client("orders")
            assert orders.read_item("1", "c-7")["customerId"] == "c-7"
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)

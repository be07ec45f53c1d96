"""`pleiad serve --store postgresql://...`: real servers, spoken to by the official client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

import pleiad
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from tests import warm_command
from tests.waiting import SECONDS_MAX

from .test_serve import OWN_KEY, environment, serving


def test_two_servers_on_one_database_answer_as_one(postgres_database: str) -> None:
    with (
        pleiad.start(store=postgres_database, child_process=True) as first,
        pleiad.start(store=postgres_database, child_process=True) as second,
    ):
        one = CosmosClient(first.endpoint, first.key)
        other = CosmosClient(second.endpoint, second.key)
        made = one.create_database("db").create_container("c", PartitionKey("/pk"))
        for number in range(20):
            made.create_item({"id": f"i{number}", "pk": f"k{number % 4}", "n": number})
        twin = other.get_database_client("db").get_container_client("c")
        assert twin.read_item("i7", "k3")["n"] == 7
        twin.upsert_item({"id": "i7", "pk": "k3", "n": 70})
        assert made.read_item("i7", "k3")["n"] == 70
        found = twin.query_items(
            "SELECT VALUE c.n FROM c WHERE c.n >= 10 ORDER BY c.n DESC", enable_cross_partition_query=True
        )
        assert list(found) == [70, *range(19, 9, -1)]
        other.get_database_client("db").delete_container("c")
        with pytest.raises(CosmosResourceNotFoundError):
            made.read_item("i7", "k3")
    with pleiad.start(store=postgres_database, child_process=True) as again:
        client = CosmosClient(again.endpoint, again.key)
        assert [each["id"] for each in client.list_databases()] == ["db"]


def test_servers_on_one_database_that_disagree_are_refused_or_warn(postgres_database: str) -> None:
    with serving("--ephemeral", "--port", 0, PLEIAD_STORE=postgres_database):
        other = ("--ephemeral", "--port", 0, "--throttle", "observe", "--key", OWN_KEY)
        refusal = subprocess.run(
            [*warm_command.words(), "serve", *map(str, other)],
            env=environment(PLEIAD_STORE=postgres_database),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert refusal.returncode != 0
        assert "throttle (enforce there, observe here)" in refusal.stderr
        assert OWN_KEY not in refusal.stderr
        with serving(*other, "--allow-different-settings", PLEIAD_STORE=postgres_database) as second:
            endpoint = f"http://localhost:{second.port}"
            with Connection(endpoint, OWN_KEY) as connection:
                warnings = {each["kind"]: each["message"] for each in Admin(connection).warnings()}
            assert "throttle (enforce there, observe here)" in warnings["settings-differ"]
            assert json.loads(second.get("/_pleiad/ready")[1]) == {
                "status": "degraded",
                "problems": ["settings-differ"],
            }
            log = second.stop()[2]
        assert "settings-differ: another server on this database has other settings" in log
        assert OWN_KEY not in log


def test_a_store_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    store = f"postgresql://pleiad:geheim@/pleiad?host={tmp_path}"
    command = [*warm_command.words(), "serve", "--ephemeral", "--port", "0", "--store", store]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode != 0
    assert "does not answer" in done.stderr
    assert "geheim" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr

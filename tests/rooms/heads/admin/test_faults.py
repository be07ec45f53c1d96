"""Faults on demand: which requests they meet, what those see, and how the official client gets over them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.engine.faults import RULES_MAX
from pleiad.testing.faults import Fault
from pleiad.testing.start import RunningServer
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("no_faults_left")


@pytest.fixture
def no_faults_left(server: RunningServer) -> Iterator[None]:
    yield
    server.faults.clear()


def read(container: ContainerProxy) -> str:
    return str(container.read_item("1", "a")["id"])


def query(container: ContainerProxy) -> int:
    return len(list(container.query_items("SELECT * FROM c WHERE c.id = '1'", partition_key="a")))


def ids(container: ContainerProxy) -> set[str]:
    return {item["id"] for item in container.read_all_items()}


# -- what the official client does --------------------------------------------------------------------


@pytest.mark.parametrize("fault", [429, 408, 500, 503, "cut-before", "cut-after", "late"])
@pytest.mark.parametrize("operation", [read, query])
def test_the_client_gets_over_one_fault_of_a_read(
    fault: int | str, operation: Callable[[Any], Any], server: RunningServer, container: ContainerProxy
) -> None:
    with server.faults.add(fault, delay_ms=20, container="things", database=database_of(container)) as set_:
        assert operation(container) in ("1", 1)
        assert set_.hits == 1


def database_of(container: ContainerProxy) -> str:
    return container.container_link.split("/")[1]


def test_the_client_refreshes_its_ranges_after_one_is_gone(
    server: RunningServer, container: ContainerProxy
) -> None:
    with server.faults.add("410/1002", operation="query") as fault:
        assert query(container) == 1
        assert fault.hits == 1


@pytest.mark.parametrize(
    ("fault", "status", "substatus", "requests"),
    [(429, 429, 3200, 10), (408, 408, 0, 2), (500, 500, 0, 2), (503, 503, 0, 2)],
)
def test_when_its_retries_run_out_the_user_sees_the_status(
    fault: int, status: int, substatus: int, requests: int, server: RunningServer, container: ContainerProxy
) -> None:
    with server.faults.add(fault, count=100) as set_:
        with pytest.raises(CosmosHttpResponseError) as caught:
            read(container)
        assert (caught.value.status_code, caught.value.sub_status or 0) == (status, substatus)
        assert f"The fault {set_.id} asked for this answer" in str(caught.value)
        assert set_.hits == requests


@pytest.mark.parametrize(
    ("fault", "status", "substatus"), [(449, 449, 0), ("410/1002", 410, 1002), ("410/1007", 410, 1007)]
)
def test_what_the_client_does_not_retry_the_user_sees_at_once(
    fault: int | str, status: int, substatus: int, server: RunningServer, container: ContainerProxy
) -> None:
    with server.faults.add(fault) as set_:
        with pytest.raises(CosmosHttpResponseError) as caught:
            container.create_item({"id": "2", "pk": "a"})
        assert (caught.value.status_code, caught.value.sub_status or 0) == (status, substatus)
        assert set_.hits == 1
    assert ids(container) == {"1"}


def test_a_write_cut_off_before_it_ran_changes_nothing_and_one_cut_off_after_it_did(
    server: RunningServer, container: ContainerProxy
) -> None:
    for fault, id in (("cut-before", "2"), ("cut-after", "3")):
        with server.faults.add(fault, operation="create"), pytest.raises(ServiceResponseError):
            container.create_item({"id": id, "pk": "a"})
    assert ids(container) == {"1", "3"}


def test_the_client_waits_as_long_as_a_429_says(server: RunningServer, container: ContainerProxy) -> None:
    began = time.monotonic()
    with server.faults.add(429, count=2, retry_after_ms=150) as fault:
        assert read(container) == "1"
        assert fault.hits == 2
    assert time.monotonic() - began >= 0.3


def test_a_late_answer_is_late_by_the_delay(server: RunningServer, container: ContainerProxy) -> None:
    with server.faults.add("late", delay_ms=200) as fault:
        began = time.monotonic()
        assert read(container) == "1"
        assert time.monotonic() - began >= 0.2
    read(container)
    assert fault.hits == 1


# -- which requests -----------------------------------------------------------------------------------


def test_a_count_is_that_many_requests_and_then_all_is_well(
    server: RunningServer, container: ContainerProxy
) -> None:
    fault = server.faults.add(449, count=3)
    failures = 0
    for _ in range(6):
        try:
            read(container)
        except CosmosHttpResponseError:
            failures += 1
    assert failures == 3
    assert fault.hits == 3
    assert server.faults.list() == []


def test_a_share_is_drawn_from_its_seed_and_repeats_exactly(
    server: RunningServer, container: ContainerProxy
) -> None:
    def run(seed: int) -> list[bool]:
        outcomes = []
        with server.faults.add(449, share=0.5, seed=seed):
            for _ in range(40):
                try:
                    read(container)
                    outcomes.append(True)
                except CosmosHttpResponseError:
                    outcomes.append(False)
        return outcomes

    first = run(1)
    assert 5 < sum(first) < 35
    assert run(1) == first
    assert run(2) != first


def test_a_fault_meets_its_operation_only(server: RunningServer, container: ContainerProxy) -> None:
    with server.faults.add(449, operation="delete", count=10) as fault:
        read(container)
        query(container)
        container.upsert_item({"id": "1", "pk": "a", "n": 1})
        assert fault.hits == 0
        with pytest.raises(CosmosHttpResponseError):
            container.delete_item("1", "a")
        assert fault.hits == 1


def test_a_fault_meets_its_container_only(
    server: RunningServer, client: CosmosClient, container: ContainerProxy
) -> None:
    database = client.get_database_client(database_of(container))
    other: Any = database.create_container("others", PartitionKey("/pk"))
    other.create_item({"id": "1", "pk": "a"})
    with server.faults.add(449, count=10, database=database.id, container="others"):
        assert read(container) == "1"
        with pytest.raises(CosmosHttpResponseError):
            read(other)


def test_a_fault_meets_its_physical_partition_only(
    server: RunningServer, client: CosmosClient, container: ContainerProxy
) -> None:
    database = client.get_database_client(database_of(container))
    spread: Any = database.create_container("spread", PartitionKey("/pk"), offer_throughput=30_000)
    answers: dict[str, str] = {}
    for number in range(40):
        key = f"k{number}"
        spread.create_item({"id": "1", "pk": key}, response_hook=lambda h, _, key=key: answers.update(
            {key: h["x-ms-documentdb-partitionkeyrangeid"]}))  # fmt: skip
    assert len(set(answers.values())) > 2
    with server.faults.add(449, count=100, database=database.id, container="spread", partition="2"):
        for key, range_id in answers.items():
            if range_id == "2":
                with pytest.raises(CosmosHttpResponseError):
                    spread.read_item("1", key)
            else:
                spread.read_item("1", key)


def test_metadata_is_met_only_when_asked_for(
    server: RunningServer, client: CosmosClient, container: ContainerProxy
) -> None:
    with server.faults.add(449, count=10) as fault:
        assert list(client.list_databases())
        container.read()
        assert fault.hits == 0
    with server.faults.add(449, count=10, operation="any"), pytest.raises(CosmosHttpResponseError):
        container.read()
    with server.faults.add(449, operation="metadata_read"), pytest.raises(CosmosHttpResponseError):
        container.read()


def test_the_admin_api_itself_is_never_met(server: RunningServer) -> None:
    with server.faults.add(500, count=10, operation="any") as fault:
        assert [each["id"] for each in server.faults.list()] == [fault.id]


def test_a_fault_ends_by_its_time(server: RunningServer, container: ContainerProxy) -> None:
    faults: list[Fault] = []

    def is_met() -> bool:
        """Whether a request meets a fault; on a busy machine it may come when the time of one is over."""
        faults.append(server.faults.add(449, count=10, seconds=0.2))
        try:
            read(container)
        except CosmosHttpResponseError:
            return True
        return False

    assert wait_until(is_met)
    fault = faults[-1]
    assert fault.hits == 1
    assert wait_until(lambda: server.faults.list() == [])
    assert read(container) == "1"
    assert fault.hits == 1


def test_the_oldest_fault_that_fits_comes_first(server: RunningServer, container: ContainerProxy) -> None:
    server.faults.add(449)
    server.faults.add("410/1007")
    seen = []
    for _ in range(2):
        with pytest.raises(CosmosHttpResponseError) as caught:
            read(container)
        seen.append(caught.value.status_code)
    assert seen == [449, 410]


# -- setting and clearing -----------------------------------------------------------------------------


def test_a_fault_is_shown_with_what_it_says_and_how_often_it_was_met(admin: Admin) -> None:
    made = admin.add_fault({"fault": "429", "count": 5, "database": "d", "container": "c", "seconds": 30})
    shown = admin.fault(made["id"])
    assert shown["secondsLeft"] <= 30
    assert shown["setAt"] < shown["endsAt"]
    for name in ("secondsLeft", "setAt", "endsAt"):
        del shown[name]
    expected = {"fault": "429", "count": 5, "database": "d", "container": "c", "retryAfterMs": 100, "hits": 0}
    assert shown == {"id": made["id"], **expected}
    admin.remove_fault(made["id"])
    assert admin.faults() == []
    with pytest.raises(RequestRefusedError, match=r"no fault '12345'"):
        admin.remove_fault("12345")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({}, "'fault' must be one of 429, 449"),
        ({"fault": 429.5}, "'fault' must be one of"),
        ({"fault": "429", "cuont": 3}, "Unknown in the body: cuont"),
        ({"fault": "429", "count": 0}, "'count' must be a whole number from 1"),
        ({"fault": "429", "count": True}, "'count' must be a whole number"),
        ({"fault": "429", "count": 1.5}, "'count' must be a whole number"),
        ({"fault": "429", "share": 2}, "'share' must be a number from 0 to 1"),
        ({"fault": "429", "share": 0}, "'share' must be above 0"),
        ({"fault": "429", "seed": -1}, "'seed' must be a whole number"),
        ({"fault": "429", "operation": "reed"}, "'operation' must be one of read,"),
        ({"fault": "429", "container": "c"}, "name that too"),
        ({"fault": "429", "database": "d", "partition": "0"}, "name that too"),
        ({"fault": "429", "database": 7}, "'database' must be a text"),
        ({"fault": "late"}, "needs a 'delayMs'"),
        ({"fault": "late", "delayMs": 10**9}, "'delayMs' must be a whole number"),
        ({"fault": "500", "retryAfterMs": 5}, "Only the fault '429'"),
        ({"fault": "429", "seconds": 0}, "'seconds' must be a number"),
        ({"fault": "429", "seconds": "long"}, "'seconds' must be a number"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_the_reason(
    admin: Admin, rule: dict[str, Any], text: str
) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        admin.add_fault(rule)
    assert caught.value.status == 400
    assert text in str(caught.value)
    assert admin.faults() == []


def test_there_is_a_limit_to_the_number_of_faults(admin: Admin) -> None:
    for _ in range(RULES_MAX):
        admin.add_fault({"fault": "449", "database": "nobody"})
    with pytest.raises(RequestRefusedError, match="delete some first"):
        admin.add_fault({"fault": "449"})
    assert admin.clear_faults() == RULES_MAX

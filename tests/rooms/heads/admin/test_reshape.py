"""Split and merge over the admin API, as operators and their clients see them."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.client.admin import Admin, RequestRefusedError
from tests.waiting import wait_until

from .test_metrics import scrape


def names(container: ContainerProxy) -> tuple[str, str]:
    _, database, _, name = container.container_link.split("/")
    return database, name


@pytest.fixture
def filled(container: ContainerProxy) -> ContainerProxy:
    """Twenty logical partitions beside that of the key a."""
    for number in range(20):
        container.create_item({"id": "1", "pk": f"k{number}"})
    return container


def settled(admin: Admin, container: ContainerProxy) -> dict[str, Any]:
    looks: list[dict[str, Any]] = []

    def is_settled() -> bool:
        looks.append(admin.partitions(*names(container), largest=0, hottest=0))
        return bool(looks[-1]["settled"])

    assert wait_until(is_settled)
    return looks[-1]


def test_a_split_and_a_merge_keep_every_item_and_tell_their_history(
    admin: Admin, server: Any, filled: ContainerProxy
) -> None:
    made = admin.split(*names(filled), {})
    assert made["parent"] == "0"
    assert [each["id"] for each in made["partitions"]] == ["1", "2"]
    assert all(each["parents"] == ["0"] for each in made["partitions"])
    answer = settled(admin, filled)
    assert sum(each["items"] for each in answer["partitions"]) == 21
    assert not any(each["sharesSegment"] for each in answer["partitions"])
    (retired,) = answer["history"]
    assert (retired["id"], retired["minInclusive"], retired["maxExclusive"]) == ("0", "", "FF")
    assert len(list(filled.query_items("SELECT * FROM c", enable_cross_partition_query=True))) == 21

    merged = admin.merge(*names(filled), {"partitions": ["1", "2"]})
    assert merged["settled"] is True
    assert (merged["partition"]["id"], merged["partition"]["items"]) == ("3", 21)
    assert merged["partition"]["parents"] == ["0", "1", "2"]
    assert len(list(filled.query_items("SELECT * FROM c", enable_cross_partition_query=True))) == 21
    database, container = names(filled)
    labels = f'{{database="{database}",container="{container}"}}'
    samples = scrape(server)
    assert samples[f"pleiad_splits_total{labels}"] == 1
    assert samples[f"pleiad_merges_total{labels}"] == 1


def test_with_several_partitions_a_split_names_one(admin: Admin, filled: ContainerProxy) -> None:
    admin.split(*names(filled), {"partition": "0"})
    settled(admin, filled)
    with pytest.raises(RequestRefusedError, match="Name the 'partition'"):
        admin.split(*names(filled), {})
    assert [each["id"] for each in admin.split(*names(filled), {"partition": "2"})["partitions"]] == [
        "3",
        "4",
    ]


@pytest.mark.requirement("R52")
def test_a_partition_with_a_single_key_is_not_split(admin: Admin, container: ContainerProxy) -> None:
    with pytest.raises(RequestRefusedError, match="single logical partition") as caught:
        admin.split(*names(container), {})
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("verb", "body", "status", "text"),
    [
        ("split", {"partition": "7"}, 404, "no physical partition '7'"),
        ("split", {"partition": 0}, 400, "is a text"),
        ("split", {"at": "3F"}, 400, "Unknown in the body: at"),
        ("merge", {}, 400, "'partitions' must be a list"),
        ("merge", {"partitions": "0"}, 400, "'partitions' must be a list"),
        ("merge", {"partitions": [0, 1]}, 400, "is a text"),
        ("merge", {"partitions": ["0"]}, 400, "two or more"),
        ("merge", {"partitions": ["0", "0"]}, 400, "two or more different"),
        ("merge", {"partitions": ["0", "9"]}, 404, "no physical partition '9'"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    admin: Admin, container: ContainerProxy, verb: str, body: dict[str, Any], status: int, text: str
) -> None:
    ask = admin.split if verb == "split" else admin.merge
    with pytest.raises(RequestRefusedError) as caught:
        ask(*names(container), body)
    assert (caught.value.status, text in str(caught.value)) == (status, True), str(caught.value)


def test_partitions_that_the_throughput_needs_are_not_merged(admin: Admin, client: CosmosClient) -> None:
    database = client.create_database("busy-by-admin")
    database.create_container("c", PartitionKey("/pk"), offer_throughput=30_000)
    with pytest.raises(RequestRefusedError, match="lower it first"):
        admin.merge("busy-by-admin", "c", {"partitions": ["0", "1", "2", "3"]})
    admin.set_throughput("busy-by-admin", "c", {"ru": 6_000})
    assert admin.merge("busy-by-admin", "c", {"partitions": ["3", "4"]})["partition"]["id"] == "5"

"""Copies over the admin API: what is answered to whom."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import ContainerProxy

from pleiad.client.admin import Admin, RequestRefusedError
from tests.waiting import wait_until


def ready(admin: Admin, copy: dict[str, Any]) -> bool:
    return wait_until(lambda: admin.copy(copy["id"])["ready"])


def plan_of(container: ContainerProxy, **more: Any) -> dict[str, Any]:
    database = container.container_link.split("/")[1]
    return {"source": f"{database}/things", "target": f"{database}/copy", **more}


@pytest.mark.requirement("R70")
def test_a_copy_is_begun_and_told_of_until_it_is_done(admin: Admin, container: ContainerProxy) -> None:
    begun = admin.start_copy(plan_of(container, partitionKey="/id", set={"/made": "UPPER(c.pk)"}))
    assert (begun["state"], begun["partitionKey"], begun["set"]) == (
        "planned",
        ["/id"],
        {"/made": "UPPER(c.pk)"},
    )
    assert wait_until(lambda: admin.copy(begun["id"])["state"] == "done")
    told = admin.copy(begun["id"])
    assert (told["done"], told["total"], told["verified"], told["resumed"]) == (1, 1, 1, 0)
    assert told["checksum"]
    assert told["endedAt"]
    assert begun["id"] in [each["id"] for each in admin.copies()]


def test_the_same_copy_is_told_of_and_another_one_has_to_wait(
    admin: Admin, container: ContainerProxy
) -> None:
    plan = plan_of(container, online=True)
    begun = admin.start_copy(plan)
    assert admin.start_copy(plan)["id"] == begun["id"]
    with pytest.raises(RequestRefusedError, match="is under way") as told:
        admin.start_copy({**plan, "partitionKey": "/id"})
    assert told.value.status == 423
    assert ready(admin, begun)
    admin.complete_copy(begun["id"])
    assert wait_until(lambda: admin.copy(begun["id"])["state"] == "done")


def test_a_cancelled_copy_is_over(admin: Admin, container: ContainerProxy) -> None:
    begun = admin.start_copy(plan_of(container, online=True))
    admin.cancel_copy(begun["id"])
    assert wait_until(lambda: admin.copy(begun["id"])["state"] == "cancelled")
    for ask in (admin.cancel_copy, admin.complete_copy):
        with pytest.raises(RequestRefusedError, match="is over") as told:
            ask(begun["id"])
        assert told.value.status == 400


def test_a_failed_copy_names_the_items(admin: Admin, container: ContainerProxy) -> None:
    begun = admin.start_copy(plan_of(container, partitionKey="/none"))
    assert wait_until(lambda: admin.copy(begun["id"])["state"] == "failed")
    told = admin.copy(begun["id"])
    assert "no value for the partition key /none" in told["problem"]
    assert told["items"] == ['1 of the partition key ["a"]']


def test_what_is_not_there_or_makes_no_sense_is_refused(admin: Admin, container: ContainerProxy) -> None:
    for ask in (admin.copy, admin.cancel_copy, admin.complete_copy):
        with pytest.raises(RequestRefusedError) as told:
            ask("nonsense")
        assert told.value.status == 404
    for body, status in (({}, 400), (plan_of(container, source="no/such"), 404), ({"share": 9}, 400)):
        with pytest.raises(RequestRefusedError) as told:
            admin.start_copy(body)
        assert told.value.status == status


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"partitionKey": "city"}, "city"),
        ({"partitionKey": ["/a", "/b", "/c", "/d"]}, "partition key"),
        ({"partitionKey": "/a[0]"}, r"/a\[0\]"),
        ({"uniqueKeys": ["/email"]}, "[Uu]nique"),
        ({"uniqueKeys": [[]]}, "[Uu]nique"),
        ({"uniqueKeys": [[f"/p{n}" for n in range(40)]]}, "[Uu]nique"),
        ({"uniqueKeys": [["email"]]}, "email"),
        ({"uniqueKeys": [[7]]}, "[Uu]nique"),
        ({"indexingPolicy": "all"}, "[Ii]ndexing"),
        ({"indexingPolicy": {"indexingMode": "sometimes"}}, "sometimes"),
        ({"indexingPolicy": {"includedPaths": [{"path": "nowhere"}]}}, "nowhere"),
        ({"defaultTtl": 0}, "(?i)ttl"),
        ({"defaultTtl": "soon"}, "(?i)ttl"),
        ({"set": {"/made": "UPPER("}}, "(?i)syntax"),
        ({"set": {"/made": "NO_SUCH_FUNCTION(c.pk)"}}, "NO_SUCH_FUNCTION"),
        ({"set": {"/made": "x.pk"}}, "x"),
        ({"set": {"/id": "c.pk"}}, "/id"),
        ({"set": {"made": "c.pk"}}, "made"),
        ({"throughput": {"ru": 401}}, "(?i)throughput"),
        ({"throughput": {"ru": 10**9}}, "(?i)throughput"),
        ({"throughput": {"autoscaleMaximumRu": 1234}}, "(?i)throughput"),
        ({"target": "things/a?b"}, "a\\?b"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_a_target_that_cannot_be_made_is_refused_at_once(
    admin: Admin, container: ContainerProxy, given: dict[str, Any], sentence: str
) -> None:
    plan = plan_of(container, **given)
    if "target" in given:
        plan["target"] = f"{plan['source'].split('/')[0]}/a?b"
    with pytest.raises(RequestRefusedError, match=sentence) as told:
        admin.start_copy(plan)
    assert told.value.status == 400
    assert not [each for each in admin.copies() if each["source"] == plan["source"]]

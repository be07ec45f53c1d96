"""What moves: physical partitions that heat up, split and merge, the last hour, the change feed, faults on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.waiting import wait_until

from .conftest import READ_ONLY_KEY, OpenWindow, Window
from .load import load

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = pytest.mark.long


@pytest.mark.requirement("R150", "R151")
def test_partitions_are_seen_heating_up_splitting_and_merging(
    window: Window, client: CosmosClient, database: str
) -> None:
    found = client.get_database_client(database)
    by_group = found.create_container("food", PartitionKey("/foodGroup"), offer_throughput=400)
    by_id = found.create_container("food-by-id", PartitionKey("/id"), offer_throughput=400)
    with load(by_group, by_id):
        window.container((database, "food"), "partitions")
        window.say('One value, "Beef Products", takes')
        window.page.locator(".sp-levels .full").first.wait_for()
        window.page.locator(".sp-refused .some").wait_for()
        window.page.get_by_role("button", name="Beef Products").wait_for()
        window.page.locator(".ranks li", has_text="Beef Products").nth(1).wait_for()
        window.page.evaluate("window.seen = document.querySelector('.sp-ribbon .sp-cell')")
        used = window.page.locator(".sp-levels .ru b").first
        before = used.inner_text()
        assert wait_until(lambda: used.inner_text() != before)
        assert window.page.evaluate("window.seen.isConnected"), "a refresh builds nothing anew"
        window.press("Split partition 0")
        window.say("Partition 0 was divided into")
        window.page.locator(".sp-ribbon [data-p='2']").wait_for()
        window.page.locator(".generations .gone", has_text="0").wait_for()
        window.picture("partitions")
        window.go("compare?left={}&right={}", f"{database}/food", f"{database}/food-by-id")
        window.say("takes")
        window.page.locator(".pair .space").nth(1).wait_for()
        window.picture("compare")
    window.container((database, "food"), "partitions")
    window.page.locator(".sp-ribbon [data-p='2']").focus()
    window.page.keyboard.press("ArrowLeft")
    assert window.page.evaluate("document.activeElement.dataset.p") == "1"
    window.page.locator(".heat-canvas").focus()
    window.page.keyboard.press("ArrowRight")
    assert "hash" in (window.page.locator("#live").text_content() or "")
    window.press("Hold")
    window.say("held at")
    window.press("Live")
    window.press("Merge")
    window.press("Merge", "dialog")
    window.say("are one now")
    window.page.locator(".sp-ribbon [data-p='3']").wait_for()
    window.press("Throughput")
    window.page.get_by_role("spinbutton", name="RU/s").fill("700")
    window.press("Set throughput")
    window.say("Throughput set.")
    assert by_group.get_throughput().offer_throughput == 700


@pytest.mark.parametrize(("up_seconds", "chosen"), [(30, "5 min"), (600, "15 min"), (86_400, "60 min")])
def test_the_time_that_is_drawn_is_the_shortest_with_all_that_the_server_has_seen(
    open_window: OpenWindow, up_seconds: int, chosen: str
) -> None:
    def told(route: Route) -> None:
        answer = route.fetch()
        found = answer.json()
        found["server"]["uptimeSeconds"] = up_seconds
        route.fulfill(response=answer, json=found)

    window = open_window()
    window.page.route("**/_pleiad/v1/overview*", told)
    window.sign_in(READ_ONLY_KEY)
    window.container(("sample", "food"), "metrics")
    window.page.locator(".seg [aria-pressed=true]", has_text=chosen).wait_for()


def test_the_last_hour_is_drawn_for_a_container_and_the_account(
    window: Window, client: CosmosClient, database: str
) -> None:
    found = client.get_database_client(database)
    container = found.create_container("food", PartitionKey("/foodGroup"))
    container.create_item({"id": "1", "foodGroup": "Soups"})
    window.container((database, "food"), "metrics")
    window.page.get_by_role("img", name="Requests: ").wait_for()
    assert window.page.locator(".chart").count() == 6
    axes = "all => all.map(svg => [...svg.querySelectorAll('.grid-line + text')].map(label => label.textContent))"
    for labels in window.page.locator(".chart").evaluate_all(axes):
        assert len(set(labels)) == len(labels) > 1
    window.page.locator(".chart-box").first.hover()
    window.page.locator(".tip").wait_for()
    window.press("15 min")
    window.page.get_by_role("img", name="Storage: ").wait_for()
    window.picture("metrics")
    window.page.mouse.move(0, 0)
    window.press("Account")
    window.page.get_by_role("heading", name="Metrics of the account").wait_for()
    window.page.locator(".ranks a").first.wait_for()
    window.go("")
    window.page.get_by_role("heading", name="Account").wait_for()
    window.say("To look at")
    window.say("per second")
    window.picture("home")


def test_changes_are_followed_held_and_followed_again(
    window: Window, client: CosmosClient, database: str
) -> None:
    found = client.get_database_client(database)
    container = found.create_container("food", PartitionKey("/foodGroup"))
    container.create_item({"id": "before", "foodGroup": "Soups"})
    window.container((database, "food"), "settings")
    window.page.get_by_label("Keep all versions and deletes, minutes").fill("10")
    window.press("Save", "[aria-label='Life of items and versions']")
    window.say("Saved.")
    window.container((database, "food"), "feed")
    window.say("Nothing has changed yet.")
    window.press("From the beginning")
    window.page.get_by_role("link", name="before", exact=True).wait_for()
    window.press("All versions and deletes")
    window.say("Nothing has changed yet.")
    window.say("0 changes in the last minute")  # the feed of now has its place
    container.create_item({"id": "after", "foodGroup": "Sweets"})
    container.delete_item("after", "Sweets")
    window.page.locator(".feed-op.create").wait_for()
    window.page.locator(".feed-op.delete").wait_for()
    window.picture("change-feed")
    window.page.locator("main").focus()
    window.page.keyboard.press("Space")
    window.say("held")
    container.create_item({"id": "held", "foodGroup": "Sweets"})
    window.say("1 more since")
    assert window.page.get_by_role("link", name="held", exact=True).count() == 0
    window.page.keyboard.press("Space")
    window.page.get_by_role("link", name="held", exact=True).click()
    window.say("read for")


def test_faults_are_set_seen_and_cleared(window: Window, client: CosmosClient, database: str) -> None:
    found = client.get_database_client(database)
    container = found.create_container("food", PartitionKey("/foodGroup"))
    container.create_item({"id": "1", "foodGroup": "Soups"})
    window.page.get_by_role("link", name=database).first.wait_for()
    window.go("faults")
    window.page.get_by_label("What happens").select_option("449")
    window.page.get_by_label("Where").select_option(label=f"{database}/food")
    window.page.get_by_label("Operation").select_option("replace")
    window.press("Set fault")
    window.say("every one")
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.replace_item("1", {"id": "1", "foodGroup": "Soups"})
    assert refused.value.status_code == 449
    window.page.locator("tbody tr", has_text="449").locator("td", has_text="1").first.wait_for()
    window.picture("faults")
    window.container((database, "food"), "metrics")
    window.say("A fault on demand is in force")
    window.go("faults")
    window.press("Clear")
    window.say("No fault is in force")
    container.replace_item("1", {"id": "1", "foodGroup": "Soups"})

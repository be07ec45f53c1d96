"""Which key would fit, measured by the server; and the copy that gets there, with its progress and its ends."""

from __future__ import annotations

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.waiting import wait_until

from .conftest import READ_ONLY_KEY, OpenWindow, Window
from .test_people import serious

pytestmark = pytest.mark.long

TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 120))"""
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def food(client: CosmosClient, database: str) -> ContainerProxy:
    """Most of it in one group, as a bad key has it."""
    found = client.get_database_client(database).create_container(
        "food", PartitionKey("/foodGroup"), offer_throughput=4000
    )
    for number in range(120):
        group = "Beef Products" if number % 6 else f"{HOSTILE}{number % 4}"
        found.create_item(
            {"id": f"{number}", "foodGroup": group, "maker": f"m{number % 40}", "day": number % 3}
        )
    return found


def measure(window: Window, database: str) -> None:
    window.container((database, "food"), "advisor")
    window.press("Measure keys")
    window.page.locator(".versus").wait_for()


def test_keys_are_measured_and_the_report_is_shown(
    window: Window, food: ContainerProxy, database: str
) -> None:
    window.container((database, "food"), "advisor")
    window.say("No key has been measured yet")
    window.press("Measure keys")
    window.page.locator(".verdict .say").wait_for()
    for title in ("Now: /foodGroup", "Better:"):
        side = window.page.get_by_role("region", name=title)
        side.get_by_text("RU/s wanted of").wait_for()
        side.get_by_text("Data they hold").wait_for()
        side.get_by_role("img", name="Heat over time").wait_for()
        side.get_by_text("Hottest values").wait_for()
        side.get_by_text("What if").wait_for()
    key = window.page.locator(".all-keys").get_by_text("/foodGroup", exact=True).first
    assert key.evaluate("found => found.getClientRects().length") == 1, "a short key stands on one line"
    assert "\\u202e" in window.page.locator(".versus").inner_text()
    window.picture("advisor")
    with window.page.expect_download() as kept:
        window.press("Save as HTML")
    assert "Content-Security-Policy" in kept.value.path().read_text(encoding="utf-8")
    window.press("Measure again")
    window.page.get_by_label("Keys to try").fill("/maker nonsense")
    window.press("Measure keys", "dialog")
    window.page.locator("dialog").get_by_text("is no path of a property").wait_for()
    window.page.get_by_label("Keys to try").fill("/maker /day")
    window.press("Measure keys", "dialog")
    assert wait_until(lambda: window.page.locator(".all-keys tbody tr").count() == 2)
    window.press("Record requests")
    window.say("Every request on this container is recorded")
    food.read_item("1", "Beef Products")
    window.say("with its key: 1 so far")


def test_measuring_is_cancelled(window: Window, food: ContainerProxy, database: str) -> None:
    for first in range(0, 1500, 100):  # enough that measuring takes a while
        batch = [
            ("create", ({"id": f"x{first + each}", "foodGroup": "many", "maker": f"m{each}"},))
            for each in range(100)
        ]
        food.execute_item_batch(batch, "many")
    window.container((database, "food"), "advisor")
    window.press("Measure keys")
    window.press("Cancel measuring")
    window.say("No key has been measured yet")


def test_a_container_without_items_is_told_so(window: Window, client: CosmosClient, database: str) -> None:
    client.get_database_client(database).create_container("food", PartitionKey("/foodGroup"))
    window.container((database, "food"), "advisor")
    window.press("Measure keys")
    window.say("has no items")


def test_a_copy_to_the_better_key_is_followed_to_its_end(
    window: Window, food: ContainerProxy, client: CosmosClient, database: str
) -> None:
    measure(window, database)
    window.press("Copy to a container with", ".verdict")
    window.page.get_by_label("Name of the new container").fill("food-by-maker")
    window.page.get_by_label("Its partition key").fill("/maker")
    for level in ("Level 2 of the key", "Level 3 of the key"):
        if window.page.get_by_label(level).is_visible():
            window.page.get_by_label(level).fill("")
    window.page.get_by_label("Percent of the throughput it may use").fill("100")
    window.picture("copy-form", whole=False)
    window.press("Begin the copy")
    window.page.get_by_role("progressbar", name="Copy").wait_for()
    window.say("has every item")
    window.picture("copy")
    copied = client.get_database_client(database).get_container_client("food-by-maker")
    assert copied.read()["partitionKey"]["paths"] == ["/maker"]
    assert len(list(copied.read_all_items())) == 120
    window.page.get_by_role("link", name="Look at food-by-maker").click()
    window.page.get_by_role("heading", name="food-by-maker").wait_for()


def test_a_copy_takes_the_place_of_its_source_when_it_is_asked_to_by_name(
    window: Window, food: ContainerProxy, client: CosmosClient, database: str
) -> None:
    window.container((database, "food"), "advisor")
    window.press("Copy to a key of your own")
    window.page.get_by_label("Its partition key").fill("/madeKey")
    window.page.get_by_text("The key is made of other properties").click()
    window.page.get_by_label("Expression for its first path").fill('CONCAT(c.maker, "-", ToString(c.day))')
    window.page.get_by_label("Percent of the throughput it may use").fill("100")
    window.press("Everything, then take its name")
    assert window.page.get_by_role("button", name="Begin the copy").is_disabled()
    window.page.get_by_label("Type food to confirm").fill("food")
    window.press("Begin the copy")
    window.say("is the copy now")
    window.page.locator(".head-title").get_by_text("/madeKey").wait_for()
    now = client.get_database_client(database).get_container_client("food").read()
    assert now["partitionKey"]["paths"] == ["/madeKey"]


def test_an_online_copy_is_completed(
    window: Window, food: ContainerProxy, client: CosmosClient, database: str
) -> None:
    window.container((database, "food"), "advisor")
    window.press("Copy to a key of your own")
    window.page.get_by_label("Its partition key").fill("/maker")
    window.page.get_by_label("Percent of the throughput it may use").fill("100")
    window.press("Everything until I complete it")
    window.press("Begin the copy")
    window.say("The copy has caught up and follows every change.")
    food.create_item({"id": "later", "foodGroup": "Soups", "maker": "m1"})
    window.press("Complete the copy")
    window.press("Complete the copy", "dialog")
    window.say("has every item")
    copied = client.get_database_client(database).get_container_client("food-2")
    assert copied.read_item("later", "m1")["foodGroup"] == "Soups"


def test_a_copy_is_cancelled_by_the_name_of_what_it_removes(
    window: Window, food: ContainerProxy, client: CosmosClient, database: str
) -> None:
    window.container((database, "food"), "advisor")
    window.press("Copy to a key of your own")
    window.page.get_by_label("Its partition key").fill("/maker")
    window.press("Everything until I complete it")
    window.press("Begin the copy")
    window.press("Cancel the copy")
    window.page.get_by_label("Type food-2 to confirm").fill("food-2")
    window.press("Cancel the copy", "dialog")
    window.say("The copy was cancelled.")
    with pytest.raises(CosmosHttpResponseError):
        client.get_database_client(database).get_container_client("food-2").read()


def test_a_copy_that_fails_says_why_and_which_items_stood_in_the_way(
    window: Window, food: ContainerProxy, database: str
) -> None:
    window.container((database, "food"), "advisor")
    window.press("Copy to a key of your own")
    window.page.get_by_label("Its partition key").fill("/nothing")
    window.press("Begin the copy")
    window.say("no value for the partition key /nothing")


def test_a_report_fits_a_telephone_and_keeps_nobody_out(
    open_window: OpenWindow, food: ContainerProxy, database: str
) -> None:
    window = open_window(size=(360, 800), color_scheme="dark", bypass_csp=True)
    window.sign_in()
    measure(window, database)
    assert window.page.evaluate(TOO_WIDE) == []
    assert serious(window.page) == []
    window.picture("advisor-360-dark")


def test_a_read_only_key_measures_and_copies_nothing(
    open_window: OpenWindow, food: ContainerProxy, database: str
) -> None:
    window = open_window()
    window.sign_in(READ_ONLY_KEY)
    measure(window, database)
    switched_off = window.page.locator("main [aria-disabled=true]")
    assert {each.inner_text() for each in switched_off.all()} <= {
        "Copy",
        "Record requests",
        *(each.inner_text() for each in window.page.locator(".verdict [aria-disabled=true]").all()),
    }
    window.page.locator(".all-keys").get_by_role("button", name="Copy to a container with").first.click(
        force=True
    )
    window.say("This is a read-only key: it changes nothing.")
    window.press("Measure again")
    window.press("Measure keys", "dialog")
    window.page.locator(".versus").wait_for()

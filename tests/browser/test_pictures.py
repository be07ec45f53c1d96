"""The pictures of docs/explorer.md, from a small account with a good and a bad key under load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from .conftest import OpenWindow, Window
from .load import load

pytestmark = [pytest.mark.long, pytest.mark.parametrize("store_kind", ["sqlite"], scope="session")]

SIZE = (1240, 860)
QUERY = """SELECT TOP 20 c.id, c.foodGroup, c.description, c.protein
FROM c
WHERE c.protein > @least
ORDER BY c.protein DESC"""


@pytest.fixture
def nutrition(client: CosmosClient) -> Iterator[tuple[ContainerProxy, ContainerProxy]]:
    """The same foods under two keys."""
    database = client.create_database("nutrition")
    by_group = database.create_container("food", PartitionKey("/foodGroup"), offer_throughput=12_000)
    by_id = database.create_container("food-by-id", PartitionKey("/id"), offer_throughput=12_000)
    for container in (by_group, by_id):
        container.replace_throughput(400)
    yield by_group, by_id
    client.delete_database(database)


def keep(window: Window, name: str) -> None:
    window.page.mouse.move(0, 0)
    window.picture(f"docs-{name}", whole=False)


def test_the_pictures_of_the_documentation(
    open_window: OpenWindow, nutrition: tuple[ContainerProxy, ContainerProxy]
) -> None:
    window = open_window(size=SIZE)
    window.sign_in()
    food = ("nutrition", "food")
    with load(*nutrition):
        window.container(food, "partitions")
        window.say("One value, ")
        window.page.locator(".sp-refused .some").first.wait_for()
        keep(window, "partitions")
        window.go("compare?left={}&right={}", "nutrition/food", "nutrition/food-by-id")
        window.page.locator(".pair .verdict").nth(1).wait_for()
        window.page.locator(".pair .sp-ribbon").nth(1).wait_for()
        keep(window, "compare")
        keep_home(open_window(size=SIZE))
    # What reads waits no longer for what is written.
    window.container(food, "query")
    window.page.get_by_label("Query text").fill(QUERY)
    window.page.get_by_label("Value of @least, as JSON").fill("15")
    window.page.keyboard.press("Control+Enter")
    window.say("20 results")
    keep(window, "query")
    window.container(food, "items")
    window.page.locator("tbody tr").nth(2).click()
    window.say("read for")
    keep(window, "items")
    window.container(food, "advisor")
    window.press("Measure keys")
    window.page.locator(".versus").wait_for()
    window.page.evaluate("scrollTo(0, 0)")
    keep(window, "advisor")


def keep_home(window: Window) -> None:
    window.sign_in()
    window.go("")
    window.say("To look at")
    window.page.locator(".glance .big").nth(3).wait_for()
    window.press("Dark")
    keep(window, "home")

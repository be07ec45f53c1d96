"""Queries: run and cancelled, with parameters, completion and history; what they cost, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from .conftest import Window

pytestmark = pytest.mark.long

ORDERS = 120


@pytest.fixture(scope="module")
def filled(client: CosmosClient) -> Iterator[tuple[str, str]]:
    """A container with 120 orders over three physical partitions, which all tests here read."""
    database = client.create_database("queries")
    container = database.create_container("orders", PartitionKey("/customer"), offer_throughput=18_000)
    for number in range(ORDERS):
        container.create_item({"id": f"{number:03}", "customer": f"c{number % 9}", "total": number})
    yield "queries", "orders"
    client.delete_database(database)


@pytest.fixture
def orders(window: Window, filled: tuple[str, str]) -> Window:
    """The query screen of that container."""
    window.container(filled, "query")
    return window


def ask(window: Window, text: str) -> None:
    window.page.get_by_label("Query text").fill(text)
    window.page.keyboard.press("Control+Enter")


def test_a_query_is_run_with_parameters_and_its_cost_is_told(orders: Window) -> None:
    box = orders.page.get_by_label("Query text")
    box.fill(
        "SELECT c.id, c.customer, c.total FROM c WHERE c.total >= @least AND c.id != '@none' ORDER BY c.total DESC"
    )
    assert orders.page.get_by_label("Value of @none, as JSON").count() == 0
    orders.page.get_by_label("Value of @least, as JSON").fill("10")
    orders.page.keyboard.press("Control+Enter")
    orders.say("100 results")
    orders.say("Physical partitions visited: 3 of 3")
    orders.say("physical partitions, 2.50 each")
    orders.say("/total/?")
    assert orders.page.locator("tbody tr").first.locator("td").all_inner_texts() == ["119", "c2", "119"]
    orders.picture("query")
    orders.press("Next page")
    orders.say("10 results")
    orders.say("for 2 pages")
    orders.press("JSON")
    orders.say('"total": 10')
    orders.press("Table")
    orders.page.get_by_role("link", name="010").click()
    orders.say("read for")


def test_the_key_confines_a_query_and_advice_is_said_in_words(orders: Window) -> None:
    ask(orders, "SELECT * FROM c ORDER BY c.total")
    orders.say("100 results")
    orders.say("Physical partitions visited: 3 of 3")
    spread = orders.page.locator(".strip").inner_text()
    orders.page.get_by_label("Filter by /customer").fill("c1")
    orders.press(re.compile("^Run"))
    orders.say("Physical partitions visited: 1 of 3")
    assert orders.page.locator(".strip").inner_text() != spread


def test_a_mistake_is_shown_with_its_place(orders: Window) -> None:
    ask(orders, "SELECT *\nFORM c")
    orders.say("The query has a mistake")
    orders.say("at line 2, column 1")
    orders.press("Go to the place")
    box = orders.page.get_by_label("Query text")
    assert box.evaluate("node => node.value.slice(node.selectionStart, node.selectionEnd)") == "FORM"


def test_paths_of_the_container_are_completed(orders: Window) -> None:
    box = orders.page.get_by_label("Query text")
    box.fill("SELECT  FROM o")
    box.evaluate("node => node.setSelectionRange(7, 7)")
    box.press_sequentially("o.cu")
    option = orders.page.get_by_role("option", name="o.customer")
    option.wait_for()
    orders.picture("query-completion")
    box.press("Tab")
    assert box.input_value() == "SELECT o.customer FROM o"
    assert option.is_hidden()


def test_a_query_can_be_cancelled(orders: Window) -> None:
    orders.page.route("**/docs", lambda route: None)
    ask(orders, "SELECT * FROM c")
    orders.page.get_by_role("button", name="Cancel").wait_for()
    orders.page.keyboard.press("Escape")
    orders.page.get_by_text("Cancelled").first.wait_for()
    orders.page.unroute("**/docs")
    ask(orders, "SELECT VALUE COUNT(1) FROM c")
    orders.say("1 result")
    orders.say(str(ORDERS))


def test_queries_that_were_run_are_remembered_in_the_tab(orders: Window) -> None:
    ask(orders, "SELECT VALUE c.id FROM c WHERE c.total = 3")
    orders.say("1 result")
    ask(orders, "SELECT VALUE c.total FROM c WHERE false")
    orders.say("No result")
    orders.press("History")
    orders.press(re.compile(r"SELECT VALUE c\.id"), "dialog")
    assert (
        orders.page.get_by_label("Query text").input_value() == "SELECT VALUE c.id FROM c WHERE c.total = 3"
    )


def test_results_are_saved_as_json_lines(orders: Window) -> None:
    ask(orders, "SELECT c.id, 9007199254740993 AS big FROM c WHERE c.total < 2 ORDER BY c.total")
    orders.say("2 results")
    with orders.page.expect_download() as download:
        orders.press("Save as JSON lines")
    lines = download.value.path().read_text().splitlines()
    assert [line.startswith('{"id":') for line in lines] == [True, True]

"""Items: seen page by page, filtered, created, edited under the eyes of others, deleted and uploaded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from tests.waiting import wait_until

from .conftest import Window

pytestmark = pytest.mark.long

LARGE_INTEGER = 9007199254740993


def made(client: CosmosClient, database: str, items: int, key: PartitionKey | None = None) -> ContainerProxy:
    container = client.get_database_client(database).create_container(
        "orders", key or PartitionKey("/customer"), offer_throughput=10_000
    )
    for number in range(items):
        container.create_item({"id": f"{number:03}", "customer": f"c{number % 3}", "n": number})
    return container


def editor(window: Window) -> str:
    return window.page.get_by_label("Item as JSON").input_value()


def write(window: Window, item: object) -> None:
    window.page.get_by_label("Item as JSON").fill(item if isinstance(item, str) else json.dumps(item))


def test_items_come_page_by_page_and_back(window: Window, client: CosmosClient, database: str) -> None:
    made(client, database, 130)
    window.container((database, "orders"), "items")
    window.say("1 – 100")
    assert window.page.locator("tbody tr").count() == 100
    window.press("Next 100")
    window.say("101 – 130")
    assert window.page.get_by_role("button", name="Next 100").is_disabled()
    window.press("Previous")
    window.say("1 – 100")


def test_the_key_filters_and_a_mistyped_one_is_no_empty_list(
    window: Window, client: CosmosClient, database: str
) -> None:
    made(client, database, 9)
    window.container((database, "orders"), "items")
    window.page.get_by_label("Filter by /customer").fill("c1")
    window.press("Filter")
    window.say("1 – 3")
    assert {row.split()[0] for row in window.page.locator("tbody tr").all_inner_texts()} == {"c1"}
    window.page.get_by_label("Condition").fill("c.n > 4")
    window.press("Filter")
    window.say("1 – 1")
    window.page.reload()
    window.say("1 – 1")
    window.page.get_by_label("Condition").fill("")
    window.page.get_by_label("Filter by /customer").fill("C1")
    window.press("Filter")
    window.say("No item has this key")
    window.press("Use “c1”")
    window.say("1 – 3")
    window.page.get_by_label("Condition").fill("c.n >")
    window.press("Filter")
    window.say("The server does not take this (400)")


def test_an_item_is_created_edited_and_deleted(window: Window, client: CosmosClient, database: str) -> None:
    container = made(client, database, 0)
    window.container((database, "orders"), "items")
    window.say("No item yet")
    window.press("New item")
    write(window, '{"id": "new", "customer": ')
    window.press(re.compile("^Create"))
    window.say("This is not JSON.")
    write(window, f'{{"id": "new", "customer": "ann", "large": {LARGE_INTEGER}}}')
    window.page.keyboard.press("Control+s")
    window.say("Created for")
    window.say("read for")
    assert str(LARGE_INTEGER) in editor(window), "a whole number of 64 bits stays what it is"
    write(window, editor(window).replace('"ann",', '"ann", "total": 12,'))
    window.say("changed")
    window.page.keyboard.press("Control+s")
    window.say("Saved for")
    assert container.read_item("new", "ann")["total"] == 12
    assert container.read_item("new", "ann")["large"] == LARGE_INTEGER
    window.press("Delete")
    confirm = window.page.get_by_role("button", name="Delete item")
    assert confirm.is_disabled()
    window.page.get_by_label("Type new to confirm").fill("new")
    confirm.click()
    window.say("No item yet")
    assert list(container.read_all_items()) == []


def test_a_change_by_somebody_else_is_shown_before_anything_is_lost(
    window: Window, client: CosmosClient, database: str
) -> None:
    container = made(client, database, 1)
    window.container((database, "orders"), "items")
    window.page.locator("tbody tr").click()
    window.say("read for")
    container.upsert_item({"id": "000", "customer": "c0", "n": "theirs"})
    write(window, editor(window).replace('"n": 0', '"n": "mine"'))
    window.press(re.compile("^Save"))
    window.say("Somebody else has saved this item since you opened it (412).")
    shown = window.page.locator(".code .del, .code .add").all_inner_texts()
    assert ["theirs" in shown[0], "mine" in shown[1]] == [True, True]
    window.picture("items-conflict")
    assert container.read_item("000", "c0")["n"] == "theirs"
    window.press("Replace theirs with mine")
    window.say("Saved for")
    assert container.read_item("000", "c0")["n"] == "mine"
    container.delete_item("000", "c0")
    write(window, editor(window).replace("mine", "again"))
    window.press(re.compile("^Save"))
    window.say("This item has been deleted meanwhile (404).")
    window.press("Create it again")
    assert wait_until(lambda: [each["n"] for each in container.read_all_items()] == ["again"])


def test_items_are_reached_by_the_keyboard_alone(window: Window, client: CosmosClient, database: str) -> None:
    made(client, database, 5)
    window.container((database, "orders"), "items")
    window.say("1 – 5")
    window.page.locator("main").focus()
    for key in ("j", "j", "k", "j", "Enter"):
        window.page.keyboard.press(key)
    window.say("read for")
    chosen = window.page.locator("tbody tr").nth(1).locator("td").nth(1).inner_text()
    assert json.loads(editor(window))["id"] == chosen
    window.page.locator("main").focus()
    window.page.keyboard.press("/")
    assert window.page.evaluate("document.activeElement.closest('.filter') !== null")


def test_hierarchical_keys_are_filtered_level_by_level(
    window: Window, client: CosmosClient, database: str
) -> None:
    key = PartitionKey(["/tenant", "/user"], kind="MultiHash")
    container = client.get_database_client(database).create_container("orders", key)
    for tenant, user in (("a", "1"), ("a", "2"), ("b", "1")):
        container.create_item({"id": "x", "tenant": tenant, "user": user})
    window.container((database, "orders"), "items")
    window.say("1 – 3")
    window.page.get_by_label("Filter by /tenant").fill("a")
    window.press("Filter")
    window.say("1 – 2")
    window.page.get_by_label("Filter by /user").fill('"2"')
    window.press("Filter")
    window.say("1 – 1")
    window.page.locator("tbody tr").click()
    window.say("a › 2")


def test_json_lines_are_uploaded_with_progress_and_refused_lines(
    window: Window, client: CosmosClient, database: str, tmp_path: Path
) -> None:
    container = made(client, database, 1)
    lines = [
        json.dumps({"id": f"{n:03}", "customer": f"c{n % 3}", "n": n, "big": LARGE_INTEGER})
        for n in range(300)
    ]
    lines[7] = '{"id": "broken'
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(lines) + "\n")
    window.container((database, "orders"), "items")
    window.press("Upload JSON lines")
    window.page.get_by_label("File").set_input_files(path)
    window.press("Upload", "dialog")
    window.say("Done.")
    window.say("299 written, 1 refused")
    window.say("Line 8:")
    assert window.page.get_by_role("progressbar").get_attribute("aria-valuenow") == "100"
    window.picture("upload", whole=False)
    assert sum(each["big"] == LARGE_INTEGER for each in container.read_all_items()) == 299
    window.press("Close")
    window.say("1 – 100")


def test_an_item_that_is_not_there_is_said(window: Window, client: CosmosClient, database: str) -> None:
    made(client, database, 1)
    window.go('c/{}/{}/items?id=none&pk=["c0"]', database, "orders")
    window.say("This is not there (404)")


def test_a_container_that_is_not_there_is_said_to_people(window: Window, database: str) -> None:
    window.go("c/{}/{}/items", database, "nowhere")
    window.say("There is no container 'nowhere'.")
    assert "Learn more" not in window.page.locator("main").inner_text()

"""Hostile content: names, ids, items, keys and queries that try to be markup or script are shown as text."""

from __future__ import annotations

import json
import re

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from .conftest import Window

pytestmark = [pytest.mark.long, pytest.mark.parametrize("store_kind", ["sqlite"], scope="session")]

ATTACKS = (
    "<script>attack()</script>",
    "<img src=x onerror=attack()>",
    '"><svg onload=attack()>',
    "'-attack()-'",
    "javascript:attack()",
    "{{constructor.constructor('attack()')()}}",
    "${attack()}",
    "</textarea><script>attack()</script>",
    "<iframe srcdoc='<script>parent.attack()</script>'>",
    "&lt;b&gt;",
    "__proto__",
    "\u202egnp.exe\u202c",
    "a\u200b\u2066b\u2069\ufeff",
    "line\u2028break\u2029\u0000\u0007",
    "\U000e0041tag",
    "e" + "\u0301" * 300,
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 abc",
    "x" * 1000,
    " ",
    "🏴" * 40,
)
TELL_TALE = (
    "window.attacked = []; window.attack = () => window.attacked.push(1); window.alert = window.attack;"
)


def ids(attacks: tuple[str, ...]) -> list[str]:
    """Those of them that may be an id, with what an id cannot have left out."""
    return [re.sub(r"[/\\?#\x00-\x1f]", "", each)[:200].rstrip() or "blank" for each in attacks]


def assert_unharmed(window: Window) -> None:
    page = window.page
    assert page.evaluate("window.attacked") == []
    foreign = "main :is(script, iframe, object, embed, style, link, base, img:not(.sign-mark))"
    assert page.locator(foreign).evaluate_all("all => all.map((each) => each.outerHTML)") == []
    assert page.evaluate("document.querySelectorAll('[onload], [onerror], [onclick], [srcdoc]').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
        "nothing pushes the page apart"
    )


@pytest.fixture
def hostile(window: Window) -> Window:
    window.page.add_init_script(TELL_TALE)
    window.page.reload()
    window.say("Containers")
    return window


def test_items_with_hostile_content_are_shown_as_text(
    hostile: Window, client: CosmosClient, database: str
) -> None:
    container = client.get_database_client(database).create_container(
        "orders", PartitionKey("/key"), offer_throughput=10_000
    )
    for number, (attack, id) in enumerate(zip(ATTACKS, ids(ATTACKS), strict=True)):
        name = attack.replace("\0", "")  # which the name of a property cannot have
        container.create_item(
            {"id": f"{number}{id}", "key": attack, name: attack, "list": [{name: [attack]}]}
        )
    hostile.container((database, "orders"), "items")
    hostile.say(f"1 – {len(ATTACKS)}")
    assert_unharmed(hostile)
    hostile.picture("hostile-items")
    shown = hostile.page.locator("tbody").inner_text()
    assert "<script>attack()</script>" in shown
    assert not re.search("[\u202e\u2066\u200b]", shown), "what turns the text around is seen as its escape"
    assert "\\u202egnp.exe" in shown
    rows = hostile.page.locator("tbody tr")
    for number in range(len(ATTACKS)):
        rows.nth(number).click()
        hostile.page.locator(".item-id").wait_for()
    hostile.say("read for")
    assert_unharmed(hostile)
    hostile.container((database, "orders"), "query")
    for text in (
        "SELECT * FROM c",
        *(f"SELECT VALUE {json.dumps(attack)}" for attack in ATTACKS[:5]),
        *ATTACKS[:5],
    ):
        hostile.page.get_by_label("Query text").fill(text)
        hostile.page.keyboard.press("Control+Enter")
        hostile.page.locator(".result-panel[aria-busy=false]").wait_for()
    hostile.press("History")
    assert_unharmed(hostile)
    hostile.page.keyboard.press("Escape")
    hostile.container((database, "orders"), "partitions")
    hostile.page.locator(".ranks li").nth(5).wait_for()
    hostile.container((database, "orders"), "feed")
    hostile.press("From the beginning")
    hostile.page.locator("tbody tr").nth(5).wait_for()
    assert_unharmed(hostile)


def test_databases_and_containers_with_hostile_names_are_shown_as_text(
    hostile: Window, client: CosmosClient
) -> None:
    names = [each for each in dict.fromkeys(ids(ATTACKS)) if each.strip() and "\0" not in each][:12]
    for name in names:
        database = client.create_database(name)
        database.create_container(name, PartitionKey('/"<img src=x onerror=attack()>"'))
    try:
        hostile.page.reload()
        hostile.page.locator(".tree-c").nth(len(names) - 1).wait_for()
        assert_unharmed(hostile)
        for name in names:
            hostile.container((name, name), "items")
            hostile.say("No item yet")
        hostile.go("d/{}", names[0])
        hostile.page.locator("main h1").wait_for()
        hostile.page.keyboard.press("Control+k")
        hostile.page.locator(".palette li").first.wait_for()
        assert_unharmed(hostile)
        hostile.picture("hostile-names", whole=False)
    finally:
        for name in names:
            client.delete_database(name)


def test_huge_texts_and_deep_nesting_break_nothing(
    hostile: Window, client: CosmosClient, database: str
) -> None:
    container = client.get_database_client(database).create_container(
        "orders", PartitionKey("/key"), offer_throughput=10_000
    )
    deep: object = "bottom"
    for _ in range(100):
        deep = {"d": [deep]} if isinstance(deep, str) else {"d": deep}
    container.create_item({"id": "long", "key": "k", "text": "<b>" * 650_000})
    container.create_item({"id": "deep", "key": "k", "deep": deep})
    container.create_item({"id": "wide", "key": "k", **{f"p{n}<i>": n for n in range(1000)}})
    hostile.container((database, "orders"), "items")
    for name in ("long", "deep", "wide"):
        hostile.page.locator("tbody tr", has=hostile.page.get_by_text(name, exact=True)).click()
        hostile.page.locator(".item-slot .item-id", has_text=name).wait_for()
        assert_unharmed(hostile)
    hostile.page.locator("tbody tr", has=hostile.page.get_by_text("long", exact=True)).click()
    hostile.say("long texts in it are cut short here.")
    hostile.press("Edit")
    assert len(hostile.page.get_by_label("Item as JSON").input_value()) > 1_900_000
    hostile.container((database, "orders"), "query")
    hostile.page.get_by_label("Query text").fill("SELECT * FROM c")
    hostile.page.keyboard.press("Control+Enter")
    hostile.say("3 results")
    hostile.press("JSON")
    assert_unharmed(hostile)


@pytest.mark.parametrize("id", [".", "..", "%2e%2e", "a b", "ü/ö".replace("/", ""), "a+b&c=d", "%", "a%20b"])
def test_ids_that_mean_something_in_addresses_are_opened_saved_and_deleted(
    id: str, hostile: Window, client: CosmosClient, database: str
) -> None:
    container = client.get_database_client(database).create_container("orders", PartitionKey("/key"))
    container.create_item({"id": id, "key": "ключ", "n": 1})
    hostile.container((database, "orders"), "items")
    hostile.page.locator("tbody tr").first.click()
    hostile.say("read for")
    hostile.page.reload()
    hostile.say("read for")
    box = hostile.page.get_by_label("Item as JSON")
    box.fill(box.input_value().replace('"n": 1', '"n": 2'))
    hostile.page.keyboard.press("Control+s")
    hostile.say("Saved for")
    assert [item["n"] for item in container.read_all_items()] == [2]
    hostile.press("Delete")
    hostile.page.locator("dialog input").fill(id)
    hostile.press("Delete item")
    hostile.say("No item yet")

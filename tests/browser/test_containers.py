"""Databases and containers: made, changed and deleted, with throughput, keys and policies; scripts, users, tokens."""

from __future__ import annotations

import re

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from tests.waiting import wait_until

from .conftest import Window

pytestmark = pytest.mark.long


def test_a_database_and_a_container_are_made_changed_and_deleted(
    window: Window, client: CosmosClient
) -> None:
    window.press("New database")
    window.page.get_by_label("Name").fill("made-here")
    window.press("Create database")
    window.page.get_by_role("heading", name="made-here").wait_for()
    window.press("New container")
    window.page.get_by_label("Name").fill("events")
    window.page.get_by_label("Partition key", exact=True).fill("/tenant")
    window.press("Add a level")
    window.page.get_by_label("Level 2 of the key").fill("/user")
    window.page.get_by_text("Unique keys and time to live").click()
    window.page.get_by_label("Unique keys", exact=True).fill("/email; /first, /last")
    window.page.get_by_label("Items expire").check()
    window.page.get_by_label("Seconds until they do").fill("3600")
    window.press("Autoscale")
    window.page.get_by_label("RU/s").fill("4000")
    window.picture("new-container", whole=False)
    window.press("Create container")
    window.say("No item yet")
    container = client.get_database_client("made-here").get_container_client("events")
    found = container.read()
    assert found["partitionKey"]["paths"] == ["/tenant", "/user"]
    assert found["defaultTtl"] == 3600
    assert [key["paths"] for key in found["uniqueKeyPolicy"]["uniqueKeys"]] == [
        ["/email"],
        ["/first", "/last"],
    ]
    assert container.get_throughput().auto_scale_max_throughput == 4000

    window.container(("made-here", "events"), "settings")
    window.press("Change")
    window.press("Fixed", "dialog")
    window.page.get_by_label("RU/s").fill("500")
    window.press("Set throughput")
    window.say("500 RU/s, on one physical partition.")
    assert container.get_throughput().offer_throughput == 500
    policy = window.page.get_by_label("Indexing policy").locator("textarea")
    policy.fill('{"indexingMode": "none", "automatic": false}')
    window.press("Save")
    window.say("Saved.")
    assert container.read()["indexingPolicy"]["indexingMode"] == "none"
    window.page.get_by_label("Keep all versions and deletes, minutes").fill("10")
    window.press("Save", "[aria-label='Life of items and versions']")
    assert wait_until(lambda: "changeFeedPolicy" in container.read())
    policy.fill('{"indexingMode": "sometimes"}')
    window.press("Save")
    window.say("The server does not take this (400)")
    window.picture("settings")

    window.press("Delete container")
    window.page.get_by_label("Type events to confirm").fill("events")
    window.press("Delete container", "dialog")
    window.say("No container yet.")
    window.press("Delete database")
    confirm = window.page.locator("dialog").get_by_role("button", name="Delete database")
    window.page.get_by_label("Type made-here to confirm").fill("made-her")
    assert confirm.is_disabled()
    window.page.get_by_label("Type made-here to confirm").fill("made-here")
    confirm.click()
    window.page.get_by_role("heading", name="Account").wait_for()
    assert "made-here" not in [each["id"] for each in client.list_databases()]


def test_scripts_are_written_run_changed_and_deleted(
    window: Window, client: CosmosClient, database: str
) -> None:
    container = client.get_database_client(database).create_container("orders", PartitionKey("/customer"))
    window.container((database, "orders"), "scripts")
    window.say("No stored procedure yet")
    window.press("New script")
    window.page.get_by_label("Name").fill("hello")
    window.press(re.compile("^Save"))
    window.press("hello")
    window.page.get_by_label("Arguments").fill('["Ann"]')
    window.page.get_by_label("Filter by /customer").fill("ann")
    window.press(re.compile("^Run"))
    window.say("Hello, Ann")
    window.page.get_by_label("JavaScript").fill(
        'function () { console.log("seen"); getContext().getResponse().setBody(7); }'
    )
    window.press(re.compile("^Save"))
    window.say("Saved for")
    window.press(re.compile("^Run"))
    window.say("seen")
    window.picture("scripts")
    window.press("Triggers")
    window.press("New script")
    window.page.get_by_label("Name").fill("stamp")
    window.page.get_by_label("Operation").select_option("Create")
    window.press(re.compile("^Save"))
    window.say("Pre Create")
    window.press("Functions")
    window.press("New script")
    window.page.get_by_label("Name").fill("twice")
    window.press(re.compile("^Save"))
    window.press("twice")
    window.press("Delete")
    window.page.get_by_label("Type twice to confirm").fill("twice")
    window.press("Delete", "dialog")
    window.say("No function yet")
    assert [each["id"] for each in container.scripts.list_stored_procedures()] == ["hello"]
    assert [each["id"] for each in container.scripts.list_triggers()] == ["stamp"]


def test_users_get_permissions_and_tokens(window: Window, client: CosmosClient, database: str) -> None:
    client.get_database_client(database).create_container("orders", PartitionKey("/customer")).create_item(
        {"id": "1", "customer": "ann"}
    )
    window.go("d/{}", database)
    window.press("New user")
    window.page.get_by_label("Name").fill("ann")
    window.press("Create user")
    window.page.locator("summary", has_text="ann").click()
    window.press("Grant a permission")
    window.page.get_by_label("Name").fill("her-orders")
    window.page.get_by_label("Partition key value").fill("ann")
    window.press("Grant a permission", "dialog")
    token = window.page.get_by_label("Token", exact=True).input_value()
    window.press("Close")
    with CosmosClient(window.served.endpoint, {f"dbs/{database}/colls/orders": token}) as hers:
        orders = hers.get_database_client(database).get_container_client("orders")
        assert orders.read_item("1", "ann")["customer"] == "ann"
    window.picture("users")
    window.press("Revoke")
    window.page.get_by_label("Type her-orders to confirm").fill("her-orders")
    window.press("Revoke", "dialog")
    window.say("No permission yet.")
    window.press("Delete user")
    window.page.get_by_label("Type ann to confirm").fill("ann")
    window.press("Delete user", "dialog")
    window.say("No user yet.")


def test_the_tree_the_jump_and_the_keys_lead_everywhere(
    window: Window, client: CosmosClient, database: str
) -> None:
    found = client.get_database_client(database)
    for name in ("orders", "customers"):
        found.create_container(name, PartitionKey("/customer"))
    tree = window.page.get_by_role("navigation", name="Databases and containers")
    tree.get_by_role("link", name="customers").wait_for()
    window.page.keyboard.press("/")
    window.page.keyboard.type("customers")
    assert tree.get_by_role("link", name="orders").is_hidden()
    tree.get_by_role("link", name="customers").click()
    window.page.get_by_role("heading", name="customers").wait_for()
    for key, tab in (
        ("q", "Query"),
        ("i", "Items"),
        ("s", "Settings"),
        ("m", "Metrics"),
        ("f", "Change feed"),
    ):
        window.page.locator("main").focus()
        window.page.keyboard.press("g")
        window.page.keyboard.press(key)
        window.page.locator(".tabs [aria-current=page]", has_text=tab).wait_for()
    window.page.keyboard.press("Control+k")
    window.page.keyboard.type(f"{database[:20].lower()} orders scripts")
    window.page.keyboard.press("Enter")
    window.page.get_by_role("heading", name="orders").wait_for()
    window.page.locator(".tabs [aria-current=page]", has_text="Scripts").wait_for()
    window.page.locator("main").focus()
    window.page.keyboard.press("?")
    window.say("jump to a container or a screen")
    window.page.keyboard.press("Escape")
    window.page.go_back()
    window.page.get_by_role("heading", name="customers").wait_for()

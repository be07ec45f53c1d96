"""Who gets in, with what, and what the page says to those who do not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from .conftest import READ_ONLY_KEY, OpenWindow, Window

pytestmark = [pytest.mark.long, pytest.mark.parametrize("store_kind", ["sqlite"], scope="session")]


def test_a_key_opens_the_account_and_stays_in_its_tab(window: Window) -> None:
    window.say("sample")
    stored = "[...Object.keys(localStorage), ...Object.keys(sessionStorage)]"
    assert window.page.evaluate(stored) == ["pleiad.credential"]
    window.page.reload()
    window.say("Containers")
    other = window.page.context.new_page()
    other.goto(window.served.endpoint)
    other.get_by_text("Sign in with a key").wait_for()
    window.press("Sign out")
    window.say("Sign in with a key")
    assert window.page.evaluate(stored) == []


def test_no_key_is_ever_sent(open_window: OpenWindow) -> None:
    window = open_window()
    sent: list[str] = []
    window.page.on(
        "request", lambda request: sent.append(f"{request.url} {request.headers} {request.post_data}")
    )
    window.sign_in(READ_ONLY_KEY)
    window.say("Containers")
    assert len(sent) > 20
    assert not [each for each in sent if READ_ONLY_KEY[:20] in each or READ_ONLY_KEY in each]


def test_the_key_can_be_typed_as_soon_as_the_page_is_there(open_window: OpenWindow) -> None:
    window = open_window()
    window.page.goto(window.served.endpoint)
    window.say("Sign in with a key")
    window.page.keyboard.type(READ_ONLY_KEY)
    window.page.keyboard.press("Enter")
    window.say("Containers")


@pytest.mark.parametrize("key", ["bm9uZQ==", "not base64 at all", "type=resource&ver=1&sig=none;none;"])
def test_a_wrong_key_is_told_with_what_to_do(key: str, open_window: OpenWindow) -> None:
    window = open_window()
    window.page.goto(window.served.endpoint)
    window.page.get_by_label("Account key").fill(key)
    window.press("Sign in")
    window.say("401")
    window.page.get_by_label("Account key").fill("")
    window.press("Use the well-known local key")
    window.say("Containers")


def test_the_printed_link_opens_the_account_once(open_window: OpenWindow) -> None:
    window, again = open_window(), open_window()
    window.page.goto(window.served.link)
    window.say("Containers")
    assert "handover" not in window.page.url
    again.page.goto(again.served.link)
    again.say("This link has been used, or is too old.")
    assert "handover" not in again.page.url


def test_a_read_only_key_gives_a_page_that_changes_nothing(open_window: OpenWindow) -> None:
    window = open_window()
    window.sign_in(READ_ONLY_KEY)
    window.say("You are signed in with a read-only key.")
    window.container(("sample", "food"), "items")
    for name in ("New item", "Upload JSON lines"):
        button = window.page.get_by_role("button", name=name)
        assert button.get_attribute("aria-disabled") == "true"
        assert button.get_attribute("title") == "This is a read-only key: it changes nothing."
    window.page.get_by_role("row").nth(1).click()
    window.say("read for")
    assert (
        window.page.get_by_role("button", name=re.compile("^Save")).get_attribute("aria-disabled") == "true"
    )
    for tab in ("partitions", "settings", "scripts"):
        window.container(("sample", "food"), tab)
        window.page.locator("main [data-reason]").first.wait_for()
    window.picture("read-only")


def test_a_resource_token_opens_its_container_and_no_more(
    open_window: OpenWindow, client: CosmosClient, database: str
) -> None:
    found = client.get_database_client(database)
    container = found.create_container("orders", PartitionKey("/customer"))
    found.create_container("others", PartitionKey("/customer"))
    container.create_item({"id": "1", "customer": "ann"})
    permission: dict[str, Any] = {"id": "p", "permissionMode": "Read", "resource": container.container_link}
    token = found.create_user({"id": "ann"}).create_permission(permission).properties["_token"]
    window = open_window()
    window.sign_in(token)
    window.say("This token opens items of orders only.")
    window.page.get_by_role("link", name="Go to the items").click()
    window.page.get_by_role("row", name=re.compile("ann")).click()
    window.say("read for")
    assert window.page.get_by_role("button", name="New item").get_attribute("aria-disabled") == "true"
    tabs = window.page.locator(".tabs a").all_inner_texts()
    assert "Partitions" not in tabs
    assert "Query" in tabs
    window.go("c/{}/{}/items", database, "others")
    window.say("This is not allowed (403)")


def test_plain_http_beyond_loopback_says_why_it_does_not_work(open_window: OpenWindow) -> None:
    window = open_window()
    # What a browser does there: no cryptography for the page.
    window.page.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
    window.page.goto(window.served.endpoint)
    window.say("This page needs HTTPS here")
    assert window.page.get_by_role("link", name="Open with HTTPS").get_attribute("href")
    window.picture("plain-http")


def test_when_no_answer_comes_what_was_known_stays_with_its_age(window: Window) -> None:
    window.say("Containers")
    window.page.context.set_offline(True)
    window.say("The page goes on trying.")
    assert window.page.get_by_role("link", name="food").first.is_visible()
    window.picture("not-connected")
    window.page.context.set_offline(False)
    window.page.get_by_text("The page goes on trying.").wait_for(state="detached")

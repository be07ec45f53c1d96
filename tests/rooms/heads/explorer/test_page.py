"""The page as a server gives it: to whom, with which guards, whole in a wheel, and nothing of it from elsewhere."""

from __future__ import annotations

import json
import re
import tomllib
from email.utils import formatdate
from typing import Any

import pytest
from azure.cosmos import CosmosClient

from attack.callers import signature
from pleiad.account.keys import EMULATOR_KEY
from pleiad.testing.start import RunningServer
from tests.project import ROOT

from .conftest import Ask

STATIC = ROOT / "src" / "pleiad" / "heads" / "explorer" / "static"
FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.*"))
FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    r"|localStorage\.setItem\((?!THEME)"
)
"""What makes markup or code of texts, or keeps more than the theme beyond the tab."""
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def signed(path: str = "") -> dict[str, str]:
    date = formatdate(usegmt=True)
    return {"authorization": signature(EMULATOR_KEY, "GET", "", path, date), "x-ms-date": date}


@pytest.mark.parametrize(
    "accept", [BROWSER, "text/html", "TEXT/HTML; q=0.9", "application/json;q=0.1, text/html"]
)
def test_whoever_asks_for_html_gets_the_page(accept: str, ask: Ask) -> None:
    answer = ask("/", {"accept": accept})
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.body == (STATIC / "index.html").read_bytes()


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "text/*", "application/json, text/plain, */*"]
)
def test_whoever_does_not_ask_for_html_is_asked_for_a_signature_as_before(
    accept: str | None, ask: Ask
) -> None:
    answer = ask("/", {"accept": accept} if accept else {})
    assert (answer.status, json.loads(answer.body)["code"]) == (401, "Unauthorized")


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", BROWSER])
def test_whoever_signs_gets_the_account_whatever_it_asks_for(accept: str | None, ask: Ask) -> None:
    answer = ask("/", {**signed(), **({"accept": accept} if accept else {})})
    assert (answer.status, json.loads(answer.body)["id"]) == (200, "pleiad")


def test_a_wrong_signature_gets_no_page(ask: Ask) -> None:
    proof = {**signed(), "authorization": "type%3Dmaster%26ver%3D1.0%26sig%3Dnone", "accept": BROWSER}
    assert ask("/", proof).status == 401


def test_the_official_client_works_as_before(server: RunningServer) -> None:
    with CosmosClient(server.endpoint, server.key) as client:
        client.create_database_if_not_exists("page")
        assert "page" in [database["id"] for database in client.list_databases()]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type_and_its_guards(name: str, ask: Ask) -> None:
    answer = ask("/", {"accept": BROWSER}) if name == "index.html" else ask(f"/_pleiad/page/{name}")
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert (answer.status, answer.body) == (200, (STATIC / name).read_bytes())
    assert answer.headers["content-type"].partition(";")[0] == kinds[name.rpartition(".")[2]]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = dict(
        part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert not re.search("unsafe|data:|blob:|https?:", answer.headers["content-security-policy"])


def test_a_file_is_sent_once_and_then_only_asked_for(ask: Ask) -> None:
    first = ask("/_pleiad/page/js/main.js")
    again = ask("/_pleiad/page/js/main.js", {"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert ask("/_pleiad/page/js/main.js", {"if-none-match": '"another"'}).status == 200


@pytest.mark.parametrize(
    "path", ["js/none.js", "js/..%2Fpage.py", "js/..%2F..%2Fpage.py", "css/%2e%2e", "py/page.py", "js/", "js"]
)
def test_nothing_but_the_files_of_the_page_is_served(path: str, ask: Ask) -> None:
    assert ask(f"/_pleiad/page/{path}").status in (401, 404)
    assert ask(f"/_pleiad/v1/{path}").status in (401, 404)


def test_the_page_is_refused_to_who_gives_the_server_another_name(ask: Ask) -> None:
    assert ask("/", {"accept": BROWSER, "host": "evil.example"}).status == 400


def test_nothing_in_the_page_comes_from_elsewhere_or_stands_in_the_markup() -> None:
    markup = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", markup)
    offenders = []
    for name in FILES:
        content = (STATIC / name).read_text(encoding="utf-8")
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w{2,}", content)
        offenders += [(name, each) for each in addresses if "www.w3.org" not in each]
        offenders += [
            (name, each)
            for each in re.findall(
                FORBIDDEN,
                content,
            )
        ]
    assert offenders == []


def test_every_module_that_is_imported_is_there() -> None:
    for name in FILES:
        if name.endswith(".js"):
            content = (STATIC / name).read_text(encoding="utf-8")
            for path in re.findall(r'(?:from |import\()"(\..*)"', content):
                assert ((STATIC / name).parent / path).is_file(), (name, path)


def test_every_module_that_signing_in_needs_is_asked_for_at_once() -> None:
    needed: set[str] = set()

    def add(name: str) -> None:
        if name not in needed:
            needed.add(name)
            content = (STATIC / name).read_text(encoding="utf-8")
            for path in re.findall(r'from "(\..*)";$', content, re.MULTILINE):
                add(((STATIC / name).parent / path).resolve().relative_to(STATIC.resolve()).as_posix())

    add("js/main.js")
    markup = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<link rel="modulepreload" href="/_pleiad/page/(.*)" />', markup) == sorted(needed)


def test_texts_are_in_one_place() -> None:
    """A sentence in a screen has escaped the texts: two words in a row between quotes, but for classes and code."""
    sentence = re.compile(r'(?:h\([^"]*"\w+", (?:null|\{[^}]*\}), |button\(|toast\()"[A-Z][a-z]+ [a-z]+')
    for name in FILES:
        if name.endswith(".js") and name != "js/texts.js":
            found = sentence.findall((STATIC / name).read_text(encoding="utf-8"))
            assert found == [], name


def test_the_files_are_part_of_the_package() -> None:
    data: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = data["tool"]["setuptools"]["package-data"]["pleiad"]
    package = ROOT / "src" / "pleiad"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    assert {STATIC / name for name in FILES} <= packed


def test_files_of_the_page_stay_small() -> None:
    sizes = {name: len((STATIC / name).read_text(encoding="utf-8").splitlines()) for name in FILES}
    # The texts are one list, so that they can be read and translated as one.
    assert [name for name, lines in sizes.items() if lines > 500 and name != "js/texts.js"] == []

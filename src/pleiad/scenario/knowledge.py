"""The knowledge check: questions on partitioning whose answers are shown from data on a live server."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pleiad.client.account import KEY_HEADER, Account, Throughput
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.scenario.run import DATABASE, ScenarioError
from pleiad.scenario.server import TurnedClock, serving
from pleiad.scenario.view import COLUMNS

NAME = "knowledge-check"
TITLE = "Knowledge check"
USERS = 1_000
SUFFIXES = 400
_THROUGHPUT_RU = 400
_INDENT = "   "
_LINK = ("dbs", DATABASE, "colls", "users")
_ANDREW = {"id": "1", "userId": "Andrew", "worksFor": "Microsoft"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, with choices where it has some, the answer, and what the server shows of it."""

    question: str
    choices: tuple[str, ...] = ()
    answer: str
    shown: str


class _Class:
    """A container of users keyed by `/userId`, and what can be seen of it."""

    def __init__(self, connection: Connection, clock: TurnedClock) -> None:
        self._connection = connection
        self._clock = clock
        account = Account(connection)
        account.create_database(DATABASE)
        definition = {"id": "users", "partitionKey": {"paths": ["/userId"], "version": 2}}
        account.create_container(DATABASE, definition, Throughput(_THROUGHPUT_RU))

    def put(self, item: dict[str, Any]) -> None:
        self._clock.turn(1.0)
        headers = {KEY_HEADER: json.dumps([item["userId"]])}
        body = json.dumps(item).encode()
        answer = self._connection.request("POST", (*_LINK, "docs"), "docs", _LINK, headers, body)
        if not answer.is_success:
            raise ScenarioError(f"the server answered with {answer.status}: {answer.body[:300]!r}")

    def definition(self) -> dict[str, Any]:
        return Account(self._connection).read(DATABASE, "users")

    def keys_by_partition(self) -> dict[str, set[str]]:
        """The values of the partition key on each physical partition."""
        found: dict[str, set[str]] = {}
        for each in Admin(self._connection).partitions(DATABASE, "users", largest=0, hottest=0)["partitions"]:
            headers = {"x-ms-documentdb-partitionkeyrangeid": each["id"], "x-ms-max-item-count": "1000"}
            self._clock.turn(10.0)
            document = {"query": "SELECT VALUE c.userId FROM c", "parameters": []}
            answer = self._connection.query(_LINK, document, headers)
            found[each["id"]] = set(answer.json()["Documents"])
        return found


def questions() -> list[Question]:
    """The questions, each with what a server has just shown."""
    with serving() as (connection, clock):
        taught = _Class(connection, clock)
        return [ask(taught) for ask in _QUESTIONS]


def _components(taught: _Class) -> Question:
    taught.put(_ANDREW)
    (path,) = taught.definition()["partitionKey"]["paths"]
    value = next(iter(set().union(*taught.keys_by_partition().values())))
    return Question(
        question="What are the two components of a partition key?",
        choices=("Key path and key value", "Key hash and key range", "Item id and item body"),
        answer="Key path and key value.",
        shown=f"key path    {path}\nkey value   {value}\nitem        {json.dumps(_ANDREW)}",
    )


def _physical(taught: _Class) -> Question:
    for number in range(1, USERS):
        taught.put({"id": "1", "userId": f"user-{number}"})
    found = taught.keys_by_partition()
    lines = [f"physical partition {id}   {len(keys):>5,} logical partitions" for id, keys in found.items()]
    together = set().union(*found.values())
    twice = sum(map(len, found.values())) - len(together)
    return Question(
        question="What are physical partitions?",
        choices=(
            "Collections of logical partitions",
            "Copies of a container",
            "Items with the same key value",
        ),
        answer="Collections of logical partitions: many logical partitions are on each, and none is on two.",
        shown="\n".join(
            [*lines, f"together {len(together):>18,} logical partitions, {twice} on two of them"]
        ),
    )


def _synthetic(taught: _Class) -> Question:
    device = {"deviceId": "abc-123", "date": 2018}
    joined = f"{device['deviceId']}-{device['date']}"
    taught.put({"id": "2", "userId": joined, **device})
    places = [id for id, keys in taught.keys_by_partition().items() if joined in keys]
    vin = "1HGCM82633A004352"
    suffix = int.from_bytes(sha256(vin.encode()).digest()[:8], "big") % SUFFIXES + 1
    return Question(
        question="How is a key made when no property has many values?",
        choices=("From several properties, by the client", "By the server, at random", "It cannot be made"),
        answer="The client joins properties, or adds a suffix that it can work out again from the item, so point reads "
        "stay possible.",
        shown=f"joined      {json.dumps(device)}\n            {joined}, on physical partition {', '.join(places)}\n"
        f"suffix      2018-08-09 and VIN {vin}\n            2018-08-09.{suffix}",
    )


def _chosen(taught: _Class) -> Question:
    found = taught.keys_by_partition()
    sizes = sorted(map(len, found.values()))
    return Question(
        question="What makes a good partition key?",
        choices=(
            "Many values, evenly used, named by the queries",
            "Few values, so that few partitions are needed",
        ),
        answer="Many values that are evenly used and that most requests name, which never change in an item.",
        shown=f"{sum(sizes):,} values on {len(sizes)} physical partitions: from {sizes[0]:,} to {sizes[-1]:,} on each",
    )


_QUESTIONS: tuple[Callable[[_Class], Question], ...] = (_components, _physical, _synthetic, _chosen)


def text(found: list[Question]) -> str:
    """The check as the terminal shows it."""
    blocks = []
    for number, each in enumerate(found, 1):
        answer = textwrap.wrap(f"Answer: {each.answer}", COLUMNS - len(_INDENT))
        lines = [*(f"- {choice}" for choice in each.choices), *answer, *each.shown.splitlines()]
        blocks.append("\n".join([f"{number}. {each.question}", *(_INDENT + line for line in lines)]))
    return "\n\n".join(blocks)


def page_sections(found: list[Question]) -> str:
    """The check as sections in Markdown."""
    blocks = []
    for number, each in enumerate(found, 1):
        choices = "\n".join(f"- {choice}" for choice in each.choices)
        blocks.append(
            f"## {number}. {each.question}\n\n{choices}\n\n**{each.answer}**\n\n```text\n{each.shown}\n```\n"
        )
    return "\n".join(blocks)

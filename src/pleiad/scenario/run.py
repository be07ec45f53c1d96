"""Running a scenario: each partition key on a server of its own, with the same items and the same requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pleiad.client.account import KEY_HEADER, Account, Throughput
from pleiad.client.admin import Admin
from pleiad.client.connection import Answer, Connection
from pleiad.scenario.model import (
    Ask,
    Attempt,
    AttemptResult,
    Item,
    PartitionResult,
    Scenario,
    ScenarioResult,
    Verb,
)
from pleiad.scenario.server import TurnedClock, serving

DATABASE = "scenario"
_REST_SECONDS = 10.0
"""After so long every bucket is full again."""
_ALL_ITEMS = "1000"
"""More than any query of a scenario finds, so that all is on one page."""
_THROTTLED = 429
_FULL = 403
_ASKED_ELSEWHERE = frozenset({404, 409})
"""Answers that say nothing against a partition key."""


class ScenarioError(Exception):
    """The server answered as no scenario expects."""


def run(scenario: Scenario, seed: int, told: Callable[[str], None] = lambda _: None) -> ScenarioResult:
    """Tries every key; `told` hears which one is tried."""
    random = Random(seed)
    items = scenario.items(random)
    seconds = scenario.seconds(random, items)
    results = []
    for attempt in scenario.attempts:
        told(f"{scenario.name}: {attempt.title}")
        with serving() as (connection, clock):
            results.append(_Attempting(scenario, attempt, connection, clock).result(items, seconds))
    return ScenarioResult(scenario=scenario, seed=seed, attempts=tuple(results))


@dataclass(slots=True)
class _Counts:
    requests: int = 0
    throttled: int = 0
    full: int = 0
    charge_ru: float = 0.0
    queries: int = 0
    visits: int = 0


@dataclass(slots=True)
class _Attempting:
    """One key on one server."""

    scenario: Scenario
    attempt: Attempt
    connection: Connection
    clock: TurnedClock
    counts: _Counts = field(default_factory=_Counts)
    throttled_of: dict[str, int] = field(default_factory=dict)

    def result(self, items: Sequence[Item], seconds: Sequence[Sequence[Ask]]) -> AttemptResult:
        self._create()
        for item in items:
            self.clock.turn(_REST_SECONDS)
            self._count(self._write(item))
        loaded, self.counts = self.counts, _Counts()
        before = {each.container + each.id: each for each in self._partitions()}
        self.clock.turn(_REST_SECONDS)
        for second in seconds:
            self.clock.turn(1.0)
            for ask in second:
                throttled = self.counts.throttled
                self._ask(ask)
                party = self.scenario.party(ask.item)
                if party:
                    self.throttled_of[party] = (
                        self.throttled_of.get(party, 0) + self.counts.throttled - throttled
                    )
        counts = self.counts
        return AttemptResult(
            title=self.attempt.title,
            partitions=tuple(_since(before[each.container + each.id], each) for each in self._partitions()),
            requests=counts.requests,
            throttled=counts.throttled,
            full=counts.full + loaded.full,
            charge_ru=round(counts.charge_ru, 2),
            queries=counts.queries,
            visits=counts.visits,
            throttled_of=dict(sorted(self.throttled_of.items())),
            largest_percent=self._largest_percent(),
        )

    def _create(self) -> None:
        account = Account(self.connection)
        account.create_database(DATABASE)
        for name, throughput_ru in self.attempt.throughput_ru.items():
            definition = {"id": name, "partitionKey": {"paths": [self.attempt.path], "version": 2}}
            account.create_container(DATABASE, definition, Throughput(throughput_ru))

    # -- requests ------------------------------------------------------------------------------------------

    def _ask(self, ask: Ask) -> None:
        if ask.verb is Verb.WRITE:
            self._count(self._write(ask.item))
        elif ask.verb is Verb.READ:
            link = self._link(ask.item)
            path = (*link, "docs", ask.item["id"])
            self._count(self.connection.request("GET", path, "docs", path, self._key(ask.item)))
        else:
            self._query(ask)

    def _write(self, item: Item) -> Answer:
        link = self._link(item)
        headers = {**self._key(item), "x-ms-documentdb-is-upsert": "True"}
        body = json.dumps(self.attempt.shaped(item)).encode()
        return self.connection.request("POST", (*link, "docs"), "docs", link, headers, body)

    def _query(self, ask: Ask) -> None:
        """A query to the logical partition of its key when it knows that, else to all there are."""
        item = self.attempt.shaped(ask.item)
        names = [path.removeprefix("/") for path in ask.where]
        text = " AND ".join(f"c.{name} = @{name}" for name in names)
        parameters = [{"name": f"@{name}", "value": item[name]} for name in names]
        headers = {"x-ms-documentdb-populatequerymetrics": "True", "x-ms-max-item-count": _ALL_ITEMS}
        if self.attempt.path in ask.where:
            headers |= self._key(ask.item)
        document = {"query": f"SELECT * FROM c WHERE {text}", "parameters": parameters}
        answer = self.connection.query(self._link(ask.item), document, headers)
        if answer.is_success:
            self.counts.queries += 1
            self.counts.visits += len(answer.headers["x-pleiad-partitions-visited"].split(","))
        self._count(answer)

    def _link(self, item: Item) -> tuple[str, ...]:
        return ("dbs", DATABASE, "colls", self.attempt.container_of(item))

    def _key(self, item: Item) -> dict[str, str]:
        return {KEY_HEADER: json.dumps([self.attempt.key(item)])}

    def _count(self, answer: Answer) -> None:
        counts = self.counts
        counts.requests += 1
        counts.charge_ru += float(answer.headers.get("x-ms-request-charge", 0))
        if answer.status == _THROTTLED:
            counts.throttled += 1
        elif answer.status == _FULL:
            counts.full += 1
        elif not answer.is_success and answer.status not in _ASKED_ELSEWHERE:
            raise ScenarioError(f"the server answered with {answer.status}: {answer.body[:300]!r}")

    # -- what came of it -------------------------------------------------------------------------------------

    def _shown(self) -> list[tuple[str, dict[str, Any]]]:
        admin = Admin(self.connection)
        names = self.attempt.throughput_ru
        return [(name, admin.partitions(DATABASE, name, largest=1, hottest=0)) for name in names]

    def _partitions(self) -> list[PartitionResult]:
        return [
            PartitionResult(
                container=name,
                id=each["id"],
                size_bytes=each["bytes"],
                charge_ru=each["ru"]["total"],
                throttled=each["ru"]["throttled"],
            )
            for name, shown in self._shown()
            for each in shown["partitions"]
        ]

    def _largest_percent(self) -> float:
        return max((each["percent"] for _, shown in self._shown() for each in shown["largest"]), default=0.0)


def _since(before: PartitionResult, after: PartitionResult) -> PartitionResult:
    return PartitionResult(
        container=after.container,
        id=after.id,
        size_bytes=after.size_bytes,
        charge_ru=round(after.charge_ru - before.charge_ru, 2),
        throttled=after.throttled - before.throttled,
    )

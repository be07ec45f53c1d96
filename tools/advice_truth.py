"""What `pleiad advise` predicts, beside what happens: the same requests at real servers, each with another key.

    python -m tools.advice_truth            # the table in docs/choose-a-key.md, made anew
    python -m tools.advice_truth --check    # prints it and fails where prediction and reality part

Items with a known skew are served with `/tenantId` as key and used, and their workload is recorded. Then each
candidate has a server of its own, with limits so small that a few hundred request units are much, and gets the same
requests as a client would have to send them under that key. The clock of its governors stands at the time of each
request, so what is refused depends on the record alone and not on how fast this machine is.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from pleiad import node, start
from pleiad.advise.advice import AdviceOptions, assessments
from pleiad.advise.assess import Assessment
from pleiad.advise.key import Key, Kind, parse
from pleiad.advise.placement import made_text
from pleiad.advise.recorded import RecordReader, record_demands
from pleiad.advise.routing import Scope
from pleiad.advise.table import ReadingOptions, Table, read_table
from pleiad.client.account import Account
from pleiad.client.admin import Admin
from pleiad.client.connection import Answer, Connection
from pleiad.client.containers import create_container, partition_key_of
from pleiad.job.item_file.entry import Entry, batched
from pleiad.keys.definition import split_path
from pleiad.limits import Limits
from pleiad.partition.governor import Throttle
from pleiad.testing.start import RunningServer
from pleiad.workload.record import Operation, Request, decode

PAGE = Path(__file__).parent.parent / "docs" / "choose-a-key.md"
BEGIN, END = "<!-- truth: begin -->", "<!-- truth: end -->"
KEYS = (
    "/tenantId",
    "/userId",
    "/id",
    "/city",
    "/tenantId,/userId",
    "/tenantId,/id",
    "concat(/tenantId,/city)",
)
PHYSICAL = 4
TOLERANCE = 0.1
_DATABASE, _CONTAINER = "truth", "items"
_LINK = ("dbs", _DATABASE, "colls", _CONTAINER)
_BASE_KEY = "/tenantId"
_SYNTHETIC = "partitionKey"
_REFUSED = 429
_BEGIN = 1_000_000.0
"""When the record begins: long after everything was prepared, so that all governors are full."""


@dataclass(frozen=True)
class Truth:
    """One key: what was predicted, and what happened."""

    key: str
    requests: int
    predicted_ru: float
    observed_ru: float
    predicted_refused: float
    observed_refused: float
    predicted_loads: tuple[float, ...]
    """Shares of the request units by physical partition."""
    observed_loads: tuple[float, ...]

    @property
    def load_error(self) -> float:
        """The largest difference of a partition's share, as a part of the even share."""
        pairs = zip(self.predicted_loads, self.observed_loads, strict=True)
        return max(abs(a - b) for a, b in pairs) * len(self.predicted_loads)

    @property
    def refused_error(self) -> float:
        """The difference of what is refused, as a part of it; below one request in a hundred as a part of that."""
        return abs(self.predicted_refused - self.observed_refused) / max(0.01, self.observed_refused)

    @property
    def charge_error(self) -> float:
        return abs(self.predicted_ru - self.observed_ru)

    @property
    def holds(self) -> bool:
        return self.charge_error < 0.015 and max(self.load_error, self.refused_error) <= TOLERANCE


class _Clock:
    """A clock that the record turns."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


def items_of(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Items of tenants of which the first has a third, and few the rest."""
    chosen = random.Random(seed)
    found = []
    for number in range(count):
        tenant = 0 if chosen.random() < 0.33 else chosen.randrange(1, 60)
        found.append(
            {
                "id": f"order-{number}",
                "tenantId": f"tenant-{tenant}",
                "userId": f"user-{tenant}-{chosen.randrange(40)}",
                "city": f"city-{chosen.randrange(25)}",
                "note": "x" * chosen.randrange(40, 900),
            }
        )
    return found


def make_record(
    items: Sequence[Mapping[str, Any]], requests: int, seconds: float, seed: int = 11
) -> list[Request]:
    """Uses a server with the first key, and gives what it has recorded, paced over some seconds."""
    chosen = random.Random(seed)
    old, new = items[: len(items) * 3 // 4], list(items[len(items) * 3 // 4 :])
    with start(throttle="observe") as server, Connection(server.endpoint, server.key) as connection:
        _prepare(connection, parse(_BASE_KEY, Limits()), old, 400)
        admin = Admin(connection)
        admin.switch_workload(_DATABASE, _CONTAINER, "values")
        for _ in range(requests):
            what = chosen.random()
            # What is created is not read afterwards: under another key its creation may have been refused.
            item = chosen.choice(old)
            if what < 0.2 and new:
                _send(connection, "create", new.pop(0), _BASE_KEY)
            elif what < 0.55:
                _send(connection, "read", item, _BASE_KEY)
            elif what < 0.65:
                _send(connection, "replace", item, _BASE_KEY)
            elif what < 0.85:
                _query(connection, {"/tenantId": [item["tenantId"]], "/userId": [item["userId"]]})
            elif what < 0.95:
                _query(connection, {"/userId": [item["userId"]]})
            else:
                _query(connection, {"/city": [item["city"], chosen.choice(items)["city"]]})
        lines = b"".join(admin.workload_lines(_DATABASE, _CONTAINER)).splitlines()
    times = sorted(chosen.random() * seconds for _ in lines)
    return [replace(decode(line), at=_BEGIN + at) for line, at in zip(lines, times, strict=True)]


def compare(
    items: list[dict[str, Any]], record: list[Request], keys: Sequence[str], throughput_ru: int
) -> list[Truth]:
    """Predicts and observes each key."""
    made = {request.id for request in record if request.operation is Operation.CREATE}
    known = {request.id for request in record} | {each["id"] for each in items}
    there = [
        each for each in items if each["id"] in known and (each["id"] in made or not _is_new(each, items))
    ]
    wanted = [parse(text, Limits()) for text in keys]
    paths = tuple(dict.fromkeys(path for key in wanted for path in key.paths))
    entries = [Entry(number, number, b"", dict(item)) for number, item in enumerate(there, 1)]
    table = read_table(batched(entries), ReadingOptions(paths=paths))
    reader = RecordReader()
    reader.take(record)
    demands = record_demands(reader.finish(), table, (_BASE_KEY,))
    options = AdviceOptions(throughput_ru=throughput_ru)
    found = []
    for key, assessment in zip(wanted, assessments(wanted, table, demands, options), strict=True):
        found.append(_compared(key, assessment, table, there, made, record, throughput_ru))
    return found


def _is_new(item: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> bool:
    return int(str(item["id"]).rpartition("-")[2]) >= len(items) * 3 // 4


def _compared(
    key: Key,
    assessment: Assessment,
    table: Table,
    items: list[dict[str, Any]],
    made: set[str],
    record: list[Request],
    throughput_ru: int,
) -> Truth:
    by_id = {each["id"]: _with_key(each, key) for each in items}
    before = [by_id[each["id"]] for each in items if each["id"] not in made]
    later = [by_id[each["id"]] for each in items if each["id"] in made]
    predicted = assessment.on(PHYSICAL)
    with _server(key, before, later, throughput_ru, enforced=False) as (connection, _):
        before_ru = _loads(connection)
        answers = [
            _replay(connection, key, request, by_id, assessment, n) for n, request in enumerate(record)
        ]
        loads = np.array(_loads(connection)) - np.array(before_ru)
    with _server(key, before, later, throughput_ru, enforced=True) as (connection, clock):
        refused = 0
        for number, request in enumerate(record):
            clock.at = request.at
            refused += _replay(connection, key, request, by_id, assessment, number) is None
    total = sum(predicted.ru)
    return Truth(
        key=key.text,
        requests=len(record),
        predicted_ru=round(total * _seconds(record), 2),
        observed_ru=round(sum(each for each in answers if each is not None), 2),
        predicted_refused=predicted.refused,
        observed_refused=refused / len(record),
        predicted_loads=tuple(each / total for each in predicted.ru),
        observed_loads=tuple((loads / loads.sum()).tolist()),
    )


def _seconds(record: Sequence[Request]) -> float:
    return float(np.floor(record[-1].at - np.floor(record[0].at)) + 1)


# -- servers ---------------------------------------------------------------------------------------


@contextmanager
def _server(
    key: Key,
    items: Sequence[Mapping[str, Any]],
    later: Sequence[Mapping[str, Any]],
    throughput_ru: int,
    enforced: bool,
) -> Iterator[tuple[Connection, _Clock]]:
    """A server with items under a key, on the partitions that keys are compared on.

    Partitions are split where all items are, as they are for the prediction; those of `later` are gone again then.
    """
    clock = _Clock()
    limits = Limits(
        physical_partition_ru=-(-throughput_ru // PHYSICAL),
        manual_sizing_ru=-(-throughput_ru // PHYSICAL),
        throughput_ru_min=100,
        throughput_ru_step=1,
    )
    with mock.patch.object(node, "Throttle", lambda **given: Throttle(**{**given, "clock": clock.now})):
        server: RunningServer = start(limits=limits, throttle="enforce" if enforced else "observe")
    # A request that is refused is not sent again.
    with server, Connection(server.endpoint, server.key, retries_max=0) as connection:
        grows = key.kind is Kind.HIERARCHY
        _prepare(
            connection, key, [*items, *later], throughput_ru // PHYSICAL if grows else throughput_ru, clock
        )
        if grows:
            _split(connection, throughput_ru)
        for item in later:
            link = (*_LINK, "docs", str(item["id"]))
            clock.at += 1.0
            headers = {"x-ms-documentdb-partitionkey": json.dumps(_values(key, item))}
            _charge_of([connection.request("DELETE", link, "docs", link, headers)])
        clock.at = _BEGIN
        yield connection, clock


def _prepare(
    connection: Connection,
    key: Key,
    items: Sequence[Mapping[str, Any]],
    throughput_ru: int,
    clock: _Clock | None = None,
) -> None:
    paths = [f"/{_SYNTHETIC}"] if key.is_synthetic else list(key.paths)
    create_container(
        connection, _DATABASE, {"id": _CONTAINER, "partitionKey": partition_key_of(paths)}, throughput_ru
    )
    account = Account(connection)
    for item in items:
        if clock is not None:
            clock.at += 1.0  # as slowly as no throughput minds
        account.create_item((_DATABASE, _CONTAINER), item, _values(key, item))


def _split(connection: Connection, throughput_ru: int) -> None:
    """Splits the largest partition until there are enough, as a container does that grows."""
    admin = Admin(connection)
    while True:
        found = admin.partitions(_DATABASE, _CONTAINER, largest=0, hottest=0)["partitions"]
        if len(found) >= PHYSICAL:
            break
        largest = max(found, key=lambda each: each["bytes"])
        admin.split(_DATABASE, _CONTAINER, {"partition": largest["id"]})
    admin.set_throughput(_DATABASE, _CONTAINER, {"ru": throughput_ru})


def _loads(connection: Connection) -> list[float]:
    found = Admin(connection).partitions(_DATABASE, _CONTAINER, largest=0, hottest=0)["partitions"]
    return [float(each["ru"]["total"]) for each in found]


# -- requests --------------------------------------------------------------------------------------


def _with_key(item: Mapping[str, Any], key: Key) -> dict[str, Any]:
    """The item with the property that clients have to make."""
    if not key.is_synthetic:
        return dict(item)
    return {**item, _SYNTHETIC: made_text(key, [_at(item, path) for path in key.paths], None)}


def _at(item: Mapping[str, Any], path: str) -> Any:
    value: Any = item
    for name in split_path(path):
        value = value[name]
    return value


def _values(key: Key, item: Mapping[str, Any]) -> list[Any]:
    if key.is_synthetic:
        return [item[_SYNTHETIC]]
    return [_at(item, path) for path in key.paths]


def _replay(
    connection: Connection,
    key: Key,
    request: Request,
    items: Mapping[str, Mapping[str, Any]],
    assessment: Assessment,
    number: int,
) -> float | None:
    """One request as a client has to send it under the key: what it cost, or None when it was refused."""
    if request.operation is Operation.QUERY:
        return _charge_of(_query(connection, request.equals))
    item = items[request.id]
    is_point = assessment.routes.scopes[number] == Scope.POINT
    if request.operation is Operation.READ and not is_point:
        found = {"/id": [request.id]}
        if assessment.routes.scopes[number] == Scope.PREFIX:
            found[key.paths[0]] = [_at(item, key.paths[0])]
        return _charge_of(_query(connection, found))
    return _charge_of([_send(connection, request.operation.value, item, key)])


def _charge_of(answers: Sequence[Answer]) -> float | None:
    if any(answer.status == _REFUSED for answer in answers):
        return None
    if any(not answer.is_success for answer in answers):
        raise RuntimeError(f"a request failed: {answers[-1].status} {answers[-1].body[:200]!r}")
    return sum(float(answer.headers["x-ms-request-charge"]) for answer in answers)


def _send(connection: Connection, operation: str, item: Mapping[str, Any], key: Key | str) -> Answer:
    values = [_at(item, key)] if isinstance(key, str) else _values(key, item)
    headers = {"x-ms-documentdb-partitionkey": json.dumps(values)}
    body = json.dumps(item, separators=(",", ":")).encode()
    if operation == "create":
        return connection.request("POST", (*_LINK, "docs"), "docs", _LINK, headers, body)
    link = (*_LINK, "docs", str(item["id"]))
    if operation == "read":
        return connection.request("GET", link, "docs", link, headers)
    return connection.request("PUT", link, "docs", link, headers, body)


def _query(connection: Connection, equals: Mapping[str, Sequence[Any]]) -> list[Answer]:
    """All pages of the query for these values; the last one is a refusal if one was refused."""
    conditions: list[str] = []
    parameters: list[dict[str, Any]] = []
    for path, values in sorted(equals.items()):
        names = [f"@p{len(parameters) + n}" for n in range(len(values))]
        parameters += [{"name": name, "value": value} for name, value in zip(names, values, strict=True)]
        conditions.append(f"c{path.replace('/', '.')} IN ({', '.join(names)})")
    document = {"query": f"SELECT * FROM c WHERE {' AND '.join(conditions)}", "parameters": parameters}
    answers: list[Answer] = []
    headers = {"x-ms-max-item-count": "1000"}
    while True:
        answers.append(connection.query(_LINK, document, headers))
        continuation = answers[-1].headers.get("x-ms-continuation", "")
        if not continuation or not answers[-1].is_success:
            return answers
        headers["x-ms-continuation"] = continuation


# -- the table -------------------------------------------------------------------------------------


def table_of(truths: Sequence[Truth]) -> str:
    lines = [
        "| key | request units predicted | observed | refused predicted | observed | load of a partition off by |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| `{each.key}` | {each.predicted_ru:,.2f} | {each.observed_ru:,.2f} | {100 * each.predicted_refused:.1f} % "
        f"| {100 * each.observed_refused:.1f} % | {100 * each.load_error:.1f} % |"
        for each in truths
    ]
    return "\n".join(lines)


def truths(items: int, requests: int, keys: Sequence[str] = KEYS) -> list[Truth]:
    """Everything, of so many items and requests."""
    found = items_of(items)
    seconds = requests / 100
    record = make_record(found, requests, seconds)
    throughput_ru = int(1.3 * sum(request.charge for request in record) / seconds)
    return compare(found, record, keys, throughput_ru)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what advise predicts with what happens.")
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--check", action="store_true", help="print the table, and change no page")
    given = parser.parse_args()
    found = truths(given.items, given.requests)
    table = table_of(found)
    print(table)
    if not given.check:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return 0 if all(each.holds for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Reading all items of a container, the ranges of its hashes side by side.

Every item that is there all the time comes once, whatever splits or moves meanwhile: a range of hashes stays what it
is, and a page goes on where the last one ended. Items that are changed meanwhile come as before or as after it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from pleiad.client.admin import RequestRefusedError
from pleiad.client.bulk import BUSY, THROTTLED
from pleiad.client.connection import Answer, Connection
from pleiad.client.containers import FoundContainer, accepted
from pleiad.item.body import strip_system

_PAGE_ITEMS = "1000"
_WAITING_PAGES = 4
_AGAIN_SECONDS = 0.1
_PATIENCE_SECONDS = (0.2, 0.5, 1.0, 2.0)
_LOOK_SECONDS = 0.1

Connect = Callable[[], Connection]


@dataclass(slots=True)
class ExportCounts:
    """What has been read so far."""

    items: int = 0
    charge_ru: float = 0.0


@dataclass(slots=True)
class _Reading:
    """What the threads of one export share."""

    connect: Connect
    container: FoundContainer
    ranges: list[tuple[str, str]]
    is_recorded: bool
    pages: queue.Queue[Answer | BaseException | None] = field(
        default_factory=lambda: queue.Queue(_WAITING_PAGES)
    )
    stopping: threading.Event = field(default_factory=threading.Event)

    def give(self, page: Answer | BaseException | None) -> None:
        while not self.stopping.is_set():
            try:
                self.pages.put(page, timeout=_LOOK_SECONDS)
                return
            except queue.Full:
                continue


def read_items(
    connect: Connect,
    container: FoundContainer,
    connections: int,
    has_system: bool,
    counts: ExportCounts,
    is_recorded: bool = True,
) -> Iterator[list[Any]]:
    """The items of a container, page by page, in no order; who looks at a workload asks not to be part of it."""
    with connect() as connection:
        reading = _Reading(connect, container, _ranges(connection, container), is_recorded)
    threads = [
        threading.Thread(target=_read_ranges, args=(reading,), name="pleiad-export", daemon=True)
        for _ in range(min(connections, len(reading.ranges)))
    ]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            page = reading.pages.get()
            if page is None:
                running -= 1
            elif isinstance(page, BaseException):
                raise page
            else:
                yield _values(page, has_system, counts)
    finally:
        reading.stopping.set()


def query_items(
    connect: Connect, container: FoundContainer, query: str, has_system: bool, counts: ExportCounts
) -> Iterator[list[Any]]:
    """The results of a query, page by page, in its order."""
    with connect() as connection:
        document, continuation = {"query": query, "parameters": []}, ""
        while True:
            headers = {"x-ms-max-item-count": _PAGE_ITEMS}
            if continuation:
                headers["x-ms-continuation"] = continuation
            answer = _patiently(partial(connection.query, container.link, document, headers))
            yield _values(answer, has_system, counts)
            continuation = answer.headers.get("x-ms-continuation", "")
            if not continuation:
                return


def _ranges(connection: Connection, container: FoundContainer) -> list[tuple[str, str]]:
    path = (*container.link, "pkranges")
    found = accepted(connection.request("GET", path, "pkranges", container.link, {}))
    return [(each["minInclusive"], each["maxExclusive"]) for each in found["PartitionKeyRanges"]]


def _read_ranges(reading: _Reading) -> None:
    """The life of a thread: one range after the other until none is left."""
    try:
        with reading.connect() as connection:
            while not reading.stopping.is_set():
                try:
                    low, high = reading.ranges.pop()
                except IndexError:
                    break
                _read_range(reading, connection, low, high)
        reading.give(None)
    except BaseException as error:
        reading.give(error)


def _read_range(reading: _Reading, connection: Connection, low: str, high: str) -> None:
    path = (*reading.container.link, "docs")
    fields = {"x-ms-max-item-count": _PAGE_ITEMS, "x-ms-read-key-type": "EffectivePartitionKeyRange"}
    fields |= {"x-ms-start-epk": low, "x-ms-end-epk": high}
    if not reading.is_recorded:
        fields["x-pleiad-workload"] = "off"
    while not reading.stopping.is_set():
        answer = _patiently(partial(connection.request, "GET", path, "docs", reading.container.link, fields))
        reading.give(answer)
        continuation = answer.headers.get("x-ms-continuation", "")
        if not continuation:
            return
        fields = {**fields, "x-ms-continuation": continuation}


def _patiently(ask: Callable[[], Answer]) -> Answer:
    """The answer with a page; it is asked for again while the throughput is used up, or the server busy for a while."""
    patience = iter(_PATIENCE_SECONDS)
    while True:
        answer = ask()
        if answer.status not in BUSY:
            return answer
        pause_seconds = _AGAIN_SECONDS if answer.status == THROTTLED else next(patience, None)
        if pause_seconds is None:
            return answer
        time.sleep(pause_seconds)


def _values(page: Answer, has_system: bool, counts: ExportCounts) -> list[Any]:
    if not page.is_success:
        accepted(page)
    try:
        values: list[Any] = orjson.loads(page.body)["Documents"]
    except (ValueError, TypeError, LookupError):
        raise RequestRefusedError(
            page.status, "the answer has no items; is it a Cosmos DB account?"
        ) from None
    counts.items += len(values)
    counts.charge_ru += float(page.headers.get("x-ms-request-charge", "0"))
    if not has_system:
        for value in values:
            if isinstance(value, dict):
                strip_system(value)
    return values

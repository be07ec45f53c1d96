"""The walks in `src/pleiad/README.md` are those of real requests to a real server, and are as long as it says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from math import inf
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

import pleiad
from pleiad.account.signature import authorization
from pleiad.engine import items
from pleiad.node import Node
from pleiad.server import connections
from pleiad.server.connections import TURNS_OF_ONE_MIN
from pleiad.settings import Settings
from pleiad.store.sqlite.rounds import SyncCosts
from tests.proofs.walks.walk import Step, Walk
from tests.waiting import until

LINK = "dbs/house/colls/rooms"
ITEMS = 600
"""So many that the order of a page gets an index."""
TRACES = 5
"""The shortest of so many walks is shown: what else a server has to do meanwhile is not of the request."""
README = Path(pleiad.__file__).parent / "README.md"
_SHOWN = re.compile(
    r"\*\*(?P<name>[^*]+)\*\*: (?P<files>\d+) files, (?P<returns>\d+) returns\n\n```text\n(?P<steps>.*?)```",
    re.DOTALL,
)


class Shown(NamedTuple):
    """A walk as the map of the house shows it."""

    files: int
    returns: int
    steps: list[str]


def shown() -> dict[str, Shown]:
    """The walks in the map; what is said beside a file stands after two blanks."""
    walks = {}
    for found in _SHOWN.finditer(README.read_text()):
        steps = [re.split(r"(?<=\S)  ", line)[0] for line in found["steps"].splitlines()]
        walks[found["name"]] = Shown(int(found["files"]), int(found["returns"]), steps)
    return walks


class Asker:
    """A client on one connection of a server whose requests can be followed."""

    def __init__(self, node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._node = node
        self._reader = reader
        self._writer = writer
        self._created = ITEMS

    def read(self) -> bytes:
        return self._request("GET", f"{LINK}/docs/7", {"x-ms-documentdb-partitionkey": '["p"]'})

    def create(self) -> bytes:
        self._created += 1
        return self._request(
            "POST", f"{LINK}/docs", {"x-ms-documentdb-partitionkey": '["p"]'}, _item(self._created)
        )

    def ordered_page(self) -> bytes:
        query = {"query": "SELECT * FROM c ORDER BY c.number", "parameters": []}
        fields = {
            "content-type": "application/query+json",
            "x-ms-documentdb-isquery": "true",
            "x-ms-documentdb-query-enablecrosspartition": "true",
            "x-ms-max-item-count": "10",
        }
        return self._request("POST", f"{LINK}/docs", fields, orjson.dumps(query))

    def _request(self, method: str, path: str, fields: dict[str, str], body: bytes = b"") -> bytes:
        date = formatdate(usegmt=True)
        link = path if method == "GET" else LINK
        secret = self._node.keys.keys.masters[0].secret
        fields = {
            "host": self._node.server.address("nosql"),
            "x-ms-date": date,
            "authorization": authorization(secret, method.lower(), "docs", link, date),
            **fields,
        }
        if body:
            fields["content-length"] = str(len(body))
        lines = [
            f"{method} /{path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in fields.items()),
            "",
            "",
        ]
        return "\r\n".join(lines).encode() + body

    async def ask(self, request: bytes) -> int:
        """The status of the answer, once it is read."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"Content-Length: (\d+)", head)
        assert found is not None
        await self._reader.readexactly(int(found[1]))
        return int(head.split()[1])


def _item(number: int) -> bytes:
    return orjson.dumps({"id": str(number), "pk": "p", "number": number, "price": 1.5, "tags": ["a", "b"]})


@pytest.fixture(autouse=True)
def disk_of_any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk of a create is that of one which waits for the disk where it is, however long that takes here."""
    monkeypatch.setattr(SyncCosts, "loop_pays", lambda _: True)


@asynccontextmanager
async def followed(directory: Path) -> AsyncIterator[tuple[Asker, Walk]]:
    """A durable server with items and what it keeps at hand, and its walk."""
    walk = Walk()
    node = Node(Settings(data=directory, port=0, throttle="observe"))
    await node.start()
    try:
        await node.engine.create_database({"id": "house"}, None)
        definition = {"id": "rooms", "partitionKey": {"paths": ["/pk"], "version": 2}}
        await node.engine.create_container(node.engine.database("house"), definition, None)
        container = await node.engine.container("house", "rooms")
        await asyncio.gather(*(items.create(container, _item(number), ("p",)) for number in range(ITEMS)))
        port = int(node.server.address("nosql").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        asker = Asker(node, reader, writer)
        for make in (asker.read, *(asker.create,) * TURNS_OF_ONE_MIN, *(asker.ordered_page,) * 3):
            assert await asker.ask(make()) in (200, 201)
        assert await until(lambda: container.index_progress_percent() == 100)
        yield asker, walk
        writer.close()
    finally:
        await node.stop()
        walk.close()


def lengths(steps: list[Step]) -> tuple[int, int]:
    """How many files a walk has, and how many returns."""
    returns = sum(step.is_return for step in steps)
    return len(steps) - returns, returns


async def walk_of(asker: Asker, walk: Walk, make: Callable[[], bytes], status: int) -> list[Step]:
    walks = []
    for _ in range(TRACES):
        assert await asker.ask(make()) == status
        request = make()
        walk.begin()
        try:
            found = await asker.ask(request)
        finally:
            walks.append(walk.end())
        assert found == status
    return min(walks, key=len)


@pytest.mark.parametrize(
    ("name", "make", "status"),
    [
        ("A point read", Asker.read, 200),
        ("A create", Asker.create, 201),
        ("An ordered page", Asker.ordered_page, 200),
    ],
)
async def test_the_map_shows_the_walk_of_a_request(
    tmp_path: Path, name: str, make: Callable[[Asker], bytes], status: int
) -> None:
    async with followed(tmp_path) as (asker, walk):
        steps = await walk_of(asker, walk, lambda: make(asker), status)
    told = shown()[name]
    assert "\n".join(map(str, steps)) == "\n".join(told.steps)
    assert lengths(steps) == (told.files, told.returns)


async def test_the_walk_of_a_create_in_company_is_no_longer_than_the_map_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TURNS_OF_ONE_MIN", inf)
    async with followed(tmp_path) as (asker, walk):
        files, returns = lengths(await walk_of(asker, walk, asker.create, 201))
    told = re.search(r"in company has (\d+) files and (\d+) returns", README.read_text())
    assert told is not None
    assert files <= int(told[1])
    assert returns <= int(told[2])


@pytest.mark.parametrize(
    ("name", "files_max", "returns_max"),
    [("A point read", 16, 2), ("A create", 20, 3), ("An ordered page", 24, 4)],
)
def test_the_walk_stays_short(name: str, files_max: int, returns_max: int) -> None:
    files, returns, _ = shown()[name]
    assert files <= files_max
    assert returns <= returns_max

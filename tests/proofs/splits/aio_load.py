"""The load of `load.py` with the asynchronous client: many operations of one client in flight at once.

They share one cache of the container's ranges, so a split meets requests that are on their way with the old one.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy, CosmosClient

from pleiad.testing.start import RunningServer
from tests.proofs.splits.load import FIXED, KEYS, QUIET_READS, Asker, Known, Ledger
from tests.waiting import turns

PAGE_ITEMS = 25
PAGES = 5
"""More than a continuation has ranges after the load: then each of them was asked."""


def client_of(server: RunningServer) -> CosmosClient:
    return CosmosClient(server.endpoint, server.key)


class AioLoad:
    """Coroutines that work on one container until they are told to stop, and what they did."""

    def __init__(self, container: ContainerProxy, ledger: Ledger) -> None:
        self.container = container
        self.ledger = ledger
        self.is_over = False
        self.rounds: dict[str, int] = {}

    async def repeat(self, name: str, act: Callable[[random.Random], Awaitable[None]]) -> None:
        """Does one thing again and again; the first failure of any ends all."""
        chooser = random.Random(name)
        self.rounds[name] = 0
        try:
            while not self.is_over:
                await act(chooser)
                self.rounds[name] += 1
        except (AzureError, AssertionError, KeyError) as error:
            self.ledger.failures.append(f"{name}: {error!r}")
            self.is_over = True

    async def _counted(self, work: Awaitable[Any]) -> Any:
        answer = await work
        self.ledger.acknowledged += 1
        return answer

    def writer(self, number: int) -> Callable[[random.Random], Awaitable[None]]:
        """Puts items, deletes them, counts by patch and writes pairs by batch; ids are its own."""

        async def act(chooser: random.Random) -> None:
            choice = chooser.random()
            pk = f"k{chooser.randrange(KEYS)}"
            if choice < 0.5:
                await self._put(pk, f"w{number}-{chooser.randrange(8)}", number)
            elif choice < 0.6:
                await self._delete(pk, f"w{number}-{chooser.randrange(8)}")
            elif choice < 0.8:
                await self._count(chooser.choice(sorted(self.ledger.counts)))
            else:
                await self._pair(pk, number)

        return act

    async def _put(self, pk: str, id: str, number: int) -> None:
        version = self.ledger.acknowledged * 100 + number
        await self._counted(self.container.upsert_item({"id": id, "pk": pk, "version": version}))
        self.ledger.items[pk, id] = Known(version)
        found = await self.container.read_item(id, pk)
        assert found["version"] == version, f"{(pk, id)} is not as written"

    async def _delete(self, pk: str, id: str) -> None:
        known = self.ledger.items.get((pk, id))
        if known is not None and known.version is not None:
            await self._counted(self.container.delete_item(id, pk))
            known.version = None

    async def _count(self, pk: str) -> None:
        operations = [{"op": "incr", "path": "/count", "value": 1}]
        await self._counted(self.container.patch_item("counter", pk, operations))
        self.ledger.counts[pk] += 1

    async def _pair(self, pk: str, number: int) -> None:
        version = self.ledger.acknowledged * 100 + number
        ids = f"pair{number}-a", f"pair{number}-b"
        batch = [("upsert", ({"id": id, "pk": pk, "version": version},)) for id in ids]
        await self._counted(self.container.execute_item_batch(batch, pk))
        self.ledger.items |= {(pk, id): Known(version) for id in ids}

    async def ask(self, chooser: random.Random) -> None:
        """Queries the items nobody changes, page by page with a new iterator for each."""
        text = chooser.choice(Asker.TEXTS)
        found: list[Any] = []
        token: str | None = None
        while True:
            pages: Any = self.container.query_items(text, max_item_count=PAGE_ITEMS).by_page(token)
            async for page in pages:
                found += [item async for item in page]
                break
            token = pages.continuation_token
            if not token:
                break
            await turns()
        assert sorted(found) == sorted(f"fixed{n}" for n in range(FIXED)), f"{text}: {len(found)} items"

    async def read_many(self, chooser: random.Random) -> None:
        """Reads items nobody changes, of several partitions at once."""
        numbers = chooser.sample(range(FIXED), 10)
        wanted = [(f"fixed{number}", f"k{number % KEYS}") for number in numbers]
        found = await self.container.read_items(wanted)
        assert sorted(item["n"] for item in found) == sorted(numbers), f"{len(found)} of {len(numbers)} items"


class AioFollower:
    """Follows the change feed with a client of its own, whose last headers have the continuation.

    The client itself refuses a continuation in which a range was never read, so the first `read` goes to the end.
    """

    def __init__(self, container: ContainerProxy) -> None:
        self.container = container
        self.token: str | None = None
        self.seen: dict[tuple[str, str], dict[str, Any]] = {}

    async def follow(self, _: random.Random) -> None:
        """Reads a few pages, then goes on from the continuation with a new iterator."""
        await self.read(PAGES)
        await turns()

    async def read(self, pages_max: int | None = None) -> bool:
        """Reads on from the continuation, to the end when no number of pages is given; whether there was anything."""
        start: dict[str, Any] = {"continuation": self.token} if self.token else {"start_time": "Beginning"}
        count = 0
        async for page in self.container.query_items_change_feed(
            max_item_count=PAGE_ITEMS, **start
        ).by_page():
            async for change in page:
                self._take(change)
            count += 1
            if count == pages_max:
                break
        self.token = self.container.client_connection.last_response_headers["etag"]
        return count > 0

    async def read_everything(self) -> None:
        """Reads until nothing has come for a long while.

        After merges and splits the client has some ranges several times in its continuation, and takes the second
        for the end of a round: what follows is read by later calls.
        """
        quiet = 0
        while quiet < QUIET_READS:
            quiet = 0 if await self.read() else quiet + 1

    def _take(self, change: dict[str, Any]) -> None:
        key = change["pk"], change["id"]
        before = self.seen.get(key, {})
        if "count" in before:
            what = f"the feed goes back at {key} from {before['count']} to {change['count']}"
            assert change["count"] >= before["count"], what
        self.seen[key] = change

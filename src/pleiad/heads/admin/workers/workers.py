"""One worker among those of a server: it asks the others for their part of an answer, and tells them what holds.

Workers are processes on one port; a client is answered by whichever has its connection. What they need of each other
is in a directory that the process above them made and only its user may enter: a socket for each, and files for
what is shared. A question is one line of JSON and so is its answer; who asks has let its own caller in before.

Invariant: a worker that is missing or does not answer in time delays and fails nobody; its part is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pleiad.engine.access import MASTER, Caller, Grant, Target
from pleiad.engine.engine import Engine
from pleiad.engine.items import Key
from pleiad.engine.shared_counts import SharedCounts
from pleiad.engine.visit import Destination
from pleiad.errors import PleiadError
from pleiad.heads.http.call import HttpCall
from pleiad.heads.http.route import Handler
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from pleiad.server.http.message import Request, Response
from pleiad.server.worker_place import WorkerPlace, WorkersState

ANSWER_SECONDS = 5.0
"""How long a worker is waited for; one that starts or ends does not answer."""
LINE_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What another worker said."""

    process_id: int
    status: int
    body: bytes


@dataclass(slots=True, eq=False)
class AskedCall(HttpCall):
    """A request that another worker has let in and passes on."""

    async def identify(self, engine: Engine) -> Caller:
        return MASTER

    async def target(self, engine: Engine, grant: Grant) -> Target:
        return Target()

    def destination(self) -> Destination:
        return Destination()

    @property
    def key(self) -> Key | None:
        return None


class Workers:
    """This worker, and the way to the others."""

    def __init__(self, place: WorkerPlace, limits: Limits) -> None:
        self.place = place
        self.counts = SharedCounts(place.directory / "counts")
        self._limits = limits
        self._engine: Callable[[], Engine] | None = None
        self._offered: dict[str, Handler[HttpCall]] = {}
        self._told: dict[str, Callable[[Any], object]] = {}
        self._done: dict[str, Callable[[Any], Awaitable[object]]] = {}
        self._when_open: list[Callable[[Callable[[], Engine]], Awaitable[None]]] = []
        self._server: asyncio.Server | None = None

    # -- what this worker answers ---------------------------------------------------------------------

    def offer(self, name: str, handler: Handler[HttpCall]) -> None:
        """Has a handler answer the others with the part of this worker."""
        self._offered[name] = handler

    def listen_for(self, name: str, told: Callable[[Any], object]) -> None:
        """Has a function take what the others tell under a name."""
        self._told[name] = told

    def do(self, name: str, done: Callable[[Any], Awaitable[object]]) -> None:
        """Has something done when the others want that; what comes of it, as JSON has it, is their answer."""
        self._done[name] = done

    def when_open(self, begin: Callable[[Callable[[], Engine]], Awaitable[None]]) -> None:
        """Has a function called with the way to the engine, as soon as the others can tell this worker something."""
        self._when_open.append(begin)

    async def open(self, engine: Callable[[], Engine]) -> None:
        """Begins to answer the others."""
        self._engine = engine
        path = self._socket(self.place.number)
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._converse, path, limit=LINE_BYTES_MAX)
        for begin in self._when_open:
            await begin(engine)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket(self.place.number).unlink(missing_ok=True)

    def state(self) -> WorkersState:
        """What the process above says of all workers."""
        return WorkersState.kept(self.place)

    def _socket(self, number: int) -> Path:
        return self.place.directory / f"{number}.socket"

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            answer = await self._answer(orjson.loads(await reader.readline()))
            writer.write(orjson.dumps({"process": os.getpid(), **answer}) + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        name = question["name"]
        if name in self._told:
            self._told[name](question["told"])
            return {"status": 204, "body": ""}
        if name in self._done:
            try:
                return {
                    "status": 200,
                    "body": orjson.dumps(await self._done[name](question["told"])).decode(),
                }
            except PleiadError as error:
                return {"status": status_of(error), "body": ""}
        headers = {key.encode(): value.encode() for key, value in question["headers"].items()}
        request = Request("GET", question["target"].encode(), headers)
        call = AskedCall(
            question["activity"], time.perf_counter(), request, "GET", request.raw_path, question["segments"],
            self._limits,
        )  # fmt: skip
        assert self._engine is not None
        call.engine, call.caller = self._engine(), MASTER
        try:
            said = self._offered[name](call)
            answer = said if isinstance(said, Response) else await said
        except PleiadError as error:
            return {"status": status_of(error), "body": ""}
        return {"status": answer.status, "body": answer.body.decode()}

    # -- what it asks ---------------------------------------------------------------------------------

    async def ask(self, name: str, call: HttpCall) -> list[Answer]:
        """The parts of the others in the answer to a call; only those that have one."""
        question = {
            "name": name,
            "target": call.request.target.decode("latin-1"),
            "segments": call.segments,
            "activity": call.activity_id,
            "headers": {"accept": call.text(b"accept")},
        }
        return [each for each in await self._ask_all(question) if each.status == 200]

    async def tell(self, name: str, told: Any) -> None:
        """Tells the others, and returns when those that can be reached know it."""
        await self._ask_all({"name": name, "told": told})

    async def have_done(self, name: str, told: Any) -> list[Any]:
        """Has the others do something; what came of it at those that did."""
        answers = await self._ask_all({"name": name, "told": told})
        return [orjson.loads(each.body) for each in answers if each.status == 200]

    async def _ask_all(self, question: Mapping[str, Any]) -> list[Answer]:
        line = orjson.dumps(question) + b"\n"
        others = [number for number in range(self.place.count) if number != self.place.number]
        answers = await asyncio.gather(*(self._ask_one(number, line) for number in others))
        return [each for each in answers if each is not None]

    async def _ask_one(self, number: int, line: bytes) -> Answer | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_unix_connection(
                    self._socket(number), limit=LINE_BYTES_MAX
                )
                with contextlib.closing(writer):
                    writer.write(line)
                    said = orjson.loads(await reader.readline())
            return Answer(process_id=said["process"], status=said["status"], body=said["body"].encode())
        except (OSError, ValueError, TimeoutError):
            return None


Merge = Callable[[list[Any]], Any]
"""Makes one answer of those of all workers; the first is that of the worker that was asked."""


def added_up(workers: Workers, name: str, handler: Handler[HttpCall], merge: Merge) -> Handler[HttpCall]:
    """A handler whose answer is that of all workers, from one that answers for this worker alone."""
    workers.offer(name, handler)

    async def answer(call: HttpCall) -> Response:
        said = handler(call)
        own: Response
        own, others = await asyncio.gather(_soon(said), workers.ask(name, call))
        parts = [orjson.loads(own.body), *(orjson.loads(each.body) for each in others)]
        body = orjson.dumps(merge(parts)) if others else own.body
        return Response(own.status, own.headers, body)

    return answer


async def _soon(said: Response | Awaitable[Response]) -> Response:
    return said if isinstance(said, Response) else await said

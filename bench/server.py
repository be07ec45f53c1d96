"""A real Pleiad server as a child process, durable, on a data directory that lives as long as the child.

The directory is made under ``build/`` so that commits are synced to the same disk the project is on: a
temporary file system in memory would measure no disk at all.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import orjson

from bench import request
from bench.items import Item
from bench.load import Job, LoadError, LoadProcess
from bench.process import BUILD, LOOPBACK, free_port, start, stop

_READY_SECONDS = 30.0
_LOAD_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class PleiadServer:
    """A running server: where it listens, which process it is, and the key it was given."""

    port: int
    pid: int
    key: str

    @property
    def host(self) -> str:
        """What clients put in the ``Host`` header."""
        return f"{LOOPBACK}:{self.port}"

    def call(
        self, verb: str, path: str, resource_type: str, link: str, body: object = None, **extra: str
    ) -> tuple[int, bytes]:
        """One signed request on its own connection, for set-up; ``extra`` headers with ``_`` for ``-``."""
        status, _, answer = self._answer(verb, path, resource_type, link, body, extra)
        return status, answer

    def _answer(
        self, verb: str, path: str, resource_type: str, link: str, body: object, extra: dict[str, str]
    ) -> tuple[int, Message, bytes]:
        fields = request.headers(self.key, verb, resource_type, link, request.date_text())
        fields |= {name.replace("_", "-"): value for name, value in extra.items()}
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        try:
            payload = None if body is None else orjson.dumps(body)
            connection.request(verb, path, body=payload, headers=fields)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def index_progress(self, container_link: str) -> int:
        """How much of the indexes that queries have asked for is built, in percent."""
        quota = {"x-ms-documentdb-populatequotainfo": "true"}
        _, fields, _ = self._answer("GET", f"/{container_link}", "colls", container_link, None, quota)
        return int(fields["x-ms-documentdb-collection-index-transformation-progress"])

    def create_container(self, database: str, container: str, throughput_ru: int = 400) -> str:
        """Make a container with the key ``/pk``, and its database if need be; returns the link."""
        status, answer = self.call("POST", "/dbs", "dbs", "", {"id": database})
        if status not in (201, 409):
            raise LoadError(f"the database could not be created: {status} {answer[:400]!r}")
        definition = {"id": container, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        link = f"dbs/{database}"
        status, answer = self.call(
            "POST", f"/{link}/colls", "colls", link, definition, x_ms_offer_throughput=str(throughput_ru)
        )
        if status != 201:
            raise LoadError(f"the container could not be created: {status} {answer[:400]!r}")
        return f"{link}/colls/{container}"

    def fill(self, load: LoadProcess, container_link: str, items: list[Item]) -> None:
        """Create the items over many connections and see that every one was acknowledged."""
        creates = request.ItemCreates(self.host, self.key, container_link, request.date_text())
        measure = load.run(
            Job(
                name=f"fill {container_link}",
                port=self.port,
                server_pid=self.pid,
                requests=[creates.create(item.pk, item.body) for item in items],
                statuses=(201,),
                connections=32,
                seconds=_LOAD_SECONDS,
                warmup_seconds=0,
                repeat=False,
            )
        )
        if measure.requests != len(items):
            raise LoadError(
                f"only {measure.requests} of {len(items)} items were created in {_LOAD_SECONDS:g} s"
            )


@contextlib.contextmanager
def pleiad_server(
    throttle: str = "observe",
    store: str = "sqlite",
    key: str = "",
    cores: set[int] | None = None,
    workers: int = 1,
    options: Sequence[str] = (),
    ready_seconds: float = _READY_SECONDS,
) -> Iterator[PleiadServer]:
    """A freshly started server that answers, with an empty data directory; both are gone afterwards.

    It only counts request units unless told to enforce them: a benchmark of anything else is not to be held up.
    Servers that share a store need the same key; without one the server has its own.
    """
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD, ignore_cleanup_errors=True) as directory:
        key = key or base64.b64encode(os.urandom(64)).decode()
        port = free_port()
        executable = Path(sys.executable).with_name("pleiad")
        data = [] if "--ephemeral" in options else ["--data", str(Path(directory) / "data")]
        arguments = [str(executable), "serve", *data]
        arguments += ["--host", LOOPBACK, "--port", str(port), "--key", key, "--throttle", throttle]
        arguments += ["--store", store, "--workers", str(workers), *options]
        log_path = Path(directory) / "server.log"
        with log_path.open("wb") as log:
            child = start(arguments, log, cores)
        try:
            server = PleiadServer(port, child.pid, key)
            _wait_until_ready(server, child, log_path, ready_seconds)
            yield server
        finally:
            stop(child)


def _wait_until_ready(
    server: PleiadServer, child: subprocess.Popen[bytes], log_path: Path, seconds: float
) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, answer = server.call("GET", "/", "", "")
            if status == 200:
                return
            raise LoadError(f"the server answers the account read with {status}: {answer[:400]!r}")
        time.sleep(0.1)
    raise LoadError(f"the server did not start:\n{log_path.read_text(errors='replace')[-2000:]}")

"""A small account that these tests fill, lose parts of and damage."""

from __future__ import annotations

import http.client
import json
import shutil
from pathlib import Path
from typing import Any

from pleiad.client.connection import Answer, Connection
from pleiad.testing.start import RunningServer
from tests.waiting import SECONDS_MAX

DATABASE = "db"
ITEMS = 60
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


class Client:
    """Signed requests to the account of one server."""

    def __init__(self, server: RunningServer) -> None:
        self.connection = Connection(server.endpoint, server.key)
        self._port = server.port

    def fill(self, *containers: str) -> None:
        """Makes containers with items."""
        self.send("POST", [], "dbs", {"id": DATABASE})
        for name in containers:
            self.send("POST", ["dbs", DATABASE], "colls", {"id": name, "partitionKey": KEY})
            for number in range(ITEMS):
                assert self.create(name, number).status == 201

    def create(self, container: str, number: int, text: str = "") -> Answer:
        body = {"id": f"item-{number}", "pk": f"key-{number % 7}", "text": text or f"the text of {number}"}
        link = ["dbs", DATABASE, "colls", container]
        return self.send("POST", link, "docs", body, {"x-ms-documentdb-partitionkey": f'["{body["pk"]}"]'})

    def read(self, container: str, number: int) -> Answer:
        link = ["dbs", DATABASE, "colls", container, "docs", f"item-{number}"]
        header = {"x-ms-documentdb-partitionkey": f'["key-{number % 7}"]'}
        return self.connection.request("GET", link, "docs", link, header)

    def delete_container(self, container: str) -> Answer:
        link = ["dbs", DATABASE, "colls", container]
        return self.connection.request("DELETE", link, "colls", link, {})

    def statuses(self, container: str) -> set[int]:
        """What reading each item is answered with; one that is answered is as it was written."""
        answers = [self.read(container, number) for number in range(ITEMS)]
        for number, answer in enumerate(answers):
            assert answer.status != 200 or answer.json()["text"] == f"the text of {number}"
        return {answer.status for answer in answers}

    def count(self, container: str) -> Answer:
        link = ["dbs", DATABASE, "colls", container]
        return self.connection.query(link, {"query": "SELECT VALUE COUNT(1) FROM c", "parameters": []}, {})

    def send(
        self, method: str, parent: list[str], kind: str, body: Any, headers: dict[str, str] | None = None
    ) -> Answer:
        text = json.dumps(body).encode()
        return self.connection.request(method, [*parent, kind], kind, parent, headers or {}, text)

    def warnings(self) -> list[dict[str, Any]]:
        path = ["_pleiad", "v1", "warnings"]
        answer = self.connection.request("GET", path, "warnings", path[:-1], {})
        found: list[dict[str, Any]] = answer.json()["warnings"]
        return found

    def probe(self, name: str) -> tuple[int, dict[str, Any]]:
        """The health or readiness of the server, asked without a key."""
        connection = http.client.HTTPConnection("localhost", self._port, timeout=SECONDS_MAX)
        connection.request("GET", f"/_pleiad/{name}")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def segments(data: Path) -> list[Path]:
    """The files of the segments, in the order in which their containers were made."""
    return sorted((data / "segments").glob("*.sqlite"), key=lambda path: int(path.stem[1:].split("-")[0]))


def copy_of(data: Path, target: Path) -> Path:
    """The same data once more, to be spoiled."""
    shutil.copytree(data, target)
    return target


def flip_bit(path: Path, offset: int, bit: int = 0) -> None:
    """Damages one bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        value = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([value ^ 1 << bit]))

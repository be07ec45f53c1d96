"""A page in a browser that has its own name point to this machine: it must get nothing, whatever it signs.

Part of the class `rights`. With the emulators' public key a page could sign requests; what stops it is that the server
answers to the names of this machine only, on every path.
"""

from __future__ import annotations

from attack.report import Outcome
from attack.target import MASTER, Target
from attack.wire import path_of, request_bytes

FOREIGN = (
    "evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example.",
    "localhost@evil.example", "evil.example#localhost", "evil.example/localhost", "localhost:{port}.evil.example",
    "127.0.0.1:{port}:evil", "[::1].evil.example", "xn--lcalhost-54a", "localhosts", "0x7f.1.evil", "10.0.0.1",
    "192.168.0.1:{port}", "metadata.internal", "localhost,evil.example", "evil.example, localhost",
)  # fmt: skip
OWN = ("localhost", "localhost:{port}", "LOCALHOST:{port}", "127.0.0.1", "127.0.0.1:{port}", "[::1]:{port}")
PATHS: tuple[list[str], ...] = ([], ["dbs"], ["dbs", "ground"], ["dbs", "ground", "colls", "open", "docs"])


def attack(outcome: Outcome, target: Target) -> None:
    """Every foreign name on several paths, in the header, twice, and in the request line."""
    connection = target.connect()
    for path in PATHS:
        fields = MASTER.headers("GET", path)
        for pattern in FOREIGN:
            host = pattern.format(port=target.port)
            answer = connection.exchange(request_bytes("GET", path_of(path), {**fields, "Host": host}))
            told = f"GET {path_of(path)} with Host {host} -> {answer.status}"
            outcome.answered(answer.status, told)
            if answer.status < 400:
                outcome.trespass(told)
            if host.encode() in answer.body and b"databaseAccountEndpoint" in answer.body:
                outcome.trespass(f"{told} advertises that name")
        for pattern in OWN:
            host = pattern.format(port=target.port)
            answer = connection.exchange(request_bytes("GET", path_of(path), {**fields, "Host": host}))
            outcome.answered(answer.status, f"Host {host}")
            if answer.status != 200:
                outcome.breaks(f"GET {path_of(path)} with Host {host} -> {answer.status}")
    _twice(outcome, target)
    connection.close()


def _twice(outcome: Outcome, target: Target) -> None:
    """Two hosts, and a host in the request line: the foreign one must not win either way."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in MASTER.headers("GET", ["dbs"]).items())
    forms = (
        f"GET /dbs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n{fields}\r\n",
        f"GET /dbs HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n{fields}\r\n",
        f"GET http://evil.example/dbs HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n",
        f"GET http://evil.example/dbs HTTP/1.1\r\nHost: evil.example\r\n{fields}\r\n",
    )
    for form in forms:
        connection = target.connect()
        answer = connection.exchange(form.encode())
        told = f"{form.splitlines()[0]}, {form.splitlines()[1]} and more -> {answer.status}"
        outcome.answered(answer.status, told)
        if answer.status < 400:
            outcome.trespass(told)
        connection.close()

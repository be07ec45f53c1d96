"""Requests as bytes and answers as they come: no library between the attack and the server that would mend either.

Limits: an answer has a Content-Length or none at all; Pleiad sends no other.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from attack.callers import Caller

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 30.0
Body = bytes | str | dict[str, Any] | list[Any] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """One response; the names of headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which is JSON unless something is wrong."""
        return json.loads(self.body)

    @property
    def continuation(self) -> str:
        """The token for the next page, or nothing."""
        return self.headers.get("x-ms-continuation", "")


class NoAnswerError(Exception):
    """The connection ended or stayed silent before an answer was whole."""


def encoded(body: Body) -> bytes:
    """A body as it is sent."""
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else json.dumps(body).encode()


def path_of(segments: Sequence[str]) -> str:
    """A path by names, percent-encoded."""
    return "/" + "/".join(quote(part.encode("utf-8", "replace"), safe="") for part in segments)


def request_bytes(method: str, path: str, fields: Mapping[str, str], body: bytes = b"") -> bytes:
    """One HTTP/1.1 request; a Host and a Content-Length are added where the fields have none."""
    known = {name.lower() for name in fields}
    lines = [f"{method} {path} HTTP/1.1"]
    if "host" not in known:
        lines.append("Host: localhost")
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if (body or method not in ("GET", "HEAD", "DELETE")) and not known & {
        "content-length",
        "transfer-encoding",
    }:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


class Connection:
    """One connection to a server, plain or TLS, opened when something is sent and again after it was lost."""

    def __init__(self, port: int, tls: bool = False, seconds: float = ANSWER_SECONDS) -> None:
        self.port = port
        self.tls = tls
        self.seconds = seconds
        self._socket: socket.socket | None = None
        self._rest = b""

    def close(self) -> None:
        """Ends the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def adopt(self, connected: socket.socket) -> None:
        """Goes on with a socket that was connected otherwise."""
        self._socket, self._rest = connected, b""

    def open(self) -> socket.socket:
        """The socket, connected."""
        if self._socket is None:
            plain = socket.create_connection((LOOPBACK, self.port), timeout=self.seconds)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = trusting().wrap_socket(plain) if self.tls else plain
            self._socket.settimeout(self.seconds)
        return self._socket

    def send(
        self,
        caller: Caller,
        method: str,
        segments: Sequence[str],
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        query: str = "",
    ) -> Answer:
        """One request of a caller for a path by names; headers given replace those of the caller."""
        fields = {**caller.headers(method, segments), **(headers or {})}
        return self.exchange(request_bytes(method, path_of(segments) + query, fields, encoded(body)), method)

    def exchange(self, data: bytes, method: str = "GET") -> Answer:
        """Sends the bytes and reads one answer; a connection the server closed between two requests is opened again."""
        was_open = self._socket is not None
        try:
            self.open().sendall(data)
            return self.read(method)
        except (OSError, NoAnswerError) as error:
            self.close()
            if was_open and not isinstance(error, TimeoutError):
                return self.exchange(data, method)
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error

    def read(self, method: str = "GET") -> Answer:
        """The next answer on the connection."""
        while (end := self._rest.find(b"\r\n\r\n")) < 0:
            self._more()
        head, rest = self._rest[:end].decode("latin-1"), self._rest[end + 4 :]
        status_line, *lines = head.split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(status_line.split(" ", 2)[1])
        self._rest = rest
        if status == 100:
            return self.read(method)
        bodiless = method == "HEAD" or status in (204, 304)
        length = 0 if bodiless else int(headers.get("content-length", "0"))
        pieces, have = [self._rest], len(self._rest)
        while have < length:
            piece = self.open().recv(65536)
            if not piece:
                raise NoAnswerError("the connection ended inside an answer")
            pieces.append(piece)
            have += len(piece)
        whole = b"".join(pieces)
        self._rest = whole[length:]
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, headers, whole[:length])

    def _more(self) -> None:
        piece = self.open().recv(65536)
        if not piece:
            raise NoAnswerError("the connection was closed without an answer")
        self._rest += piece


def trusting() -> ssl.SSLContext:
    """TLS with a server whose certificate is its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

"""Direct mode as a client has it: a connection inside TLS, frames on it, and the paths that frames are sent to."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from attack.target import MASTER
from attack.wire import LOOPBACK, Connection, NoAnswerError, trusting
from pleiad.wire.rntbd import BadFrame
from pleiad.wire.rntbd.context import ContextFrame, read_context_response, write_context_request
from pleiad.wire.rntbd.frame import HEAD_BYTES, LENGTH_BYTES, ResponseFrame, read_response
from pleiad.wire.rntbd.response_tokens import ResponseToken

ACTIVITY_ID = bytes(range(16))
CONTEXT = write_context_request(ContextFrame(ACTIVITY_ID, b"2020-07-15", b"attack"))


class DirectConnection:
    """A connection that is opened when something is sent, and again after it was lost."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._rest = b""

    def close(self) -> None:
        """Ends the connection; the next frame opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def open(self) -> socket.socket:
        """The socket, after the exchange that opens a connection. Raises NoAnswerError where that is not spoken."""
        if self._socket is not None:
            return self._socket
        try:
            plain = socket.create_connection((LOOPBACK, self._port), timeout=self._seconds)
            self._socket = trusting().wrap_socket(plain)
            self._socket.sendall(CONTEXT)
            answer = read_context_response(self._frame())
        except (OSError, BadFrame) as error:
            self.close()
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error
        if answer.status != 200:
            self.close()
            raise NoAnswerError(f"the context was answered {answer.status}")
        return self._socket

    def exchange(self, data: bytes, count: int) -> dict[int, ResponseFrame]:
        """Sends so many requests at once and returns their answers by number."""
        connected = self.open()
        try:
            connected.sendall(data)
            answers = [self._answer() for _ in range(count)]
        except (OSError, BadFrame, NoAnswerError) as error:
            self.close()
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error
        return {int(answer.tokens[ResponseToken.TRANSPORT_REQUEST_ID]): answer for answer in answers}

    def throw(self, data: bytes, silence_seconds: float) -> list[ResponseFrame]:
        """Sends anything on a connection that it is the last on; the answers that come before the end or a silence."""
        answers: list[ResponseFrame] = []
        try:
            connected = self.open()
            connected.sendall(data)
            connected.settimeout(silence_seconds)
            while True:
                answers.append(self._answer())
        except (OSError, NoAnswerError):
            return answers
        finally:
            self.close()

    def _answer(self) -> ResponseFrame:
        frame = read_response(self._frame())
        if not frame.has_payload:
            return frame
        return frame._replace(payload=self._take(int.from_bytes(self._take(LENGTH_BYTES), "little")))

    def _frame(self) -> bytes:
        length = self._take(LENGTH_BYTES)
        return length + self._take(max(HEAD_BYTES, int.from_bytes(length, "little")) - LENGTH_BYTES)

    def _take(self, length: int) -> bytes:
        assert self._socket is not None
        pieces, have = [self._rest], len(self._rest)
        while have < length:
            piece = self._socket.recv(65536)
            if not piece:
                raise NoAnswerError("the connection ended")
            pieces.append(piece)
            have += len(piece)
        whole = b"".join(pieces)
        self._rest = whole[length:]
        return whole[:length]


def is_spoken(port: int) -> bool:
    """Whether a server speaks direct mode."""
    connection = DirectConnection(port, 5.0)
    try:
        connection.open()
    except NoAnswerError:
        return False
    finally:
        connection.close()
    return True


def replica_path(line: Connection, container: Sequence[str]) -> bytes:
    """Where the frames for the first range of a container go; nothing when the server does not say."""
    rids = [line.send(MASTER, "GET", container[:length]).json.get("_rid", "") for length in (2, 4)]
    resolved = quote(f"dbs/{rids[0]}/colls/{rids[1]}/docs", safe="")
    query = f"?$resolveFor={resolved}&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0"
    fields = MASTER.headers_for("GET", "docs", rids[1].lower())
    answer = line.send(MASTER, "GET", ["addresses"], headers=fields, query="/" + query)
    if answer.status != 200 or not answer.json["Addresss"]:
        return b""
    uri: str = answer.json["Addresss"][0]["physcialUri"]
    return urlsplit(uri).path.rstrip("/").encode()

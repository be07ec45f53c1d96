"""Bodies in binary JSON at the door of the head: read into text before an operation sees them, written where asked for.

The first byte tells the form of a request, whatever its headers say; so every operation takes both, and below this
file there is text only. An answer is in binary where the client offers to read it and the operation is one the
service answers so. Text is right for every client, so whatever cannot be written in binary is sent as text.

A short body may stand for much text, since it can repeat strings by reference. The bodies of one request stand for
`_TEXTS_OF_REQUEST` whole requests of text at most, and the text of all requests at work, as far as it is more than
what was received and counted, has the room of `Limits.bodies_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import orjson

from pleiad import errors
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.limits import Limits
from pleiad.server.http.failures import BAD_HEADER
from pleiad.wire import MalformedError
from pleiad.wire.binary_json import START as BINARY_START
from pleiad.wire.binary_json import is_binary
from pleiad.wire.binary_json.read import TextTooLongError, to_text
from pleiad.wire.binary_json.write import TooDeepError, to_binary

OFFER = b"x-ms-cosmos-supported-serialization-formats"
WISH = b"x-ms-documentdb-content-serialization-format"
_FORMATS = frozenset({"jsontext", "cosmosbinary", "hybridrow"})
_BINARY = "cosmosbinary"
_TEXT = "jsontext"
_TEXTS_OF_REQUEST = 4
"""A vector of small floats is five times as long in text."""
_RETRY_AFTER_MS = 1_000

__all__ = [
    "BINARY_START",
    "TEXT_ROOM",
    "check_wish",
    "is_binary",
    "offers_binary",
    "text_of",
    "texts_of",
    "wishes_binary",
    "written",
]


class TextRoom:
    """What bodies of requests at work have grown by, since their text was made."""

    __slots__ = ("taken_bytes",)

    def __init__(self) -> None:
        self.taken_bytes = 0

    @contextmanager
    def taken(self, size_bytes: int, limits: Limits) -> Iterator[None]:
        """Counts so many bytes for the length of a block; UNAVAILABLE when there is no room."""
        if self.taken_bytes + size_bytes > limits.bodies_bytes:
            raise errors.UNAVAILABLE(
                reason="The server has no room for the request now; retry.", retry_after_ms=_RETRY_AFTER_MS
            )
        self.taken_bytes += size_bytes
        try:
            yield
        finally:
            self.taken_bytes -= size_bytes


TEXT_ROOM: Final = TextRoom()
"""The room of the process: the memory it is about is the process's."""


async def text_of(body: bytes, limits: Limits) -> bytes:
    """The JSON text of a request body in binary JSON."""
    return (await texts_of([body], limits))[0]


async def texts_of(bodies: Sequence[bytes], limits: Limits) -> list[bytes]:
    """The texts of several bodies, some or all in binary JSON."""
    return await beside(sum(map(len, bodies)), _texts, bodies, limits)


def _texts(bodies: Sequence[bytes], limits: Limits) -> list[bytes]:
    most = limits.request_bytes
    left_bytes = most * _TEXTS_OF_REQUEST
    texts = []
    try:
        for body in bodies:
            text = to_text(body, min(most, left_bytes)) if is_binary(body) else body
            left_bytes -= len(text)
            texts.append(text)
        return texts
    except TextTooLongError:
        raise errors.ITEM_TOO_LARGE(size=f"more than {most}", limit=most) from None
    except MalformedError as error:
        raise errors.BAD_JSON(reason=f"it is not good binary JSON: {error}.") from error


def offers_binary(headers: Mapping[bytes, bytes], answer_bytes: int) -> bool:
    """Whether a client says that it reads binary JSON, and the answer is worth writing so.

    A large answer is left as the text it is where the client reads text too: the .NET client offers both with every
    query, and making binary of a page takes many times as long as making the page.
    """
    offer = headers.get(OFFER)
    if offer is None:
        return False
    formats = _formats(offer)
    return _BINARY in formats and (answer_bytes < LARGE_BYTES or _TEXT not in formats)


def wishes_binary(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a client wants binary JSON in the older words, which name one form."""
    wish = headers.get(WISH)
    return wish is not None and wish.strip().lower() == _BINARY.encode()


def check_wish(headers: Mapping[bytes, bytes]) -> None:
    """Refuses a wish for a form that there is not; the newer header is an offer, and may say anything."""
    wish = headers.get(WISH)
    if wish is not None and wish.strip().lower().decode("latin-1") not in _FORMATS:
        raise BAD_HEADER(name=WISH.decode(), value=wish.decode("latin-1")[:100], hint="")


@lru_cache(maxsize=64)
def _formats(offer: bytes) -> frozenset[str]:
    """The forms in a list; a list with a name that there is not means text.

    A name may have features behind a plus sign, which no answer here uses.
    """
    names = frozenset(name.partition("+")[0].strip().lower() for name in offer.decode("latin-1").split(","))
    return names if names <= _FORMATS else frozenset({_TEXT})


async def written(text: bytes) -> bytes:
    """The binary form of an answer's text."""
    return await beside(len(text), _written, text)


def _written(text: bytes) -> bytes:
    try:
        return to_binary(orjson.loads(text))
    except TooDeepError:
        return text

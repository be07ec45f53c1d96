"""Bodies in binary JSON at the door of the head: read into text before an operation sees them, written where asked for.

The first byte tells the form of a request, whatever its headers say; so every operation takes both, and below this
file there is text only. An answer is in binary where the client offers to read it and the operation is one the
service answers so. Text is right for every client, so whatever cannot be written in binary is sent as text.

Large bodies are worked on in a thread: the codec is Python, and no other request should wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache

import orjson

from pleiad import errors
from pleiad.limits import Limits
from pleiad.wire import MalformedError
from pleiad.wire.binary_json import is_binary
from pleiad.wire.binary_json.read import TextTooLongError, to_text
from pleiad.wire.binary_json.write import TooDeepError, to_binary

OFFER = b"x-ms-cosmos-supported-serialization-formats"
_WISH = b"x-ms-documentdb-content-serialization-format"
_FORMATS = frozenset({"jsontext", "cosmosbinary", "hybridrow"})
_BINARY = "cosmosbinary"
_THREAD_BYTES_MIN = 16 * 1024

__all__ = ["is_binary", "offers_binary", "text_of", "texts_of", "wishes_binary", "written"]


async def text_of(body: bytes, limits: Limits) -> bytes:
    """The JSON text of a request body in binary JSON."""
    return (await texts_of([body], limits))[0]


async def texts_of(bodies: Sequence[bytes], limits: Limits) -> list[bytes]:
    """The texts of several bodies, some or all in binary JSON."""
    if sum(map(len, bodies)) < _THREAD_BYTES_MIN:
        return _texts(bodies, limits)
    return await asyncio.to_thread(_texts, bodies, limits)


def _texts(bodies: Sequence[bytes], limits: Limits) -> list[bytes]:
    most = limits.request_bytes
    try:
        return [to_text(body, most) if is_binary(body) else body for body in bodies]
    except TextTooLongError:
        raise errors.ITEM_TOO_LARGE(size=f"more than {most}", limit=most) from None
    except MalformedError as error:
        raise errors.BAD_JSON(reason=f"it is not good binary JSON: {error}.") from error


def offers_binary(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a client says that it reads binary JSON, among other forms."""
    offer = headers.get(OFFER)
    return offer is not None and _names_binary(offer)


def wishes_binary(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a client wants binary JSON in the older words, which name one form."""
    wish = headers.get(_WISH)
    return wish is not None and wish.strip().lower() == _BINARY.encode()


@lru_cache(maxsize=64)
def _names_binary(offer: bytes) -> bool:
    """Whether binary JSON is in a list of formats; a list with a name that there is not means text.

    A name may have features behind a plus sign, which no answer here uses.
    """
    names = {name.partition("+")[0].strip().lower() for name in offer.decode("latin-1").split(",")}
    return _BINARY in names and names <= _FORMATS


async def written(text: bytes) -> bytes:
    """The binary form of an answer's text."""
    if len(text) < _THREAD_BYTES_MIN:
        return _written(text)
    return await asyncio.to_thread(_written, text)


def _written(text: bytes) -> bytes:
    try:
        return to_binary(orjson.loads(text))
    except TooDeepError:
        return text

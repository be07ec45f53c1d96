"""Bodies in binary JSON at the door of the head: read into text before an operation sees them, written where asked for.

The first byte tells the form of a request, whatever its headers say; so every operation takes both, and below this
file there is text only. An answer is in binary where the client offers to read it and the operation is one the
service answers so. Text is right for every client, so whatever cannot be written in binary is sent as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import orjson

from pleiad import errors
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.limits import Limits
from pleiad.server.http.failures import BAD_HEADER
from pleiad.wire import MalformedError
from pleiad.wire.binary_json import is_binary
from pleiad.wire.binary_json.read import TextTooLongError, to_text
from pleiad.wire.binary_json.write import TooDeepError, to_binary

OFFER = b"x-ms-cosmos-supported-serialization-formats"
WISH = b"x-ms-documentdb-content-serialization-format"
_FORMATS = frozenset({"jsontext", "cosmosbinary", "hybridrow"})
_BINARY = "cosmosbinary"
_TEXT = "jsontext"

__all__ = [
    "check_wish",
    "is_binary",
    "offers_binary",
    "text_of",
    "texts_of",
    "wishes_binary",
    "written",
]


async def text_of(body: bytes, limits: Limits) -> bytes:
    """The JSON text of a request body in binary JSON."""
    return (await texts_of([body], limits))[0]


async def texts_of(bodies: Sequence[bytes], limits: Limits) -> list[bytes]:
    """The texts of several bodies, some or all in binary JSON."""
    return await beside(sum(map(len, bodies)), _texts, bodies, limits)


def _texts(bodies: Sequence[bytes], limits: Limits) -> list[bytes]:
    most = limits.request_bytes
    try:
        return [to_text(body, most) if is_binary(body) else body for body in bodies]
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

"""Decoding the text of an item: all of it, or what stands under some names.

Who looks at few properties of many items saves half of the work by leaving out the others. That is done by msgspec, of
the extra `advise`, which passes over what it is not asked for without making it. A text that is not
an item has the same problem either way, but for a number beyond all doubles under a name that is left out.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import add
from typing import Any, TypedDict

import orjson

from pleiad.job.item_file.entry import BRACKETS_SHALLOW

_DOUBTFUL_ESCAPE = re.compile(rb'\\[^"\\/bfnrt]')


class TextDecoder:
    """Decodes texts one after the other, or many at once."""

    def __init__(self) -> None:
        self.decode: Callable[[bytes], Any] = orjson.loads
        """Raises orjson.JSONDecodeError for what is not JSON."""
        self._decode_part: Callable[[bytes], Any] | None = None

    def leave_out_but(self, names: Iterable[str]) -> bool:
        """From now on items have no other names; False where the library for that is not installed."""
        try:
            msgspec = importlib.import_module("msgspec")
        except ImportError:
            return False
        # mypy wants such a type to be written down, and these names are known only now.
        shape = TypedDict("shape", dict.fromkeys(names, Any), total=False)  # type: ignore[misc]
        decode_part = msgspec.json.Decoder(shape).decode
        failures = msgspec.MsgspecError

        def decode(text: bytes) -> Any:
            if _is_sound_text(text):
                try:
                    return decode_part(text)
                except (failures, RecursionError):
                    pass
            return orjson.loads(text)

        self.decode, self._decode_part = decode, decode_part
        return True

    def decode_many(self, texts: list[bytes], piece: bytes) -> list[dict[str, Any]] | None:
        """The items that texts, which a piece of a file has, are; None where one of them is none or in doubt, and each
        has to be looked at alone."""
        if self._decode_part is not None and not _is_sound_text(piece):
            return None
        if not _are_shallow(texts):
            return None
        try:
            values = list(map(self._decode_part or orjson.loads, texts))
        except (ValueError, RecursionError):  # what msgspec raises is a ValueError too
            return None
        return values if set(map(type, values)) <= {dict} else None


def _are_shallow(texts: list[bytes]) -> bool:
    """Whether no text has so many brackets that something could be nested too deeply."""
    opening = map(add, map(bytes.count, texts, repeat(b"{")), map(bytes.count, texts, repeat(b"[")))
    return max(opening, default=0) <= BRACKETS_SHALLOW


def _is_sound_text(text: bytes) -> bool:
    """Whether UTF-8 and escapes are whole, also where msgspec does not look at them; False where that is in doubt."""
    try:
        if not text.isascii():
            text.decode()
    except UnicodeDecodeError:
        return False
    return b"\\" not in text or _DOUBTFUL_ESCAPE.search(text) is None

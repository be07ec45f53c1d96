"""Decoding the text of an item: all of it, or what stands under some names.

Who looks at few properties of many items saves half of the work by leaving out the others. That is done by msgspec, an
extra (`pip install 'pleiad[advise]'`), which passes over what it is not asked for without making it. A text that is not
an item has the same problem either way, but for a number beyond all doubles under a name that is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

import orjson


class TextDecoder:
    """Decodes texts one after the other."""

    def __init__(self) -> None:
        self.decode: Callable[[bytes], Any] = orjson.loads
        """Raises orjson.JSONDecodeError for what is not JSON."""

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
            # Broken UTF-8 and broken escapes are noticed by looking at them.
            if text.isascii() and b"\\" not in text:
                try:
                    return decode_part(text)
                except (failures, RecursionError):
                    pass
            return orjson.loads(text)

        self.decode = decode
        return True

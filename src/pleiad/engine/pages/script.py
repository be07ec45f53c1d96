"""What the continuations of scripts say: plain texts, since scripts see no more than their own logical partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from pleiad import errors
from pleiad.errors import PleiadError

_DIGITS_MAX: Final = 18
_RESULTS: Final = "c"
"""Begins the text where results are counted."""


@dataclass(frozen=True, slots=True)
class ScriptRowsPageState:
    """A page of a feed, or of a query whose results come item by item."""

    after: int = 0
    """The document number of the last item that is done."""

    def to_text(self) -> str:
        return str(self.after)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The state that a text stands for, an empty one for the first page; BAD_REQUEST when it is none."""
        return cls(_number(text)) if text else cls()


@dataclass(frozen=True, slots=True)
class ScriptResultsPageState:
    """A page of a query that looks at everything first."""

    given: int = 0
    """Results that were given."""

    def to_text(self) -> str:
        return f"{_RESULTS}{self.given}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The state that a text stands for, an empty one for the first page; BAD_REQUEST when it is none."""
        if not text:
            return cls()
        if not text.startswith(_RESULTS):
            raise bad_script_continuation()
        return cls(_number(text.removeprefix(_RESULTS)))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise bad_script_continuation()
    return int(text)


def bad_script_continuation() -> PleiadError:
    return errors.BAD_REQUEST(reason="The continuation is none that this script was given.")

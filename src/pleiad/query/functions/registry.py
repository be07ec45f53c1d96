"""The table of built-in functions: name, argument counts, and the Python that computes the value.

Promises of every function in the table
- Total: any JSON value and UNDEFINED may come in; a JSON value or UNDEFINED comes out. The only exception
  raised is a row of the error table.
- Only the mathematical family gives NaN or an infinity, as IEEE 754 does; whoever renders a result drops
  them.
- Paced: the first two arguments are weighed before a call; what takes more than one pass over them, or a pass in
  Python, ticks by itself.
- Bounded: no result is longer than TEXT_CHARS_MAX or ARRAY_ELEMENTS_MAX, whatever the arguments.

Argument counts are checked when a query is compiled, so a function is only called with a legal count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pleiad import errors
from pleiad.limits import MB
from pleiad.query.pace import carry, tick

TEXT_CHARS_MAX = 4 * MB
LARGE = 1_024
"""Characters or elements from which on a value is counted where it is read or built."""
CHARS_OF_A_STEP = 64
ELEMENT_BYTES = 16
_SIZED = frozenset((str, list, dict))
ARRAY_ELEMENTS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Function:
    """One built-in function; max_args None means any number of arguments from min_args on.

    A function that needs_context gets the QueryContext as its first argument. A function that is not
    deterministic may give another value at the next call with the same arguments.
    """

    name: str
    family: str
    min_args: int
    max_args: int | None
    call: Callable[..., Any]
    needs_context: bool = False
    deterministic: bool = True


REGISTRY: dict[str, Function] = {}

_SPELLED_WITHOUT = ("IS_", "ARRAY_", "INDEX_", "CONTAINS_")
"""The service knows these functions without their underscores too."""

_Call = TypeVar("_Call", bound=Callable[..., Any])


def register(
    family: str,
    name: str,
    min_args: int,
    max_args: int | None,
    *,
    also: str | None = None,
    needs_context: bool = False,
    deterministic: bool = True,
) -> Callable[[_Call], _Call]:
    """Decorator that enters a function in the table under its upper-case name, and under its second spelling."""

    def enter(call: _Call) -> _Call:
        function = Function(name, family, min_args, max_args, call, needs_context, deterministic)
        REGISTRY[name] = function
        second = also or (name.replace("_", "") if name.startswith(_SPELLED_WITHOUT) else None)
        if second is not None:
            REGISTRY[second] = function
        return call

    return enter


def weigh(value: Any) -> None:
    """Counts what it takes to read a large value from one end to the other."""
    if value.__class__ in _SIZED and len(value) > LARGE:
        tick(len(value) // CHARS_OF_A_STEP if value.__class__ is str else len(value))


def weigh_built(steps: int, size_bytes: int) -> None:
    """Counts a large value that is built."""
    tick(steps)
    carry(size_bytes)


def weigh_copied(value: Any) -> None:
    """Counts a large value of which a function makes another, not larger one."""
    if value.__class__ in _SIZED and len(value) > LARGE:
        if value.__class__ is str:
            weigh_built(len(value) // CHARS_OF_A_STEP, len(value))
        else:
            weigh_built(len(value), ELEMENT_BYTES * len(value))


def check_text_chars(chars: int) -> None:
    """Raise when a string of that many characters would pass the bound on results; count it when it is large."""
    if chars > LARGE:
        weigh_built(chars // CHARS_OF_A_STEP, chars)
    if chars > TEXT_CHARS_MAX:
        raise errors.QUERY_ERROR(
            reason=f"A string built by the query is longer than {TEXT_CHARS_MAX} characters."
        )


def check_array_elements(elements: int) -> None:
    """Raise when an array of that many elements would pass the bound on results; count it when it is large."""
    if elements > LARGE:
        weigh_built(elements, ELEMENT_BYTES * elements)
    if elements > ARRAY_ELEMENTS_MAX:
        raise errors.QUERY_ERROR(
            reason=f"An array built by the query has more than {ARRAY_ELEMENTS_MAX} elements."
        )

"""What a script threw, as an error of the table."""

from __future__ import annotations

from typing import Any

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.limits import Limits

_STACK_CHARS_MAX = 2_000
_NUMBER_MAX = 65_535


def check_failure(answer: dict[str, Any], limits: Limits) -> None:
    """Raises what a script threw."""
    failure = answer.get("failure")
    if not isinstance(failure, dict):
        return
    raise _failure_of(failure, limits)


def _failure_of(failure: dict[str, Any], limits: Limits) -> PleiadError:
    """The row of the table for what a script threw."""
    message, stack = str(failure.get("message"))[: limits.script_bytes], str(failure.get("stack"))
    if message.startswith("InternalError: out of memory"):
        return errors.SCRIPT_LIMIT(reason=f"it needs more than {limits.script_memory_bytes} bytes of memory.")
    reason = message + (f"\r\nStack trace: {stack[:_STACK_CHARS_MAX]}" if stack.strip() else "")
    if failure.get("isCompile") is True:
        return errors.SCRIPT_NOT_COMPILED(reason=reason)
    error = errors.SCRIPT_FAILED(reason=reason)
    number = failure.get("number")
    if type(number) is int and 0 < number <= _NUMBER_MAX:
        error.number = number
    return error

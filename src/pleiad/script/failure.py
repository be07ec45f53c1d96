"""What a script threw, as an error of the table; and the errors of the table, by the numbers that scripts know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pleiad import errors
from pleiad.errors import PleiadError, Reason
from pleiad.limits import Limits

_STACK_CHARS_MAX = 2_000
_NUMBER_MAX = 65_535

NUMBERS: Mapping[Reason, int] = {
    Reason.INVALID: 400,
    Reason.UNSUPPORTED: 400,
    Reason.SCRIPT: 400,
    Reason.BUDGET: 400,
    Reason.UNAUTHENTICATED: 401,
    Reason.FORBIDDEN: 403,
    Reason.FULL: 403,
    Reason.MISSING: 404,
    Reason.BEHIND: 404,
    Reason.TIMED_OUT: 408,
    Reason.EXISTS: 409,
    Reason.GONE: 410,
    Reason.PRECONDITION: 412,
    Reason.TOO_LARGE: 413,
    Reason.LOCKED: 423,
    Reason.ABANDONED: 424,
    Reason.THROTTLED: 429,
    Reason.CONTENDED: 449,
    Reason.INTERNAL: 500,
    Reason.UNAVAILABLE: 503,
}
"""The numbers by which scripts know why one of their operations failed: `error.number` in their callbacks."""


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
    if failure.get("isArguments") is True:
        return errors.BAD_JSON(reason=message)
    if failure.get("isCompile") is True:
        return errors.SCRIPT_NOT_COMPILED(reason=reason)
    error = errors.SCRIPT_FAILED(reason=reason)
    number = failure.get("number")
    if type(number) is int and 0 < number <= _NUMBER_MAX:
        error.number = number
    return error

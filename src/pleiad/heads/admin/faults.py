"""Faults on demand over the admin API, holds of splits and merges among them: set, list and clear the rules."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from pleiad import errors
from pleiad.engine.faults import (
    BY_WORD,
    DELAY_MS_MAX,
    OPERATIONS,
    SECONDS_DEFAULT,
    SECONDS_MAX,
    Effect,
    Rule,
)
from pleiad.engine.phase import HOLDABLE
from pleiad.heads.admin.answer import check_names, json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response

RETRY_AFTER_MS_DEFAULT = 100
_COUNT_MAX = 1_000_000_000
_SEED_MAX = 2**63 - 1
_MEMBERS = frozenset(
    {"fault", "count", "share", "seed", "database", "container", "partition", "operation", "delayMs"}
    | {"retryAfterMs", "phase", "seconds"}
)
_MEMBERS_OF_HOLD = frozenset({"fault", "phase", "database", "container", "seconds"})


async def add(call: HttpCall) -> Response:
    """Sets a fault."""
    rule = rule_of(call.json_object(), call.engine.faults.next_id())
    call.engine.faults.add(rule)
    return json_answer(call, to_json(rule), 201)


async def list_all(call: HttpCall) -> Response:
    return json_answer(call, {"faults": [to_json(rule) for rule in call.engine.faults.live()]})


async def clear(call: HttpCall) -> Response:
    return json_answer(call, {"cleared": call.engine.faults.clear()})


async def read(call: HttpCall) -> Response:
    """A fault, in force or over not long ago."""
    rule = call.engine.faults.find(call.segments[3])
    if rule is None:
        raise errors.RESOURCE_NOT_FOUND(kind="fault", id=call.segments[3])
    return json_answer(call, to_json(rule))


async def delete(call: HttpCall) -> Response:
    if not call.engine.faults.remove(call.segments[3]):
        raise errors.RESOURCE_NOT_FOUND(kind="fault", id=call.segments[3])
    return json_answer(call, None, 204)


def rule_of(body: dict[str, Any], id: str) -> Rule:
    """The rule a request describes, checked."""
    check_names(body, _MEMBERS)
    effect = BY_WORD.get(str(body.get("fault")))
    if effect is None:
        raise errors.BAD_REQUEST(reason=f"'fault' must be one of {', '.join(BY_WORD)}.")
    if effect is Effect.HOLD:
        return _hold_of(body, id)
    if "phase" in body:
        raise errors.BAD_REQUEST(reason="Only the fault 'hold' has a 'phase'.")
    share = _number(body, "share", None, 0.0, 1.0)
    if share == 0.0:
        raise errors.BAD_REQUEST(reason="'share' must be above 0.")
    count = _whole(body, "count", None if share is not None else 1, 1, _COUNT_MAX)
    operation = _text(body, "operation")
    if operation is not None and operation not in OPERATIONS:
        raise errors.BAD_REQUEST(reason=f"'operation' must be one of {', '.join(OPERATIONS)}.")
    partition = _text(body, "partition")
    container = _text(body, "container")
    if partition is not None and container is None:
        raise errors.BAD_REQUEST(reason="A 'partition' is one of a 'container'; name that too.")
    _check_scope(body)
    return Rule(
        id=id,
        effect=effect,
        count=count,
        share=1.0 if share is None else share,
        seed=_whole(body, "seed", 0, 0, _SEED_MAX) or 0,
        database=_text(body, "database"),
        container=container,
        partition=partition,
        operation=operation,
        delay_ms=_delay_ms(body, effect),
        retry_after_ms=_retry_after_ms(body, effect),
        expires_at=_expires_at(body),
    )


def _hold_of(body: dict[str, Any], id: str) -> Rule:
    """The rule of a hold, which is about changes of physical partitions and has nothing to say of requests."""
    check_names(body, _MEMBERS_OF_HOLD)
    phase = HOLDABLE.get(str(body.get("phase")))
    if phase is None:
        raise errors.BAD_REQUEST(reason=f"The fault 'hold' needs a 'phase', one of {', '.join(HOLDABLE)}.")
    _check_scope(body)
    return Rule(
        id=id,
        effect=Effect.HOLD,
        database=_text(body, "database"),
        container=_text(body, "container"),
        phase=phase,
        expires_at=_expires_at(body),
    )


def _check_scope(body: dict[str, Any]) -> None:
    if _text(body, "container") is not None and _text(body, "database") is None:
        raise errors.BAD_REQUEST(reason="A 'container' is one of a 'database'; name that too.")


def _expires_at(body: dict[str, Any]) -> float:
    return time.time() + (_number(body, "seconds", SECONDS_DEFAULT, 0.001, SECONDS_MAX) or 0.0)


def _delay_ms(body: dict[str, Any], effect: Effect) -> int:
    delay_ms = _whole(body, "delayMs", 0, 0, DELAY_MS_MAX) or 0
    if effect is Effect.LATE and delay_ms == 0:
        raise errors.BAD_REQUEST(reason="The fault 'late' needs a 'delayMs' above 0.")
    return delay_ms


def _retry_after_ms(body: dict[str, Any], effect: Effect) -> int | None:
    if effect is not Effect.TOO_MANY_REQUESTS:
        if "retryAfterMs" in body:
            raise errors.BAD_REQUEST(reason="Only the fault '429' has a 'retryAfterMs'.")
        return None
    return _whole(body, "retryAfterMs", RETRY_AFTER_MS_DEFAULT, 0, DELAY_MS_MAX)


def _whole(body: dict[str, Any], name: str, default: int | None, least: int, most: int) -> int | None:
    value = body.get(name, default)
    if value is default:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a whole number from {least} to {most}.")
    return value


def _number(
    body: dict[str, Any], name: str, default: float | None, least: float, most: float
) -> float | None:
    value = body.get(name, default)
    if value is default:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a number from {least:g} to {most:g}.")
    return float(value)


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a text.")
    return value


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def to_json(rule: Rule) -> dict[str, Any]:
    """A rule as the admin API shows it, without what it does not say."""
    shown = {
        "id": rule.id,
        "fault": rule.effect.word,
        "phase": None if rule.phase is None else rule.phase.value,
        "count": rule.count,
        "share": rule.share if rule.share < 1.0 else None,
        "seed": rule.seed if rule.share < 1.0 else None,
        "database": rule.database,
        "container": rule.container,
        "partition": rule.partition,
        "operation": rule.operation,
        "delayMs": rule.delay_ms or None,
        "retryAfterMs": rule.retry_after_ms,
        "hits": rule.hits,
        "setAt": _moment(rule.set_at),
        "endsAt": _moment(rule.expires_at),
        "secondsLeft": round(max(0.0, rule.expires_at - time.time()), 3),
    }
    return {name: value for name, value in shown.items() if value is not None}

"""Running one script in a process: start it, do its operations, hand it the results, until it asks for no more."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.engine.script.clock import Clock
from pleiad.engine.script.host import ScriptHost
from pleiad.script import worker
from pleiad.script.failure import check_failure
from pleiad.script.process import ScriptProcess

_ACCEPTED_SHARE = 0.8
"""The part of its time in which a script's operations are accepted; the rest is for it to come to an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script about to run, with what it finds: arguments, request and response, as JSON texts.

    Its arguments may be any text: the script process reads them.
    """

    source: str
    arguments: str = "[]"
    operation: str | None = None
    request_body: bytes | None = None
    is_request_writable: bool = False
    has_response: bool = True
    response_body: bytes | None = None
    is_logging: bool = False


class Ended(NamedTuple):
    """What a script left when it ended well: the bodies it set, as JSON texts, and its log."""

    request_body: bytes | None
    response_body: bytes | None
    log: str


async def run_script(
    process: ScriptProcess, container: Container, script: Script, host: ScriptHost, clock: Clock
) -> Ended:
    """Runs a script to its end; what it threw, or a limit it met, is raised as an error of the table."""
    host.begin()
    answer = await _ask(process, worker.START, _start_text(container, script, host, clock), clock)
    while "operations" in answer:
        results = await host.answer_all(answer["operations"])
        answer = await _ask(process, worker.RESUME, results, clock)
    check_failure(answer, container.limits)
    done = answer.get("done")
    if not isinstance(done, dict):
        raise errors.SCRIPT_FAILED(reason="the script did not come to an end.")
    log = done.get("log")
    ended = Ended(_json_text(done.get("requestBody")), _json_text(done.get("responseBody")), str(log or ""))
    limit = container.limits.response_bytes
    if ended.response_body is not None and len(ended.response_body) > limit:
        raise errors.SCRIPT_RESPONSE_TOO_LARGE(limit=limit)
    return ended


async def _ask(process: ScriptProcess, command: int, text: bytes, clock: Clock) -> dict[str, Any]:
    clock.check()
    answer = await process.ask(command, text, clock.seconds_left)
    if not isinstance(answer, dict):
        raise errors.SCRIPT_FAILED(reason="the script gave no object.")
    return answer


def _start_text(container: Container, script: Script, host: ScriptHost, clock: Clock) -> bytes:
    limits, partition = container.limits, host.transaction.partition
    settings: dict[str, Any] = {
        "source": script.source,
        "selfLink": container.link,
        "altLink": container.path,
        "operation": script.operation,
        "isRequestWritable": script.is_request_writable,
        "hasResponse": script.has_response,
        "isLogging": script.is_logging,
        "isSpent": host.is_spent,
        "acceptMs": max(0, int(clock.seconds_left * 1000 * _ACCEPTED_SHARE)),
        "bodyChars": limits.response_bytes,
        "logChars": limits.script_log_chars,
        "quota": f"collectionSize={limits.physical_partition_bytes // 1024};",
        "usage": f"collectionSize={partition.size_bytes_seen // 1024};",
        "idPrefix": str(uuid.uuid4())[:24],
        "arguments": script.arguments,
    }
    if script.request_body is not None:
        settings["requestBody"] = orjson.Fragment(script.request_body)
    if script.response_body is not None:
        settings["responseBody"] = orjson.Fragment(script.response_body)
    return orjson.dumps(settings)


def _json_text(value: object) -> bytes | None:
    """A body that a script set; it came as JSON text inside JSON."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else None

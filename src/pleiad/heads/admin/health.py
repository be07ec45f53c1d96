"""Health and readiness, for balancers and supervisors: no key needed, so kinds of problems are told and no names.

*Health* is 200 as long as the process answers: to start it anew would help nothing. Its body tells the truth about the
rest, `ok` or `degraded`. *Readiness* is 503 while sending requests here makes no sense: the store cannot be reached, or
the server is stopping. With a part of the data out of service it stays 200, `degraded`: the rest is served, and another
server on the same data would do no better.
"""

from __future__ import annotations

import orjson

from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response
from pleiad.store.problems import SET_ASIDE

_HEADERS = b"Content-Type: application/json\r\nCache-Control: no-store\r\n"
_HARMLESS = frozenset({SET_ASIDE})
"""Problems that no request meets; they stand in the warnings."""


def health(call: HttpCall) -> Response:
    """Whether the process answers, and whether all is well with what it serves."""
    return _answer(200, "degraded" if _problems(call) else "ok", _problems(call))


async def readiness(call: HttpCall) -> Response:
    """Whether requests should be sent here."""
    engine = call.engine
    if engine.is_stopping:
        return _answer(503, "stopping", [])
    if not await engine.store.is_there():
        return _answer(503, "store unavailable", _problems(call))
    return _answer(200, "degraded" if _problems(call) else "ready", _problems(call))


def _problems(call: HttpCall) -> list[str]:
    return sorted({problem.kind for problem in call.engine.store.problems.standing()} - _HARMLESS)


def _answer(status: int, word: str, problems: list[str]) -> Response:
    body: dict[str, object] = {"status": word}
    if problems:
        body["problems"] = problems
    return Response(status, _HEADERS, orjson.dumps(body))

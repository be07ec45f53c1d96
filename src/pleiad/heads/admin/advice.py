"""Advice on the partition key of a container over the admin API: beginning, watching and cancelling it, the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pleiad import errors
from pleiad.advise.key import KeyTextError, parse
from pleiad.catalog.resource import Kind, Resource
from pleiad.errors import PleiadError
from pleiad.heads.admin.answer import check_names, json_answer, made_answer
from pleiad.heads.http.call import HttpCall
from pleiad.job.advice.advices import Advices, what_is_missing
from pleiad.job.advice.task import AdvicePlan, AdviceProgress
from pleiad.job.backup.manifest import moment
from pleiad.limits import Limits
from pleiad.server.http.failures import ROUTE_NOT_FOUND
from pleiad.server.http.message import Response, render_headers

_MEMBERS: Final = frozenset({"candidates", "growth", "throughput", "sample"})
_CANDIDATES_MAX: Final = 20
_KEY_CHARACTERS_MAX: Final = 1_000
_GROWTH_MAX: Final = 1_000_000
_SAMPLE_MIN: Final = 100
_REPORT, _PAGE = "report", "page"


class AdviceOperations:
    """What can be asked of advices; the server that makes them is there as long as the account is open."""

    def __init__(self, advices: Callable[[], Advices]) -> None:
        self._advices = advices

    async def start(self, call: HttpCall) -> Response:
        """Begins an advice, which goes on behind the answer."""
        container = _container(call)
        plan = plan_from_json(call.json_object() if call.request.body else {}, call.limits)
        await self._advices().start(call.segments[3], container.id, plan)
        return self._told(call, container, 202)

    async def read(self, call: HttpCall) -> Response:
        """How far the advice on the container is, and whether there is a report."""
        return self._told(call, _container(call))

    async def cancel(self, call: HttpCall) -> Response:
        """Ends the making of it."""
        container = _container(call)
        await self._advices().cancel(container.rid)
        return self._told(call, container)

    async def report(self, call: HttpCall) -> Response:
        """The newest report: as JSON, or as a page to keep."""
        wanted = call.segments[7]
        if wanted not in (_REPORT, _PAGE):
            raise ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])
        made = self._advices().report(_container(call).rid)
        if made is None:
            raise errors.RESOURCE_NOT_FOUND(kind="report of an advice on", id=call.segments[5][:100])
        if wanted == _REPORT:
            return made_answer(call, made.json)
        pairs = [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Disposition", 'attachment; filename="advice.html"'),
            ("x-ms-activity-id", call.activity_id),
        ]
        return Response(200, render_headers(pairs), made.page)

    def _told(self, call: HttpCall, container: Resource, status: int = 200) -> Response:
        advices = self._advices()
        report, running = advices.report(container.rid), advices.running
        answer = {
            "missing": what_is_missing() or None,
            "advice": _progress(advices.told(container.rid)),
            "reportAt": None if report is None else moment(report.made_at),
            "underWay": None if running is None else f"{running.database}/{running.container}",
        }
        return json_answer(call, answer, status)


def _progress(told: AdviceProgress | None) -> dict[str, Any] | None:
    if told is None:
        return None
    plan = told.plan
    return {
        "state": told.state.value,
        "step": told.step.value,
        "what": told.what or None,
        "done": told.done,
        "total": told.total,
        "chargeRu": round(told.charge_ru, 2),
        "beganAt": moment(told.began_at),
        "endedAt": moment(told.ended_at) if told.ended_at else None,
        "problem": told.problem or None,
        "candidates": list(plan.candidates),
        "growth": plan.growth,
        "throughput": plan.throughput_ru,
        "sample": plan.sample,
    }


def plan_from_json(body: dict[str, Any], limits: Limits) -> AdvicePlan:
    """What a request asks for; BAD_REQUEST says what is wrong with it."""
    check_names(body, _MEMBERS)
    return AdvicePlan(
        candidates=_candidates(body.get("candidates"), limits),
        growth=_number(body.get("growth", 1.0), "growth", 0.001, _GROWTH_MAX),
        throughput_ru=None
        if body.get("throughput") is None
        else _number(body["throughput"], "throughput", 1, limits.throughput_ru_max),
        sample=_sample(body.get("sample"), limits),
    )


def _candidates(given: object, limits: Limits) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > _CANDIDATES_MAX:
        raise _bad(f"'candidates' must be a list of up to {_CANDIDATES_MAX} keys")
    found = []
    for text in given:
        if not isinstance(text, str) or len(text) > _KEY_CHARACTERS_MAX:
            raise _bad(f"'candidates' has a key that is no text of up to {_KEY_CHARACTERS_MAX} characters")
        try:
            found.append(parse(text, limits).text)
        except KeyTextError as error:
            raise _bad(str(error)) from None
    return tuple(dict.fromkeys(found))


def _number(given: object, name: str, least: float, most: float) -> float:
    if not isinstance(given, int | float) or isinstance(given, bool) or not least <= given <= most:
        raise _bad(f"'{name}' must be a number from {least:g} to {most:,.0f}")
    return float(given)


def _sample(given: object, limits: Limits) -> int | None:
    if given is None:
        return None
    if type(given) is not int or not _SAMPLE_MIN <= given <= limits.advice_items:
        raise _bad(f"'sample' must be a whole number from {_SAMPLE_MIN} to {limits.advice_items:,}")
    return given


def _bad(reason: str) -> PleiadError:
    return errors.BAD_REQUEST(reason=f"No advice can be made: {reason}.")


def _container(call: HttpCall) -> Resource:
    database = call.engine.database(call.segments[3])
    return call.engine.find(Kind.CONTAINER, database, call.segments[5])

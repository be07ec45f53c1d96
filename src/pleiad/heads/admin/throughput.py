"""Throughput over the admin API: what the account, a database or a container has, and changing it."""

from __future__ import annotations

from typing import Any

from pleiad import errors
from pleiad.catalog import throughput
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput
from pleiad.engine.throughput.provisioning import Migration
from pleiad.heads.admin.answer import check_names, json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response

_MEMBERS = frozenset({"ru", "autoscaleMaximumRu"})


async def read(call: HttpCall) -> Response:
    return json_answer(call, _to_json(_offer(call)))


async def read_account(call: HttpCall) -> Response:
    """What all databases and containers have together and may have, and the budget of requests on metadata."""
    budget = call.engine.metadata_budget
    figures = budget.snapshot()
    return json_answer(
        call,
        {
            "ru": call.engine.provisioning.provisioned_ru(),
            "limitRu": call.limits.account_throughput_ru or None,
            "metadata": {
                "limitRu": budget.limit_ru or None,
                "lastMinute": round(figures.minute_ru, 2),
                "total": round(figures.ru, 2),
                "throttled": figures.refused,
                "throttledLastMinute": figures.refused_minute,
            },
        },
    )


async def replace(call: HttpCall) -> Response:
    """Sets manual throughput with `ru`, or autoscale with `autoscaleMaximumRu`."""
    offer = _offer(call)
    wanted = _wanted(call.json_object())
    body = {"content": wanted.offer_content()}
    changed = await call.engine.replace_offer(offer.rid, body, None, Migration.AS_GIVEN)
    return json_answer(call, _to_json(changed))


def _offer(call: HttpCall) -> Resource:
    """The offer of the database or container in the path; a container may have none of its own."""
    segments = call.segments
    owner = call.engine.database(segments[3])
    if len(segments) > 5:
        owner = call.engine.find(Kind.CONTAINER, owner, segments[5])
    offer = call.engine.catalog.offer_of(owner.rid)
    if offer is None:
        where = "shares that of its database" if owner.kind is Kind.CONTAINER else "has none to share"
        raise errors.BAD_REQUEST(
            reason=f"The {owner.kind.word} '{owner.id}' has no throughput of its own: it {where}."
        )
    return offer


def _wanted(body: dict[str, Any]) -> Throughput:
    check_names(body, _MEMBERS)
    if len(body) != 1:
        raise errors.BAD_REQUEST(reason="Give either 'ru' or 'autoscaleMaximumRu'.")
    (name, value), *_ = body.items()
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a whole number of request units per second.")
    return Throughput(value, autoscale=name == "autoscaleMaximumRu")


def _to_json(offer: Resource) -> dict[str, Any]:
    found = throughput.from_offer_content(offer.properties["content"])
    if found.autoscale:
        return {"autoscaleMaximumRu": found.ru}
    return {"ru": found.ru}

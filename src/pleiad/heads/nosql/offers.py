"""Offers over REST: the throughput of databases and containers.

An offer is pending while physical partitions for it are still to be made. That is a matter of a moment, and clients
sleep long between two looks, so reading an offer waits that moment first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.throughput.provisioning import Migration
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.metadata import feed_answer
from pleiad.heads.nosql.render import described
from pleiad.heads.nosql.resource_json import self_link, to_json
from pleiad.server.http.message import Response

_TO_AUTOSCALE = b"x-ms-cosmos-migrate-offer-to-autopilot"
_TO_MANUAL = b"x-ms-cosmos-migrate-offer-to-manual-throughput"


async def read(call: Call) -> Response:
    call.engine.check_has_offers()
    rid = call.segments[1]
    if call.engine.provisioning.is_pending(call.engine.find(Kind.OFFER, None, rid)):
        await call.engine.keeper.splits_for_throughput()
    offer = call.engine.find(Kind.OFFER, None, rid)
    state = await _state(call, offer)
    return described(200, call, charge.metadata_read(), offer, _to_json(call, offer), **state)


async def replace(call: Call) -> Response:
    """Changes throughput; while physical partitions for it are still to be made, the answer is 202."""
    call.engine.check_has_offers()
    body = call.json_object()
    if not body.get("id") and not body.get("_rid") and _migration(call) is Migration.NONE:
        raise errors.BAD_REQUEST(
            reason="The input content is invalid because the required properties - 'id; _rid; ' - are missing"
        )
    if body.get("_rid") not in (None, call.engine.find(Kind.OFFER, None, call.segments[1]).rid):
        raise errors.BAD_REQUEST(reason=f"The offer in the body is another one: its _rid is {body['_rid']}.")
    offer = await call.engine.replace_offer(
        call.segments[1], body, call.conditions.if_match, _migration(call)
    )
    headers = await _state(call, offer)
    status = 202 if headers["x_ms_offer_replace_pending"] == "true" else 200
    return described(status, call, charge.metadata_write(), offer, _to_json(call, offer), **headers)


async def list_or_query(call: Call) -> Response:
    call.engine.check_has_offers()
    if any(map(call.engine.provisioning.is_pending, call.engine.catalog.all(Kind.OFFER))):
        await call.engine.keeper.splits_for_throughput()
    return await feed_answer(
        call, Kind.OFFER, "", call.engine.catalog.all(Kind.OFFER), partial(_to_json, call)
    )


def _to_json(call: Call, offer: Resource) -> dict[str, Any]:
    catalog = call.engine.catalog
    value = to_json(catalog, offer)
    owner = catalog.owner_of(offer)
    if owner is not None:
        value["resource"] = self_link(catalog, owner)
    if call.engine.provisioning.is_pending(offer):
        value["content"] = value["content"] | {"isOfferReplacePending": True}
    return value


def _migration(call: Call) -> Migration:
    to_autoscale, to_manual = call.flag(_TO_AUTOSCALE), call.flag(_TO_MANUAL)
    if to_autoscale and to_manual:
        raise errors.BAD_REQUEST(
            reason="An offer is migrated to autoscale or to manual throughput, not to both."
        )
    if to_autoscale:
        return Migration.TO_AUTOSCALE
    return Migration.TO_MANUAL if to_manual else Migration.NONE


async def _state(call: Call, offer: Resource) -> dict[str, str]:
    """The headers that say how far the throughput may go down, how far up at once, and if it is on its way there."""
    state = await call.engine.offer_state(offer)
    return {
        "x_ms_cosmos_min_throughput": str(state.minimum_ru),
        "x_ms_cosmos_instant_scale_up_value": str(state.instant_maximum_ru),
        "x_ms_offer_replace_pending": str(state.is_pending).lower(),
    }

"""What is in a container, over the admin API: properties that items have, and values of the partition key."""

from __future__ import annotations

from pleiad import errors
from pleiad.engine import contents
from pleiad.heads.admin.answer import (
    key_to_json,
    made_json_answer,
    text_parameter,
    whole_parameter,
)
from pleiad.heads.admin.partitions import container_of
from pleiad.heads.http import key_text
from pleiad.heads.http.call import HttpCall
from pleiad.query.paths.places import path_text
from pleiad.server.http.message import Response

_SAMPLE_DEFAULT = 100
_SAMPLE_MAX = 1_000
_PATHS_SHOWN_MAX = 500
_KEYS_DEFAULT = 20
_KEYS_MAX = 100
_TEXT_CHARACTERS_MAX = 2_048


async def paths(call: HttpCall) -> Response:
    """The properties that some items have."""
    container = await container_of(call)
    items_max = whole_parameter(call, "sample", _SAMPLE_DEFAULT, _SAMPLE_MAX, least=1)
    found = await contents.sample_paths(container, items_max, call.engine.consistency.read_multiplier)
    call.container, call.charge_ru, call.partitions = container, found.charge_ru, found.partitions
    key_steps = frozenset(container.key.path_steps)
    answer = {
        "sampled": found.items,
        "paths": [
            {
                "path": path_text(path.steps),
                "expression": path.expression,
                "types": sorted(path.types),
                "percent": round(100 * path.items / found.items, 1),
                "isPartitionKey": path.steps in key_steps,
            }
            for path in found.paths[:_PATHS_SHOWN_MAX]
        ],
        "leftOff": max(0, len(found.paths) - _PATHS_SHOWN_MAX),
    }
    return made_json_answer(call, answer, found.charge_ru)


async def keys(call: HttpCall) -> Response:
    """Values of the partition key."""
    container = await container_of(call)
    keys_max = whole_parameter(call, "limit", _KEYS_DEFAULT, _KEYS_MAX, least=1)
    prefix = text_parameter(call, "prefix", _TEXT_CHARACTERS_MAX)
    given = text_parameter(call, "under", _TEXT_CHARACTERS_MAX)
    under = key_text.read(given) if given else ()
    if len(under) >= container.key.levels:
        raise errors.BAD_REQUEST(
            reason=f"'under' must have fewer values than the {container.key.levels} of the partition key."
        )
    multiplier = call.engine.consistency.read_multiplier
    found = await contents.find_keys(container, under, prefix, keys_max, multiplier)
    call.container, call.charge_ru, call.partitions = container, found.charge_ru, found.partitions
    answer = {"keys": [key_to_json(key) for key in found.keys], "isComplete": found.is_complete}
    return made_json_answer(call, answer, found.charge_ru)

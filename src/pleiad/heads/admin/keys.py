"""The keys of the account over the admin API: which are in force, and never what they are."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from pleiad.account.keys import AccountKeys, KeysInForce
from pleiad.heads.admin.answer import json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response


async def read(call: HttpCall, in_force: KeysInForce) -> Response:
    """Each key with a fingerprint, since when they hold, and why a newer key file does not, where that is so."""
    keys = in_force.keys
    # Fingerprints are expensive by intent.
    shown = await asyncio.get_running_loop().run_in_executor(None, _shown, keys)
    answer = {
        "keys": shown,
        "source": in_force.source,
        "since": datetime.fromtimestamp(in_force.since, UTC).isoformat(),
    }
    if in_force.problem is not None:
        answer["problem"] = in_force.problem
    return json_answer(call, answer)


def _shown(keys: AccountKeys) -> list[dict[str, str]]:
    return [
        {
            "name": key.name.value,
            "may": "everything" if key.name.is_master else "read",
            "fingerprint": key.fingerprint(),
        }
        for key in keys.all
    ]

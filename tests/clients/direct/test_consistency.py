"""Every consistency level of an account in direct mode: one frame for a read, charged as it is over HTTPS."""

from __future__ import annotations

import pytest

from pleiad.engine.consistency import BY_OPTION
from tests.clients.direct.conftest import make_container
from tests.clients.direct.frames import Direct
from tests.stores import StartServer

LEVELS = ["Eventual", "ConsistentPrefix", "Session", "BoundedStaleness", "Strong"]


@pytest.mark.parametrize("option", list(BY_OPTION))
def test_reads_at_every_level_are_answered_and_charged_as_over_https(
    option: str, start_server: StartServer
) -> None:
    with start_server(consistency=option) as server:
        direct = Direct(server)
        container = make_container(direct.https)
        docs = [*container, "docs"]
        made = direct.send("POST", docs, {"id": "1", "pk": "a"}, None, ["a"])
        account = LEVELS.index(BY_OPTION[option].word)
        for level in [None, *LEVELS]:
            headers = {} if level is None else {"x-ms-consistency-level": level}
            answers = [
                client.send("GET", [*docs, "1"], None, headers, ["a"]) for client in (direct, direct.https)
            ]
            is_allowed = level is None or LEVELS.index(level) <= account
            assert [answer.status for answer in answers] == [200 if is_allowed else 400] * 2
            charges = {answer.headers["x-ms-request-charge"] for answer in answers}
            assert len(charges) == 1
            if is_allowed:
                is_double = account >= 3 if level is None else LEVELS.index(level) >= 3
                assert charges == {"2.00" if is_double else "1.00"}
                assert answers[0].headers["lsn"] == made.headers["lsn"]
        # Clients ask for every database, user and list of containers at the level Strong.
        for segments in (["dbs"], container[:2], container[:3], [*container[:2], "users"]):
            answer = direct.send("GET", segments, None, {"x-ms-consistency-level": "Strong"})
            assert answer.status == 200
        direct.close()


def test_a_session_that_is_ahead_is_told_so_with_where_the_range_stands(direct: Direct) -> None:
    docs = [*make_container(direct.https), "docs"]
    made = direct.send("POST", docs, {"id": "1", "pk": "a"}, None, ["a"])
    token = made.headers["x-ms-session-token"]
    assert direct.send("GET", [*docs, "1"], None, {"x-ms-session-token": token}, ["a"]).status == 200
    ahead = direct.send(
        "GET", [*docs, "1"], None, {"x-ms-session-token": token.split("#")[0] + "#999"}, ["a"]
    )
    assert (ahead.status, ahead.substatus) == (404, 1002)
    assert ahead.headers["lsn"] == made.headers["lsn"]

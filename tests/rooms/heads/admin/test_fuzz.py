"""Whatever is sent to the admin API, the answer is one of its own and never a failure of the server."""

from __future__ import annotations

import json
from typing import Any

from azure.cosmos import ContainerProxy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.engine.faults import BY_WORD, OPERATIONS
from pleiad.engine.phase import HOLDABLE
from pleiad.testing.start import RunningServer

from .test_api import names, send

NAMES = (
    "fault", "count", "share", "seed", "database", "container", "partition", "operation", "delayMs", "retryAfterMs",
    "phase", "seconds", "ru", "autoscaleMaximumRu", "partitions", "query", "parameters", "partitionKey", "other",
)  # fmt: skip
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from([*BY_WORD, *OPERATIONS, *HOLDABLE, "0", "1"]),
)
VALUES = st.one_of(
    PLAIN, st.lists(PLAIN, max_size=3), st.dictionaries(st.text(max_size=3), PLAIN, max_size=2)
)
BODIES = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5).map(lambda body: json.dumps(body).encode()),
    st.binary(max_size=20),
)
REQUESTS = (
    ("POST", "faults"),
    ("PUT", "{container}/throughput"),
    ("PUT", "{container}/partitions"),
    ("POST", "{container}/merge"),
    ("POST", "{container}/split"),
    ("GET", "faults/{text}"),
    ("DELETE", "faults/{text}"),
    ("GET", "{container}/partitions?largest={text}&hottest={text}"),
    ("GET", "me?{text}"),
    ("GET", "overview?{text}={text}"),
    ("GET", "live?{text}"),
    ("GET", "history?minutes={text}"),
    ("GET", "{container}/live?{text}"),
    ("GET", "{container}/history?minutes={text}"),
    ("GET", "{container}/heat?slices={text}&since={text}"),
    ("GET", "{container}/heat?since={text}"),
    ("GET", "{container}/paths?sample={text}"),
    ("GET", "{container}/keys?prefix={text}&limit=3"),
    ("GET", "{container}/keys?under={text}"),
    ("GET", "{container}/keys?under=%5B{text}%5D&limit={text}"),
    ("POST", "{container}/explain"),
)


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(
    request=st.sampled_from(REQUESTS),
    body=BODIES,
    text=st.from_regex(r"[A-Za-z0-9%.+-]{1,8}", fullmatch=True),
)
def test_no_input_is_a_failure_of_the_server(
    server: RunningServer, container: ContainerProxy, request: Any, body: bytes, text: str
) -> None:
    method, pattern = request
    database, name = names(container)
    path = pattern.format(container=f"dbs/{database}/colls/{name}", text=text)
    status, answer = send(server, method, f"/_pleiad/v1/{path}", None if method == "GET" else body)
    # A name with an escape in it is signed unescaped, which `send` does not do.
    assert status in (200, 201, 204, 400, 404) or (status == 401 and "%" in text), (status, answer)
    if method == "POST" and pattern == "faults":
        server.faults.clear()

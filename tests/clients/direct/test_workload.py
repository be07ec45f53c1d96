"""Requests in direct mode leave the same workload record as those over HTTP."""

from __future__ import annotations

import io

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.testing.start import RunningServer
from pleiad.workload.record import Operation, read
from tests.clients.direct.frames import Direct


def test_requests_in_direct_mode_are_recorded(
    direct: Direct, direct_server: RunningServer, container: list[str]
) -> None:
    database, name = container[1], container[3]
    docs = [*container, "docs"]
    with Connection(direct_server.endpoint, direct_server.key) as connection:
        admin = Admin(connection)
        admin.switch_workload(database, name, "values")
        assert direct.send("POST", docs, {"id": "1", "pk": "a"}, None, ["a"]).status == 201
        assert direct.send("GET", [*docs, "1"], None, None, ["a"]).status == 200
        assert direct.send("GET", [*docs, "none"], None, None, ["a"]).status == 404
        assert direct.send("DELETE", [*docs, "1"], None, None, ["a"]).status == 204
        found = list(read(io.BytesIO(b"".join(admin.workload_lines(database, name)))))
    assert [(each.operation, each.status, each.id) for each in found] == [
        (Operation.CREATE, 201, "1"),
        (Operation.READ, 200, "1"),
        (Operation.READ, 404, "none"),
        (Operation.DELETE, 204, "1"),
    ]
    assert {each.key for each in found} == {("a",)}
    assert {each.container for each in found} == {f"{database}/{name}"}

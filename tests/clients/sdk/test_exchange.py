"""The official client goes on writing while a container is exchanged for a copy with another partition key."""

from __future__ import annotations

import itertools

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from tests.stores import StartServer


@pytest.mark.every_store
@pytest.mark.requirement("R69")
def test_a_client_at_work_finds_the_new_container_under_the_old_name(start_server: StartServer) -> None:
    with start_server() as server, Connection(server.endpoint, server.key) as connection:
        admin = Admin(connection)
        database = CosmosClient(server.endpoint, server.key).create_database("db")
        container = database.create_container("a", PartitionKey("/pk"))
        stale: list[tuple[int | None, int | None]] = []
        after = 0
        copy = {"state": ""}
        for number in itertools.count():
            item = {"id": str(number), "pk": f"p{number % 5}", "t": f"t{number % 3}"}
            try:
                container.create_item(item)
            except CosmosHttpResponseError as error:
                # Told once that the key was worked out by the old definition, the client knows the new one.
                stale.append((error.status_code, error.sub_status))
                container.create_item(item)
            if number == 50:
                plan = {"source": "db/a", "target": "db/b", "partitionKey": "/t", "switch": True}
                copy = admin.start_copy(plan)
            elif copy["state"] not in ("", "done", "failed"):
                copy = admin.copy(str(copy["id"]))
            elif copy["state"]:
                after += 1
            if after > 30:
                break
        assert copy["state"] == "done", copy
        assert stale in ([], [(400, 1001)])
        for written in range(number + 1):
            assert container.read_item(str(written), f"t{written % 3}")["pk"] == f"p{written % 5}"
        found = list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
        assert len(found) == number + 1
        kept = database.get_container_client("b")
        assert kept.read()["partitionKey"]["paths"] == ["/pk"]

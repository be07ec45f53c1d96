"""Databases, containers, throughput and policies through the official client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey, ThroughputProperties

from pleiad.testing.start import RunningServer
from tests.stores import StartServer


def test_a_database_is_created_read_listed_queried_and_deleted(
    pleiad_client: CosmosClient, refused: Any
) -> None:
    database = pleiad_client.create_database("life of a database")
    assert database.read()["id"] == "life of a database"
    assert "life of a database" in [found["id"] for found in pleiad_client.list_databases()]
    query = "SELECT * FROM r WHERE r.id = @id"
    parameters = [{"name": "@id", "value": "life of a database"}]
    assert len(list(pleiad_client.query_databases(query, parameters))) == 1
    with refused(409):
        pleiad_client.create_database("life of a database")
    assert pleiad_client.create_database_if_not_exists("life of a database").id == database.id
    pleiad_client.delete_database("life of a database")
    with refused(404):
        database.read()


def test_a_container_is_created_read_listed_queried_and_deleted(
    pleiad_database: DatabaseProxy, refused: Any
) -> None:
    container = pleiad_database.create_container("c", PartitionKey("/pk"))
    properties = container.read()
    assert properties["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert [found["id"] for found in pleiad_database.list_containers()] == ["c"]
    query = "SELECT * FROM r WHERE r.id = 'c'"
    assert [found["_rid"] for found in pleiad_database.query_containers(query)] == [properties["_rid"]]
    with refused(409):
        pleiad_database.create_container("c", PartitionKey("/other"))
    assert pleiad_database.create_container_if_not_exists("c", PartitionKey("/pk")).id == "c"
    pleiad_database.delete_container("c")
    with refused(404):
        container.read()
    assert list(pleiad_database.list_containers()) == []


def test_a_recreated_container_is_empty_and_another(pleiad_database: DatabaseProxy) -> None:
    first = pleiad_database.create_container("c", PartitionKey("/pk"))
    first.create_item({"id": "1", "pk": "a"})
    old_rid = first.read()["_rid"]
    pleiad_database.delete_container("c")
    second = pleiad_database.create_container("c", PartitionKey("/pk"))
    assert second.read()["_rid"] != old_rid
    assert list(second.read_all_items()) == []
    second.create_item({"id": "1", "pk": "a"})


INDEXING = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/secret/*"}, {"path": '/"_etag"/?'}],
    "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
    "spatialIndexes": [{"path": "/place/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"]}],
    "vectorIndexes": [{"path": "/vector", "type": "flat"}],
    "fullTextIndexes": [{"path": "/text"}],
}
VECTORS = {
    "vectorEmbeddings": [
        {"path": "/vector", "dataType": "float32", "dimensions": 3, "distanceFunction": "cosine"}
    ]
}
FULL_TEXT = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]}
COMPUTED = [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
UNIQUE = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/a", "/b/c"]}]}
CONFLICTS = {
    "mode": "LastWriterWins",
    "conflictResolutionPath": "/version",
    "conflictResolutionProcedure": "",
}
CHANGE_FEED = {"retentionDuration": 10}


def test_every_policy_comes_back_as_it_was_given(pleiad_database: DatabaseProxy) -> None:
    container = pleiad_database.create_container(
        "policies",
        PartitionKey("/pk"),
        indexing_policy=INDEXING,
        default_ttl=100,
        unique_key_policy=UNIQUE,
        conflict_resolution_policy=CONFLICTS,
        computed_properties=COMPUTED,
        vector_embedding_policy=VECTORS,
        full_text_policy=FULL_TEXT,
        change_feed_policy=CHANGE_FEED,
        analytical_storage_ttl=-1,
    )
    properties = container.read()
    for name, given in INDEXING.items():
        assert properties["indexingPolicy"][name] == given, name
    assert properties["defaultTtl"] == 100
    assert properties["uniqueKeyPolicy"] == UNIQUE
    assert properties["conflictResolutionPolicy"] == CONFLICTS
    assert properties["computedProperties"] == COMPUTED
    assert properties["vectorEmbeddingPolicy"] == VECTORS
    assert properties["fullTextPolicy"] == FULL_TEXT
    assert properties["changeFeedPolicy"] == CHANGE_FEED
    assert properties["analyticalStorageTtl"] == -1


def test_a_container_has_the_services_defaults(container: ContainerProxy) -> None:
    properties = container.read()
    assert properties["indexingPolicy"] == {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": '/"_etag"/?'}],
    }
    assert "defaultTtl" not in properties
    assert properties["conflictResolutionPolicy"]["mode"] == "LastWriterWins"
    assert properties["geospatialConfig"] == {"type": "Geography"}


def test_a_replaced_container_has_its_new_policies_and_its_items(
    pleiad_database: DatabaseProxy, container: ContainerProxy
) -> None:
    container.create_item({"id": "1", "pk": "a"})
    indexing = {"indexingMode": "none", "automatic": False, "includedPaths": [], "excludedPaths": []}
    pleiad_database.replace_container(
        container, PartitionKey("/pk"), default_ttl=60, indexing_policy=indexing
    )
    properties = container.read()
    assert (properties["defaultTtl"], properties["indexingPolicy"]["indexingMode"]) == (60, "none")
    assert container.read_item("1", "a")["id"] == "1"
    pleiad_database.replace_container(container, PartitionKey("/pk"))
    assert "defaultTtl" not in container.read()


@pytest.mark.requirement("R69")
def test_the_partition_key_of_a_container_cannot_be_replaced(
    pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    container.create_item({"id": "1", "pk": "a", "other": "b"})
    with refused(400):
        pleiad_database.replace_container(container, PartitionKey("/other"))
    assert container.read()["partitionKey"]["paths"] == ["/pk"]
    moved = pleiad_database.create_container("moved", PartitionKey("/other"))
    for item in container.read_all_items():
        moved.create_item({name: value for name, value in item.items() if not name.startswith("_")})
    assert moved.read_item("1", "b")["pk"] == "a"


@pytest.mark.parametrize("ttl", [0, -2])
def test_a_bad_time_to_live_of_a_container_is_400(
    ttl: int, pleiad_database: DatabaseProxy, refused: Any
) -> None:
    with refused(400):
        pleiad_database.create_container("ttl", PartitionKey("/pk"), default_ttl=ttl)


@pytest.mark.requirement("R17")
def test_throughput_is_given_read_and_replaced_at_any_time(pleiad_database: DatabaseProxy) -> None:
    container = pleiad_database.create_container("c", PartitionKey("/pk"), offer_throughput=800)
    assert container.get_throughput().offer_throughput == 800
    container.replace_throughput(1200)
    assert container.get_throughput().offer_throughput == 1200
    later = pleiad_database.create_container("later", PartitionKey("/pk"))
    assert later.get_throughput().offer_throughput == 400


def test_autoscale_throughput_has_its_maximum_and_increment(pleiad_database: DatabaseProxy) -> None:
    given = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=5)
    container = pleiad_database.create_container("c", PartitionKey("/pk"), offer_throughput=given)
    read = container.get_throughput()
    assert (read.auto_scale_max_throughput, read.auto_scale_increment_percent) == (4000, 5)
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=7000))
    assert container.get_throughput().auto_scale_max_throughput == 7000


def test_a_database_shares_its_throughput_with_containers_that_have_none(pleiad_client: CosmosClient) -> None:
    database = pleiad_client.create_database("shared", offer_throughput=1000)
    assert database.get_throughput().offer_throughput == 1000
    member = database.create_container("member", PartitionKey("/pk"))
    member.create_item({"id": "1", "pk": "a"})
    own = database.create_container("own", PartitionKey("/pk"), offer_throughput=500)
    offers = pleiad_client.client_connection.QueryOffers("SELECT * FROM root r")
    owners = {offer["resource"] for offer in offers}
    assert {database.read()["_self"], own.read()["_self"]} <= owners
    assert member.read()["_self"] not in owners
    assert own.get_throughput().offer_throughput == 500
    database.replace_throughput(1500)
    assert database.get_throughput().offer_throughput == 1500
    pleiad_client.delete_database("shared")


@pytest.mark.parametrize("throughput", [100, 450, 2_000_000])
def test_throughput_outside_the_offer_is_400(
    throughput: int, pleiad_database: DatabaseProxy, container: ContainerProxy, refused: Any
) -> None:
    with refused(400):
        container.replace_throughput(throughput)
    with refused(400):
        pleiad_database.create_container("c", PartitionKey("/pk"), offer_throughput=throughput)


def test_everything_has_the_same_rid_after_a_restart(tmp_path: Path, start_server: StartServer) -> None:
    def rids(client: CosmosClient) -> dict[str, Any]:
        database = client.get_database_client("d")
        container = database.get_container_client("c")
        user = database.get_user_client("u")
        return {
            "database": database.read(),
            "container": container.read(),
            "items": list(container.read_all_items()),
            "user": user.read(),
            "permission": user.get_permission("p").properties["_rid"],
            "throughput": container.get_throughput().properties,
            "ranges": list(container.read_feed_ranges()),
        }

    with start_server(data=tmp_path) as server:
        client = CosmosClient(server.endpoint, server.key)
        database = client.create_database("d")
        container = database.create_container("c", PartitionKey("/pk"), offer_throughput=12_000)
        for number in range(20):
            container.create_item({"id": str(number), "pk": f"k{number}"})
        container.delete_item("7", "k7")
        user = database.create_user({"id": "u"})
        user.create_permission({"id": "p", "permissionMode": "all", "resource": container.container_link})
        before = rids(client)
    with start_server(data=tmp_path) as server:
        client = CosmosClient(server.endpoint, server.key)
        assert rids(client) == before
        container = client.get_database_client("d").get_container_client("c")
        fresh = container.create_item({"id": "new", "pk": "k1"})
        assert fresh["_rid"] not in {item["_rid"] for item in before["items"]}
        other = client.create_database("another")
        assert other.read()["_rid"] != before["database"]["_rid"]


def test_http_and_https_answer_on_the_same_port(pleiad_server: RunningServer) -> None:
    for scheme in ("http", "https"):
        client = CosmosClient(f"{scheme}://localhost:{pleiad_server.port}", pleiad_server.key)
        account = client.get_database_account()
        location = account.WritableLocations[0]
        assert location["databaseAccountEndpoint"] == f"{scheme}://localhost:{pleiad_server.port}/"
        database = client.create_database(f"over {scheme}")
        container = database.create_container("c", PartitionKey("/pk"))
        container.create_item({"id": "1", "pk": "a"})
        assert container.read_item("1", "a")["id"] == "1"
        client.delete_database(f"over {scheme}")


def test_a_client_reaches_the_server_under_the_name_it_knows(pleiad_server: RunningServer) -> None:
    client = CosmosClient(f"http://127.0.0.1:{pleiad_server.port}", pleiad_server.key)
    location = client.get_database_account().WritableLocations[0]
    assert location["databaseAccountEndpoint"] == f"http://127.0.0.1:{pleiad_server.port}/"


def test_a_connection_string_is_all_a_client_needs(pleiad_server: RunningServer) -> None:
    client = CosmosClient.from_connection_string(pleiad_server.connection_string)
    assert client.get_database_account().ConsistencyPolicy == {"defaultConsistencyLevel": "Session"}


def test_a_client_with_the_wrong_key_is_refused(pleiad_server: RunningServer, refused: Any) -> None:
    with refused(401):
        CosmosClient(pleiad_server.endpoint, "d3Jvbmcta2V5LXdyb25nLWtleS13cm9uZy1rZXk=").create_database("x")

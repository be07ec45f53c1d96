"""Which physical partitions a query goes to, as the partitioning documents say, and what that costs."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos.partition_key import NonePartitionKeyValue

PARTITIONS = 4
GLOBAL = "global"


@pytest.fixture(scope="module")
def users(make_container: Any) -> Any:
    """Two items of each of forty users, by UserID, on four physical partitions."""
    made = [
        {"id": f"{user}-{n}", "UserID": f"user-{user}", "city": f"city-{user % 5}", "n": n}
        for user in range(40)
        for n in range(2)
    ]
    return make_container(made, "/UserID", PARTITIONS)


@pytest.fixture(scope="module")
def documents(make_container: Any) -> Any:
    """Users in one global partition, and projects by workspace."""
    people = [
        {"id": f"user-{n}", "workspaceId": GLOBAL, "docType": "user", "email": f"user{n}@example.org"}
        for n in range(20)
    ]
    projects = [
        {
            "id": f"project-{n}",
            "workspaceId": f"workspace-{n % 6}",
            "docType": "project",
            "ownerId": f"user-{n % 4}",
            "visibility": "public" if n % 2 else "private",
            "createdAt": f"2024-01-{n + 1:02d}",
            "description": f"A project about topic {n}",
        }
        for n in range(24)
    ]
    policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/description/*"}]}
    return make_container(people + projects, "/workspaceId", PARTITIONS, indexing_policy=policy)


def query_documents(
    container: Any,
    doc_type: str,
    extra: str = "",
    parameters: list[dict[str, Any]] | None = None,
    key: str | None = None,
) -> list[Any]:
    """The helper of the documents: by type, with an optional further filter, inside a key or across all."""
    text = "SELECT * FROM c WHERE c.docType = @docType" + (f" AND {extra}" if extra else "")
    values = [{"name": "@docType", "value": doc_type}, *(parameters or [])]
    if key is not None:
        return list(container.query_items(query=text, parameters=values, partition_key=key))
    return list(container.query_items(query=text, parameters=values, enable_cross_partition_query=True))


@pytest.mark.requirement("R82", "R83", "R91")
def test_a_filter_on_the_key_goes_to_one_physical_partition(users: Any, ask: Any) -> None:
    by_filter = ask(users, "SELECT * FROM c WHERE c.UserID = @user", {"@user": "user-7"})
    by_option = ask(users, "SELECT * FROM c", partition_key="user-7")
    everywhere = ask(users, "SELECT * FROM c WHERE c.city = 'city-2'")
    assert {item["id"] for item in by_filter.results} == {"7-0", "7-1"}
    assert by_filter.results == by_option.results
    assert by_filter.ranges == by_option.ranges
    assert len(by_filter.ranges) == 1
    assert everywhere.ranges == {"0", "1", "2", "3"}
    assert by_filter.charge_ru < everywhere.charge_ru


@pytest.mark.requirement("R82")
def test_a_filter_on_several_keys_goes_only_to_their_physical_partitions(users: Any, ask: Any) -> None:
    homes = {f"user-{n}": ask(users, "SELECT * FROM c", partition_key=f"user-{n}").ranges for n in range(6)}
    for chosen in (["user-0", "user-1"], ["user-2", "user-4", "user-5"]):
        listed = ", ".join(f"'{user}'" for user in chosen)
        asked = ask(users, f"SELECT * FROM c WHERE c.UserID IN ({listed}) AND c.n = 1")
        assert {item["UserID"] for item in asked.results} == set(chosen)
        assert asked.ranges == set().union(*(homes[user] for user in chosen))


@pytest.mark.requirement("R84")
def test_in_a_small_container_crossing_partitions_costs_no_more(make_container: Any, ask: Any) -> None:
    small = make_container([{"id": str(n), "pk": f"p{n}", "city": f"c{n % 3}"} for n in range(9)])
    across = ask(small, "SELECT * FROM c WHERE c.city = 'c1'")
    inside = ask(small, "SELECT * FROM c", partition_key="p1")
    assert across.ranges == inside.ranges == {"0"}
    assert across.charge_ru - inside.charge_ru < 1


@pytest.mark.requirement("R85", "R89")
def test_a_fan_out_costs_about_as_many_times_more_as_there_are_partitions(users: Any, ask: Any) -> None:
    inside = ask(users, "SELECT VALUE c.id FROM c WHERE c.UserID = 'user-7' AND c.n = 0")
    across = ask(users, "SELECT VALUE c.id FROM c WHERE c.id = '7-0'")
    assert across.results == inside.results
    assert 0.8 * PARTITIONS <= across.charge_ru / inside.charge_ru <= 1.2 * PARTITIONS


@pytest.mark.requirement("R86")
def test_items_of_one_key_are_together_and_items_of_many_keys_are_not(users: Any, ask: Any) -> None:
    homes = [ask(users, "SELECT * FROM c", partition_key=f"user-{n}").ranges for n in range(40)]
    assert all(len(home) == 1 for home in homes)
    assert set().union(*homes) == {"0", "1", "2", "3"}


@pytest.mark.requirement("R87")
def test_crossing_partitions_must_be_switched_on(users: Any, refused: Any) -> None:
    with refused(400, "Cross partition query is required but disabled"):
        list(users.query_items("SELECT * FROM c WHERE c.city = 'city-1'"))
    found = users.query_items("SELECT * FROM c WHERE c.city = 'city-1'", enable_cross_partition_query=True)
    assert len(list(found)) == 16


@pytest.mark.requirement("R88")
def test_a_query_inside_one_partition_costs_one_to_five_request_units(users: Any, ask: Any) -> None:
    for text in ("SELECT * FROM c", "SELECT * FROM c WHERE c.n = 1", "SELECT VALUE COUNT(1) FROM c"):
        assert 1 <= ask(users, text, partition_key="user-3").charge_ru <= 5


@pytest.mark.requirement("R93")
def test_when_to_cross_partitions_and_when_not(documents: Any, ask: Any) -> None:
    by_email = ask(documents, "SELECT * FROM c WHERE c.email = @email", {"@email": "user3@example.org"})
    owned = ask(documents, "SELECT DISTINCT VALUE c.workspaceId FROM c WHERE c.ownerId = 'user-1'")
    counted = ask(documents, "SELECT c.docType, COUNT(1) AS n FROM c GROUP BY c.docType")
    inside = ask(documents, "SELECT * FROM c WHERE c.id = 'project-8'", partition_key="workspace-2")
    assert [item["id"] for item in by_email.results] == ["user-3"]
    assert set(owned.results) == {f"workspace-{n % 6}" for n in range(24) if n % 4 == 1}
    assert {(row["docType"], row["n"]) for row in counted.results} == {("user", 20), ("project", 24)}
    assert all(len(asked.ranges) == PARTITIONS for asked in (by_email, owned, counted))
    assert [item["id"] for item in inside.results] == ["project-8"]
    assert len(inside.ranges) == 1


@pytest.mark.requirement("R116", "R123")
def test_the_query_helper_of_the_documents(documents: Any) -> None:
    assert len(query_documents(documents, "project")) == 24
    assert len(query_documents(documents, "project", key="workspace-1")) == 4
    visibility = [{"name": "@visibility", "value": "public"}]
    public = query_documents(documents, "project", "c.visibility = @visibility", visibility)
    assert {item["visibility"] for item in public} == {"public"}
    assert len(public) == 12
    documents.upsert_item({"id": "extra", "workspaceId": "w", "docType": "extra"})
    assert len(query_documents(documents, "extra")) == 1
    assert documents.read_item("extra", "w")["docType"] == "extra"
    documents.delete_item("extra", "w")
    assert query_documents(documents, "extra") == []


@pytest.mark.requirement("R117")
def test_a_user_is_found_by_email_inside_the_global_partition(documents: Any) -> None:
    email = [{"name": "@email", "value": "user11@example.org"}]
    found = query_documents(documents, "user", "c.email = @email", email, key=GLOBAL)
    assert [user["id"] for user in found] == ["user-11"]


@pytest.mark.requirement("R121", "R122", "R90")
def test_the_efficient_pattern_is_cheaper_than_the_inefficient_one(documents: Any, ask: Any) -> None:
    efficient = ask(
        documents,
        "SELECT * FROM c WHERE c.visibility = @visibility ORDER BY c.createdAt DESC",
        {"@visibility": "public"},
        partition_key="workspace-1",
    )
    inefficient = ask(
        documents, "SELECT * FROM c WHERE CONTAINS(c.description, @search)", {"@search": "topic 7"}
    )
    dates = [item["createdAt"] for item in efficient.results]
    assert dates == sorted(dates, reverse=True)
    assert len(dates) == 4
    assert [item["id"] for item in inefficient.results] == ["project-7"]
    assert len(efficient.ranges) == 1
    assert len(inefficient.ranges) == PARTITIONS
    assert inefficient.charge_ru > 3 * efficient.charge_ru


def test_a_hierarchical_prefix_goes_only_to_the_partitions_it_overlaps(make_container: Any, ask: Any) -> None:
    made = [
        {"id": f"{t}-{u}-{s}", "tenant": f"t{t}", "user": f"u{u}", "session": s}
        for t in range(6)
        for u in range(3)
        for s in range(2)
    ]
    container = make_container(made, ["/tenant", "/user", "/session"], PARTITIONS)
    for text, options in (
        ("SELECT * FROM c", {"partition_key": ["t2"]}),
        ("SELECT * FROM c WHERE c.tenant = 't2'", {}),
    ):
        asked = ask(container, text, **options)
        assert {item["id"] for item in asked.results} == {f"2-{u}-{s}" for u in range(3) for s in range(2)}
        assert len(asked.ranges) == 1
    assert len(ask(container, "SELECT * FROM c", partition_key=["t2", "u1"]).results) == 2
    assert len(ask(container, "SELECT * FROM c", partition_key=["t2", "u1", 0]).results) == 1
    assert len(ask(container, "SELECT * FROM c WHERE c.user = 'u1'").ranges) == PARTITIONS


def test_items_without_a_key_are_found_by_their_absence(make_container: Any, ask: Any) -> None:
    container = make_container([{"id": "1", "pk": "a"}, {"id": "2"}, {"id": "3", "pk": None}], partitions=3)
    assert [
        i["id"] for i in ask(container, "SELECT * FROM c", partition_key=NonePartitionKeyValue).results
    ] == ["2"]
    assert ask(container, "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.pk)").results == ["2"]
    assert ask(container, "SELECT VALUE c.id FROM c WHERE c.pk = null").results == ["3"]


def test_feed_ranges_divide_a_query_without_gap_or_overlap(users: Any, ask: Any) -> None:
    ranges = list(users.read_feed_ranges())
    assert len(ranges) == PARTITIONS
    parts = [ask(users, "SELECT VALUE c.id FROM c ORDER BY c.id", feed_range=each) for each in ranges]
    found = [id for part in parts for id in part.results]
    assert all(part.results == sorted(part.results) for part in parts)
    assert all(len(part.ranges) == 1 for part in parts)
    assert sorted(found) == sorted(ask(users, "SELECT VALUE c.id FROM c").results)
    counts = [ask(users, "SELECT VALUE COUNT(1) FROM c", feed_range=each).results[0] for each in ranges]
    assert sum(counts) == 80


@pytest.mark.parametrize("text", ["SELECT VALUE c.id FROM c ORDER BY c.id", "SELECT VALUE c.id FROM c"])
def test_a_query_of_a_key_goes_on_as_one_of_the_range_of_its_hash_and_the_other_way(
    users: Any, text: str
) -> None:
    ways = [{"partition_key": "user-7"}, {"feed_range": users.feed_range_from_partition_key("user-7")}]
    for begun, gone_on in (ways, ways[::-1]):
        pages = users.query_items(text, max_item_count=1, **begun).by_page()
        first, token = list(next(pages)), pages.continuation_token
        rest = [
            id for page in users.query_items(text, max_item_count=1, **gone_on).by_page(token) for id in page
        ]
        assert sorted(first + rest) == ["7-0", "7-1"]


def test_many_items_are_read_at_once(users: Any) -> None:
    wanted = [(f"{n}-{n % 2}", f"user-{n}") for n in range(40)]
    found = users.read_items([*wanted, ("missing", "user-1")])
    assert {(item["id"], item["UserID"]) for item in found} == set(wanted)

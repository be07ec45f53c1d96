"""Indexing policies: what is filled in, what is refused, and which rule wins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.index.policy import ELEMENT, IndexingPolicy, Steps
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of

LIMITS = Limits()
ETAG = {"path": '/"_etag"/?'}
SAMPLE: dict[str, Any] = {
    "indexingMode": "consistent",
    "includedPaths": [
        {"path": path}
        for path in ("/docType/?", "/workspaceId/?", "/authorId/?", "/slug/?", "/email/?", "/tags/[]")
    ],
    "excludedPaths": [{"path": "/content/*"}, {"path": "/nodes/*"}],
    "compositeIndexes": [
        [{"path": "/docType", "order": "ascending"}, {"path": "/createdAt", "order": "descending"}],
        [
            {"path": "/workspaceId", "order": "ascending"},
            {"path": "/docType", "order": "ascending"},
            {"path": "/name", "order": "ascending"},
        ],
    ],
}


def policy_of(value: object | None = None, **limits: int) -> IndexingPolicy:
    return IndexingPolicy.from_json(value, Limits(**limits))


def paths(included: list[str], excluded: list[str]) -> IndexingPolicy:
    return policy_of(
        {"includedPaths": [{"path": p} for p in included], "excludedPaths": [{"path": p} for p in excluded]}
    )


@pytest.mark.parametrize(
    "value", [None, {}, {"indexingMode": "Consistent"}, {"includedPaths": [{"path": "/*"}]}]
)
def test_the_default_policy_indexes_everything_but_the_etag(value: object | None) -> None:
    policy = policy_of(value)
    assert policy.to_json() == {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [ETAG],
    }
    assert policy.is_indexed(("a",))
    assert policy.is_indexed(("a", 7, "b"))
    assert not policy.is_indexed(("_etag",))


def test_the_etag_joins_the_excluded_paths_and_obsolete_parts_go() -> None:
    policy = policy_of(
        {
            "includedPaths": [
                {"path": "/", "indexes": [{"kind": "Hash", "dataType": "Number", "precision": 2}]}
            ],
            "excludedPaths": [{"path": '/"systemMetadata"/*'}],
        }
    )
    assert policy.to_json()["includedPaths"] == [{"path": "/*"}]
    assert policy.to_json()["excludedPaths"] == [{"path": '/"systemMetadata"/*'}, ETAG]


def test_mode_none_indexes_nothing_and_names_no_paths() -> None:
    policy = policy_of({"indexingMode": "None"})
    assert policy.to_json() == {
        "indexingMode": "none",
        "automatic": False,
        "includedPaths": [],
        "excludedPaths": [],
    }
    assert not policy.is_indexed(("id",))


@pytest.mark.parametrize("mode", ["consistent", "lazy"])
def test_an_index_is_automatic_whatever_a_client_sends(mode: str) -> None:
    policy = policy_of({"indexingMode": mode, "automatic": False})
    assert policy.to_json()["automatic"] is True
    assert policy.is_indexed(("name",))


@pytest.mark.requirement("R124", "R125")
def test_the_sample_policy_without_a_root_indexes_only_what_it_names() -> None:
    policy = policy_of(SAMPLE)
    for name in ("docType", "workspaceId", "authorId", "slug", "email"):
        assert policy.is_indexed((name,))
    assert policy.is_indexed(("tags", ELEMENT))
    assert not policy.is_indexed(("tags", ELEMENT, "name"))
    assert not policy.is_indexed(("content", "body"))
    assert not policy.is_indexed(("nodes", ELEMENT, "x"))
    assert not policy.is_indexed(("somethingElse",))
    document = policy.to_json()
    assert document["includedPaths"] == SAMPLE["includedPaths"]
    assert document["excludedPaths"] == [{"path": "/content/*"}, {"path": "/nodes/*"}, {"path": "/*"}, ETAG]


@pytest.mark.requirement("R126", "R127")
def test_the_sample_composite_indexes_have_their_paths_and_directions() -> None:
    assert policy_of(SAMPLE).composites == (
        ((("docType",), True), (("createdAt",), False)),
        ((("workspaceId",), True), (("docType",), True), (("name",), True)),
    )
    assert policy_of(SAMPLE).to_json()["compositeIndexes"] == SAMPLE["compositeIndexes"]


def test_a_policy_read_back_gives_the_same_policy() -> None:
    policy = policy_of(SAMPLE)
    assert policy_of(policy.to_json()) == policy


@pytest.mark.parametrize(
    ("included", "excluded", "steps", "indexed"),
    [
        (["/m/x/*"], ["/*", "/m/*"], ("m", "x", "y"), True),
        (["/m/x/*"], ["/*", "/m/*"], ("m", "z"), False),
        (["/*"], ["/m/?"], ("m",), False),
        (["/*"], ["/m/?"], ("m", "k"), True),
        (["/m/?"], ["/*", "/m/*"], ("m",), True),
        (["/m/?"], ["/*", "/m/*"], ("m", "k"), False),
        (["/*", "/a/b/c/?"], ["/a/b/*"], ("a", "b", "c"), True),
        (["/*", "/a/b/c/?"], ["/a/b/*"], ("a", "b", "d"), False),
        (["/*", "/a/?"], ["/a/?"], ("a",), True),
        (["/a/[]/b/?"], ["/*"], ("a", 3, "b"), True),
        (["/a/[]/b/?"], ["/*"], ("a", "b"), False),
        (["/a/[]/*"], ["/*"], ("a", 0, "x", "y"), True),
        (['/"a-b"/"c\\"d"/?'], ["/*"], ("a-b", 'c"d'), True),
        (["/A/?"], ["/*"], ("a",), False),
        ([], ["/*"], ("id",), True),
        ([], ["/*", "/id/?"], ("id",), True),
        ([], ["/*"], ("_ts",), True),
        ([], ["/*"], ("pk",), False),
    ],
)
def test_the_most_specific_rule_decides(
    included: list[str], excluded: list[str], steps: Steps, indexed: bool
) -> None:
    assert paths(included, excluded).is_indexed(steps) is indexed


step_lists = st.lists(st.sampled_from(["a", "b", "[]"]), max_size=3)
rules = st.lists(st.tuples(step_lists, st.booleans(), st.booleans()), max_size=6)


@given(rules, st.lists(st.sampled_from(["a", "b", 0]), min_size=1, max_size=4), st.booleans())
def test_precedence_agrees_with_picking_the_best_of_all_matching_rules(
    given_rules: list[tuple[list[str], bool, bool]], target: list[str | int], root: bool
) -> None:
    listed = [([], True, root), *[rule for rule in given_rules if rule[0]]]
    texts: dict[bool, list[str]] = {True: [], False: []}
    best: tuple[int, bool, bool] = (-1, False, False)
    for segments, subtree, included in listed:
        texts[included].append("".join("/" + segment for segment in segments) + ("/*" if subtree else "/?"))
        steps = [ELEMENT if segment == "[]" else segment for segment in segments]
        if target == steps or (subtree and target[: len(steps)] == steps):
            best = max(best, (len(steps), not subtree, included))
    assert paths(texts[True], texts[False]).is_indexed(tuple(target)) is best[2]


@pytest.mark.parametrize(
    "value",
    [
        [],
        "consistent",
        {"indexingMode": "eager"},
        {"indexingMode": 1},
        {"automatic": "yes"},
        {"includedPaths": {}},
        {"includedPaths": ["/*"]},
        {"includedPaths": [{"path": 1}]},
        {"includedPaths": [{"path": ""}]},
        {"includedPaths": [{"path": "a/?"}]},
        {"includedPaths": [{"path": "/a"}]},
        {"includedPaths": [{"path": "/a-b/?"}]},
        {"includedPaths": [{"path": "/?"}]},
        {"includedPaths": [{"path": "/a" * 100_000 + "/?"}]},
        {"spatialIndexes": [{"path": "/l/*", "types": [["Point"]]}]},
        {"includedPaths": [{"path": '/"a/?'}]},
        {"includedPaths": [{"path": "/a/*/b/?"}]},
        {"includedPaths": [{"path": "/a/[]/b/[]/{x,y}/?"}]},
        {"excludedPaths": [{"path": "/a/[]/{x,y}/?"}]},
        {"compositeIndexes": {}},
        {"compositeIndexes": [{"path": "/a"}]},
        {"compositeIndexes": [[{"path": "/a"}]]},
        {"compositeIndexes": [[{"path": f"/p{n}"} for n in range(9)]]},
        {"compositeIndexes": [[{"path": "/a"}, {"path": "/b/*"}]]},
        {"compositeIndexes": [[{"path": "/a"}, {"path": "/a/?"}]]},
        {"compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "up"}]]},
        {"spatialIndexes": [{"types": ["Point"]}]},
        {"spatialIndexes": [{"path": "/l/*", "types": ["Circle"]}]},
        {"spatialIndexes": [{"path": "/l/*", "types": "Point"}]},
        {"spatialIndexes": [{"path": "/l/*", "boundingBox": 1}]},
        {"fullTextIndexes": [{"path": "abstract"}]},
        {"fullTextIndexes": [{"not_path": "/abstract"}]},
        {"fullTextIndexes": [{"path": "/a/*"}]},
        {"vectorIndexes": [{"path": "/v", "type": "notFlat"}]},
        {"vectorIndexes": [{"path": "/v", "type": ["flat"]}]},
        {"vectorIndexes": [{"path": "/v"}]},
        {"vectorIndexes": [{"path": "/v/[]", "type": "flat"}]},
        {"vectorIndexes": [{"path": "/v", "type": "diskANN", "indexingSearchListSize": 5}]},
        {"vectorIndexes": [{"path": "/v", "type": "diskANN", "quantizationByteSize": 513}]},
        {"vectorIndexes": [{"path": "/v", "type": "diskANN", "quantizationByteSize": "8"}]},
        {"vectorIndexes": [{"path": "/v", "type": "diskANN", "vectorIndexShardKey": "/c"}]},
        {"vectorIndexes": [{"path": "/v", "type": "diskANN", "vectorIndexShardKey": ["c"]}]},
        {"vectorIndexes": [{"path": "/v", "type": "diskANN", "vectorIndexShardKey": ["/c", "/d"]}]},
    ],
)
def test_a_policy_that_cannot_be_accepted_is_a_bad_request(value: object) -> None:
    with pytest.raises(PleiadError) as refused:
        policy_of(value)
    assert status_of(refused.value) == 400


def test_the_number_of_paths_and_composites_is_limited() -> None:
    many = [{"path": f"/p{n}/?"} for n in range(3)]
    with pytest.raises(PleiadError, match="limit is 2"):
        policy_of({"includedPaths": many}, index_paths=2)
    with pytest.raises(PleiadError, match="limit is 2"):
        policy_of({"excludedPaths": many}, index_paths=2)
    composites = [[{"path": "/a"}, {"path": f"/b{n}"}] for n in range(3)]
    with pytest.raises(PleiadError, match="limit is 2"):
        policy_of({"compositeIndexes": composites}, composite_indexes=2)


def test_special_indexes_are_returned_as_given_and_a_missing_order_is_ascending() -> None:
    given_policy = {
        "includedPaths": [{"path": "/*"}, {"path": "/t/[]/{x,y}/?"}],
        "spatialIndexes": [{"path": "/loc/*", "types": ["Point", "Polygon"]}],
        "vectorIndexes": [
            {"path": "/v", "type": "diskANN", "quantizationByteSize": 8, "vectorIndexShardKey": ["/p"]}
        ],
        "fullTextIndexes": [{"path": "/t"}],
        "compositeIndexes": [[{"path": "/a"}, {"path": "/b/?", "order": "Descending"}]],
    }
    document = policy_of(given_policy).to_json()
    for section in ("includedPaths", "vectorIndexes", "fullTextIndexes"):
        assert document[section] == given_policy[section]
    kinds = ["Point", "LineString", "Polygon", "MultiPolygon"]
    (spatial,) = document["spatialIndexes"]
    assert (spatial["path"], sorted(spatial["types"])) == ("/loc/*", sorted(kinds))
    assert document["compositeIndexes"] == [
        [{"path": "/a", "order": "ascending"}, {"path": "/b/?", "order": "descending"}]
    ]


def test_lazy_indexing_is_accepted_and_indexes_as_consistently_as_ever() -> None:
    lazy = policy_of({"indexingMode": "Lazy"})
    assert lazy.to_json()["indexingMode"] == "lazy"
    assert lazy.is_indexed(("a",))


def test_vector_indexes_are_checked_against_the_embeddings() -> None:
    def check(index: dict[str, Any]) -> IndexingPolicy:
        return IndexingPolicy.from_json({"vectorIndexes": [index]}, LIMITS, {"/vector1": 256})

    check({"path": "/vector1", "type": "flat"})
    with pytest.raises(PleiadError, match="vector3 not matching in Embedding's path"):
        check({"path": "/vector3", "type": "flat"})
    with pytest.raises(PleiadError, match="between 1 and 256"):
        check({"path": "/vector1", "type": "quantizedFlat", "quantizationByteSize": 0})


def test_a_path_has_one_vector_index() -> None:
    twice = {"vectorIndexes": [{"path": "/v", "type": "flat"}, {"path": "/v", "type": "diskANN"}]}
    with pytest.raises(PleiadError, match="Duplicate Path :/v found in Vector Indexing Policy"):
        IndexingPolicy.from_json(twice, LIMITS, {"/v": 256})


def test_changing_a_returned_document_does_not_change_the_policy() -> None:
    policy = policy_of()
    policy.to_json()["includedPaths"].clear()
    assert policy.to_json()["includedPaths"] == [{"path": "/*"}]

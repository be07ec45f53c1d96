"""Index metrics: the public cases, the rules beyond them, and both wire formats."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

import pytest

from pleiad.heads.nosql.query_reports import index_header_v1, index_header_v2
from pleiad.query.index_use import ENTRIES_MAX, IndexUse, index_use


def use_of(compiled: Any, where: str, policy: Any, **options: Any) -> IndexUse:
    return index_use(compiled(f"SELECT * FROM c WHERE {where}").plan, {}, policy, **options)


def specs(use: IndexUse) -> tuple[list[str], list[str]]:
    return [each.spec for each in use.utilized_single], [each.spec for each in use.potential_single]


def composites(use: IndexUse) -> tuple[list[str], list[str]]:
    return (
        [", ".join(each.specs) for each in use.utilized_composite],
        [", ".join(each.specs) for each in use.potential_composite],
    )


def test_the_public_cases_come_out_as_published(compiled: Any, policy: Any, index_metrics_case: Any) -> None:
    use = index_use(compiled(index_metrics_case["query"]).plan, {}, policy())
    assert json.loads(unquote(index_header_v2(use))) == index_metrics_case["expected_index_metrics"]


@pytest.mark.parametrize(
    ("where", "spec", "impact"),
    [
        ("c.a = 1", "/a/?", "High"),
        ("c.a != 1", "/a/?", "High"),
        ("c.a IN (1, 2)", "/a/?", "High"),
        ("c.a BETWEEN 1 AND 2", "/a/?", "High"),
        ("c.a.b > 1", "/a/b/?", "High"),
        ("c.flag", "/flag/?", "High"),
        ("NOT c.flag", "/flag/?", "High"),
        ("IS_DEFINED(c.a)", "/a/?", "High"),
        ("IS_STRING(c.a)", "/a/?", "High"),
        ("STARTSWITH(c.a, 'x')", "/a/?", "High"),
        ("STARTSWITH(c.a, 'x', true)", "/a/?", "Low"),
        ("StringEquals(c.a, 'x')", "/a/?", "High"),
        ("CONTAINS(c.a, 'x')", "/a/?", "Low"),
        ("ENDSWITH(c.a, 'x')", "/a/?", "Low"),
        ("RegexMatch(c.a, 'x')", "/a/?", "Low"),
        ("c.a LIKE 'x%'", "/a/?", "High"),
        ("c.a LIKE '%x'", "/a/?", "Low"),
        ("ABS(c.a) = 1", "/a/?", "Low"),
        ("ARRAY_CONTAINS(c.tags, 1)", "/tags/[]/?", "High"),
        ("ARRAY_CONTAINS([1, 2], c.a)", "/a/?", "High"),
        ("c.tags[0] = 1", "/tags/[]/?", "High"),
        ("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.name = 1)", "/tags/[]/name/?", "High"),
        ("c['a b'] = 1", '/"a b"/?', "High"),
        ("c['a\\\"b'] = 1", '/"a\\"b"/?', "High"),
        ("c.a < GetCurrentDateTimeStatic()", "/a/?", "High"),
        ("c._ts > 1", "/_ts/?", "High"),
    ],
)
def test_a_filter_an_ordered_index_serves_is_utilized_or_potential(
    compiled: Any, policy: Any, where: str, spec: str, impact: str
) -> None:
    use = use_of(compiled, where, policy())
    assert specs(use) == ([spec], [])
    assert use.utilized_single[0].impact == impact
    assert specs(use_of(compiled, where, policy(indexingMode="none"))) == ([], [spec])


@pytest.mark.parametrize(
    "where",
    [
        "UPPER(c.a) = 'X'",
        "c.a = c.b",
        "c.a < GetCurrentDateTime()",
        "LENGTH(c.a) > 3",
        "udf.f(c.a)",
        "c.a + 1 = 2",
        "true",
    ],
)
def test_a_filter_that_needs_every_item_uses_no_index(compiled: Any, policy: Any, where: str) -> None:
    assert use_of(compiled, where, policy()) == IndexUse()


def test_an_excluded_path_is_a_potential_index(compiled: Any, policy: Any) -> None:
    rules = policy(includedPaths=[{"path": "/*"}], excludedPaths=[{"path": "/b/?"}])
    assert specs(use_of(compiled, "c.a = 1 AND c.b = 2", rules)) == (["/a/?"], ["/b/?"])


def test_an_or_is_served_only_when_each_branch_is(compiled: Any, policy: Any) -> None:
    rules = policy(includedPaths=[{"path": "/*"}], excludedPaths=[{"path": "/x/?"}])
    assert specs(use_of(compiled, "c.a = 1 OR c.b = 2", rules)) == (["/b/?", "/a/?"], [])
    assert specs(use_of(compiled, "c.a = 1 OR c.x = 2", rules)) == ([], ["/x/?"])
    assert specs(use_of(compiled, "c.a = 1 OR LENGTH(c.b) = 2", rules)) == ([], [])
    assert specs(use_of(compiled, "c.k = 1 AND (c.a = 1 OR LENGTH(c.b) = 2)", rules)) == (["/k/?"], [])


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("SELECT * FROM c ORDER BY c.a", "/a/?"),
        ("SELECT VALUE MAX(c.a) FROM c", "/a/?"),
        ("SELECT VALUE SUM(c.a) FROM c", "/a/?"),
        ("SELECT * FROM c ORDER BY c.a, c.b", "/a/?"),
        ("SELECT * FROM c ORDER BY c['größe']", "/größe/?"),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE t.x = 1", "/tags/[]/x/?"),
        ("SELECT VALUE STARTSWITH(c.a, 'x') FROM c", "/a/?"),
    ],
)
def test_order_aggregates_and_joins_use_indexes_too(compiled: Any, policy: Any, text: str, spec: str) -> None:
    assert specs(index_use(compiled(text).plan, {}, policy())) == ([spec], [])


def test_a_partition_key_that_the_request_names_counts_as_filtered(compiled: Any, policy: Any) -> None:
    plan = compiled("SELECT * FROM c").plan
    assert specs(index_use(plan, {}, policy(), key_paths=[("pk",)])) == (["/pk/?"], [])
    excluded = policy(includedPaths=[], excludedPaths=[{"path": "/*"}])
    assert specs(index_use(plan, {}, excluded, key_paths=[("pk",)])) == ([], ["/pk/?"])


def test_a_computed_property_is_indexed_only_by_name(compiled: Any, policy: Any) -> None:
    assert specs(use_of(compiled, "c.low = 1", policy(), computed=["low"])) == ([], ["/low/?"])


@pytest.mark.parametrize(
    ("where", "potential"),
    [
        ("c.a = 1 AND c.b = 2", []),
        ("c.a = 1 AND c.b > 2", ["/a ASC, /b ASC"]),
        ("c.b > 2 AND c.a = 1", ["/a ASC, /b ASC"]),
        ("c.a = 1 AND c.b != 2", ["/a ASC, /b ASC"]),
        ("c.a > 1 AND c.b > 2", []),
        ("c.a = 1 AND c.b = 2 AND c.x > 1 AND c.y < 1", ["/a ASC, /b ASC, /x ASC", "/a ASC, /b ASC, /y ASC"]),
        ("(c.a = 1 AND c.b > 2) OR (c.x = 1 AND c.y > 2)", ["/a ASC, /b ASC", "/x ASC, /y ASC"]),
        ("c['a b'].z = 1 AND c.b > 2", ['/"a b"/z ASC, /b ASC']),
        ("c.tags[0] = 1 AND c.b > 2", []),
    ],
)
def test_equalities_with_a_range_suggest_a_composite_index(
    compiled: Any, policy: Any, where: str, potential: list[str]
) -> None:
    assert composites(use_of(compiled, where, policy())) == ([], potential)


@pytest.mark.parametrize(
    ("known", "where", "utilized"),
    [
        (["a+ b+"], "c.a = 1 AND c.b = 2", ["/a ASC, /b ASC"]),
        (["a+ b-"], "c.a = 1 AND c.b > 2", ["/a ASC, /b DESC"]),
        (["a+ b+"], "c.a != 1 AND c.b > 2", []),
        (["a+ b+ t+"], "c.a = 1 AND c.b = 2 AND c.t > 3", ["/a ASC, /b ASC, /t ASC"]),
        (["a+ b+ t+"], "c.a = 1 AND c.b < 2 AND c.t = 3", []),
        (["a+ b+ t+"], "c.a = 1 AND c.b = 2", []),
        (["t+ a+"], "c.t > 1 AND c.a = 2", []),
        (["a+ b+", "a+ t+"], "c.a = 1 AND c.b < 2 AND c.t > 3", ["/a ASC, /b ASC", "/a ASC, /t ASC"]),
    ],
)
def test_a_composite_index_of_the_policy_is_utilized_by_the_filters_it_serves(
    compiled: Any, policy: Any, known: list[str], where: str, utilized: list[str]
) -> None:
    use = use_of(compiled, where, policy(*known))
    assert composites(use)[0] == utilized
    assert not set(composites(use)[0]) & set(composites(use)[1])


@pytest.mark.parametrize(
    ("text", "utilized"),
    [
        ("SELECT * FROM c ORDER BY c.a DESC, c.b", "/a ASC, /b DESC"),
        ("SELECT VALUE SUM(c.b) FROM c WHERE c.a = 1", "/a ASC, /b DESC"),
        ("SELECT VALUE AVG(c.b) FROM c WHERE c.a = 1 AND c.b > 1", "/a ASC, /b DESC"),
        ("SELECT VALUE SUM(c.b) FROM c WHERE c.a = 1 AND c.x > 1", None),
        ("SELECT COUNT(1) FROM c WHERE c.a = 1 AND c.b = 2 GROUP BY c.b, c.a", "/a ASC, /b DESC"),
    ],
)
def test_order_sums_and_groups_utilize_composite_indexes(
    compiled: Any, policy: Any, text: str, utilized: str | None
) -> None:
    use = index_use(compiled(text).plan, {}, policy("a+ b-"))
    assert composites(use)[0] == ([] if utilized is None else [utilized])


def test_the_first_wire_format_is_base64_of_json_with_four_lists(compiled: Any, policy: Any) -> None:
    rules = policy("a+ b+", includedPaths=[{"path": "/*"}], excludedPaths=[{"path": "/b/?"}])
    use = use_of(compiled, "c.a = 1 AND c.b > 2 AND c.z > 3", rules)
    document = json.loads(base64.b64decode(index_header_v1(use), validate=True))
    single = {
        "FilterExpression": "",
        "FilterPreciseSet": True,
        "IndexPreciseSet": True,
        "IndexImpactScore": "High",
    }
    composite = {"IndexPreciseSet": False, "IndexImpactScore": "High"}
    assert document == {
        "UtilizedSingleIndexes": [single | {"IndexSpec": "/z/?"}, single | {"IndexSpec": "/a/?"}],
        "PotentialSingleIndexes": [single | {"IndexSpec": "/b/?"}],
        "UtilizedCompositeIndexes": [composite | {"IndexSpecs": ["/a ASC", "/b ASC"]}],
        "PotentialCompositeIndexes": [composite | {"IndexSpecs": ["/a ASC", "/z ASC"]}],
    }


def test_both_formats_are_header_text_for_any_name(compiled: Any, policy: Any) -> None:
    plan = compiled("SELECT * FROM c WHERE c[@name] = 1").plan
    use = index_use(plan, {"@name": "\ud800\r\né"}, policy())
    for text in (index_header_v1(use), index_header_v2(use)):
        assert text.isascii()
        assert text.isprintable()


def test_letters_beyond_ascii_stand_as_they_are(compiled: Any, policy: Any) -> None:
    use = use_of(compiled, "c['größe'] = 1 AND c['a b'] = 2", policy())
    assert "gr%C3%B6%C3%9Fe" in index_header_v2(use)
    assert "größe" in base64.b64decode(index_header_v1(use)).decode()
    assert specs(use)[0] == ['/"a b"/?', "/größe/?"]


def test_a_report_that_no_client_could_read_in_a_header_is_cut(compiled: Any, policy: Any) -> None:
    long = use_of(compiled, " AND ".join(f"c['{'é' * 400}{n}'] = 1" for n in range(30)), policy())
    for text in (index_header_v1(long), index_header_v2(long)):
        assert len(text) <= 5_000
    assert json.loads(base64.b64decode(index_header_v1(long)))["UtilizedSingleIndexes"]


def test_the_lists_are_bounded(compiled: Any, policy: Any) -> None:
    use = use_of(compiled, "c.e = 1 AND " + " AND ".join(f"c.p{n} > 1" for n in range(100)), policy())
    assert len(use.utilized_single) == ENTRIES_MAX
    assert len(use.potential_composite) == ENTRIES_MAX

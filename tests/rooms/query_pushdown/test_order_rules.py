"""Which ORDER BY the indexing policy serves, and the text of the refusal where it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.heads.nosql.failures import code_of
from pleiad.query.order_rules import NO_COMPOSITE, NO_RANGE, check_order_by
from pleiad.server.http.failures import status_of


def refusal(compiled: Any, order: str, policy: Any, **options: Any) -> str | None:
    """The one message of the refusal, None when the query is served."""
    return refusal_of(compiled(f"SELECT * FROM c ORDER BY {order}"), policy, **options)


def refusal_of(query: Any, policy: Any, **options: Any) -> str | None:
    try:
        check_order_by(query.plan, policy, options.pop("parameters", {}), **options)
    except PleiadError as error:
        (message,) = json.loads(error.message)["Errors"]
        return str(message)
    return None


def test_a_refusal_is_a_bad_request(compiled: Any, policy: Any) -> None:
    with pytest.raises(PleiadError) as refused:
        check_order_by(compiled("SELECT * FROM c ORDER BY c.a, c.b").plan, policy(), {})
    assert (status_of(refused.value), code_of(refused.value)) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("composite", "order", "is_served"),
    [
        ("a+ b+", "c.a, c.b", True),
        ("a+ b+", "c.a DESC, c.b DESC", True),
        ("a+ b+", "c.a ASC, c.b DESC", False),
        ("a+ b+", "c.b, c.a", False),
        ("a+ b-", "c.a, c.b DESC", True),
        ("a+ b-", "c.a DESC, c.b", True),
        ("a+ b-", "c.a, c.b", False),
        ("a+ b+ t+", "c.a, c.b", False),
        ("a+ b+", "c.a, c.b, c.t", False),
        ("a+ b+ t-", "c.a, c.b, c.t DESC", True),
        ("a/x+ b+", "c.a.x, c.b", True),
        ("a+ b+", "c.a, c.a", False),
    ],
)
def test_several_keys_need_a_composite_index_in_the_same_or_the_exact_reverse_order(
    compiled: Any, policy: Any, composite: str, order: str, is_served: bool
) -> None:
    assert refusal(compiled, order, policy("x+ y+", composite)) == (None if is_served else NO_COMPOSITE)


def test_the_default_policy_serves_one_key_and_not_two(compiled: Any, policy: Any) -> None:
    assert refusal(compiled, "c.k", policy()) is None
    assert refusal(compiled, "c.k, c.id", policy()) == NO_COMPOSITE


def test_a_key_on_an_excluded_path_is_refused(compiled: Any, policy: Any) -> None:
    rules = policy(includedPaths=[{"path": "/*"}], excludedPaths=[{"path": "/a/?"}])
    assert refusal(compiled, "c.a", rules) == NO_RANGE
    assert refusal(compiled, "c.a.b", rules) is None
    assert refusal(compiled, "c._etag", rules) == NO_RANGE


def test_a_composite_index_does_not_serve_one_key_of_an_excluded_path(compiled: Any, policy: Any) -> None:
    rules = policy("a+ b+", includedPaths=[], excludedPaths=[{"path": "/*"}])
    assert refusal(compiled, "c.a", rules) == NO_RANGE
    assert refusal(compiled, "c.a, c.b", rules) is None
    assert refusal(compiled, "c.id", rules) is None
    assert refusal(compiled, "c._ts DESC", rules) is None


def test_mode_none_orders_nothing(compiled: Any, policy: Any) -> None:
    rules = policy("a+ b+", indexingMode="none")
    assert refusal(compiled, "c.id", rules) == NO_RANGE
    assert refusal(compiled, "c.a, c.b", rules) == NO_COMPOSITE


def test_a_bracket_parameter_names_the_path(compiled: Any, policy: Any) -> None:
    rules = policy(excludedPaths=[{"path": "/a/?"}], includedPaths=[{"path": "/*"}])
    assert refusal(compiled, "c[@p]", rules, parameters={"@p": "a"}) == NO_RANGE
    assert refusal(compiled, "c[@p]", rules, parameters={"@p": "b"}) is None


def test_a_computed_property_must_be_named_by_the_policy(compiled: Any, policy: Any) -> None:
    assert refusal(compiled, "c.lower", policy(), computed=["lower"]) == NO_RANGE
    named = policy(includedPaths=[{"path": "/*"}, {"path": "/lower/?"}])
    assert refusal(compiled, "c.lower", named, computed=["lower"]) is None


def test_the_keys_of_groups_need_no_index(compiled: Any, policy: Any) -> None:
    rules = policy(indexingMode="none")
    plain = compiled("SELECT c.a, c.b FROM c ORDER BY c.a, c.b")
    groups = compiled("SELECT c.a, c.b FROM c GROUP BY c.a, c.b ORDER BY c.a, c.b")
    assert (refusal_of(plain, rules), refusal_of(groups, rules)) == (NO_COMPOSITE, None)

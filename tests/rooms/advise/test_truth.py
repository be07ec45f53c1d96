"""What is predicted for a key, beside what a real server does that has it."""

from __future__ import annotations

import pytest

from tools.advice_truth import KEYS, truths


@pytest.mark.requirement("R82", "R89")
def test_predicted_and_observed_charges_loads_and_refusals_agree() -> None:
    found = truths(400, 400, ("/tenantId", "/userId", "/tenantId,/id", "concat(/tenantId,/city)"))
    assert [each.charge_error for each in found] == pytest.approx([0.0] * len(found), abs=0.011)
    assert [each.key for each in found if not each.holds] == []
    refused = {each.key: each.observed_refused for each in found}
    assert refused["/tenantId"] > 0.1 > refused["/tenantId,/id"], (
        "the record is one that a bad key cannot take"
    )


@pytest.mark.long
def test_the_same_holds_for_many_requests_and_every_key() -> None:
    assert [each.key for each in truths(2_000, 3_000, KEYS) if not each.holds] == []

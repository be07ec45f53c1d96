"""The rule of refusals is one table: each store ends every verb under every precondition as the table says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import product

import pytest

from pleiad.store.refusal import refusal
from pleiad.store.rows import NEVER, Mutation, PartitionWrite, Precondition, Result, Row, Verb
from pleiad.store.store import Store

EPK = bytes(16)
LSN = 1
PRECONDITIONS = [
    Precondition(lsn, not_lsn, must_exist, must_be_absent)
    for lsn, not_lsn, must_exist, must_be_absent in product(
        (None, LSN, LSN + 7, NEVER), (None, LSN, LSN + 7), (False, True), (False, True)
    )
]
APPLIED = {
    (Verb.CREATE, False): Result.CREATED,
    (Verb.UPSERT, False): Result.CREATED,
    (Verb.UPSERT, True): Result.REPLACED,
    (Verb.REPLACE, True): Result.REPLACED,
    (Verb.DELETE, True): Result.DELETED,
}


def expected(verb: Verb, given: Precondition, exists: bool) -> Result:
    """The rule in words: what the protocol's If-Match and If-None-Match come down to."""
    if verb is Verb.CREATE:
        return Result.EXISTS if exists else Result.CREATED
    if not exists:
        if verb is not Verb.UPSERT:
            return Result.MISSING
        return Result.PRECONDITION_FAILED if given.must_exist else Result.CREATED
    matches = given.lsn in (None, LSN) and given.not_lsn != LSN and not given.must_be_absent
    return APPLIED[verb, True] if matches else Result.PRECONDITION_FAILED


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("verb", list(Verb))
def test_the_table_is_the_rule(verb: Verb, exists: bool) -> None:
    row = Row(1, EPK, "a", LSN, 0, None, 1, 1, b"{}") if exists else None
    for given in PRECONDITIONS:
        found = refusal(Mutation(verb, EPK, "a", precondition=given), row)
        assert (found or APPLIED[verb, exists]) == expected(verb, given, exists), given


@pytest.mark.every_store
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("verb", list(Verb))
async def test_a_store_ends_every_mutation_as_the_table_says(
    opened: Callable[[], AbstractAsyncContextManager[Store]], verb: Verb, exists: bool
) -> None:
    def given_at(place: int, given: Precondition) -> Mutation:
        return Mutation(verb, EPK, f"i{place}", b"{}", 1, 1, precondition=given)

    async with opened() as store:
        segment = store.segment("s")
        if exists:
            # All of an atomic write have one LSN.
            made = tuple(
                Mutation(Verb.CREATE, EPK, f"i{place}", b"{}", 1, 1) for place in range(len(PRECONDITIONS))
            )
            await segment.commit(PartitionWrite(0, 1, 1_000, made, atomic=True))
        mutations = tuple(given_at(place, given) for place, given in enumerate(PRECONDITIONS))
        outcomes = await segment.commit(PartitionWrite(0, 1, 1_000, mutations))
        assert [outcome.result for outcome in outcomes] == [
            expected(verb, given, exists) for given in PRECONDITIONS
        ]

"""A write as the arguments of the function that applies it, and its answer as outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from pleiad.store.checksum import content_checksum
from pleiad.store.postgres import segment_sql
from pleiad.store.postgres.arrays import byteas, int4s, int8s, texts
from pleiad.store.postgres.json_sql import document_of, to_text
from pleiad.store.rows import APPLIED, NEVER, Mutation, Outcome, PartitionWrite, Result, Row, Verb

_VALUE_BYTES_MAX = 1_000
_LSN_MAX = 2**63 - 1
_CASTS = (
    *("bigint",) * 6,
    "boolean",
    *("int[]", "bytea[]", "text[]", "bytea[]", "text[]", "bigint[]", "bigint[]", "bigint[]", "bigint[]"),
    *("bigint[]", "int[]", "text[]", "int[]", "bytea[]", "bigint[]"),
)
CALL = ", ".join(f"%b::{name}" if name == "bytea[]" else f"%s::{name}" for name in _CASTS)
"""The arguments of `write_3` and `batch_3` as placeholders."""


def arguments(write: PartitionWrite, mutations: Sequence[Mutation]) -> tuple[Any, ...]:
    """The values of the placeholders for some mutations under the terms of a write."""
    preconditions = [mutation.precondition for mutation in mutations]
    return (
        write.partition,
        write.epoch,
        write.now,
        write.default_ttl,
        write.logical_partition_bytes,
        write.partition_bytes,
        write.keep_versions,
        int4s([segment_sql.VERBS[mutation.verb] for mutation in mutations]),
        byteas([mutation.epk for mutation in mutations]),
        texts([to_text(mutation.id) for mutation in mutations]),
        byteas([mutation.body for mutation in mutations]),
        texts([document_of(mutation.body) for mutation in mutations]),
        int8s([mutation.size_bytes for mutation in mutations]),
        int8s([mutation.terms for mutation in mutations]),
        int8s([mutation.ttl for mutation in mutations]),
        int8s([None if p.lsn is None else _known_lsn(p.lsn) for p in preconditions]),
        int8s([None if p.not_lsn is None else _known_lsn(p.not_lsn) for p in preconditions]),
        int4s(
            [
                segment_sql.MUST_EXIST * p.must_exist + segment_sql.MUST_BE_ABSENT * p.must_be_absent
                for p in preconditions
            ]
        ),
        texts([None if m.new_id is None else to_text(m.new_id) for m in mutations]),
        int4s([len(mutation.unique_values) for mutation in mutations]),
        byteas([unique_key(value) for mutation in mutations for value in mutation.unique_values]),
        int8s([_checksum(write, mutation) for mutation in mutations]),
    )


def _checksum(write: PartitionWrite, mutation: Mutation) -> int:
    """The checksum of what a mutation leaves, without the number and the LSN that the database gives it."""
    if mutation.verb is Verb.DELETE:
        return 0
    return content_checksum(
        mutation.epk,
        mutation.id_after.encode(),
        write.now,
        mutation.ttl,
        mutation.size_bytes,
        mutation.terms,
        mutation.body,
    )


def _known_lsn(lsn: int) -> int:
    """An LSN as the database holds it; one that no row can have stays one."""
    return lsn if 0 <= lsn <= _LSN_MAX else NEVER


def unique_key(value: bytes) -> bytes:
    """What is kept of a unique value: of a long one its hash, because an index entry cannot hold it."""
    # A unique value is JSON text, so it never starts with the byte that marks a hash.
    return value if len(value) <= _VALUE_BYTES_MAX else b"\xff" + sha256(value).digest()


def outcomes(
    write: PartitionWrite, mutations: Sequence[Mutation], answers: Sequence[tuple[Any, ...]]
) -> list[Outcome]:
    """What the function answered, one outcome a mutation."""
    found = [_outcome(write, mutation, answer) for mutation, answer in zip(mutations, answers, strict=False)]
    if write.atomic and any(outcome.result not in APPLIED for outcome in found):
        refused = found[-1]
        if refused.result is Result.GONE:
            return found
        abandoned = [Outcome(Result.ABANDONED)] * len(mutations)
        abandoned[len(found) - 1] = refused
        return abandoned
    return found


def _outcome(write: PartitionWrite, mutation: Mutation, answer: tuple[Any, ...]) -> Outcome:
    result, lsn, number, old_number, old_lsn, old_ts, old_ttl, old_size, old_terms, old_body, key = answer
    if result == segment_sql.GONE:
        return Outcome(Result.GONE)
    old = None
    if old_number is not None:
        old = Row(
            old_number, mutation.epk, mutation.id, old_lsn, old_ts, old_ttl, old_size, old_terms, old_body
        )
    row = None if number is None else mutation.row_after(number, lsn, write.now)
    return Outcome(segment_sql.RESULTS[result], lsn, row, old, key)

"""The checksum of a created version has two ways to one number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pleiad.store.checksum import created_checksum, fields_checksum

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.tuples(*[INTEGERS] * 5), st.binary(max_size=40), st.text(max_size=20), st.binary(max_size=100))
def test_the_checksum_of_a_created_version_is_that_of_all_its_fields(
    numbers: tuple[int, ...], epk: bytes, id: str, body: bytes
) -> None:
    lsn, position, ts, number, size_bytes = numbers
    fields = lsn, epk, position, "create", 0, ts, number, id, size_bytes, body, 0, 0, None
    assert created_checksum(lsn, epk, position, ts, number, id, size_bytes, body) == fields_checksum(*fields)

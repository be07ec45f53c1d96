"""Why a key cannot be taken at all, in sentences."""

from __future__ import annotations

from pleiad.advise.candidates import NEARLY_ALL
from pleiad.advise.key import Key, Kind
from pleiad.advise.report import Measures
from pleiad.advise.words import counted, percent
from pleiad.limits import Limits


def reasons_against(key: Key, measures: Measures, limits: Limits) -> tuple[str, ...]:
    """Each is enough."""
    found: list[str] = []
    if measures.changed_share:
        found.append(
            f"Its value changes: {percent(measures.changed_share)} of the observed replaces changed it, and the key "
            "of an item cannot be changed in place."
        )
    if measures.coverage < NEARLY_ALL:
        missing = 1 - measures.coverage - measures.null_share
        what = "null" if measures.null_share > missing else "missing"
        found.append(
            f"It is {what} in {percent(1 - measures.coverage)} of the items, which would all be in one logical "
            "partition."
        )
    if measures.transaction_fit is not None and measures.transaction_fit < 1:
        broken = round((1 - measures.transaction_fit) * measures.transactions)
        found.append(
            f"It breaks {counted(broken, 'transaction')} of the {measures.transactions:,} observed: their items would "
            "be in different logical partitions."
        )
    if measures.id_collisions:
        found.append(
            f"{counted(measures.id_collisions, 'item')} would have the id of another one in the same logical partition."
        )
    if measures.key_bytes_max > limits.partition_key_bytes_v2:
        found.append(
            f"Its longest value has {measures.key_bytes_max:,} bytes, and a key has at most "
            f"{limits.partition_key_bytes_v2:,}."
        )
    if measures.unsafe_number_share > 0 and key.kind in (Kind.PATH, Kind.HIERARCHY):
        found.append(
            f"{percent(measures.unsafe_number_share)} of its numbers are beyond 2^53, where different numbers become "
            "one key: store them as strings."
        )
    return tuple(found)

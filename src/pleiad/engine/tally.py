"""What the pages of a query touched, which is what they are charged for."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add

from pleiad import charge
from pleiad.charge import Charge


@dataclass(slots=True)
class Tally:
    """What a page touched, or several together."""

    partitions: int = 0
    items_loaded: int = 0
    bytes_loaded: int = 0
    items_returned: int = 0
    bytes_returned: int = 0
    index_lookups: int = 0
    udf_calls: int = 0
    steps_beyond: int = 0
    """What was evaluated beyond the steps that are part of loading."""

    def counts(self) -> tuple[int, ...]:
        """All of it, in the order of the fields."""
        return (
            self.partitions,
            self.items_loaded,
            self.bytes_loaded,
            self.items_returned,
            self.bytes_returned,
            self.index_lookups,
            self.udf_calls,
            self.steps_beyond,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, self.counts(), other.counts()))

    def charge(self, multiplier: int) -> Charge:
        return charge.query(
            partitions=self.partitions,
            items_loaded=self.items_loaded,
            bytes_loaded=self.bytes_loaded,
            items_returned=self.items_returned,
            bytes_returned=self.bytes_returned,
            index_lookups=self.index_lookups,
            udf_calls=self.udf_calls,
            steps_beyond=self.steps_beyond,
            multiplier=multiplier,
        )

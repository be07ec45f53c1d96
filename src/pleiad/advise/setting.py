"""What all keys are tried with, and on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.demand import Demands
from pleiad.advise.found import RowsOf
from pleiad.advise.report import Prices
from pleiad.advise.table import Table
from pleiad.limits import Limits

HOURS_OF_A_MONTH = 730
_GB = 1024**3


@dataclass(frozen=True)
class Setting:
    """The items, the requests, and the container they are in."""

    table: Table
    demands: Demands
    throughput_ru: float
    physical: int
    """The number of physical partitions that keys are judged on."""
    counts: tuple[int, ...]
    """Those that are simulated."""
    growth: float
    """How many times as large everything becomes."""
    days: float | None
    """Between the first and the last item."""
    created_bytes_a_day: float | None
    """What the requests themselves add, where items tell no time."""
    limits: Limits
    prices: Prices
    rows_of: RowsOf | None
    row_ru: NDArray[np.float64]
    """What it costs to write and to read the item of each row once."""

    @property
    def bytes_of_a_row(self) -> float:
        """By how much the bytes of a row count: for the items that it stands for, grown."""
        return self.table.scale * self.growth

    def to_provision(self, needed_ru: float) -> float:
        """Throughput in the steps it is sold in."""
        step = self.limits.throughput_ru_step
        return float(max(self.limits.throughput_ru_min, -(-needed_ru // step) * step))

    def cost_month(self, throughput_ru: float, storage_bytes: float) -> float:
        """What throughput and storage cost in a month."""
        throughput = throughput_ru / 100 * self.prices.ru_hour * HOURS_OF_A_MONTH
        return throughput + storage_bytes / _GB * self.prices.gb_month

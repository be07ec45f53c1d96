"""How many different values there are among more items than are kept: a HyperLogLog sketch of Apache DataSketches.

It is of the extra `advise`. Without it the values of the sample are counted, which are fewer.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

ERROR = 0.0163
"""What is counted is off by less than this part of it, 95 times of 100."""
_LOG_BUCKETS = 14


class DistinctSketch:
    """Counts different hashes in 16 KB."""

    def __init__(self, library: Any) -> None:
        self._sketch = library.hll_sketch(_LOG_BUCKETS, library.tgt_hll_type.HLL_8)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        update = self._sketch.update
        for each in hashes.tolist():
            update(each)

    @property
    def count(self) -> int:
        estimate: float = self._sketch.get_estimate()
        return round(estimate)


def new_sketch() -> DistinctSketch | None:
    """A sketch, or None where the library is not installed."""
    try:
        return DistinctSketch(importlib.import_module("datasketches"))
    except ImportError:
        return None

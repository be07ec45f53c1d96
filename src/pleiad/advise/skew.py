"""How unevenly amounts lie over values: pure functions of arrays of amounts, one for each value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]

TOP_VALUES = 10


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly something lies over the logical partitions of a key."""

    top_share: float
    """Of the largest value."""
    top_ten_share: float
    gini: float
    """0 when all values have the same, towards 1 when one has everything."""
    entropy: float
    """Normalised: 1 when all values have the same, 0 when one has everything; 0 for a single value."""
    effective: float
    """How many equally large values would be as uneven: 1 / sum of squared shares."""


def skew_of(amounts: Amounts) -> Skew:
    """The skew of amounts, one for each value; zeros are values that have nothing."""
    total = float(amounts.sum())
    if not len(amounts) or total <= 0:
        return Skew(0.0, 0.0, 0.0, 0.0, 0.0)
    is_even = float(amounts.min()) == float(amounts.max())
    in_order = amounts if is_even else np.sort(amounts)
    shares = in_order / total
    positive = shares[shares > 0]
    count = len(amounts)
    ranks = np.arange(1, count + 1)
    gini = float((2 * (ranks * shares).sum() - (count + 1)) / count)
    entropy = float(-(positive * np.log(positive)).sum() / np.log(count)) if count > 1 else 0.0
    return Skew(
        top_share=float(shares[-1]),
        top_ten_share=float(shares[-TOP_VALUES:].sum()),
        gini=max(0.0, gini),
        entropy=min(1.0, max(0.0, entropy)),
        effective=float(1 / (shares**2).sum()),
    )


def sums(places: NDArray[np.int64], amounts: NDArray[np.float64], count: int) -> Amounts:
    """What comes together at each of so many places."""
    return np.bincount(places, weights=amounts, minlength=count).astype(np.float64, copy=False)


def imbalance(amounts: Amounts) -> float:
    """The largest amount by the mean one: 1 when all are the same."""
    mean = float(amounts.mean()) if len(amounts) else 0.0
    return float(amounts.max()) / mean if mean > 0 else 1.0


def rank_correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """How well one order follows another, from -1 to 1 (Spearman); 0 where one of them has no order."""
    if len(left) < 2:
        return 0.0
    left_ranks, right_ranks = _ranks(left), _ranks(right)
    spread = float(left_ranks.std() * right_ranks.std())
    if spread == 0:
        return 0.0
    return float(((left_ranks - left_ranks.mean()) * (right_ranks - right_ranks.mean())).mean() / spread)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks, the mean one for equal values."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts).astype(np.float64)
    return (ends - (counts - 1) / 2)[inverse]

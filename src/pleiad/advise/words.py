"""Numbers as people read them."""

from __future__ import annotations

_DAYS_OF_A_YEAR = 365
_DAYS_OF_A_MONTH = 60


def percent(share: float) -> str:
    """Without decimals; below one percent with two, as far as they say something."""
    value = 100 * share
    if value == 0 or value >= 0.995:
        return f"{value:.0f} %"
    return "less than 0.01 %" if value < 0.005 else f"{value:.2f} %"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def about(count: int) -> str:
    """A count in the words of a sentence: 8.6 million."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:,.1f} million"
    return f"{count:,}"


def rate(ru: float) -> str:
    return f"{ru:,.0f} RU/s" if ru >= 10 or ru == 0 else f"{ru:,.2f} RU/s"


def lifetime(days: float) -> str:
    """How long something lasts."""
    if days < _DAYS_OF_A_MONTH:
        return counted(int(days), "day")
    if days < 2 * _DAYS_OF_A_YEAR:
        return f"{days / 30.4:.0f} months"
    years = days / _DAYS_OF_A_YEAR
    return "more than 100 years" if years > 100 else f"{years:.0f} years"


def times(factor: float) -> str:
    return f"{factor:,.1f} ×" if factor < 100 else f"{factor:,.0f} ×"


def quoted(label: str, length: int = 40) -> str:
    """A value in a sentence, cut where it is long."""
    return f"“{label if len(label) <= length else label[: length - 1] + '…'}”"

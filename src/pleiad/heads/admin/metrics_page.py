"""A page of metrics, in the text format of Prometheus or in OpenMetrics, which differ in a few letters.

OpenMetrics calls the family of a counter by its name without `_total`, writes the ends of classes as numbers with a
point, and ends the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import accumulate

Labels = Mapping[str, str]
_TOTAL = "_total"
OPEN_METRICS_END = b"# EOF\n"


class PageFormat(Enum):
    """How a page is written, with its content type."""

    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def wanted(accept: str) -> PageFormat:
    """The format that a client asks for: OpenMetrics where it names it, else the one that everybody reads."""
    names = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    is_open = "application/openmetrics-text" in names
    return PageFormat.OPEN_METRICS if is_open else PageFormat.PROMETHEUS


class Page:
    """A page of metrics under construction."""

    def __init__(self, format: PageFormat = PageFormat.PROMETHEUS) -> None:
        self._is_open = format is PageFormat.OPEN_METRICS
        self._lines: list[str] = []

    def add(self, name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]) -> None:
        """A counter or gauge with one sample for each set of labels; a metric without samples is left out."""
        lines = [f"{name}{_braced(labels)} {_number(value)}" for labels, value in samples]
        if lines:
            self._begin(name, kind, text)
            self._lines += lines

    def add_histogram(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        samples: Iterable[tuple[Labels, Sequence[int], float]],
    ) -> None:
        """A histogram: for each set of labels the count in each class, and the sum of the values."""
        self._begin(name, "histogram", text)
        ends = [repr(float(bound)) if self._is_open else _number(bound) for bound in bounds]
        for labels, counts, total in samples:
            for end, count in zip([*ends, "+Inf"], accumulate(counts), strict=True):
                self._lines.append(f"{name}_bucket{_braced({**labels, 'le': end})} {count}")
            self._lines.append(f"{name}_sum{_braced(labels)} {_number(total)}")
            self._lines.append(f"{name}_count{_braced(labels)} {sum(counts)}")

    def _begin(self, name: str, kind: str, text: str) -> None:
        family = name.removesuffix(_TOTAL) if self._is_open and kind == "counter" else name
        self._lines += [f"# HELP {family} {text}", f"# TYPE {family} {kind}"]

    def text(self) -> bytes:
        lines = [*self._lines, "# EOF"] if self._is_open else self._lines
        return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))

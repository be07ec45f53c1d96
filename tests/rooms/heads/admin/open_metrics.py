"""A strict reader of OpenMetrics 1.0, for the parts of it that a page of this server has."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL}(?:,{_LABEL})*)?)\}})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}

Family = tuple[str, str, list[tuple[str, dict[str, str], float]]]


def families(text: str) -> list[Family]:
    """Every family of a page: its name, its kind and its samples."""
    assert text.endswith("\n# EOF\n"), "a page ends with # EOF and a line break"
    found = list(_read(text.removesuffix("# EOF\n").splitlines()))
    names = [name for name, _, _ in found]
    assert len(names) == len(set(names)), "a family stands in one place"
    for family in found:
        _check(*family)
    return found


def _read(lines: list[str]) -> Iterator[Family]:
    place = 0
    while place < len(lines):
        helped = re.fullmatch(rf"# HELP ({_NAME}) \S.*", lines[place])
        typed = re.fullmatch(rf"# TYPE ({_NAME}) (\w+)", lines[place + 1])
        assert helped, lines[place]
        assert typed, lines[place + 1]
        assert helped[1] == typed[1]
        place += 2
        samples = []
        while place < len(lines) and not lines[place].startswith("#"):
            match = _SAMPLE.fullmatch(lines[place])
            assert match, lines[place]
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")
            assert len(pairs) == len(dict(pairs)), "a label is given once"
            samples.append((match[1], dict(pairs), float(match[3])))
            place += 1
        yield typed[1], typed[2], samples


def _check(name: str, kind: str, samples: list[tuple[str, dict[str, str], float]]) -> None:
    assert samples, f"{name} has no sample"
    assert not name.endswith(("_total", "_bucket", "_count", "_sum")), f"{name} is the name of a sample"
    seen = set()
    for sample, labels, value in samples:
        suffix = sample.removeprefix(name)
        assert sample.startswith(name), f"{sample} is of no family"
        assert suffix in _SUFFIXES[kind], f"{sample} is no sample of a {kind}"
        assert kind == "gauge" or value >= 0, f"{sample} goes below 0"
        place = (sample, *sorted(labels.items()))
        assert place not in seen, f"{place} is there twice"
        seen.add(place)
    if kind == "histogram":
        _check_histogram(name, samples)


def _check_histogram(name: str, samples: list[tuple[str, dict[str, str], float]]) -> None:
    by_labels: dict[tuple[tuple[str, str], ...], list[tuple[str, str, float]]] = {}
    for sample, labels, value in samples:
        others = tuple(sorted((key, text) for key, text in labels.items() if key != "le"))
        by_labels.setdefault(others, []).append((sample, labels.get("le", ""), value))
    for lines in by_labels.values():
        buckets = [(end, value) for sample, end, value in lines if sample.endswith("_bucket")]
        ends = [end for end, _ in buckets]
        assert ends[-1] == "+Inf", name
        assert all(end == repr(float(end)) for end in ends[:-1]), f"{name}: {ends}"
        assert [float(end) for end in ends] == sorted(float(end) for end in ends)
        counts = [value for _, value in buckets]
        assert counts == sorted(counts), f"the classes of {name} add up"
        (count,) = [value for sample, _, value in lines if sample.endswith("_count")]
        assert count == counts[-1]
        assert sum(sample.endswith("_sum") for sample, _, _ in lines) == 1

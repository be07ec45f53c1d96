"""An advice as text for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pleiad.advise.report import Candidate, Level, Report, Verdict
from pleiad.advise.words import lifetime, percent, times
from pleiad.cli.view.table import shown, width_of
from pleiad.limits import size_text

WIDTH = 80
_KEY_WIDTH = 24
_BAR_WIDTH = 10
_LOAD_WIDTH = 30
_LABEL_WIDTH = 26
_MARKS = {Level.GOOD: "+", Level.WARN: "!", Level.BAD: "x"}


def text_of(report: Report) -> str:
    """The verdict, all keys, and the best one beside the one to hold against it."""
    parts = [_wrapped(report.verdict), _wrapped(report.detail), *[_wrapped(note) for note in report.notes]]
    parts += [_problems(report), _table(report)]
    shown_keys = [each for each in (report.best, report.counterexample) if each is not None]
    parts.append(_disqualified([each for each in report.candidates if each not in shown_keys]))
    parts += [_one(each, report) for each in shown_keys]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, first: str = "", rest: str = "") -> str:
    """A text in lines, none of which begins with the sign of a number that ends the line before."""
    kept_together = shown(text).replace(" %", "\u00a0%")
    lines = textwrap.fill(
        kept_together, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    return lines.replace("\u00a0%", " %")


def _problems(report: Report) -> str:
    if not report.problem_count:
        return ""
    lines = [_wrapped(text, "  ", "    ") for text in report.problems[:5]]
    left = report.problem_count - len(lines)
    if left > 0:
        lines.append(f"  and {left:,} more")
    count = report.problem_count
    return f"Passed over {count:,} {'entry' if count == 1 else 'entries'}:\n" + "\n".join(lines)


def _table(report: Report) -> str:
    head = f"   {'KEY':<{_KEY_WIDTH}} {'USABLE':<{_BAR_WIDTH + 6}} REFUSED  HOTTEST NEEDED RU/S   COST"
    return "\n".join([head, *[_row(each) for each in report.candidates]])


def _disqualified(candidates: Sequence[Candidate]) -> str:
    """All reasons against the keys that cannot be taken: a row of the table has room for the start of one."""
    lines = [
        _wrapped(f"{each.key}: {' '.join(each.disqualified)}", "  x ", "    ")
        for each in candidates
        if each.disqualified
    ]
    return "\n".join(["Cannot be taken:", *lines]) if lines else ""


def _row(candidate: Candidate) -> str:
    key = _cut(candidate.key + (" (now)" if candidate.is_current else ""), _KEY_WIDTH)
    start = f"{candidate.rank:>2} {key}"
    if candidate.verdict is Verdict.DISQUALIFIED:
        return _fitted(f"{start} {candidate.summary}")
    judged = candidate.judged
    hottest = max(candidate.measures.ru.top_share, candidate.measures.storage.top_share)
    return (
        f"{start} {_bar(judged.usable, _BAR_WIDTH)} {percent(judged.usable):>5} {_short(judged.refused):>7} "
        f"{_short(hottest):>8} {candidate.needed_ru:>11,.0f} {times(candidate.cost_factor):>6}"
    )


def _short(share: float) -> str:
    text = percent(share)
    return "<0.01 %" if text.startswith("less") else text


def _fitted(text: str) -> str:
    text = shown(text)
    while width_of(text) > WIDTH:
        text = text[:-2] + "…"
    return text


def _cut_inside(text: str, width: int) -> str:
    """A value in exactly so many columns; what is left out is in the middle, since values differ at their end."""
    text = shown(text)
    if width_of(text) > width:
        kept, end = text[: len(text) // 2], text[len(text) // 2 :]
        while width_of(kept) + 1 + width_of(end) > width:
            kept, end = (kept[:-1], end) if width_of(kept) >= width_of(end) else (kept, end[1:])
        text = f"{kept}…{end}"
    return text + " " * (width - width_of(text))


def _cut(text: str, width: int) -> str:
    """A text in exactly so many columns."""
    text = shown(text)
    while width_of(text) > width:
        text = text[:-2] + "…"
    return text + " " * (width - width_of(text))


def _bar(share: float, width: int) -> str:
    full = round(width * min(max(share, 0.0), 1.0))
    return "#" * full + "." * (width - full)


def _one(candidate: Candidate, report: Report) -> str:
    title = f"{shown(candidate.key)}: {'the key of now, ' if candidate.is_current else ''}{_fit(candidate)}"
    lines = [title, "-" * min(WIDTH, width_of(title))]
    lines += [_wrapped(text, "  x ", "    ") for text in candidate.disqualified]
    lines += [_wrapped(each.text, f"  {_MARKS[each.level]} ", "    ") for each in candidate.reasons]
    lines += ["", *_partitions(candidate), "", *_top_values(candidate, report), "", *_what_if(candidate)]
    lines.append(
        f"  {report.prices.currency} {candidate.cost_month:,.2f} a month at {candidate.needed_ru:,.0f} RU/s"
    )
    return "\n".join(lines)


def _fit(candidate: Candidate) -> str:
    return {
        Verdict.BEST: "best fit",
        Verdict.GOOD: "good fit",
        Verdict.WEAK: "weak fit",
        Verdict.BAD: "bad fit",
        Verdict.DISQUALIFIED: "cannot be taken",
    }[candidate.verdict]


def _partitions(candidate: Candidate) -> list[str]:
    judged = candidate.judged
    allowed = judged.throughput_ru / judged.physical
    lines = [f"  RU/s wanted of {allowed:,.0f} allowed, and data, on {judged.physical} physical partitions"]
    for number, (ru, held) in enumerate(zip(judged.ru, judged.storage_bytes, strict=True)):
        over = "*" if ru > allowed else " "
        lines.append(
            f"  {number:>3} {_bar(ru / allowed, _LOAD_WIDTH)}{over}{ru:>9,.0f} RU/s {size_text(held):>11}"
        )
    return lines


def _top_values(candidate: Candidate, report: Report) -> list[str]:
    lines = [f"  {'HOTTEST VALUES':<{_LABEL_WIDTH}} {'':<10}   LOAD    DATA    HELD  FULL IN"]
    for value in candidate.top_values:
        full = "" if value.days_to_full is None else lifetime(value.days_to_full)
        lines.append(
            _fitted(
                f"  {_cut_inside(value.label, _LABEL_WIDTH)} {_bar(value.ru_share, 10)} {_short(value.ru_share):>7}"
                f" {_short(value.bytes_share):>7} {size_text(value.bytes):>9} {full.replace('more than 100', '> 100')}"
            )
        )
    return lines


def _what_if(candidate: Candidate) -> list[str]:
    lines = []
    for each in candidate.what_if:
        mark = _MARKS[each.level]
        lines.append(
            _wrapped(f"{each.name}: {each.needed_ru:,.0f} RU/s. {each.text}", f"  {mark} if ", "    ")
        )
    return [*lines, ""] if lines else []

"""The report as one page that needs nothing else: no script, no font, no picture from elsewhere.

Invariant: whatever a value, a key or a file name is, it stands on the page as text. Everything that comes from outside
goes through ``_text``, and numbers are formatted here; the policy in the head allows nothing but the style.
"""

from __future__ import annotations

from html import escape

from pleiad.advise.html_style import STYLE
from pleiad.advise.report import Candidate, Level, Report, Verdict
from pleiad.advise.words import lifetime, percent, times
from pleiad.limits import size_text

_LABEL_CHARACTERS = 120
_HEAT_STEPS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
"""In times of an even share."""
_FITS = {
    Verdict.BEST: ("best fit", "good"),
    Verdict.GOOD: ("good fit", "good"),
    Verdict.WEAK: ("weak fit", "warn"),
    Verdict.BAD: ("bad fit", "bad"),
    Verdict.DISQUALIFIED: ("cannot be taken", "bad"),
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page_of(report: Report) -> str:
    """The page."""
    pair = [each for each in (report.counterexample, report.best) if each is not None]
    parts = [
        _verdict(report),
        f'<div class="pair">{"".join(_panel(each, report) for each in pair)}</div>' if pair else "",
        _all_keys(report),
        "".join(_simulations(each) for each in pair[::-1]),
        _problems(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Partition key for {_text(report.source)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(parts)}\n</main>\n</body>\n</html>\n"
    )


def _text(text: str, limit: int = _LABEL_CHARACTERS) -> str:
    """Any text as it may stand anywhere on the page; what does not print as its escape."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    printable = "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )
    return escape(printable, quote=True)


def _verdict(report: Report) -> str:
    notes = "".join(f'<p class="muted">{_text(note, 400)}</p>' for note in report.notes)
    return (
        f'<section class="panel verdict"><h1>{_text(report.verdict, 400)}</h1>'
        f"<p>{_text(report.detail, 600)}</p>{notes}"
        f'<p class="muted">{_text(report.source)}: {size_text(report.total_bytes)}, judged on {report.physical} '
        f"physical partitions at {report.throughput_ru:,.0f} RU/s.</p></section>"
    )


def _panel(candidate: Candidate, report: Report) -> str:
    words, level = _FITS[candidate.verdict]
    now = '<span class="badge">now</span>' if candidate.is_current else ""
    judged = candidate.judged
    against = "".join(_reason(Level.BAD, text) for text in candidate.disqualified)
    reasons = "".join(_reason(each.level, each.text) for each in candidate.reasons)
    return (
        f'<section class="panel"><h2><span class="key">{_text(candidate.key)}</span>{now}'
        f'<span class="badge {level}">{words}</span></h2>'
        f'<div class="tiles"><div>usable throughput<b>{percent(judged.usable)}</b></div>'
        f"<div>refused<b>{percent(judged.refused)}</b></div>"
        f"<div>needed, RU/s<b>{candidate.needed_ru:,.0f}</b></div>"
        f"<div>a month, {_text(report.prices.currency)}<b>{candidate.cost_month:,.0f}</b></div></div>"
        f"<ul>{against}{reasons}</ul>{_loads(candidate)}{_storage(candidate)}{_heat(candidate)}"
        f"{_top_values(candidate)}{_what_ifs(candidate)}</section>"
    )


def _reason(level: Level, text: str) -> str:
    return f'<li class="{level.value}"><span>{_text(text, 400)}</span></li>'


def _bar(share: float, kind: str = "") -> str:
    width = 100 * min(max(share, 0.0), 1.0)
    return f'<div class="bar"><i class="{kind}" style="width:{width:.1f}%"></i></div>'


def _loads(candidate: Candidate) -> str:
    judged = candidate.judged
    allowed = judged.throughput_ru / judged.physical
    rows = "".join(
        f"<span>{number}</span>{_bar(ru / allowed, 'over' if ru > allowed else '')}<span>{ru:,.0f}</span>"
        for number, ru in enumerate(judged.ru)
    )
    return (
        f'<h3>RU/s wanted of {allowed:,.0f} allowed, by physical partition</h3><div class="bars">{rows}</div>'
    )


def _storage(candidate: Candidate) -> str:
    judged = candidate.judged
    total = sum(judged.storage_bytes) or 1.0
    rows = "".join(
        f"<span>{number}</span>{_bar(held / total, 'storage')}<span>{size_text(held)}</span>"
        for number, held in enumerate(judged.storage_bytes)
    )
    return f'<h3>Data by physical partition, of {size_text(total)}</h3><div class="bars">{rows}</div>'


def _heat(candidate: Candidate) -> str:
    if not candidate.heat:
        return ""
    physical = len(candidate.heat[0])
    cells = []
    for row in candidate.heat:
        even = sum(row) / physical
        for place, ru in enumerate(row):
            step = _heat_step(ru / even if even else 0.0)
            cells.append(f'<i class="h{step}" title="partition {place}: {ru:,.0f} RU/s"></i>')
    return (
        "<h3>Heat over time: a column is a physical partition, downwards is later, dark is above its even share</h3>"
        f'<div class="heat" style="grid-template-columns:repeat({physical},1fr)">{"".join(cells)}</div>'
    )


def _heat_step(ratio: float) -> int:
    return sum(ratio > step for step in _HEAT_STEPS[1:])


def _top_values(candidate: Candidate) -> str:
    rows = []
    for value in candidate.top_values:
        full = "" if value.days_to_full is None else lifetime(value.days_to_full)
        rows.append(
            f'<tr><td class="value key">{_text(value.label)}</td><td>{_bar(value.ru_share)}</td>'
            f'<td class="number">{percent(value.ru_share)}</td><td class="number">{percent(value.bytes_share)}</td>'
            f'<td class="number">{size_text(value.bytes)}</td><td class="number">{full}</td></tr>'
        )
    head = (
        '<tr><th>value</th><th></th><th class="number">load</th><th class="number">data</th>'
        '<th class="number">held</th><th class="number">full in</th></tr>'
    )
    return f"<h3>Hottest values</h3><table>{head}{''.join(rows)}</table>"


def _what_ifs(candidate: Candidate) -> str:
    rows = "".join(
        _reason(each.level, f"If {each.name}: {each.needed_ru:,.0f} RU/s. {each.text}")
        for each in candidate.what_if
    )
    return f"<h3>What if</h3><ul>{rows}</ul>" if rows else ""


def _all_keys(report: Report) -> str:
    rows = []
    for each in report.candidates:
        judged = each.judged
        now = '<span class="badge">now</span>' if each.is_current else ""
        hottest = max(each.measures.ru.top_share, each.measures.storage.top_share)
        numbers = (
            f"<td>{percent(judged.usable)}{_bar(judged.usable)}</td>"
            f'<td class="number">{percent(judged.refused)}</td><td class="number">{percent(hottest)}</td>'
            f'<td class="number">{judged.visits_mean:.1f}</td><td class="number">{each.needed_ru:,.0f}</td>'
            f'<td class="number">{times(each.cost_factor)}</td>'
            if not each.disqualified
            else "<td>–</td>" + "<td></td>" * 5
        )
        rows.append(
            f'<tr><td class="value key">{_text(each.key)}{now}</td>{numbers}<td>{_text(each.summary, 400)}</td></tr>'
        )
    head = (
        "<tr><th>Key</th><th>Usable throughput</th><th class='number'>Refused</th><th class='number'>Hottest value</th>"
        "<th class='number'>Partitions a query</th><th class='number'>RU/s needed</th><th class='number'>Cost</th>"
        "<th>Why</th></tr>"
    )
    return (
        f'<section class="panel"><h2>All keys, best first</h2><table>{head}{"".join(rows)}</table></section>'
    )


def _simulations(candidate: Candidate) -> str:
    rows = "".join(
        f'<tr><td class="number">{each.physical}</td><td class="number">{percent(each.usable)}</td>'
        f'<td class="number">{percent(each.refused)}</td><td class="number">{each.needed_ru:,.0f}</td>'
        f'<td class="number">{each.fan_out_tax_ru:,.0f}</td><td class="number">{each.storage_imbalance:.2f}</td>'
        f'<td class="number">{each.ru_imbalance:.2f}</td>'
        f'<td class="number">{percent(max(each.normalized_p99, default=0.0))}</td></tr>'
        for each in candidate.simulations
    )
    head = "".join(
        f'<th class="number">{name}</th>'
        for name in (
            "Physical partitions",
            "Usable",
            "Refused",
            "RU/s needed",
            "Fan-out tax, RU/s",
            "Data, largest by mean",
            "RU, largest by mean",
            "Busiest, p99",
        )
    )
    return (
        f'<section class="panel"><h2><span class="key">{_text(candidate.key)}</span> on more partitions</h2>'
        f"<table><tr>{head}</tr>{rows}</table></section>"
    )


def _problems(report: Report) -> str:
    if not report.problem_count:
        return ""
    rows = "".join(f"<li>{_text(text, 300)}</li>" for text in report.problems)
    return f'<section class="panel"><h2>Passed over: {report.problem_count:,}</h2><ul>{rows}</ul></section>'

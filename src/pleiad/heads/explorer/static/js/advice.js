// A report of advice as the page shows it: the key of now beside the best one, then all that were tried.
import { badge, button, fragment, h, icon, meter, panel, put, space } from "./dom.js";
import { bytes, count, duration, name, percent, rate } from "./format.js";
import { text } from "./texts.js";

const FITS = { best: "good", good: "good", weak: "warn", bad: "bad", disqualified: "bad" };
const ICONS = { good: "ok", warn: "warn", bad: "bad" };
const HEAT_STEPS = [0.1, 0.5, 1, 2, 4, 8];
const KEYS_SHOWN = 8;
const VALUES_SHOWN = 5;
const DAY_SECONDS = 86_400;
const share = (part) => percent(100 * part);
const judged = (candidate) => candidate.simulations.find((each) => each.physical === candidate.physical);

export const bestOf = (report) => report.candidates.find((each) => !each.disqualified.length);
// What the best key is held against: the one of now, or else the worst that could have been chosen.
function otherOf(report) {
  const others = report.candidates.filter((each) => each !== bestOf(report));
  return (
    others.find((each) => each.isCurrent) ?? others.filter((each) => !each.disqualified.length).at(-1) ?? others[0]
  );
}

export function adviceView(report, copyTo) {
  const best = bestOf(report),
    sides = [otherOf(report), best].filter(Boolean);
  return fragment(
    h(
      "div",
      { class: "versus" },
      sides.map((each) => side(each, report, each === best)),
    ),
    allKeys(report, copyTo),
    (report.problemCount > 0 || report.notes.length > 0) &&
      panel(
        text.advice.notes,
        undefined,
        h(
          "ul",
          { class: "reasons" },
          report.notes.map((each) => reason("info", each)),
          report.problems.map((each) => reason("warn", each)),
        ),
      ),
  );
}

const reason = (level, words) =>
  h("li", null, h("span", { class: level }, icon(ICONS[level] ?? "info")), h("span", null, name(words, 600)));

function side(candidate, report, isBest) {
  const found = judged(candidate),
    title = candidate.isCurrent ? text.advice.now : isBest ? text.advice.better : text.advice.other;
  const figures = [
    [text.balance.usable, share(found.usable)],
    [text.balance.refused, share(found.refused)],
    [text.advice.needed, count(candidate.neededRu)],
    [text.advice.month(name(report.prices.currency)), count(candidate.costMonth)],
  ];
  return h(
    "section",
    {
      class: `panel ${FITS[candidate.verdict] === "good" ? "good" : "bad"}-side`,
      "aria-label": `${title}: ${name(candidate.key)}`,
    },
    h(
      "div",
      { class: "panel-head" },
      h("h2", null, `${title}:`),
      h("span", { class: "badge key" }, name(candidate.key)),
      space(),
      badge(FITS[candidate.verdict], text.advice.fits[candidate.verdict]),
    ),
    h(
      "div",
      { class: "panel-body stack" },
      h(
        "dl",
        { class: "figures" },
        figures.map(([term, value]) => h("div", null, h("dt", null, term), h("dd", null, value))),
      ),
      bars(found),
      h(
        "ul",
        { class: "reasons" },
        candidate.disqualified.map((each) => reason("bad", each)),
        candidate.reasons.map((each) => reason(each.level, each.text)),
      ),
      heat(candidate),
      hottest(candidate),
      candidate.whatIf.length > 0 && [
        h("h3", null, text.advice.whatIf),
        h(
          "ul",
          { class: "reasons" },
          candidate.whatIf.map((each) =>
            reason(each.level, text.advice.if(each.name, count(each.neededRu), each.text)),
          ),
        ),
      ],
    ),
  );
}

// Request units wanted of what a physical partition is allowed, then the share of the data that it holds.
function bars(found) {
  const allowed = found.throughputRu / found.physical,
    total = found.storageBytes.reduce((sum, each) => sum + each, 0) || 1;
  const row = (id, part, kind, label, value, isOver) =>
    h(
      "div",
      { class: "sim-row" },
      h("b", { class: "faint" }, id),
      meter(part, kind, label),
      h("span", { class: `num ${isOver ? "bad strong" : ""}` }, value),
    );
  return [
    h("h3", null, text.advice.load(rate(allowed), found.physical)),
    h(
      "div",
      { class: "sim" },
      found.ru.map((wanted, id) => {
        const isOver = wanted > allowed;
        const label = text.advice.loadOf(id, rate(wanted), rate(allowed));
        return row(id, (100 * wanted) / allowed, isOver ? "full" : "", label, rate(wanted), isOver);
      }),
    ),
    h("h3", null, text.advice.stored(bytes(total))),
    h(
      "div",
      { class: "sim" },
      found.storageBytes.map((held, id) =>
        row(id, (100 * held) / total, "storage", text.advice.storedOf(id, bytes(held)), bytes(held)),
      ),
    ),
  ];
}

function heat(candidate) {
  if (!candidate.heat.length) return null;
  const columns = candidate.heat[0].length;
  const step = (ratio) => HEAT_STEPS.filter((each) => ratio > each).length;
  const busiest = Math.max(
    ...candidate.heat.map((row) => Math.max(...row) / (row.reduce((sum, each) => sum + each, 0) / columns || 1)),
  );
  return [
    h("h3", null, text.advice.heat),
    h(
      "div",
      { class: "advice-heat", role: "img", "aria-label": text.advice.heatOf(busiest.toFixed(1)), vars: { columns } },
      candidate.heat.flatMap((row) => {
        const even = row.reduce((sum, each) => sum + each, 0) / columns;
        return row.map((each) => h("i", { class: `h${step(even ? each / even : 0)}` }));
      }),
    ),
  ];
}

function hottest(candidate) {
  if (!candidate.topValues.length) return null;
  const number = (value) => h("td", { class: "num" }, value);
  return [
    h("h3", null, text.advice.hottest),
    h(
      "table",
      { class: "table hot-values" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          text.advice.hottestColumns.map((each, place) => h("th", { class: place ? "num" : undefined }, each)),
        ),
      ),
      h(
        "tbody",
        null,
        candidate.topValues
          .slice(0, VALUES_SHOWN)
          .map((each) =>
            h(
              "tr",
              null,
              h("td", null, h("code", null, name(each.label, 120))),
              number(share(each.ruShare)),
              number(share(each.bytesShare)),
              number(each.daysToFull === null ? "–" : duration(each.daysToFull * DAY_SECONDS)),
            ),
          ),
      ),
    ),
  ];
}

function allKeys(report, copyTo) {
  const row = (each) => {
    const found = judged(each),
      hottestShare = Math.max(each.measures.ru.topShare, each.measures.storage.topShare);
    return h(
      "tr",
      null,
      h(
        "td",
        { class: "wide" },
        h("code", { class: "strong" }, name(each.key)),
        " ",
        each.isCurrent && h("span", { class: "badge info" }, text.advice.isNow),
      ),
      each.disqualified.length
        ? h("td", { colspan: 5, class: "faint" }, text.advice.fits.disqualified)
        : [
            h(
              "td",
              { "data-l": text.advice.columns[1] },
              h(
                "div",
                { class: "measure" },
                h("div", { class: "read" }, h("b", null, share(found.usable))),
                meter(100 * found.usable, found.usable < 0.5 ? "full" : "", share(found.usable)),
              ),
            ),
            [
              share(found.refused),
              share(hottestShare),
              found.visitsMean.toFixed(1),
              text.advice.times(each.costFactor),
            ].map((value, place) => h("td", { class: "num", "data-l": text.advice.columns[place + 2] }, value)),
          ],
      h("td", { class: "muted small wide why" }, name(each.summary, 600)),
      h("td", { class: "wide" }, !each.isCurrent && !each.disqualified.length && copyTo(each)),
    );
  };
  // The best ones and the one of now; all of them when somebody asks.
  const few = report.candidates.filter((each, place) => place < KEYS_SHOWN || each.isCurrent),
    body = h("tbody", null, few.map(row));
  const more =
    few.length < report.candidates.length &&
    button(text.advice.showAll(report.candidates.length), () => {
      put(body, report.candidates.map(row));
      more.remove();
    });
  return h(
    "section",
    { class: "panel", "aria-label": text.advice.all },
    h("div", { class: "panel-head" }, h("h2", null, text.advice.all), h("p", null, text.advice.allSay), space(), more),
    h(
      "div",
      { class: "table-wrap" },
      h(
        "table",
        { class: "table cards all-keys" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            text.advice.columns.map((each, place) =>
              h("th", { class: place > 1 && place < 6 ? "num" : undefined }, each),
            ),
            h("th", null, h("span", { class: "visually-hidden" }, text.partitions.actions)),
          ),
        ),
        body,
      ),
    ),
  );
}

// Small charts in SVG. Every chart has a unit, a named ceiling where there is one, and labels on the lines themselves.
// Values are one a minute; null is a gap, and gaps stay gaps.
import { h, s, tip } from "./dom.js";
import { clock } from "./format.js";
import { text } from "./texts.js";

const known = (values) => values.filter((value) => value !== null && value !== undefined);

// Runs of values without a gap, as points of a polyline.
function runs(values, toPoint) {
  const found = [];
  let run = [];
  values.forEach((value, index) => {
    if (value === null || value === undefined) {
      if (run.length) found.push(run);
      run = [];
    } else run.push(toPoint(value, index));
  });
  if (run.length) found.push(run);
  return found.map((points) => (points.length === 1 ? [points[0], [points[0][0] + 0.8, points[0][1]]] : points));
}
const written = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

export function spark(values, kind, { ceiling, label } = {}) {
  const top = Math.max(ceiling ?? 0, ...known(values), 1e-9),
    y = (value) => 27 - (26 * Math.min(value, top)) / top;
  const lines = runs(values, (value, index) => [(index * 120) / Math.max(1, values.length - 1), y(value)]);
  return s(
    "svg",
    { class: `spark c-${kind}`, viewBox: "0 0 120 28", preserveAspectRatio: "none", role: "img", "aria-label": label },
    lines.map((points) => [
      s("polygon", {
        class: "area",
        points: `${points[0][0].toFixed(1)},27 ${written(points)} ${points.at(-1)[0].toFixed(1)},27`,
      }),
      s("polyline", { class: "line", points: written(points) }),
    ]),
    ceiling > 0 && s("line", { class: "ceiling", x1: 0, x2: 120, y1: y(ceiling), y2: y(ceiling) }),
  );
}
export function sparkBars(values, kind, label) {
  const top = Math.max(...known(values), 1),
    step = 120 / values.length;
  return s(
    "svg",
    { class: `spark c-${kind}`, viewBox: "0 0 120 28", preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("rect", { class: "base", x: 0, y: 27, width: 120, height: 1 }),
    values.map((value, index) => {
      const high = Math.max(1.5, (26 * value) / top);
      return (
        value > 0 && s("rect", { class: "tick", x: index * step + 0.2, width: step - 0.4, y: 27 - high, height: high })
      );
    }),
  );
}

const niceStep = (value) => {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-6)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value);
};
const tick = (value, by, format) => {
  if (value === 0) return "0";
  if (value >= 1000) return `${+(value / 1000).toFixed(1)} k`;
  return by < 1 ? value.toFixed(Math.ceil(-Math.log10(by) - 1e-9)) : format(value);
};

// lines: [{values, kind, name, dash}]; all charts of a screen share their width and so their time axis and cursor.
export function timeChart({
  title,
  lines,
  unit,
  limit,
  max,
  format = (value) => String(Math.round(value)),
  marks = [],
  step,
  times,
  cursorBus,
}) {
  const W = 340,
    left = 40,
    right = 80,
    bottom = 20,
    T = 18,
    height = 112,
    w = W - left - right,
    H = height + bottom + T,
    last = times.length - 1;
  const most = Math.max(limit?.value ?? 0, ...lines.flatMap((line) => known(line.values))) || 3,
    by = step ?? niceStep(most / 3),
    top = max ?? Math.max(by, Math.ceil((most * 1.02) / by) * by);
  const y = (value) => T + height - (height * Math.min(value, top)) / top,
    x = (index) => left + (w * index) / Math.max(1, last);
  const latest = (line) => known(line.values).at(-1);
  const tags = lines
    .filter((line) => latest(line) !== undefined)
    .map((line) => ({ line, at: y(latest(line)) }))
    .concat(limit ? [{ limit, at: y(limit.value) }] : [])
    .sort((a, b) => a.at - b.at);
  for (let i = 1; i < tags.length; i++) tags[i].at = Math.max(tags[i].at, tags[i - 1].at + 14);
  const cursor = s("line", { class: "cursor", y1: T, y2: T + height, x1: -9, x2: -9, visibility: "hidden" });
  const said = lines
    .map(
      (line) =>
        `${line.name ?? ""} ${latest(line) === undefined ? text.chart.none : `${format(latest(line))} ${unit}`}`,
    )
    .join(", ");
  const svg = s(
    "svg",
    { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": text.chart.label(title, said) },
    Array.from({ length: Math.floor(top / by + 1e-6) + 1 }, (_, i) => by * i).map((value) => [
      s("line", { class: "grid-line", x1: left, x2: left + w, y1: y(value), y2: y(value) }),
      s("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tick(value, by, format)),
    ]),
    [0, Math.round(last / 3), Math.round((2 * last) / 3), last].map((index) =>
      s(
        "text",
        { x: x(index), y: H - 3, "text-anchor": index === 0 ? "start" : index === last ? "end" : "middle" },
        index === last ? text.heat.now : clock(times[index]),
      ),
    ),
    marks.map((mark) => [
      s("line", { class: "mark", x1: x(mark.index), x2: x(mark.index), y1: T, y2: T + height }),
      s("text", { x: Math.min(W - 60, Math.max(60, x(mark.index))), y: 10, "text-anchor": "middle" }, mark.text),
    ]),
    limit && s("line", { class: "limit", x1: left, x2: left + w, y1: y(limit.value), y2: y(limit.value) }),
    lines.map((line) =>
      s(
        "g",
        { class: `c-${line.kind}` },
        runs(line.values, (value, index) => [x(index), y(value)]).map((points) => [
          lines.length === 1 &&
            s("polygon", {
              class: "area",
              points: `${points[0][0]},${T + height} ${written(points)} ${points.at(-1)[0]},${T + height}`,
            }),
          s("polyline", { class: `line ${line.dash ?? ""}`, points: written(points) }),
        ]),
      ),
    ),
    tags.map(({ line, limit: ceiling, at }) =>
      ceiling
        ? s("text", { x: left + w + 6, y: at + 4 }, ceiling.text)
        : s(
            "g",
            { class: `c-${line.kind}` },
            s(
              "text",
              { class: "tag", x: left + w + 6, y: at + 4 },
              `${line.name ? `${line.name} ` : ""}${format(latest(line))}`,
            ),
          ),
    ),
    cursor,
  );
  const node = h("div", { class: "chart-box" }, svg);
  let at = last;
  tip(node, () => [
    h("b", null, clock(times[at])),
    lines.map((line) => [
      h("br"),
      `${line.name ?? title}: ${line.values[at] === null || line.values[at] === undefined ? text.chart.none : `${format(line.values[at])} ${unit}`}`,
    ]),
  ]);
  node.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    at = Math.max(0, Math.min(last, Math.round(((((event.clientX - box.left) / box.width) * W - left) / w) * last)));
    cursorBus.dispatchEvent(new CustomEvent("cursor", { detail: at }));
  });
  cursorBus.addEventListener("cursor", (event) => {
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(event.detail));
    cursor.setAttribute("visibility", "visible");
  });
  return node;
}

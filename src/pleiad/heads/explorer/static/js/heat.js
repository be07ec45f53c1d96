// Heat: request units by place in the hash space and minute, in times of a slice's even share; downwards is the past.
import { h, put, say, tip } from "./dom.js";
import { clock, hex, keyText, ru } from "./format.js";
import { madeAt, partitionsAt } from "./lineage.js";
import { text } from "./texts.js";

export const MINUTES = 60;
const STEPS = [0.1, 0.5, 1, 2, 4, 8];
const heatStep = (times) => {
  const step = STEPS.findIndex((limit) => times < limit);
  return step < 0 ? STEPS.length : step;
};

export class HeatMap {
  #canvas = h("canvas", {
    class: "heat-canvas",
    tabindex: 0,
    role: "img",
    "aria-label": text.heat.label,
    width: 96,
    height: MINUTES,
  });
  #borders = h("div", { class: "heat-borders", "aria-hidden": "true" });
  #times = h("div", { class: "heat-times", "aria-hidden": "true" });
  #rows = [];
  #slices = 96;
  #allowed = 0;
  #at = { slice: 0, minute: 0 };
  #now = Date.now();
  #found;

  constructor(scope, compact) {
    this.node = h(
      "div",
      { class: "heat-wrap", vars: { rows: MINUTES, rh: compact ? "3px" : "4px" } },
      h("div", { class: "heat-box" }, this.#canvas, this.#borders),
      this.#times,
    );
    tip(this.#canvas, () => this.#words());
    this.#canvas.addEventListener("pointermove", (event) => {
      const box = this.#canvas.getBoundingClientRect();
      this.#go(
        Math.floor(((event.clientX - box.left) / box.width) * this.#slices),
        Math.floor(((event.clientY - box.top) / box.height) * MINUTES),
      );
    });
    this.#canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      this.#go(this.#at.slice + step[0], this.#at.minute + step[1]);
      say(h("p", null, this.#words()).textContent);
    });
    scope.listen(window, "theme", () => this.#paint());
    scope.listen(matchMedia("(prefers-color-scheme: dark)"), "change", () => this.#paint());
  }
  #go(slice, minute) {
    this.#at = {
      slice: Math.max(0, Math.min(this.#slices - 1, slice)),
      minute: Math.max(0, Math.min(MINUTES - 1, minute)),
    };
  }

  show(heat, found) {
    this.#slices = heat.slices;
    this.#canvas.width = heat.slices;
    this.#allowed = heat.allowed;
    this.#now = heat.at * 1000;
    this.#rows = [];
    const newest = Math.floor(heat.at / 60);
    for (const row of heat.rows) {
      const ago = newest - Math.floor(row.at / 60);
      if (ago >= 0 && ago < MINUTES) this.#rows[ago] = row;
    }
    this.#paint();
    if (found) this.lines(found);
    put(
      this.#times,
      [0, 15, 30, 45].map((ago) =>
        h(
          "span",
          { vars: { y: (100 * ago) / MINUTES } },
          ago ? clock(new Date(this.#now - ago * 60000)) : text.heat.now,
        ),
      ),
    );
  }
  #share() {
    return this.#allowed / this.#slices || 1;
  }
  #rate(slice, minute) {
    const row = this.#rows[minute];
    return row ? row.ru[slice] / Math.max(1, row.seconds) : undefined;
  }

  #paint() {
    const style = getComputedStyle(document.documentElement),
      colours = Array.from({ length: 7 }, (_, i) => style.getPropertyValue(`--heat-${i}`).trim()),
      pen = this.#canvas.getContext("2d");
    pen.clearRect(0, 0, this.#slices, MINUTES);
    for (let minute = 0; minute < MINUTES; minute++) {
      for (let slice = 0; slice < this.#slices; slice++) {
        const used = this.#rate(slice, minute);
        if (used === undefined) continue;
        pen.fillStyle = colours[heatStep(used / this.#share())];
        pen.fillRect(slice, minute, 1, 1);
      }
    }
  }

  // Borders of partitions as they were, rails where requests were refused, and the moments of splits and merges.
  lines(found) {
    this.#found = found;
    const said = JSON.stringify([
      found.partitions.map((part) => part.id),
      found.history.length,
      this.#rows.length,
      Math.floor(this.#now / 60000),
      this.#rows.map((row) => row && Object.keys(row.throttled).length),
    ]);
    if (this.#borders.dataset.said === said) return;
    this.#borders.dataset.said = said;
    const down = (at) => Math.max(0, Math.min(MINUTES, (this.#now - at) / 60000)),
      percent = (minutes) => (100 * minutes) / MINUTES;
    const all = [
      ...found.partitions.map((part) => ({ ...part, from: madeAt(part, found.history), to: this.#now })),
      ...found.history.map((part) => ({ ...part, from: Date.parse(part.madeAt), to: Date.parse(part.retiredAt) })),
    ];
    const borders = all
      .filter((part) => part.space[0] > 0 && part.to > this.#now - MINUTES * 60000)
      .map((part) =>
        h("i", {
          vars: { x: 100 * part.space[0], y: percent(down(part.to)), l: percent(down(part.from) - down(part.to)) },
        }),
      );
    const events = found.history
      .filter((part) => down(Date.parse(part.retiredAt)) < MINUTES)
      .map((part) =>
        h(
          "em",
          {
            vars: {
              y: percent(down(Date.parse(part.retiredAt))),
              x: 100 * part.space[0],
              w: 100 * (part.space[1] - part.space[0]),
            },
          },
          h(
            "span",
            null,
            text.heat.event(clock(new Date(part.retiredAt)), part.id, (part.children ?? []).length === 1),
          ),
        ),
      );
    put(this.#borders, borders, this.#rails(all, percent), events);
  }
  #rails(all, percent) {
    const space = new Map(all.map((part) => [part.id, part.space])),
      rails = [];
    for (const [id, [x]] of space) {
      let start = -1;
      for (let minute = 0; minute <= MINUTES; minute++) {
        const isOn = minute < MINUTES && this.#rows[minute]?.throttled[id] > 0;
        if (isOn && start < 0) start = minute;
        if (!isOn && start >= 0) {
          rails.push(h("b", { vars: { x: 100 * x, y: percent(start), l: percent(minute - start) } }));
          start = -1;
        }
      }
    }
    return rails;
  }

  #words() {
    const { slice, minute } = this.#at,
      moment = this.#now - minute * 60000,
      middle = (slice + 0.5) / this.#slices;
    const part =
        this.#found &&
        partitionsAt(this.#found, moment).find((each) => middle >= each.space[0] && middle < each.space[1]),
      used = this.#rate(slice, minute);
    const value = this.#found?.hottest.find((each) => Math.floor(each.place * this.#slices) === slice);
    return [
      h("b", null, text.heat.cell(clock(new Date(moment)), hex(slice / this.#slices), hex((slice + 1) / this.#slices))),
      h("br"),
      used === undefined ? text.heat.gap : text.heat.rate(part?.id ?? "?", ru(used), (used / this.#share()).toFixed(1)),
      value && [h("br"), text.heat.value(keyText(value.key))],
    ];
  }
}

export const heatLegend = () =>
  h(
    "div",
    { class: "legend" },
    h("span", null, text.heat.legend),
    h(
      "span",
      { class: "legend-steps" },
      ["0", "", "½", "1", "2", "4", "8 +"].map((word, step) =>
        h("span", null, h("i", { class: `h${step}` }), h("small", null, word)),
      ),
    ),
    h("span", null, h("b", { class: "rail" }), text.heat.rail),
    h("span", null, h("b", { class: "edge" }), text.heat.border),
  );

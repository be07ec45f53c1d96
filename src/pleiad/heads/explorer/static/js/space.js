// The hash space, drawn to scale. One horizontal axis, 00 to FF, for everything below it: hot values, physical
// partitions, request units, refusals, storage, heat over time, parents. A column is a partition, downwards is the past.
import { h, put, s, tip } from "./dom.js";
import { bytes, clock, count, hex, keyText, percent, rate, ru, short, stringify } from "./format.js";
import { HeatMap } from "./heat.js";
import { partitionsAt, retirements } from "./lineage.js";
import { text } from "./texts.js";

const MANY = 16;
const PINS = { whole: 8, compact: 3 };
const PIN_SHARE_LEAST = 1.5;
const FULL_PERCENT = 99.5;

const refusedShare = (part) =>
  part.ru.requestsLastMinute ? (100 * part.ru.throttledLastMinute) / part.ru.requestsLastMinute : 0;
export const isHot = (part) => part.ru.throttledLastMinute > 0 && refusedShare(part) >= 1;

const place = (part) => ({ x: 100 * part.space[0], w: 100 * (part.space[1] - part.space[0]) });
const cell = (part, extra, ...children) =>
  h("div", { class: `sp-cell ${extra}`, vars: place(part), "data-p": part.id }, children);
const row = (label, hint, body, extra = "") =>
  h(
    "div",
    { class: `sp-row ${extra}` },
    h("div", { class: "sp-label" }, h("span", null, label), hint && h("small", null, hint)),
    h("div", { class: "sp-track" }, body),
  );

// The same picture, one line high, for lists; its partitions have their load beside their names.
export function miniRibbon(partitions) {
  const used = (part) => Math.min(1, part.allowed ? part.lastSecond / part.allowed : 0);
  return s(
    "svg",
    {
      class: "mini",
      viewBox: "0 0 120 14",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": text.space.mini(
        partitions.length,
        partitions
          .slice(0, 12)
          .map((part) => percent(100 * used(part)))
          .join(", "),
      ),
    },
    partitions.map((part) => {
      const x = 120 * part.space[0] + 0.6,
        width = Math.max(0.4, 120 * (part.space[1] - part.space[0]) - 1.2),
        high = 14 * used(part);
      return [
        s("rect", { class: "mini-bg", x, width, y: 0, height: 14 }),
        s("rect", { class: part.throttledLastMinute ? "mini-full" : "mini-use", x, width, y: 14 - high, height: high }),
      ];
    }),
  );
}

export class HashSpace {
  #shape = "";
  #heat;
  #pins = h("div", { class: "sp-pins" });
  #refused = h("div", { class: "sp-refused" });
  #load = h("div", { class: "sp-levels" });
  #stored = h("div", { class: "sp-levels" });
  #ribbon = h("div", { class: "sp-ribbon" });
  #parents = h("div", { class: "generations" });

  constructor(scope, label, { compact = false, pick } = {}) {
    this.compact = compact;
    this.pick = pick;
    this.#heat = new HeatMap(scope, compact);
    this.#parentsRow = row(text.space.parents, text.space.parentsHint, this.#parents);
    this.node = h(
      "div",
      { class: `space ${compact ? "compact" : ""}`, role: "group", "aria-label": label },
      row(text.space.values, text.space.valuesHint, this.#pins, "pins"),
      row(text.space.partition, text.space.partitionHint, this.#ribbon),
      row(text.space.load, text.space.loadHint, this.#load),
      row(text.space.refused, text.space.refusedHint, this.#refused),
      row(text.space.stored, text.space.storedHint, this.#stored),
      row(text.space.heat, text.space.heatHint, this.#heat.node, "heat"),
      this.#parentsRow,
      h(
        "div",
        { class: "sp-row axis" },
        h("div"),
        h(
          "div",
          { class: "sp-axis" },
          ["00", "40", "80", "C0", "FF"].map((each) => h("span", null, each)),
        ),
      ),
    );
    // Pointing at a partition anywhere lights it everywhere.
    const light = (id) => {
      for (const node of document.querySelectorAll("[data-p]"))
        node.classList.toggle("lit", id !== undefined && node.dataset.p === id);
    };
    this.node.addEventListener("pointerover", (event) => light(event.target.closest?.("[data-p]")?.dataset.p));
    this.node.addEventListener("pointerleave", () => light());
    this.node.addEventListener("focusin", (event) => light(event.target.closest?.("[data-p]")?.dataset.p));
    this.#ribbon.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
      if (to) {
        event.preventDefault();
        event.target.closest(".sp-cell")?.[to]?.focus();
      }
    });
  }
  #parentsRow;

  // Texts and levels change in place; only another map of partitions is drawn anew.
  show(found) {
    this.found = found;
    const shape = stringify([found.partitions.map((part) => [part.id, part.space]), found.history.length]);
    if (shape !== this.#shape) this.#build(found, this.#shape !== "");
    this.#shape = shape;
    this.#refreshPins(found);
    this.#refreshRefused(found);
    for (const part of found.partitions) this.#refresh(part, found);
    this.#heat.lines(found);
  }
  showHeat(heat) {
    this.#heat.show(heat, this.found);
  }

  #build(found, isChange) {
    const before = new Set([...this.#ribbon.children].map((node) => node.dataset.p));
    const focused = document.activeElement?.closest?.(".sp-ribbon .sp-cell")?.dataset.p;
    this.node.classList.toggle("many", found.partitions.length > MANY);
    put(
      this.#ribbon,
      found.partitions.map((part) =>
        tip(
          h(
            "button",
            {
              type: "button",
              class: `sp-cell ${isChange && !before.has(part.id) ? "new" : ""}`,
              vars: place(part),
              "data-p": part.id,
              onclick: () => this.pick?.(part.id),
            },
            h("strong", null, part.id),
            h("small", null, `${hex(part.space[0])} – ${hex(part.space[1])}`),
          ),
          () => this.#tipOf(part.id),
        ),
      ),
    );
    const level = (part, kind) =>
      cell(
        part,
        `sp-level ${kind}`,
        h("span", null, h("b"), h("small")),
        h("div", { class: "well" }, h("i", { vars: { v: 0 } })),
      );
    put(
      this.#load,
      found.partitions.map((part) => level(part, "ru")),
    );
    put(
      this.#stored,
      found.partitions.map((part) => level(part, "storage")),
    );
    const times = this.compact ? [] : retirements(found.history);
    this.#parentsRow.hidden = !times.length;
    put(
      this.#parents,
      times.map((at) =>
        h(
          "div",
          { class: "sp-ribbon parents" },
          partitionsAt(found, at - 1).map((part) => this.#ancestor(part, at)),
        ),
      ),
    );
    if (focused) this.#ribbon.querySelector(`[data-p="${CSS.escape(focused)}"]`)?.focus();
  }
  #ancestor(part, at) {
    const isGone = part.retiredAt !== undefined && Date.parse(part.retiredAt) === at;
    return cell(
      part,
      isGone ? "gone" : "same",
      h("strong", null, part.id),
      isGone &&
        h(
          "small",
          null,
          text.space.ancestor(
            clock(new Date(part.madeAt)),
            clock(new Date(part.retiredAt)),
            (part.children ?? []).join(" + "),
            text.space.causes[part.cause] ?? "",
          ),
        ),
    );
  }

  #refresh(part, found) {
    const used = part.ru.allowed ? (100 * part.ru.lastSecond) / part.ru.allowed : 0,
      room = found.limits.physicalPartitionBytes;
    const write = (track, value, words, beside, isFull) => {
      const node = track.querySelector(`[data-p="${CSS.escape(part.id)}"]`);
      if (!node) return;
      node.classList.toggle("full", isFull);
      node.querySelector("b").textContent = words;
      node.querySelector("small").textContent = beside;
      node.querySelector("i").style.setProperty("--v", Math.min(100, value));
    };
    write(
      this.#load,
      used,
      rate(part.ru.lastSecond),
      text.of(count(part.ru.allowed)),
      used >= FULL_PERCENT || isHot(part),
    );
    write(this.#stored, (100 * part.bytes) / room, bytes(part.bytes), text.of(bytes(room)), false);
    const node = this.#ribbon.querySelector(`[data-p="${CSS.escape(part.id)}"]`);
    node.classList.toggle("hot", isHot(part));
    node.classList.toggle("changing", Boolean(part.change));
    node.querySelector("small").textContent = part.change
      ? text.space.changing(part.change, part.phase, part.copiedPercent)
      : `${hex(part.space[0])} – ${hex(part.space[1])}`;
    node.setAttribute(
      "aria-label",
      text.space.partitionLabel(
        part.id,
        hex(part.space[0]),
        hex(part.space[1]),
        ru(part.ru.lastSecond),
        count(part.ru.allowed),
        bytes(part.bytes),
      ),
    );
  }
  #tipOf(id) {
    const part = this.found.partitions.find((each) => each.id === id);
    if (!part) return "";
    return [
      h("b", null, text.space.partitionName(id)),
      h("br"),
      text.space.usedOf(ru(part.ru.lastSecond), count(part.ru.allowed)),
      h("br"),
      text.space.storedOf(bytes(part.bytes), bytes(this.found.limits.physicalPartitionBytes), count(part.items)),
      h("br"),
      text.space.refusedCount(count(part.ru.throttledLastMinute)),
    ];
  }

  #refreshPins(found) {
    const top = found.hottest
      .filter((value) => value.share > PIN_SHARE_LEAST && value.place !== null && value.place !== undefined)
      .slice(0, this.compact ? PINS.compact : PINS.whole);
    const said = stringify(top.map((value) => [value.key, Math.round(value.share)]));
    if (this.#pins.dataset.said === said) return;
    this.#pins.dataset.said = said;
    if (!top.length) {
      put(
        this.#pins,
        h(
          "p",
          { class: "none" },
          found.hottest.length ? text.space.noneAbove(percent(found.hottest[0].share)) : text.space.noneHot,
        ),
      );
      return;
    }
    const most = Math.max(20, top[0].share);
    put(
      this.#pins,
      top.map((value, index) =>
        tip(
          h(
            "button",
            {
              type: "button",
              class: `pin ${index === 0 ? "first" : ""} ${value.share < 5 || (this.compact && index > 0) ? "mute" : ""} ${value.place > 0.5 ? "flip" : ""}`,
              vars: { x: 100 * value.place, h: Math.max(9, (100 * value.share) / most) },
              "aria-label": text.space.pinLabel(keyText(value.key), percent(value.share)),
            },
            h("i"),
            h("span", null, h("b", null, percent(value.share)), ` ${keyText(value.key, 40)}`),
          ),
          () => [
            h("b", null, keyText(value.key)),
            h("br"),
            text.space.pinTip(ru(value.ruPerSecond), percent(value.share)),
            h("br"),
            text.space.pinPlace(hex(value.place), count(value.throttled ?? 0)),
          ],
        ),
      ),
    );
  }
  #refreshRefused(found) {
    const counts = found.partitions.map((part) => part.ru.throttledLastMinute),
      said = stringify([counts, this.#shape]);
    if (this.#refused.dataset.said === said) return;
    this.#refused.dataset.said = said;
    put(
      this.#refused,
      counts.every((each) => !each)
        ? h("p", { class: "none" }, text.space.noRefusals)
        : found.partitions.map((part) =>
            part.ru.throttledLastMinute
              ? cell(
                  part,
                  "some",
                  h("span", { class: "tri", "aria-hidden": "true" }, "▲"),
                  h("b", null, short(part.ru.throttledLastMinute)),
                  h("small", null, text.space.lastMinute),
                )
              : cell(part, "", h("span", { class: "zero" }, "0")),
          ),
    );
  }
}

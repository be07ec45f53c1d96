// A container's balance in one sentence: the server judges and words it, for the command line as well.
import { badge, h } from "./dom.js";
import { percent } from "./format.js";
import { text } from "./texts.js";

export const levelOf = (balance) => ({ good: "good", warn: "warn", bad: "bad" })[balance?.level] ?? "info";

export function balanceBox(balance, acts, extra = "") {
  const { facts = {} } = balance,
    figure = (value) => (value === null || value === undefined ? "–" : percent(value));
  return h(
    "section",
    { class: `verdict ${levelOf(balance)} ${extra}`, "aria-label": text.balance.title },
    h(
      "div",
      null,
      badge(levelOf(balance), balance.word),
      h("p", { class: "say" }, balance.sentence),
      h("p", { class: "why" }, balance.why),
    ),
    h(
      "div",
      null,
      h(
        "dl",
        { class: "figures" },
        [
          [text.balance.usable, balance.usablePercent],
          [text.balance.hottest, facts.hottestKeyShare],
          [text.balance.refused, facts.throttledPercent],
        ].map(([term, value]) => h("div", null, h("dt", null, term), h("dd", null, figure(value)))),
      ),
      acts && h("div", { class: "row" }, acts),
    ),
  );
}

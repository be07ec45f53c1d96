// Copies of a container to another key: the form that begins one, and how far it is.
import { ask, confirmByName } from "./dialogs.js";
import { field, h, input, note, panel, put, seg, space } from "./dom.js";
import { count, duration, name, percent, rate } from "./format.js";
import { steps } from "./key_path.js";
import { lever } from "./rights.js";
import { containerAddress } from "./router.js";
import { text } from "./texts.js";
import { throughputFields } from "./throughput.js";

const LEVELS_MAX = 3;
const MADE_KEY = "/partitionKey";
const ROLLED_CHARACTERS = { hour: 13, day: 10, month: 7 };
const OVER = ["done", "failed", "cancelled"];
const STEPS = ["preparing", "copying", "following", "verifying", "ending"];

const expressionOf = (path) =>
  `c${steps(path)
    .map((step) => `[${JSON.stringify(step)}]`)
    .join("")}`;
// What the property of a made key is computed from; empty where only clients can make it.
function expressionFor({ kind, paths, key }) {
  if (kind === "concat") return `CONCAT(${paths.map((path) => `ToString(${expressionOf(path)})`).join(', "-", ')})`;
  const unit = /^(hour|day|month)\(/.exec(key)?.[1];
  return kind === "roll-up" && unit ? `LEFT(${expressionOf(paths[0])}, ${ROLLED_CHARACTERS[unit]})` : "";
}
const isMade = (candidate) => candidate !== undefined && !["path", "hierarchy"].includes(candidate.kind);

// The form; `candidate` is a key of a report, and undefined where somebody has one in mind.
export function newCopy(context, candidate, begun) {
  const { account, at, explorer } = context;
  const taken = new Set(explorer.overview.containers.map((each) => `${each.database}/${each.container}`));
  let number = 2;
  while (taken.has(`${at.database}/${at.container}-${number}`)) number += 1;
  const target = input({ required: true, maxlength: 255, value: `${at.container}-${number}` });
  const keys = [0, 1, 2].map((level) =>
    input({ class: "input mono", value: (isMade(candidate) ? [MADE_KEY] : candidate?.paths)?.[level] ?? "" }),
  );
  const expression = input({ class: "input mono", value: isMade(candidate) ? expressionFor(candidate) : "" });
  const made = h(
    "details",
    { open: isMade(candidate) },
    h("summary", null, text.copies.made),
    h(
      "div",
      { class: "below" },
      field(
        text.copies.expression,
        expression,
        isMade(candidate) ? text.copies.madeHint(name(candidate.key)) : text.copies.expressionHint,
      ),
    ),
  );
  const levels = keys.map((box, level) => field(level ? text.create.level(level + 1) : text.copies.key, box));
  const drawLevels = () => {
    for (const level of [1, 2]) levels[level].hidden = keys[level - 1].value === "" || isMade(candidate);
  };
  for (const box of keys) box.addEventListener("input", drawLevels);
  drawLevels();
  const share = input({ type: "number", min: 1, max: 100, value: 20, required: true });
  const confirmed = input({ class: "input mono" });
  const confirmField = field(text.dialog.typeToConfirm(name(at.container)), confirmed, text.copies.switchWhy);
  const throughput = throughputFields({}, { allowNone: text.copies.asHere });
  let mode = "offline";
  const draw = () => {
    confirmField.hidden = mode !== "switch";
  };
  const modes = seg(
    text.copies.mode,
    [
      ["offline", text.copies.offline],
      ["online", text.copies.online],
      ["switch", text.copies.switch],
    ],
    mode,
    (value) => {
      mode = value;
      draw();
      modes.dispatchEvent(new Event("change", { bubbles: true }));
    },
  );
  draw();
  const paths = () => keys.map((box) => box.value.trim()).filter(Boolean);
  ask({
    title: text.copies.title(name(at.container)),
    say: text.copies.say,
    action: text.copies.action,
    fields: h(
      "div",
      { class: "stack" },
      field(text.copies.target, target, text.copies.targetHint(name(at.database))),
      levels,
      made,
      h(
        "div",
        { class: "field" },
        h("span", { class: "label" }, text.copies.mode),
        modes,
        h("p", { class: "hint" }, text.copies.modeHint),
      ),
      confirmField,
      field(text.copies.share, share, text.copies.shareHint),
      h("details", null, h("summary", null, text.copies.throughput), h("div", { class: "below" }, throughput.node)),
    ),
    isReady: () =>
      target.value !== "" &&
      paths().length > 0 &&
      paths().length <= LEVELS_MAX &&
      paths().every((path) => path.startsWith("/")) &&
      (!isMade(candidate) || expression.value.trim() !== "") &&
      share.validity.valid &&
      throughput.isValid &&
      (confirmField.hidden || [at.container, name(at.container, 100)].includes(confirmed.value)),
    deed: async () => {
      const plan = {
        source: `${at.database}/${at.container}`,
        target: `${at.database}/${target.value}`,
        partitionKey: paths(),
        online: mode === "online",
        switch: mode === "switch",
        share: Number(share.value) / 100,
      };
      if (expression.value.trim()) plan.set = { [paths()[0]]: expression.value.trim() };
      if (throughput.value) plan.throughput = throughput.value;
      await account.startCopy(plan);
      await begun();
    },
  });
}

// The copies that have to do with a container, the newest first; what is shown is changed only where it changes.
export class CopiesOf {
  node = h("div", { class: "stack-blocks" });
  #context;
  #rows = new Map();
  constructor(context) {
    this.#context = context;
  }
  get isBusy() {
    return [...this.#rows.values()].some((row) => !OVER.includes(row.copy.state));
  }

  async refresh() {
    const { account, at, scope } = this.#context;
    const here = `${at.database}/${at.container}`;
    const { json } = await account.copies({ signal: scope.signal });
    const mine = json.copies.filter((each) => [each.source, each.target].includes(here)).slice(-3);
    for (const copy of mine) {
      const row = this.#rows.get(copy.id) ?? this.#newRow(copy);
      const hasSwitched = !OVER.includes(row.copy.state) && copy.sourceKeptAs !== undefined;
      row.copy = copy;
      // The name means another container now, so the whole screen is about another one.
      if (hasSwitched) return void dispatchEvent(new Event("hashchange"));
      const said = JSON.stringify(copy);
      if (row.said === said) continue;
      row.said = said;
      this.#show(row);
    }
  }
  #newRow(copy) {
    const row = {
      copy,
      slot: h("div"),
      aside: h("p"),
      words: h("p", { class: "row" }),
      acts: h("div", { class: "row" }),
    };
    row.fill = h("i", { vars: { v: 0 } });
    row.bar = h(
      "div",
      {
        class: "progress",
        role: "progressbar",
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "aria-label": text.copies.progress,
      },
      row.fill,
    );
    row.steps = h("ol", { class: "steps" });
    row.node = panel(
      text.copies.to(name(copy.target)),
      row.aside,
      h("div", { class: "stack" }, row.words, row.bar, row.steps, row.slot, row.acts),
    );
    this.#rows.set(copy.id, row);
    this.node.prepend(row.node);
    return row;
  }

  #show(row) {
    const { copy } = row,
      part = copy.total ? (100 * copy.done) / copy.total : copy.state === "done" ? 100 : 0;
    row.aside.textContent = text.copies.aside(
      name((copy.partitionKey ?? []).join(", ")),
      copy.online,
      copy.switch,
      name(copy.source),
    );
    row.fill.style.setProperty("--v", Math.min(100, part));
    row.bar.setAttribute("aria-valuenow", Math.round(part));
    put(
      row.words,
      h("b", { class: "strong" }, text.copies.far(count(copy.done), count(copy.total))),
      h("span", { class: "faint small" }, this.#estimate(copy, part)),
      space(),
      h("span", { class: "small muted" }, text.copies.uses(percent(100 * copy.share))),
    );
    const now = copy.state === "done" ? STEPS.length : STEPS.indexOf(copy.step);
    put(
      row.steps,
      STEPS.map((step, place) =>
        h(
          "li",
          {
            class: place < now ? "done" : place === now ? "now" : undefined,
            "aria-current": place === now ? "step" : undefined,
          },
          step === "ending" && copy.switch ? text.copies.steps.switching : text.copies.steps[step],
        ),
      ),
    );
    row.steps.hidden = ["failed", "cancelled"].includes(copy.state);
    put(row.slot, this.#said(copy));
    put(row.acts, this.#acts(copy));
  }
  #estimate(copy, part) {
    if (copy.state === "done") return text.copies.verified(count(copy.verified));
    if (OVER.includes(copy.state)) return text.copies.states[copy.state];
    if (copy.ready) return text.copies.followed(count(copy.followed));
    const left = copy.secondsLeft === null ? "" : text.copies.left(duration(copy.secondsLeft));
    return `${percent(part)}${left}${copy.ratePerSecond ? text.copies.rate(rate(copy.ratePerSecond)) : ""}`;
  }
  #said(copy) {
    if (copy.state === "failed")
      return note(
        "bad",
        name(copy.problem, 600),
        copy.items?.length ? h("code", null, name(copy.items.join("; "), 1000)) : text.copies.nothingChanged,
      );
    if (copy.state === "cancelled") return note("info", text.copies.cancelled, text.copies.nothingChanged);
    if (copy.state === "done")
      return copy.sourceKeptAs
        ? note(
            "good",
            text.copies.switched(name(copy.source)),
            text.copies.keptAs(name(copy.sourceKeptAs), count(copy.heldMs)),
          )
        : note("good", text.copies.done(name(copy.target)), text.copies.doneWhy);
    if (copy.ready && copy.online) return note("info", text.copies.ready, text.copies.readyWhy);
    return h("p", { class: "small muted" }, text.copies.goesOn);
  }

  #acts(copy) {
    const { account, me } = this.#context,
      [database, container] = copy.target.split("/");
    if (OVER.includes(copy.state))
      return (
        copy.state === "done" &&
        h(
          "a",
          { class: "button", href: containerAddress({ database, container }, "partitions") },
          text.copies.open(name(container)),
        )
      );
    const again = () => this.refresh();
    const cancel = () =>
      confirmByName({
        title: text.copies.cancelTitle,
        say: text.copies.cancelSay(name(copy.target)),
        name: container,
        action: text.copies.cancel,
        deed: () => account.cancelCopy(copy.id).then(again),
      });
    const complete = () =>
      ask({
        title: text.copies.completeTitle,
        say: text.copies.completeSay,
        fields: [],
        action: text.copies.complete,
        deed: () => account.completeCopy(copy.id).then(again),
      });
    return [
      space(),
      copy.online && copy.ready && lever(me, "complete_copy", text.copies.complete, complete, { kind: "primary" }),
      lever(me, "cancel_copy", text.copies.cancel, cancel, { kind: "danger" }),
    ];
  }
}

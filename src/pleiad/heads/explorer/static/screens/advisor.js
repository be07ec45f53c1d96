// Advisor: which key would fit, measured by the server; then the copy that gets there.
import { adviceView, bestOf } from "../js/advice.js";
import { CopiesOf, newCopy } from "../js/copies.js";
import { badge, button, field, fragment, h, input, note, panel, put, space, toast } from "../js/dom.js";
import { ask } from "../js/dialogs.js";
import { charge, count, moment, name } from "../js/format.js";
import { lever, may } from "../js/rights.js";
import { act, load, state } from "../js/states.js";
import { text } from "../js/texts.js";

const RUNNING_MS = 700;
const IDLE_MS = 4000;
const SURE = { high: "good", medium: "info", low: "warn" };
const FITS = { best: "good", good: "good", weak: "warn", bad: "bad" };

export function advisor(context) {
  const { account, at, me, scope } = context;
  const top = h("div"),
    said = h("div"),
    shown = h("div", { class: "stack-blocks" }),
    requests = h("div"),
    copies = new CopiesOf(context);
  let told, report, reportAt;
  const begunCopy = () => copies.refresh();
  const copyTo = (candidate) =>
    lever(me, "create_copy", text.advice.copyTo, () => newCopy(context, candidate, begunCopy), {
      "aria-label": text.advice.copyToKey(name(candidate.key)),
    });

  const start = (plan) =>
    act(top, said, async () => {
      await show((await account.startAdvice(at, plan)).json);
    });
  const choose = () => {
    const candidates = input({ class: "input mono", placeholder: text.advice.keysPlaceholder }),
      growth = input({ type: "number", min: 0.01, step: "any", value: 1, required: true });
    ask({
      title: text.advice.optionsTitle,
      say: text.advice.optionsSay,
      fields: [
        field(text.advice.keys, candidates, text.advice.keysHint),
        field(text.advice.growth, growth, text.advice.growthHint),
      ],
      action: text.advice.start,
      isReady: () => growth.value !== "" && growth.validity.valid,
      deed: async () => {
        const keys = candidates.value.trim().split(/\s+/).filter(Boolean);
        const plan = { growth: Number(growth.value), ...(keys.length ? { candidates: keys } : {}) };
        await show((await account.startAdvice(at, plan)).json);
      },
    });
  };

  async function show(answer) {
    told = answer;
    const isRunning = told.advice?.state === "running";
    if (told.reportAt !== reportAt) {
      report = told.reportAt ? (await account.adviceReport(at, { signal: scope.signal })).json : undefined;
      reportAt = told.reportAt;
      put(shown, report && adviceView(report, copyTo));
    }
    put(said, told.advice?.state === "failed" && note("bad", text.advice.failed, name(told.advice.problem, 600)));
    if (told.missing)
      put(
        top,
        panel(
          text.tabs.advisor,
          undefined,
          state("warn", text.advice.missing, h("code", null, name(told.missing, 400))),
        ),
      );
    else if (isRunning) running();
    else if (report) verdict();
    else first();
  }

  // How far it is: the bar stays the same node, so that nothing jumps and a reader hears it once.
  let bar;
  function running() {
    const { step, what, done, total, chargeRu } = told.advice;
    if (!bar?.node.isConnected) bar = newBar();
    top.dataset.said = "running";
    const part = total ? Math.min(100, (100 * done) / total) : 0;
    bar.fill.style.setProperty("--v", part);
    bar.line.setAttribute("aria-valuenow", Math.round(part));
    bar.words.textContent =
      step === "reading"
        ? text.advice.reading(count(done), count(total), charge(chargeRu))
        : text.advice.trying(name(what ?? ""), count(done), count(total));
  }
  function newBar() {
    const fill = h("i", { vars: { v: 0 } }),
      words = h("p", { class: "strong" });
    const line = h(
      "div",
      {
        class: "progress",
        role: "progressbar",
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "aria-label": text.advice.progress,
      },
      fill,
    );
    const cancel = lever(
      me,
      "cancel_advice",
      text.advice.cancel,
      () => act(cancel, said, async () => show((await account.cancelAdvice(at)).json)),
      { "data-cancel": "" },
    );
    const node = panel(
      text.advice.progress,
      [space(), cancel],
      h("div", { class: "stack" }, words, line, h("p", { class: "small muted" }, text.advice.goesOn)),
    );
    put(top, node);
    return { node, fill, words, line };
  }
  function verdict() {
    const best = bestOf(report);
    if (top.dataset.said === reportAt && top.querySelector(".verdict")) return;
    top.dataset.said = reportAt;
    put(
      top,
      h(
        "section",
        { class: `verdict ${best ? FITS[best.verdict] : "bad"}`, "aria-label": text.tabs.advisor },
        h(
          "div",
          null,
          badge(
            SURE[report.confidence.level] ?? "info",
            text.advice.confidence[report.confidence.level] ?? name(report.confidence.level),
          ),
          h("p", { class: "say" }, name(report.verdict, 600)),
          h("p", { class: "why" }, name(report.detail, 800)),
          h("p", { class: "why" }, text.advice.madeAt(moment(new Date(reportAt)))),
        ),
        h(
          "div",
          { class: "row" },
          lever(me, "start_advice", text.advice.again, choose),
          button(text.advice.save, savePage),
          best &&
            !best.isCurrent &&
            lever(
              me,
              "create_copy",
              text.advice.copyToKey(name(best.key, 60)),
              () => newCopy(context, best, begunCopy),
              { kind: "primary" },
            ),
        ),
      ),
    );
  }
  function first() {
    if (top.dataset.said === "first" && top.childElementCount) return;
    top.dataset.said = "first";
    put(
      top,
      panel(
        text.tabs.advisor,
        undefined,
        state("info", text.advice.none, text.advice.noneWhy, [
          lever(me, "start_advice", text.advice.start, () => start({}), { kind: "primary" }),
          lever(me, "start_advice", text.advice.options, choose),
          lever(me, "create_copy", text.advice.copyOwn, () => newCopy(context, undefined, begunCopy)),
        ]),
      ),
    );
  }
  async function savePage() {
    const { text: page } = await account.advicePage(at);
    const link = h("a", {
      href: URL.createObjectURL(new Blob([page], { type: "text/html" })),
      download: "advice.html",
    });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // Requests that were recorded decide much; the switch is here, where one misses them.
  async function showRequests() {
    const { json } = await account.workload(at, { signal: scope.signal });
    const saidNow = JSON.stringify(json);
    if (requests.dataset.said === saidNow) return;
    requests.dataset.said = saidNow;
    const isOn = json.record !== "off",
      slot = h("div");
    const flip = lever(me, "switch_workload", isOn ? text.advice.recordOff : text.advice.recordOn, () =>
      act(flip, slot, async () => {
        await account.switchWorkload(at, isOn ? "off" : "values");
        toast(isOn ? text.advice.isOff : text.advice.isOn);
        await showRequests();
      }),
    );
    put(
      requests,
      panel(
        text.advice.requests,
        [space(), flip],
        h("div", { class: "stack" }, slot, h("p", { class: "muted" }, text.advice.recorded(isOn, count(json.records)))),
      ),
    );
  }

  let askedAt = 0,
    copiesAt = 0;
  const follow = async () => {
    const isRunning = told?.advice?.state === "running";
    if (!isRunning && Date.now() - askedAt < IDLE_MS) return;
    askedAt = Date.now();
    await show((await account.advice(at, { signal: scope.signal })).json);
  };
  const followCopies = async () => {
    if (!copies.isBusy && Date.now() - copiesAt < IDLE_MS) return;
    copiesAt = Date.now();
    await copies.refresh();
  };
  load(
    top,
    () => account.advice(at, { signal: scope.signal }),
    ({ json }) => {
      told = json;
      return [];
    },
  ).then(async () => {
    if (!told) return;
    await show(told);
    scope.every(RUNNING_MS, follow);
    scope.every(RUNNING_MS, followCopies);
    if (may(me, "read_workload")) scope.every(IDLE_MS, showRequests);
  });
  return fragment(top, said, copies.node, shown, requests);
}

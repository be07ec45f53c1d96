// Metrics: the last hour as small multiples with one time axis and one cursor.
import { timeChart } from "../js/charts.js";
import { fragment, h, panel, put, seg, space } from "../js/dom.js";
import { count, name, rate } from "../js/format.js";
import { containerAddress, go } from "../js/router.js";
import { load } from "../js/states.js";
import { text } from "../js/texts.js";
import { faultNotes } from "./faults.js";

const EVERY_MS = 10_000;
const SPANS_MINUTES = [60, 15, 5];
const READS = new Set(["read", "feed", "changes"]),
  QUERIES = new Set(["query", "query_plan"]);
const DASHES = ["", "dash", "dot", "dash"];

export const metrics = (context) =>
  screen(context, (minutes, options) => context.account.history(context.at, minutes, options), true);
export const accountMetrics = (context) =>
  fragment(
    h("div", null, h("h1", null, text.metrics.accountTitle), h("p", { class: "muted small" }, text.metrics.accountSay)),
    screen(context, (minutes, options) => context.account.accountHistory(minutes, options), false),
  );

function screen(context, ask, isContainer) {
  const { at, scope, account, explorer } = context;
  const slot = h("div", { class: "grid three charts" }),
    faults = h("div", { class: "stack" });
  let minutes = spanOf(explorer.overview.server?.uptimeSeconds);
  const draw = () =>
    load(
      slot,
      () => ask(minutes, { signal: scope.signal }),
      ({ json }) => charts(json, minutes, isContainer),
    );
  draw().then(() =>
    scope.every(EVERY_MS, async () => {
      const { json } = await ask(minutes, { signal: scope.signal });
      if (!slot.matches(":hover")) put(slot, charts(json, minutes, isContainer));
      put(faults, faultNotes(context, (await account.faults({ signal: scope.signal })).json.faults, at));
    }),
  );
  return fragment(
    h(
      "div",
      { class: "row" },
      isContainer &&
        seg(
          text.metrics.scope,
          [
            ["container", text.metrics.container],
            ["account", text.metrics.account],
          ],
          "container",
          (value) => {
            if (value === "account") go("#/metrics");
          },
        ),
      seg(
        text.metrics.time,
        SPANS_MINUTES.map((value) => [String(value), text.metrics.minutes(value)]),
        String(minutes),
        (value) => {
          minutes = Number(value);
          draw();
        },
      ),
      space(),
      h("span", { class: "small faint" }, text.metrics.say),
    ),
    faults,
    slot,
  );
}

// The shortest time that has all of a server which has just started; the longest when nothing is known of it.
const spanOf = (upSeconds) => SPANS_MINUTES.findLast((minutes) => upSeconds <= minutes * 60) ?? SPANS_MINUTES[0];

// One place a minute, the newest last; minutes that the server did not see stay empty.
function byMinute(found, minutes) {
  const newest = Math.floor(found.at / 60),
    places = Array.from({ length: Math.max(2, minutes) }, () => undefined);
  for (const each of found.minutes) {
    const index = places.length - 1 - (newest - Math.floor(each.at / 60));
    if (index >= 0 && index < places.length) places[index] = each;
  }
  return { places, times: places.map((_, index) => new Date((newest - (places.length - 1 - index)) * 60000)), newest };
}

function charts(found, minutes, isContainer) {
  const { places, times, newest } = byMinute(found, minutes),
    cursorBus = new EventTarget();
  const values = (pick) => places.map((each) => (each === undefined ? null : (pick(each) ?? null))),
    second = (pick) => values((each) => pick(each) / Math.max(1, each.seconds));
  const marks = found.events
    .map((event) => ({
      index: places.length - 1 - (newest - Math.floor(event.at / 60)),
      text: text.metrics.event(event),
    }))
    .filter((mark) => mark.index >= 0);
  const chart = (title, unit, options) =>
    panel(title, h("p", null, unit), timeChart({ title, unit, marks, times, cursorBus, ...options }));
  const sum = (each, isOf) =>
    Object.entries(each.requests).reduce((n, [operation, times]) => n + (isOf(operation) ? times : 0), 0);
  const last = found.minutes.at(-1),
    one = (value) => (value >= 10 ? count(value) : value === 0 || value >= 0.1 ? value.toFixed(1) : value.toPrecision(1));
  const partitions = isContainer
    ? [...new Set(found.minutes.flatMap((each) => Object.keys(each.busyPercent ?? {})))]
        .sort((a, b) => peak(b) - peak(a))
        .slice(0, 4)
    : [];
  function peak(id) {
    return Math.max(0, ...found.minutes.map((each) => each.busyPercent?.[id] ?? 0));
  }
  const most = Math.max(1, ...found.minutes.map((each) => each.bytes ?? 0)),
    [unit, size] = most >= 2 ** 30 ? ["GB", 2 ** 30] : most >= 2 ** 20 ? ["MB", 2 ** 20] : ["KB", 2 ** 10];
  return [
    chart(text.metrics.ru, "RU/s", {
      lines: [
        { values: values((each) => each.busiestSecondRu), kind: "ru", name: text.metrics.busiest },
        { values: second((each) => each.ru), kind: "ru", name: text.metrics.mean, dash: "dash" },
      ],
      limit: last?.allowedRu ? { value: last.allowedRu, text: text.metrics.allowed } : undefined,
      format: rate,
    }),
    chart(text.metrics.refused, text.metrics.perMinute, {
      lines: [{ values: values((each) => each.throttled), kind: "refused" }],
      format: count,
    }),
    chart(text.metrics.requests, text.metrics.perSecond, {
      lines: [
        {
          values: second((each) => sum(each, (operation) => READS.has(operation))),
          kind: "requests",
          name: text.metrics.reads,
        },
        {
          values: second((each) => sum(each, (operation) => !READS.has(operation) && !QUERIES.has(operation))),
          kind: "requests",
          name: text.metrics.writes,
          dash: "dash",
        },
        {
          values: second((each) => sum(each, (operation) => QUERIES.has(operation))),
          kind: "requests",
          name: text.metrics.queries,
          dash: "dot",
        },
      ],
      format: one,
    }),
    chart(text.metrics.latency, text.metrics.msServer, {
      lines: [
        { values: values((each) => each.p99Ms), kind: "latency", name: "p99" },
        { values: values((each) => each.p50Ms), kind: "latency", name: "p50", dash: "dash" },
      ],
      format: one,
    }),
    isContainer
      ? chart(text.metrics.busy, text.metrics.ofAllowed, {
          lines: partitions.map((id, index) => ({
            values: values((each) => each.busyPercent?.[id] ?? 0),
            kind: peak(id) >= 99 ? "refused" : "ru",
            name: `${id}:`,
            dash: DASHES[index],
          })),
          max: 112,
          step: 50,
          limit: { value: 100, text: text.metrics.allowed },
        })
      : containerLoads(found),
    chart(text.metrics.stored, unit, {
      lines: [{ values: values((each) => (each.bytes === undefined ? null : each.bytes / size)), kind: "storage" }],
      format: one,
    }),
  ];
}

// Of the account: which containers the request units of this time went to.
function containerLoads(found) {
  const sums = found.containers
      .map((each) => ({
        ...each,
        sum: each.ru.reduce((n, value) => n + (value ?? 0), 0),
        refused: each.throttled.reduce((n, value) => n + (value ?? 0), 0),
      }))
      .sort((a, b) => b.sum - a.sum)
      .slice(0, 8),
    most = sums[0]?.sum || 1;
  return panel(
    text.metrics.byContainer,
    h("p", null, text.metrics.byContainerSay),
    sums.length
      ? h(
          "ul",
          { class: "ranks" },
          sums.map((each) =>
            h(
              "li",
              null,
              h(
                "a",
                { class: "clip", href: containerAddress(each, "metrics") },
                name(`${each.database}/${each.container}`),
              ),
              h("b", null, `${count(each.sum)} RU`),
              h(
                "div",
                {
                  class: `meter ${each.refused ? "full" : ""}`,
                  role: "img",
                  "aria-label": text.metrics.refusedOf(count(each.refused)),
                },
                h("i", { vars: { v: (100 * each.sum) / most } }),
              ),
            ),
          ),
        )
      : h("p", { class: "faint" }, text.metrics.noTraffic),
  );
}

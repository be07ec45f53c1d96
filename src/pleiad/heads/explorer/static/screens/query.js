// Query: editor, parameters found in the text, history; below, what it cost and why, in words; results page by page.
import { editor, json, sql } from "../js/code.js";
import { completion } from "../js/completion.js";
import { reading } from "../js/dialogs.js";
import { button, h, input, note, put, seg, space, toast } from "../js/dom.js";
import { bytes, charge, clock, name, oneLine, plural, shownJson, stringify, visible } from "../js/format.js";
import { keyFields } from "../js/key_filter.js";
import { hasKey, keyOf } from "../js/key_path.js";
import { containerAddress, itemAddress, note as noteAddress } from "../js/router.js";
import { Latest, isStopped } from "../js/scope.js";
import { bones, failed, state } from "../js/states.js";
import { text } from "../js/texts.js";
import { costOf } from "./query_cost.js";

const PAGE_ITEMS = 100;
const COLUMNS_MAX = 12;
const HISTORY_MAX = 30;
const PARAMETERS = /@[A-Za-z_]\w*/g;
const LITERALS = /'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|--[^\n]*/g;

const historyName = (at) => `pleiad.queries.${at.database}/${at.container}`;
const historyOf = (at) => {
  try {
    return JSON.parse(sessionStorage.getItem(historyName(at))) ?? [];
  } catch {
    return [];
  }
};
function remember(at, entry) {
  const kept = [entry, ...historyOf(at).filter((each) => each.text !== entry.text)].slice(0, HISTORY_MAX);
  try {
    sessionStorage.setItem(historyName(at), JSON.stringify(kept));
  } catch {
    sessionStorage.removeItem(historyName(at));
  }
}

export function query(context) {
  const { account, at, paths, scope, params } = context;
  const code = editor(params.get("q") ?? historyOf(at)[0]?.text ?? text.query.first, sql, text.query.label, {
    extra: "q-code",
  });
  const keys = keyFields(context, undefined, text.query.allPartitions),
    values = new Map(),
    parameterSlot = h("div", { class: "params" });
  const cost = h("section", { class: "panel cost-panel", "aria-label": text.query.cost }),
    results = h("section", { class: "panel result-panel", "aria-label": text.query.results });
  const waiting = h("div"),
    past = h("div"),
    latest = new Latest(scope);
  let seen = [],
    running = false,
    total = 0,
    form = "table",
    shown;
  account
    .paths(at, { signal: scope.signal })
    .then(({ json: found }) => {
      seen = found.paths;
    })
    .catch(() => {});
  completion(code, () => seen);

  const run = button([text.query.run, h("kbd", null, "Ctrl ⏎")], () => start(), {
    kind: "primary",
    image: "play",
    "data-run": "",
  });
  const cancel = button(text.query.cancel, () => latest.stop(), { image: "stop", disabled: true, "data-cancel": "" });
  const setRunning = (value) => {
    running = value;
    cancel.disabled = !value;
    run.disabled = value;
    results.setAttribute("aria-busy", String(value));
  };

  function drawParameters() {
    const names = [...new Set(code.text.replace(LITERALS, "").match(PARAMETERS) ?? [])];
    if (parameterSlot.dataset.names === names.join()) return;
    parameterSlot.dataset.names = names.join();
    put(
      parameterSlot,
      names.map((each) => {
        const box = input({
          class: "input mono",
          value: values.get(each) ?? "",
          placeholder: "JSON",
          "aria-label": text.query.valueOf(each),
          oninput: () => values.set(each, box.value),
        });
        return h("label", { class: "pre" }, h("span", null, each), box);
      }),
      keys.nodes,
    );
  }
  function parameters() {
    return parameterSlot.dataset.names
      .split(",")
      .filter(Boolean)
      .map((each) => {
        const given = values.get(each) ?? "";
        try {
          return { name: each, value: given === "" ? null : JSON.parse(given) };
        } catch {
          return { name: each, value: given };
        }
      });
  }
  code.area.addEventListener("input", drawParameters);
  drawParameters();

  async function start() {
    if (running) return;
    total = 0;
    const asked = { query: code.text, parameters: parameters() };
    noteAddress(containerAddress(at, "query", { q: code.text.length < 4000 ? code.text : undefined }));
    const explained = account
      .explain(at, { ...asked, ...(keys.value && { partitionKey: keys.value }) }, { signal: scope.signal })
      .then(({ json: found }) => found)
      .catch(() => undefined);
    await page({ asked, key: keys.value, explained, number: 1, continuation: "" });
  }

  async function page(wanted) {
    const signal = latest.next(),
      began = performance.now();
    setRunning(true);
    const slow = setTimeout(() => {
      if (wanted.number === 1) {
        put(results, bones());
        put(cost);
      }
    }, 200);
    try {
      const answer = await account.query(at, wanted.asked, {
        ...wanted,
        pageItems: PAGE_ITEMS,
        reports: true,
        signal,
        onWait: (milliseconds) =>
          put(waiting, note("warn", text.query.throttled((milliseconds / 1000).toFixed(1)), text.query.throttledWhy)),
      });
      clearTimeout(slow);
      shown = { ...wanted, answer, rows: answer.json.Documents, next: answer.headers.get("x-ms-continuation") ?? "" };
      total += answer.charge;
      put(cost, await costOf(context, shown, await wanted.explained));
      drawResults();
      if (wanted.number === 1) {
        remember(at, { text: wanted.asked.query, at: Date.now(), results: shown.rows.length, charge: answer.charge });
        drawHistory();
      }
    } catch (error) {
      clearTimeout(slow);
      put(cost);
      put(
        results,
        isStopped(error)
          ? state("stop", text.query.cancelled, text.query.cancelledWhy(Math.round(performance.now() - began)))
          : await mistake(error, wanted),
      );
    }
    put(waiting);
    setRunning(false);
  }

  // A mistake in the text is shown with its place, and a way to go there.
  async function mistake(error, wanted) {
    const explained = await wanted.explained,
      found = explained?.mistakes;
    if (!found?.length) return failed(error, start);
    const [first] = found;
    const go =
      first.start !== undefined &&
      first.start !== null &&
      button(
        text.query.goToPlace,
        () => {
          code.area.focus();
          code.area.setSelectionRange(first.start, Math.max(first.end, first.start + 1));
        },
        { kind: "primary" },
      );
    return state(
      "bad",
      text.query.mistake,
      found.map((each) => [
        h("code", null, visible(`${each.code ? `${each.code}: ` : ""}${each.message}`)),
        each.line ? text.query.place(each.line, each.column) : "",
        h("br"),
      ]),
      [go],
    );
  }

  function drawResults() {
    const { rows, next, number, answer } = shown;
    if (!rows.length && !next && number === 1) {
      put(results, state("search", text.query.nothing, text.query.nothingWhy));
      return;
    }
    put(
      results,
      h(
        "div",
        { class: "panel-head" },
        h("h2", null, plural(rows.length, text.query.result)),
        h("p", null, text.query.page(number, bytes(answer.text.length))),
        space(),
        seg(
          text.query.as,
          [
            ["table", text.query.table],
            ["json", "JSON"],
          ],
          form,
          (value) => {
            form = value;
            drawResults();
          },
        ),
        button(
          text.copy,
          async () => {
            await navigator.clipboard.writeText(stringify(rows, 2));
            toast(text.copied);
          },
          { kind: "quiet", image: "copy" },
        ),
        button(
          text.query.save,
          () => download(`${at.container}.jsonl`, rows.map((each) => `${stringify(each)}\n`).join("")),
          { kind: "quiet", image: "down" },
        ),
      ),
      rows.length
        ? form === "table"
          ? table(rows)
          : h(
              "div",
              { class: "panel-body" },
              h(
                "div",
                { class: "code wrap", tabindex: 0, role: "region", "aria-label": "JSON" },
                h("pre", null, json(shownJson(rows, 2).slice(0, 400_000))),
              ),
            )
        : state("clock", text.query.emptyPage, text.query.emptyPageWhy),
      h(
        "div",
        { class: "pager" },
        h("span", null, text.query.total(charge(total), number)),
        space(),
        button(text.query.next, () => page({ ...shown, number: number + 1, continuation: next }), { disabled: !next }),
      ),
    );
  }
  function table(rows) {
    const areObjects = rows.every((each) => each !== null && typeof each === "object" && !Array.isArray(each));
    if (!areObjects)
      return h(
        "div",
        { class: "table-wrap" },
        h(
          "table",
          { class: "table tight" },
          h("thead", null, h("tr", null, h("th", null, text.query.value))),
          h(
            "tbody",
            null,
            rows.map((each) => h("tr", null, h("td", { class: "mono" }, oneLine(each, 300)))),
          ),
        ),
      );
    const all = [...new Set(rows.flatMap((each) => Object.keys(each)))],
      own = all.filter((each) => !/^_(rid|self|etag|attachments|ts)$/.test(each));
    const columns = (own.length ? own : all).slice(0, COLUMNS_MAX),
      isNumber = (column) =>
        rows.every((each) => each[column] === undefined || ["number", "bigint"].includes(typeof each[column]));
    const cell = (row, column) =>
      column === "id" && typeof row.id === "string" && hasKey(row, paths)
        ? h("a", { class: "mono", href: itemAddress(at, row.id, keyOf(row, paths)) }, name(row.id, 80))
        : oneLine(row[column]);
    return h(
      "div",
      { class: "table-wrap", tabindex: 0, role: "region", "aria-label": text.query.results },
      h(
        "table",
        { class: "table tight" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            columns.map((each) => h("th", { class: isNumber(each) ? "num" : "" }, name(each, 40))),
          ),
        ),
        h(
          "tbody",
          null,
          rows.map((row) =>
            h(
              "tr",
              null,
              columns.map((each) => h("td", { class: isNumber(each) ? "num" : "cell" }, cell(row, each))),
            ),
          ),
        ),
      ),
      all.length > columns.length &&
        own.length > columns.length &&
        h("p", { class: "hint pad" }, text.query.moreColumns(own.length - columns.length)),
    );
  }
  const historyList = (chosen = () => {}) =>
    h(
      "ul",
      { class: "hist" },
      historyOf(at).map((each) =>
        h(
          "li",
          null,
          h(
            "button",
            {
              type: "button",
              title: name(each.text, 500),
              onclick: () => {
                chosen();
                code.text = each.text;
                drawParameters();
                code.area.focus();
              },
            },
            h("code", null, name(each.text.replace(/\s+/g, " "), 120)),
            h("span", null, text.query.pastLine(clock(new Date(each.at)), each.results, charge(each.charge))),
          ),
        ),
      ),
      !historyOf(at).length && h("li", { class: "faint small" }, text.query.noHistory),
    );
  const drawHistory = () => put(past, historyList());
  drawHistory();
  put(results, state("play", text.query.idle, text.query.idleWhy));
  const aside = h(
    "aside",
    { class: "panel", "aria-label": text.query.history },
    h("div", { class: "panel-head" }, h("h2", null, text.query.history), h("p", null, text.query.thisTab)),
    past,
  );
  return h(
    "div",
    { class: "q" },
    h(
      "div",
      { class: "grid" },
      h(
        "section",
        { class: "panel", "aria-label": text.query.title },
        h(
          "div",
          { class: "panel-head" },
          h("h2", null, text.query.title),
          h("p", null, text.query.fromHint),
          space(),
          button(
            text.query.history,
            () =>
              reading(
                text.query.history,
                historyList(() => document.querySelector("dialog").close()),
              ),
            { kind: "quiet hist-button", image: "clock" },
          ),
          cancel,
          run,
        ),
        h("div", { class: "panel-body stack" }, code.node, parameterSlot, waiting),
      ),
      cost,
      results,
    ),
    aside,
  );
}

function download(fileName, content) {
  const address = URL.createObjectURL(new Blob([content], { type: "application/x-ndjson" }));
  h("a", { href: address, download: fileName }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

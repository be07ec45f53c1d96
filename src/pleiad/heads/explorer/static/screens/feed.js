// Change feed: a live tail that can be held. New rows come in above; nothing below the eye moves while it is held.
import { badge, button, fragment, h, icon, input, note, put, seg, space } from "../js/dom.js";
import { count, keyText, moment, name, rate } from "../js/format.js";
import { keyFields } from "../js/key_filter.js";
import { keyOf } from "../js/key_path.js";
import { itemAddress } from "../js/router.js";
import { failedNote } from "../js/states.js";
import { Latest, isStopped } from "../js/scope.js";
import { pause } from "../js/client.js";
import { text } from "../js/texts.js";

const ROWS_MAX = 200;
const HELD_MAX = 2000;
const PAGE_ITEMS = 100;
const EVERY_MS = 1000;
const SIGNS = { create: "+", replace: "~", delete: "−", change: "~" };

export function feed(context) {
  const { account, at, paths, scope, definition } = context;
  const rows = h("tbody"),
    state = h("span", { class: "live", role: "status" }, text.feed.following),
    held = h("span", { class: "small faint" }),
    problem = h("div"),
    figures = h("span", { class: "faint" }),
    since = input({ type: "datetime-local", step: 1, hidden: true, "aria-label": text.feed.from });
  const keys = keyFields(context),
    range = input({ placeholder: text.feed.all, "aria-label": text.feed.onlyPartition }),
    latest = new Latest(scope);
  let mode = "latest",
    from = "now",
    going = true,
    waiting = [],
    missed = 0,
    perMinute = [];

  const hold = button([icon("pause"), h("span", null, text.feed.hold), h("kbd", null, text.feed.space)], () =>
    toggle(),
  );
  function toggle() {
    going = !going;
    state.classList.toggle("held", !going);
    state.textContent = going ? text.feed.following : text.feed.held;
    hold.querySelector("span").textContent = going ? text.feed.hold : text.feed.goOn;
    if (going) {
      for (const each of waiting) add(each);
      waiting = [];
      missed = 0;
      held.textContent = "";
    }
  }
  function take(changes) {
    perMinute.push(...changes.map(() => Date.now()));
    if (going) {
      for (const each of changes) add(each);
      return;
    }
    waiting.push(...changes);
    missed += changes.length;
    waiting = waiting.slice(-HELD_MAX);
    held.textContent = text.feed.moreSince(count(missed));
  }
  function add(change) {
    rows.querySelector(".quiet-row")?.remove();
    rows.prepend(line(context, change));
    while (rows.children.length > ROWS_MAX) rows.lastChild.remove();
  }

  async function follow() {
    const signal = latest.next();
    put(rows, h("tr", { class: "quiet-row" }, h("td", { colspan: 4 + paths.length, class: "faint" }, text.feed.quiet)));
    put(problem);
    waiting = [];
    missed = 0;
    perMinute = [];
    held.textContent = "";
    let etag = from === "now" || mode === "all" ? "*" : "",
      spent = [];
    const options = { mode, key: keys.value, range: range.value.trim() || undefined, pageItems: PAGE_ITEMS, signal };
    if (from === "time" && mode === "latest" && since.value) options.since = new Date(since.value).toUTCString();
    while (!signal.aborted) {
      try {
        const answer = await account.changes(at, { ...options, etag });
        etag = answer.headers.get("etag") ?? etag;
        const changes = (answer.json?.Documents ?? []).map((each) => changeOf(each, paths));
        if (changes.length) take(changes);
        put(problem);
        spent.push([Date.now(), answer.charge]);
        const minute = Date.now() - 60000;
        perMinute = perMinute.filter((each) => each > minute);
        spent = spent.filter(([when]) => when > minute);
        put(
          figures,
          text.feed.figures(count(perMinute.length), rate(spent.reduce((n, [, value]) => n + value, 0) / 60)),
        );
        if (!changes.length) await pause(EVERY_MS, signal);
        else await pause(50, signal);
      } catch (error) {
        if (isStopped(error) || signal.aborted) return;
        put(problem, failedNote(error, [button(text.failure.again, follow)]));
        if (error.status && error.status < 500 && error.status !== 429) return;
        await pause(3000, signal).catch(() => {});
      }
    }
  }
  scope.listen(window, "keydown", (event) => {
    if (event.key === " " && ["BODY", "MAIN"].includes(event.target.tagName)) {
      event.preventDefault();
      toggle();
    }
  });
  follow();
  since.addEventListener("change", follow);
  const retention = note("info", text.feed.noRetention, text.feed.noRetentionWhy);
  retention.hidden = true;
  const fromChoice = seg(
    text.feed.from,
    [
      ["now", text.feed.fromNow],
      ["start", text.feed.fromStart],
      ["time", text.feed.fromTime],
    ],
    from,
    (value) => {
      from = value;
      since.hidden = value !== "time";
      if (value !== "time" || since.value) follow();
    },
  );
  const modeChoice = seg(
    text.feed.mode,
    [
      ["latest", text.feed.latest],
      ["all", text.feed.allVersions],
    ],
    mode,
    (value) => {
      mode = value;
      retention.hidden = value !== "all" || definition.changeFeedPolicy?.retentionDuration > 0;
      fromChoice.hidden = value === "all";
      since.hidden = value === "all" || from !== "time";
      follow();
    },
  );
  return fragment(
    h("div", { class: "row" }, modeChoice, fromChoice, since, space(), state, held, hold),
    problem,
    retention,
    h(
      "form",
      {
        class: "filter",
        onsubmit: (event) => {
          event.preventDefault();
          follow();
        },
      },
      keys.nodes,
      h("label", { class: "pre" }, h("span", null, text.space.partition), range),
      h("button", { type: "submit", class: "button" }, text.items.filter),
    ),
    h(
      "section",
      { class: "panel", "aria-label": text.feed.title },
      h(
        "div",
        { class: "table-wrap tail" },
        h(
          "table",
          { class: "table tight" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              h("th", null, text.feed.time),
              h("th", null, text.feed.change),
              paths.map((path) => h("th", null, name(path, 40))),
              h("th", null, "id"),
              h("th", { class: "num" }, "LSN"),
            ),
          ),
          rows,
        ),
      ),
      h("div", { class: "pager" }, h("span", null, text.feed.order), space(), figures),
    ),
  );
}
function changeOf(each, paths) {
  const { metadata = {}, current, previous } = each,
    isDelete = metadata.operationType === "delete",
    item = isDelete ? (previous ?? {}) : (current ?? {});
  const key =
    isDelete && metadata.partitionKey
      ? paths.map((path) => metadata.partitionKey[path.slice(1)] ?? {})
      : keyOf(item, paths);
  return {
    at: new Date(Number(metadata.crts) * 1000),
    operation: metadata.operationType ?? "change",
    id: metadata.id ?? item.id,
    key,
    lsn: metadata.lsn,
    isExpired: metadata.timeToLiveExpired,
  };
}

function line({ at, paths }, change) {
  return h(
    "tr",
    { class: "fresh" },
    h("td", { class: "mono faint nowrap" }, moment(change.at)),
    h(
      "td",
      null,
      h(
        "span",
        { class: `feed-op ${change.operation}`, "data-sign": SIGNS[change.operation] ?? "~" },
        text.feed.operations[change.operation] ?? change.operation,
      ),
      change.isExpired && badge("info", text.feed.expired),
    ),
    paths.map((_, level) => h("td", null, keyText([change.key[level]], 60))),
    h(
      "td",
      null,
      change.operation === "delete"
        ? h("span", { class: "mono" }, name(change.id, 60))
        : h("a", { class: "mono", href: itemAddress(at, change.id, change.key) }, name(change.id, 60)),
    ),
    h("td", { class: "num mono faint" }, count(change.lsn)),
  );
}

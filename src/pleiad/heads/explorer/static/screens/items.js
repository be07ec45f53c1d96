// Items: page by page with the partition key first, filtered by key and condition; beside them the one that is open.
import { button, fragment, h, input, put, space } from "../js/dom.js";
import { bytes, charge, keyText, name, oneLine, parse, stringify } from "../js/format.js";
import { keyFields } from "../js/key_filter.js";
import { asTyped, keyOf, steps } from "../js/key_path.js";
import { lever, may } from "../js/rights.js";
import { containerAddress, itemAddress, note as noteAddress } from "../js/router.js";
import { Latest } from "../js/scope.js";
import { load, state } from "../js/states.js";
import { text } from "../js/texts.js";
import { itemPanel, newItemPanel } from "./item.js";
import { upload } from "./upload.js";

const PAGE_ITEMS = 100;
const EMPTY_PAGES_MAX = 50;

export function items(context) {
  const { account, at, paths, scope, params, me } = context;
  const given = keyInAddress(params.get("pk"));
  const keys = keyFields(context, params.has("id") ? undefined : given);
  const where = input({
    class: "input mono",
    placeholder: text.items.wherePlaceholder,
    "aria-label": text.items.condition,
    value: params.get("where") ?? "",
  });
  const list = h("section", { class: "panel list-panel", "aria-label": text.items.title });
  const beside = h("div", { class: "item-slot" });
  const latest = new Latest(scope);
  let before = [],
    current = "",
    continuation = "",
    first = 0,
    shown = [];

  const asked = () => ({
    query: `SELECT * FROM c${where.value.trim() ? ` WHERE (${where.value.trim()}\n)` : ""}`,
    parameters: [],
  });

  // Pages may be empty though there is more: they are skipped, and what was paid for them is told.
  async function page(token, signal) {
    let spent = 0,
      next = token;
    for (let tries = 0; tries < EMPTY_PAGES_MAX; tries++) {
      const answer = await account.query(at, asked(), {
        key: keys.value,
        continuation: next,
        pageItems: PAGE_ITEMS,
        signal,
      });
      spent += answer.charge;
      next = answer.headers.get("x-ms-continuation") ?? "";
      if (answer.json.Documents.length || !next) return { found: answer.json.Documents, next, spent };
    }
    return { found: [], next, spent };
  }

  function show(token) {
    const signal = latest.next();
    current = token;
    return load(
      list,
      () => page(token, signal),
      ({ found, next, spent }) => {
        shown = found;
        continuation = next;
        return found.length || next ? [table(context, found, open), pager(spent, token)] : empty();
      },
    );
  }
  const restart = () => {
    before = [];
    first = 0;
    noteAddress(containerAddress(at, "items", { pk: keys.value && stringify(keys.value), where: where.value.trim() }));
    return show("");
  };
  const pager = (spent, token) =>
    h(
      "div",
      { class: "pager" },
      h("span", null, shown.length ? `${first + 1} – ${first + shown.length}` : text.items.emptyPage),
      h("span", { class: "faint" }, text.items.pageCharge(charge(spent))),
      space(),
      button(
        text.items.previous,
        () => {
          first -= PAGE_ITEMS;
          show(before.pop());
        },
        { disabled: !before.length },
      ),
      button(
        text.items.next,
        () => {
          before.push(token);
          first += shown.length;
          show(continuation);
        },
        { disabled: !continuation },
      ),
    );

  function empty() {
    if (keys.value) {
      const slot = h("span");
      suggestion(context, keys.value).then(
        (found) =>
          found &&
          put(
            slot,
            button(text.items.use(name(asTyped(found[0]))), () => {
              keys.value = found;
              restart();
            }),
          ),
      );
      return state("search", text.items.noneWithKey, text.items.noneWithKeyWhy(keyText(keys.value)), [slot, clear()]);
    }
    if (where.value.trim()) return state("search", text.items.noneMatch, text.items.noneMatchWhy, [clear()]);
    return state("box", text.items.none, text.items.noneWhy, [
      lever(me, "create", text.items.create, create, { kind: "primary", image: "plus" }),
    ]);
  }
  const clear = () =>
    button(
      text.items.clear,
      () => {
        keys.value = undefined;
        where.value = "";
        restart();
      },
      { kind: "quiet" },
    );

  function open(item, row) {
    for (const each of list.querySelectorAll("[aria-selected=true]")) each.setAttribute("aria-selected", "false");
    row?.setAttribute("aria-selected", "true");
    const place = { id: item.id, key: keyOf(item, paths), self: item._self };
    noteAddress(itemAddress(at, item.id, place.key));
    const isBeneath = beside.getBoundingClientRect().top > list.getBoundingClientRect().bottom - 1;
    put(
      beside,
      itemPanel(context, place, {
        saved: () => show(current),
        gone: () => {
          put(beside, hint());
          restart();
        },
      }),
    );
    if (isBeneath) beside.scrollIntoView();
  }
  function create() {
    const begun = keys.isComplete ? keys.value : undefined;
    put(
      beside,
      newItemPanel(context, begun, (item) => {
        restart();
        open(item);
      }),
    );
    beside.querySelector("textarea").focus();
  }
  const hint = () =>
    h(
      "section",
      { class: "panel", "aria-label": text.items.item },
      state("box", text.items.chooseTitle, text.items.choose),
    );

  if (params.has("id"))
    put(
      beside,
      itemPanel(
        context,
        { id: params.get("id"), key: given ?? [] },
        {
          saved: () => show(current),
          gone: () => {
            put(beside, hint());
            restart();
          },
        },
      ),
    );
  else put(beside, hint());
  show("");
  scope.listen(window, "keydown", (event) => moveByKey(event, list));
  return fragment(
    h(
      "form",
      {
        class: "filter",
        onsubmit: (event) => {
          event.preventDefault();
          restart();
        },
      },
      keys.nodes,
      h("label", { class: "pre" }, h("span", null, "WHERE"), where),
      h("button", { type: "submit", class: "button" }, text.items.filter),
      lever(me, "upsert", text.items.upload, () => upload(context, restart), { image: "upload" }),
      lever(me, "create", text.items.create, create, { kind: "primary", image: "plus" }),
    ),
    h("div", { class: "items" }, list, beside),
  );
}

// The key that an address names; an address that somebody has typed may name anything.
function keyInAddress(text) {
  try {
    const key = parse(text);
    return Array.isArray(key) ? key : undefined;
  } catch {
    return undefined;
  }
}

// A key that is written another way: values are exact, and people are not.
async function suggestion({ account, at, me }, key) {
  if (typeof key[0] !== "string" || !may(me, "query")) return undefined;
  try {
    const { json } = await account.keys(at, { limit: 100 });
    const same = (value) =>
      typeof value === "string" && value !== key[0] && value.trim().toLowerCase() === key[0].trim().toLowerCase();
    const found = json.keys.find(([first]) => same(first));
    return found && [found[0]];
  } catch {
    return undefined;
  }
}

function table({ paths, at }, found, open) {
  const previewed = previewName(found, paths);
  const rows = found.map((item, index) => {
    const row = h(
      "tr",
      {
        tabindex: index ? -1 : 0,
        "aria-selected": "false",
        onclick: () => open(item, row),
        onkeydown: (event) => {
          if (event.key === "Enter") open(item, row);
        },
      },
      paths.map((path, level) => h("td", { class: "key-cell" }, keyText([keyOf(item, paths)[level]], 60))),
      h("td", { class: "mono id-cell" }, name(item.id, 60)),
      previewed && h("td", { class: "clip muted preview" }, oneLine(item[previewed], 90)),
      h("td", { class: "num faint" }, bytes(stringify(item).length)),
    );
    return row;
  });
  return h(
    "div",
    { class: "table-wrap" },
    h(
      "table",
      { class: "table pick", role: "grid", "aria-label": text.items.gridOf(name(at.container)) },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          paths.map((path) => h("th", null, name(path, 40))),
          h("th", null, "id"),
          previewed && h("th", { class: "preview" }, name(previewed, 40)),
          h("th", { class: "num" }, text.items.size),
        ),
      ),
      h("tbody", null, rows),
    ),
  );
}

// The first property, of those that are neither key nor id, that says something in a line.
function previewName(found, paths) {
  const taken = new Set(["id", ...paths.map((path) => steps(path)[0])]);
  const candidates = Object.keys(found[0] ?? {}).filter((each) => !taken.has(each) && !each.startsWith("_"));
  return candidates.find((each) => typeof found[0][each] === "string") ?? candidates[0];
}

// j and k, and the arrows, go from row to row.
function moveByKey(event, list) {
  const step = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  const rows = [...list.querySelectorAll("tbody tr")];
  if (!step || isTyping || event.ctrlKey || event.metaKey || !rows.length || document.querySelector("dialog")) return;
  const at = rows.indexOf(event.target.closest?.("tr"));
  if (at < 0 && event.key.startsWith("Arrow")) return;
  event.preventDefault();
  const to = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
  for (const row of rows) row.tabIndex = row === to ? 0 : -1;
  to.focus();
}

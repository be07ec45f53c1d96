// The frame around every screen: bar, tree of databases and containers, and the line that says when no answer comes.
import { connection } from "./client.js";
import { h, icon, meter, note, put, s } from "./dom.js";
import { count, name, percent, seconds } from "./format.js";
import { containerAddress, databaseAddress } from "./router.js";
import { text } from "./texts.js";

const THEME = "pleiad.theme";
const DOTS = [
  [6, 12, 2],
  [11, 7.5, 1.5],
  [13, 15, 2.9],
  [17.5, 11, 1.8],
  [18.5, 18.5, 1.6],
  [23, 14, 2.2],
  [14, 21.5, 1.2],
];
const mark = () =>
  s(
    "svg",
    { viewBox: "0 0 28 28", "aria-hidden": "true" },
    s("path", { class: "brand-line", d: "M6 12 11 7.5 13 15 17.5 11 23 14 18.5 18.5 13 15 6 12" }),
    DOTS.map(([cx, cy, r]) => s("circle", { class: "brand-dot", cx, cy, r })),
  );

export const chosenTheme = () => localStorage.getItem(THEME) ?? "auto";
export function showTheme(value) {
  if (value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  for (const each of document.querySelectorAll("[data-pick]"))
    each.setAttribute("aria-pressed", String(each.dataset.pick === value));
  dispatchEvent(new Event("theme"));
}
function pickTheme(value) {
  if (value === "auto") localStorage.removeItem(THEME);
  else localStorage.setItem(THEME, value);
  showTheme(value);
}

const themes = () =>
  h(
    "div",
    { class: "seg icons", role: "group", "aria-label": text.shell.theme },
    [
      ["light", "sun"],
      ["auto", "auto"],
      ["dark", "moon"],
    ].map(([value, image]) =>
      h(
        "button",
        {
          type: "button",
          "data-pick": value,
          "aria-pressed": String(value === chosenTheme()),
          "aria-label": text.shell.themes[value],
          title: text.shell.themes[value],
          onclick: () => pickTheme(value),
        },
        icon(image),
      ),
    ),
  );

export function bar(app, me, jump) {
  const linked = h("span", { class: "link-state" }, location.host);
  const menu = h(
    "button",
    {
      type: "button",
      class: "button quiet icon menu",
      "aria-label": text.shell.tree,
      "aria-expanded": "false",
      onclick: () => {
        const isOpen = app.classList.toggle("open");
        menu.setAttribute("aria-expanded", String(isOpen));
        if (isOpen) document.querySelector(".side .input")?.focus();
      },
    },
    icon("menu"),
  );
  connection.addEventListener("change", () => {
    linked.classList.toggle("lost", connection.state === "lost");
    linked.textContent = connection.state === "lost" ? text.shell.lost : location.host;
  });
  return h(
    "header",
    { class: "bar" },
    me && menu,
    h("a", { class: "brand", href: "#/" }, mark(), "Pleiad"),
    h("div", { class: "where" }, linked),
    h("div", { class: "space" }),
    me &&
      h(
        "button",
        { type: "button", class: "jump", "aria-label": text.shell.jump, onclick: jump },
        icon("search"),
        h("span", null, text.shell.jump),
        h("kbd", null, "Ctrl K"),
      ),
    me && h("span", { class: "badge who" }, icon("key"), me.mayWrite ? text.shell.readWrite : text.shell.readOnly),
    themes(),
  );
}

// The tree keeps its nodes when figures change, so that focus, scroll and layout stay.
export class Tree {
  #rows = new Map();
  #shape = "";
  #list = h("ul", { class: "tree" });
  #current = "";
  #filter = h("input", {
    class: "input",
    type: "search",
    placeholder: text.shell.filter,
    "aria-label": text.shell.filter,
    oninput: () => this.#narrow(),
  });

  constructor(signOut, acts) {
    this.node = h(
      "nav",
      { class: "side", "aria-label": text.shell.tree },
      this.#filter,
      this.#list,
      h(
        "div",
        { class: "side-foot" },
        acts,
        h("button", { type: "button", class: "link", onclick: signOut }, text.shell.signOut),
      ),
    );
  }

  show(databases, containers) {
    const shape = JSON.stringify([
      databases.map((each) => [each.id, each.throughput?.ru]),
      containers.map((each) => [each.database, each.container, each.partitionKey]),
    ]);
    if (shape !== this.#shape) this.#build(databases, containers);
    this.#shape = shape;
    for (const each of containers) this.#refresh(each);
  }

  #build(databases, containers) {
    this.#rows.clear();
    put(
      this.#list,
      databases.map((database) =>
        h(
          "li",
          { "data-database": database.id },
          h(
            "a",
            { class: "tree-db", href: databaseAddress(database.id) },
            icon("db"),
            h("span", { class: "clip" }, name(database.id)),
            database.throughput && h("span", { class: "count" }, text.shell.shared(count(database.throughput.ru))),
          ),
          h(
            "ul",
            null,
            containers.filter((each) => each.database === database.id).map((each) => this.#row(each)),
          ),
        ),
      ),
    );
    this.#narrow();
    this.mark(this.#current);
  }

  #row(each) {
    const load = h("span", { class: "tree-load" });
    const link = h(
      "a",
      { class: "tree-c", href: containerAddress(each, "partitions") },
      h("span", { class: "clip" }, name(each.container)),
      h("span", { class: "path clip" }, name(each.partitionKey.join(" "))),
      load,
    );
    const key = `${each.database}/${each.container}`;
    this.#rows.set(key, { load, link });
    return h("li", { "data-c": key }, link);
  }

  #refresh(each) {
    if (!each.partitions) return;
    const row = this.#rows.get(`${each.database}/${each.container}`);
    const used = each.partitions.reduce((sum, part) => sum + part.lastSecond, 0);
    const allowed = each.partitions.reduce((sum, part) => sum + part.allowed, 0);
    const share = allowed ? Math.min(100, (100 * used) / allowed) : 0,
      level = each.problem ? "bad" : each.balance?.level;
    const said = `${level} ${percent(share)}`;
    if (row.load.dataset.said === said) return;
    row.load.dataset.said = said;
    const isPoor = level === "bad" || level === "warn";
    put(
      row.load,
      isPoor
        ? h("span", { class: level }, icon(level, each.problem ?? each.balance.word))
        : h("span", null, percent(share)),
      meter(share, `thin ${level === "bad" ? "full" : ""}`, text.shell.used(percent(share))),
    );
  }

  // Which container, or which database, the screen is about.
  mark(key) {
    this.#current = key;
    for (const [each, { link }] of this.#rows) {
      if (each === key) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  #narrow() {
    const wanted = this.#filter.value.toLowerCase();
    for (const row of this.#list.querySelectorAll("[data-c]"))
      row.hidden = !row.textContent.toLowerCase().includes(wanted) && !row.dataset.c.toLowerCase().includes(wanted);
    for (const database of this.#list.children)
      database.hidden = wanted !== "" && !database.querySelector("[data-c]:not([hidden])");
  }
}

// While no answer comes, what was known stays, with its age.
export function lostLine() {
  const slot = h("div", { class: "lost-line" });
  let timer;
  const show = () => {
    if (connection.state !== "lost") {
      clearInterval(timer);
      timer = undefined;
      put(slot);
      return;
    }
    const ago = Math.round((Date.now() - connection.lastAnswerAt) / 1000);
    put(
      slot,
      note("bad", text.shell.noAnswer(location.host, ago), text.shell.noAnswerWhy(seconds(connection.lastAnswerAt))),
    );
    timer ??= setInterval(show, 1000);
  };
  connection.addEventListener("change", show);
  return slot;
}

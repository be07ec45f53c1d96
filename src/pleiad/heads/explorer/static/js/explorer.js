// The page of somebody who is signed in: frame, routes and keys.
import { fragment, h, hideTip, note, put, space } from "./dom.js";
import { count, name } from "./format.js";
import { jump, keys } from "./palette.js";
import { containerAddress, databaseAddress, go, here, itemAddress } from "./router.js";
import { Scope } from "./scope.js";
import { forget } from "./session.js";
import { bar, lostLine, Tree } from "./shell.js";
import { failed } from "./states.js";
import { text } from "./texts.js";
import { advisor } from "../screens/advisor.js";
import { compare } from "../screens/compare.js";
import { database } from "../screens/database.js";
import { faults } from "../screens/faults.js";
import { feed } from "../screens/feed.js";
import { home } from "../screens/home.js";
import { items } from "../screens/items.js";
import { accountMetrics, metrics } from "../screens/metrics.js";
import { partitions } from "../screens/partitions.js";
import { query } from "../screens/query.js";
import { scripts } from "../screens/scripts.js";
import { settings } from "../screens/settings.js";

const OVERVIEW_EVERY_MS = 3000;
const CHORD_MS = 900;
// Screens of a container: the address, the title, the key after g, the screen, and whether it needs a key of the account.
const TABS = [
  ["items", text.tabs.items, "i", items],
  ["query", text.tabs.query, "q", query],
  ["partitions", text.tabs.partitions, "p", partitions, true],
  ["metrics", text.tabs.metrics, "m", metrics, true],
  ["feed", text.tabs.feed, "f", feed],
  ["advisor", text.tabs.advisor, "a", advisor, true],
  ["scripts", text.tabs.scripts, "r", scripts],
  ["settings", text.tabs.settings, "s", settings],
];
const PAGES = {
  compare: [text.compare.title, compare],
  metrics: [text.metrics.accountTitle, accountMetrics],
  faults: [text.faults.title, faults],
};

const app = document.getElementById("app");

export class Explorer {
  #scope;
  #tree;
  #main = h("main", { class: "main", id: "main", tabindex: "-1", onclick: () => this.#closeTree() });
  #facts;
  #lost = lostLine();
  #chordAt = 0;
  overview = { databases: [], containers: [] };
  bus = new EventTarget();

  constructor(session) {
    Object.assign(this, session);
    this.#tree = new Tree(
      () => {
        forget();
        location.reload();
      },
      this.me.mayAdminister && Object.entries(PAGES).map(([path, [title]]) => h("a", { href: `#/${path}` }, title)),
    );
    app.className = "app";
    put(
      app,
      bar(app, this.me, () => this.#jump()),
      this.#tree.node,
      this.#main,
    );
    addEventListener("hashchange", () => {
      this.#route();
      scrollTo(0, 0);
      this.#main.focus({ preventScroll: true });
    });
    addEventListener("keydown", (event) => this.#key(event));
    const life = new Scope();
    if (this.me.mayAdminister) life.every(OVERVIEW_EVERY_MS, () => this.refresh());
    else this.#ofToken();
  }

  async refresh() {
    const { json } = await this.account.overview();
    this.overview = json;
    this.#tree.show(json.databases, json.containers);
    this.#showFacts();
    this.bus.dispatchEvent(new Event("overview"));
  }
  containerOf = (at) =>
    this.overview.containers.find((each) => each.database === at.database && each.container === at.container);

  // A resource token opens one container, and that is all there is to show.
  async #ofToken() {
    const { database: owner, container } = this.me.scope ?? {};
    if (!owner || !container) return;
    const { json } = await this.account.container({ database: owner, container });
    this.overview = {
      databases: [{ id: owner }],
      containers: [{ database: owner, container, partitionKey: json.partitionKey.paths }],
    };
    this.#tree.show(this.overview.databases, this.overview.containers);
  }

  async start() {
    if (this.me.mayAdminister) await this.refresh().catch(() => {});
    await this.#route();
  }

  async #route() {
    this.#scope?.leave();
    const scope = new Scope();
    this.#scope = scope;
    this.#facts = undefined;
    hideTip();
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
    this.#closeTree();
    const { parts, params } = here();
    put(this.#main, this.#lost, this.#notice());
    const context = { explorer: this, account: this.account, me: this.me, scope, params };
    if (parts[0] === "c" && parts.length >= 3)
      return this.#container({ database: parts[1], container: parts[2] }, parts[3], context);
    this.#tree.mark("");
    if (parts[0] === "d" && parts[1] !== undefined)
      return this.#place(name(parts[1]), database({ ...context, database: parts[1] }));
    if (!this.me.mayAdminister) return this.#place(text.home.title, this.#tokenHome());
    const [title, screen] = PAGES[parts[0]] ?? [text.home.title, home];
    return this.#place(title, screen(context));
  }

  #place(title, node) {
    document.title = `${title} · Pleiad`;
    this.#main.append(node);
  }

  async #container(at, asked, context) {
    this.#tree.mark(`${at.database}/${at.container}`);
    let definition;
    try {
      definition = (await this.account.container(at, { signal: context.scope.signal })).json;
    } catch (error) {
      if (context.scope.signal.aborted) return;
      this.#place(
        name(at.container),
        failed(error, () => this.#route()),
      );
      return;
    }
    if (context.scope.signal.aborted) return;
    const tabs = TABS.filter(([, , , , needsKey]) => !needsKey || this.me.mayAdminister);
    const [tab, title, , screen] = tabs.find(([id]) => id === asked) ?? tabs[0];
    this.at = at;
    this.#main.append(this.#containerHead(at, definition, tabs, tab));
    this.#showFacts();
    this.#place(
      `${name(at.container)}: ${title}`,
      screen({ ...context, at, definition, paths: definition.partitionKey.paths }),
    );
    const on = this.#main.querySelector(".tabs [aria-current]");
    on.parentElement.scrollLeft = on.offsetLeft - 40;
  }

  #containerHead(at, definition, tabs, tab) {
    const base = `#/c/${encodeURIComponent(at.database)}/${encodeURIComponent(at.container)}`;
    this.#facts = { at, node: h("div", { class: "facts" }) };
    return fragment(
      h(
        "div",
        null,
        h(
          "nav",
          { class: "crumbs", "aria-label": text.shell.path },
          h("a", { href: "#/" }, text.home.crumb),
          "/",
          h("a", { href: databaseAddress(at.database) }, name(at.database)),
        ),
        h(
          "div",
          { class: "head" },
          h(
            "div",
            { class: "head-title" },
            h("h1", null, name(at.container)),
            definition.partitionKey.paths.map((path) => h("span", { class: "badge key" }, name(path))),
          ),
          space(),
          this.#facts.node,
        ),
        h(
          "nav",
          { class: "tabs", "aria-label": text.shell.screensOf(name(at.container)) },
          tabs.map(([id, title]) =>
            h("a", { href: `${base}/${id}`, "aria-current": id === tab ? "page" : undefined }, title),
          ),
        ),
      ),
    );
  }

  #showFacts() {
    const found = this.#facts && this.containerOf(this.#facts.at);
    if (!found?.partitions) return;
    const fact = (value, unit) => h("span", null, h("b", null, value), ` ${unit}`);
    const { ru, autoscale, shared } = found.throughput ?? {};
    put(
      this.#facts.node,
      fact(count(found.items), text.head.items(found.items)),
      fact(count(found.partitions.length), text.head.partitions(found.partitions.length)),
      ru && fact(count(ru), shared ? text.head.shared : autoscale ? text.head.autoscale : text.head.ru),
    );
  }

  #notice() {
    if (this.me.caller === "read-only key") return note("info", text.rights.readOnlyNote, text.rights.readOnlyWhy);
    return null;
  }
  #tokenHome() {
    const { database: owner, container, key, item } = this.me.scope ?? {};
    if (!owner || !container) return note("bad", text.rights.tokenLost);
    const at = { database: owner, container };
    const address = item && key ? itemAddress(at, item, key) : containerAddress(at, "items");
    return note("info", text.rights.tokenOpens(name(container)), text.rights.tokenWhy, [
      h("a", { class: "button primary", href: address }, text.rights.toItems),
    ]);
  }

  #closeTree() {
    app.classList.remove("open");
    document.querySelector(".button.menu")?.setAttribute("aria-expanded", "false");
  }
  #jump() {
    jump(
      this.overview.containers,
      TABS.map(([id, title]) => [id, title]),
      [[text.home.title, "#/"], ...Object.entries(PAGES).map(([path, [title]]) => [title, `#/${path}`])],
    );
  }

  #key(event) {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    const click = (mark) => {
      const node = document.querySelector(`dialog ${mark}, main ${mark}`);
      if (!node) return;
      event.preventDefault();
      node.click();
    };
    if (event.ctrlKey || event.metaKey) {
      if (event.key === "k") {
        event.preventDefault();
        this.#jump();
      }
      if (event.key === "Enter") click("[data-run]");
      if (event.key === "s") click("[data-save]");
      return;
    }
    if (event.key === "Escape") {
      this.#closeTree();
      if (!document.querySelector("dialog")) document.querySelector("main [data-cancel]:not(:disabled)")?.click();
    }
    if (isTyping || event.altKey || document.querySelector("dialog")) return;
    if (event.key === "?") keys();
    if (event.key === "/") {
      event.preventDefault();
      (document.querySelector("main .filter .input") ?? document.querySelector(".side .input"))?.focus();
    }
    if (event.key === "g") {
      this.#chordAt = Date.now();
      return;
    }
    const tab = Date.now() - this.#chordAt < CHORD_MS && TABS.find(([, , key]) => key === event.key);
    this.#chordAt = 0;
    const base = /^#\/c\/[^/]+\/[^/]+/.exec(location.hash)?.[0];
    if (tab && base) go(`${base}/${tab[0]}`);
  }
}

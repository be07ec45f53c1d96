// Home: the account at a glance, what to look at, every container in one list.
import { levelOf } from "../js/balance.js";
import { spark, sparkBars } from "../js/charts.js";
import { badge, fragment, h, icon, put, space } from "../js/dom.js";
import { bytes, count, duration, moment, ms, name, percent, rate, short, visible } from "../js/format.js";
import { lever } from "../js/rights.js";
import { containerAddress, databaseAddress } from "../js/router.js";
import { miniRibbon } from "../js/space.js";
import { failed, state } from "../js/states.js";
import { text } from "../js/texts.js";
import { newContainer, newDatabase } from "./create.js";

const LIVE_MS = 2000;
const HISTORY_MS = 30_000;
const MINUTES = 60;

export function home(context) {
  const { account, explorer, me, scope } = context;
  const line = h("p", { class: "muted small" }),
    glance = h(
      "section",
      { class: "panel glance", "aria-label": text.home.glance },
      [0, 1, 2, 3].map(() => h("div", null, h("div", { class: "bone w1" }), h("div", { class: "bone tall" }))),
    );
  const looks = h("section", { class: "panel", "aria-label": text.home.look }),
    list = new ContainerList();
  const lists = h("section", { class: "panel", "aria-label": text.home.containers }),
    problem = h("div");
  let past, now;

  function showOverview() {
    const { databases, containers, server, leftOff } = explorer.overview;
    if (!server) return;
    put(
      line,
      text.home.line(
        databases.length,
        containers.length,
        text.home.stores[server.store] ?? server.store,
        duration(server.uptimeSeconds),
        server.version,
      ),
    );
    if (!databases.length) {
      put(
        lists,
        state("db", text.home.noDatabase, text.home.noDatabaseWhy, [
          lever(me, "create_database", text.create.database, () => newDatabase(context), {
            kind: "primary",
            image: "plus",
          }),
        ]),
      );
      return;
    }
    list.show(databases, containers, past);
    if (lists.firstElementChild !== list.head)
      put(lists, list.head, list.node, leftOff > 0 && h("p", { class: "hint pad" }, text.home.leftOff(count(leftOff))));
  }
  function showGlance() {
    if (!now || !past) return;
    const provisioned = explorer.overview.throughput?.ru,
      minutes = past.minutes,
      values = (pick) => aligned(past.at, minutes, pick);
    const tile = (label, big, unit, foot, chart) =>
      h(
        "div",
        null,
        h("span", { class: "small muted" }, label),
        h("span", { class: "big" }, big, " ", h("small", null, unit)),
        h("span", { class: "tiny faint" }, foot),
        chart,
      );
    const [size, unit] = bytes(now.bytes).split(" "),
      used = provisioned ? percent((100 * now.last.ru) / provisioned) : "";
    put(
      glance,
      tile(
        text.home.ru,
        rate(now.last.ru),
        provisioned ? `${text.of(count(provisioned))} RU/s` : "RU/s",
        provisioned ? text.home.ofProvisioned(used) : "",
        spark(
          values((each) => each.ru / Math.max(1, each.seconds)),
          "ru",
          { ceiling: provisioned, label: text.home.ruLabel },
        ),
      ),
      tile(
        text.home.refused,
        count(now.lastMinute.throttled),
        text.home.lastMinute,
        text.home.refusedFoot(refusedMost(now.containers)),
        sparkBars(
          values((each) => each.throttled),
          "refused",
          text.home.refusedLabel,
        ),
      ),
      tile(
        text.home.requests,
        count(now.last.requests),
        text.home.perSecond,
        text.home.latency(ms(now.lastMinute.p50Ms), ms(now.lastMinute.p99Ms)),
        spark(
          values((each) => total(each.requests) / Math.max(1, each.seconds)),
          "requests",
          { label: text.home.requestsLabel },
        ),
      ),
      tile(
        text.home.stored,
        size,
        unit,
        text.home.storedFoot(minutes, now.bytes),
        spark(
          values((each) => each.bytes),
          "storage",
          { label: text.home.storedLabel },
        ),
      ),
    );
  }
  function showLooks() {
    const found = now.warnings,
      said = JSON.stringify(found);
    if (looks.dataset.said === said) return;
    looks.dataset.said = said;
    put(
      looks,
      h(
        "div",
        { class: "panel-head" },
        h("h2", null, text.home.look),
        found.length ? badge("warn", count(found.length)) : badge("good", text.home.allWell),
        now.faults > 0 && h("a", { class: "badge info", href: "#/faults" }, text.home.faults(now.faults)),
      ),
      found.length > 0 &&
        h(
          "ul",
          { class: "warn-list" },
          found.map((each) =>
            h(
              "li",
              null,
              h("span", { class: "warn" }, icon("warn")),
              h(
                "div",
                null,
                h("p", { class: "strong" }, visible(each.message)),
                h(
                  "p",
                  { class: "muted small" },
                  text.home.todo[each.kind] ?? "",
                  each.since && h("span", { class: "faint" }, ` ${text.home.since(moment(new Date(each.since)))}`),
                ),
              ),
              each.container
                ? h("a", { class: "button", href: containerAddress(each, "partitions") }, text.home.lookAt)
                : h("span"),
            ),
          ),
        ),
    );
  }
  showOverview();
  scope.listen(explorer.bus, "overview", showOverview);
  const fail = (error) => {
    if (!past) put(glance, failed(error));
  };
  scope.every(
    HISTORY_MS,
    async () => {
      past = (await account.accountHistory(MINUTES, { signal: scope.signal })).json;
      showGlance();
      showOverview();
    },
    fail,
  );
  scope.every(
    LIVE_MS,
    async () => {
      now = (await account.accountLive({ signal: scope.signal })).json;
      showGlance();
      showLooks();
    },
    fail,
  );
  return fragment(
    h(
      "div",
      { class: "head" },
      h("div", null, h("h1", null, text.home.title), line),
      space(),
      h(
        "div",
        { class: "row" },
        h("a", { class: "button", href: "#/compare" }, text.compare.title),
        lever(me, "create_database", text.create.database, () => newDatabase(context)),
        lever(me, "create_container", text.create.container, () => newContainer(context), {
          kind: "primary",
          image: "plus",
        }),
      ),
    ),
    problem,
    glance,
    looks,
    lists,
  );
}

const total = (requests) => Object.values(requests).reduce((n, value) => n + value, 0);
const refusedMost = (containers) => {
  const most = [...containers].sort((a, b) => b.throttledLastMinute - a.throttledLastMinute)[0];
  return most?.throttledLastMinute ? name(most.container) : undefined;
};
// One value for each of the last 60 minutes; null where the server saw none.
function aligned(at, minutes, pick) {
  const values = Array.from({ length: MINUTES }, () => null),
    newest = Math.floor(at / 60);
  for (const each of minutes) {
    const index = MINUTES - 1 - (newest - Math.floor(each.at / 60));
    if (index >= 0 && index < MINUTES) values[index] = pick(each);
  }
  return values;
}

// The list keeps its rows; only their figures change.
class ContainerList {
  #rows = new Map();
  #body = h("tbody");
  #shape = "";
  head = h("div", { class: "panel-head" }, h("h2", null, text.home.containers), space(), h("p", null, text.home.scale));
  node = h(
    "div",
    { class: "table-wrap" },
    h(
      "table",
      { class: "table c-table cards" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          text.home.columns.map(([word, isNumber]) => h("th", { class: isNumber ? "num" : "" }, word)),
        ),
      ),
      this.#body,
    ),
  );

  show(databases, containers, past) {
    const shape = JSON.stringify([
      databases.map((each) => [each.id, each.throughput?.ru]),
      containers.map((each) => [each.database, each.container]),
    ]);
    if (shape !== this.#shape) this.#build(databases, containers);
    this.#shape = shape;
    for (const each of containers)
      this.#refresh(
        each,
        past?.containers.find((old) => old.database === each.database && old.container === each.container),
        past,
      );
  }
  #build(databases, containers) {
    this.#rows.clear();
    put(
      this.#body,
      databases.map((database) => [
        h(
          "tr",
          { class: "db-row" },
          h(
            "td",
            { colspan: 8, class: "wide" },
            h("a", { href: databaseAddress(database.id) }, name(database.id)),
            database.throughput ? text.home.sharedBy(count(database.throughput.ru)) : "",
          ),
        ),
        containers
          .filter((each) => each.database === database.id)
          .map((each) => {
            const cells = text.home.columns
              .slice(1)
              .map(([word, isNumber]) => h("td", { class: isNumber ? "num" : "", "data-l": word }));
            this.#rows.set(`${each.database}/${each.container}`, cells);
            return h(
              "tr",
              null,
              h(
                "td",
                { class: "wide" },
                h("a", { class: "c-name", href: containerAddress(each, "partitions") }, name(each.container)),
                h("div", { class: "tiny faint mono" }, name(each.partitionKey.join("  "))),
              ),
              cells,
            );
          }),
      ]),
    );
  }
  #refresh(each, old, past) {
    const cells = this.#rows.get(`${each.database}/${each.container}`),
      sum = (pick) => each.partitions.reduce((n, part) => n + pick(part), 0);
    if (each.problem) {
      put(cells[0], badge("bad", text.home.problem));
      put(cells[1], h("span", { class: "small muted" }, each.problem));
      return;
    }
    const used = sum((part) => part.lastSecond),
      allowed = sum((part) => part.allowed);
    const values = (member) => {
      const list = Array.from({ length: MINUTES }, () => null);
      if (old) {
        const offset = MINUTES - 1 - (Math.floor(past.at / 60) - Math.floor(old.at / 60));
        old[member].forEach((value, index) => {
          if (offset + index >= 0 && offset + index < MINUTES) list[offset + index] = value;
        });
      }
      return list;
    };
    const refused = values("throttled").reduce((n, value) => n + (value ?? 0), 0);
    const shown = [
      badge(levelOf(each.balance), each.balance.word),
      miniRibbon(each.partitions),
      [h("b", { class: "strong" }, rate(used)), h("span", { class: "faint" }, ` ${text.of(count(allowed))}`)],
      spark(
        values("ru").map((value) => (value === null ? null : value / 60)),
        "ru",
        { ceiling: allowed, label: text.home.ruLabel },
      ),
      refused
        ? h(
            "div",
            { class: "with-number" },
            h("b", { class: "strong bad" }, short(refused)),
            sparkBars(values("throttled"), "refused", text.home.refusedLabel),
          )
        : h("span", { class: "faint" }, text.home.none),
      bytes(each.bytes),
      count(each.items),
    ];
    cells.forEach((cell, index) => put(cell, shown[index]));
  }
}

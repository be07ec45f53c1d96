// Partitions live: the balance in a sentence, the hash space to scale, the values behind it, the numbers, the levers.
import { balanceBox } from "../js/balance.js";
import { ask } from "../js/dialogs.js";
import { badge, field, fragment, h, meter, note, panel, put, seg, select, space } from "../js/dom.js";
import { bytes, count, hex, keyText, ms, name, percent, rate, ru, seconds, stringify } from "../js/format.js";
import { heatLegend } from "../js/heat.js";
import { lever } from "../js/rights.js";
import { failedNote, load } from "../js/states.js";
import { isHot, HashSpace } from "../js/space.js";
import { text } from "../js/texts.js";
import { changeThroughput } from "../js/throughput.js";

const LIVE_MS = 1000;
const HEAT_MS = 15_000;
const LARGEST_MS = 30_000;

export function partitions(context) {
  const { account, at, explorer, me, scope, paths } = context;
  const top = h("div", { class: "verdict-slot" }),
    said = h("div"),
    numbers = h("div"),
    hot = h("div", { class: "rank-slot" }),
    large = h("div", { class: "rank-slot" }),
    body = h("div", { class: "space-slot" });
  const live = h("span", { class: "live" }, text.partitions.everySecond);
  const picture = new HashSpace(scope, text.space.of(name(at.container)), {
    pick: (id) => document.getElementById(`part-${id}`)?.scrollIntoView({ block: "nearest" }),
  });
  let going = true,
    found,
    table;

  const compareWith = explorer.overview.containers.find(
    (each) => each.database === at.database && each.container !== at.container,
  );
  const acts = () =>
    compareWith && [
      h(
        "a",
        {
          class: "button",
          href: `#/compare?left=${encodeURIComponent(`${at.database}/${at.container}`)}&right=${encodeURIComponent(`${compareWith.database}/${compareWith.container}`)}`,
        },
        text.partitions.compareWith(name(compareWith.container)),
      ),
    ];
  const show = (answer) => {
    const isFirst = !found;
    found = answer;
    const verdict = stringify(found.balance);
    if (top.dataset.said !== verdict) {
      top.dataset.said = verdict;
      put(top, balanceBox(found.balance, acts()));
    }
    picture.show(found);
    if (isFirst) put(body, picture.node, heatLegend());
    table ??= new Numbers(context, split);
    table.show(found);
    if (!numbers.childElementCount) put(numbers, table.node);
    put(
      hot,
      rank(
        found.hottest.slice(0, 5),
        "",
        (value) => `${ru(value.ruPerSecond)}, ${percent(value.share)}`,
        (value) => value.share,
        text.partitions.noneHot,
      ),
    );
  };
  const refresh = async () => {
    if (going || !found) show((await account.live(at, { signal: scope.signal })).json);
  };
  load(
    body,
    () => account.live(at, { signal: scope.signal }),
    ({ json }) => {
      show(json);
      return [picture.node, heatLegend()];
    },
  ).then(() => {
    scope.every(LIVE_MS, refresh);
    scope.every(HEAT_MS, async () => {
      if (going) picture.showHeat((await account.heat(at, { slices: 96, since: 0 }, { signal: scope.signal })).json);
    });
    scope.every(LARGEST_MS, async () => {
      const { json } = await account.partitions(at, { largest: 5, hottest: 0 }, { signal: scope.signal });
      put(
        large,
        rank(
          json.largest,
          "storage",
          (value) => (value.percent >= 0.01 ? `${bytes(value.bytes)}, ${percent(value.percent)}` : bytes(value.bytes)),
          (value) => value.percent,
          text.partitions.noneLarge,
        ),
      );
    });
  });

  const hold = (value) => {
    going = value === "on";
    live.classList.toggle("held", !going);
    live.textContent = going ? text.partitions.everySecond : text.partitions.heldAt(seconds(new Date()));
  };
  const change = async (title, why, work) => {
    put(said, note("info", title, why));
    const began = performance.now();
    try {
      put(said, work.done(await work.deed(), Math.round(performance.now() - began)));
    } catch (error) {
      put(said, failedNote(error));
    }
    await refresh().catch(() => {});
  };
  function split(id) {
    const part = found.partitions.find((each) => each.id === id),
      hotValue = isHot(part) && found.hottest.find((each) => each.share > 20 && each.partitions.includes(id));
    return change(text.partitions.splitting(id), text.partitions.splittingWhy, {
      deed: () => account.split(at, id),
      done: ({ json }, took) =>
        note(
          hotValue ? "warn" : "good",
          text.partitions.wasSplit(id, took, json.partitions.map((each) => each.id ?? each).join(" + ")),
          hotValue ? text.partitions.stillHot(keyText(hotValue.key)) : text.partitions.rehomes,
        ),
    });
  }
  const chooseSplit = () => {
    const options = found.partitions.filter((part) => part.splittable);
    if (!options.length) {
      put(said, note("warn", text.partitions.noSplit, found.partitions[0]?.splitRefusal));
      return;
    }
    const which = select(
      options.map((part) => [
        part.id,
        text.partitions.option(part.id, rate(part.ru.lastSecond), bytes(part.bytes)),
        part === hottestOf(options),
      ]),
      {},
    );
    ask({
      title: text.partitions.splitTitle,
      say: text.partitions.splitSay,
      fields: field(text.space.partition, which),
      action: text.partitions.splitAction,
      deed: async () => {
        split(which.value);
      },
    });
  };
  const chooseMerge = () => {
    const pairs = found.partitions.flatMap((part) =>
      part.mergeableWith
        .filter((other) => found.partitions.findIndex((each) => each.id === other) > found.partitions.indexOf(part))
        .map((other) => [part.id, other]),
    );
    if (!pairs.length) {
      put(said, note("warn", text.partitions.noMerge, found.partitions[0]?.mergeRefusal));
      return;
    }
    const which = select(
      pairs.map((pair) => [pair.join(), pair.join(" + ")]),
      {},
    );
    ask({
      title: text.partitions.mergeTitle,
      say: text.partitions.mergeSay,
      fields: field(text.partitions.neighbours, which),
      action: text.partitions.mergeAction,
      deed: async () => {
        const pair = which.value.split(",");
        change(text.partitions.merging(pair.join(" + ")), text.partitions.splittingWhy, {
          deed: () => account.merge(at, pair),
          done: (answer, took) =>
            answer.status === 202
              ? note("info", text.partitions.mergeGoesOn)
              : note("good", text.partitions.wasMerged(pair.join(" + "), answer.json.partition?.id ?? "", took)),
        });
      },
    });
  };
  scope.listen(window, "keydown", (event) => {
    if (event.key !== " " || !["BODY", "MAIN"].includes(event.target.tagName)) return;
    event.preventDefault();
    refreshChoice.querySelector(`[data-value=${going ? "off" : "on"}]`).click();
  });
  const refreshChoice = seg(
    text.partitions.refresh,
    [
      ["on", text.partitions.live],
      ["off", text.partitions.hold],
    ],
    "on",
    hold,
  );
  return fragment(
    top,
    said,
    h(
      "section",
      { class: "panel", "aria-label": text.space.title },
      h(
        "div",
        { class: "panel-head hash-head" },
        h("h2", null, text.space.title),
        h("p", null, text.space.say),
        space(),
        live,
        refreshChoice,
        lever(me, "split", text.partitions.split, chooseSplit, { image: "split" }),
        lever(me, "merge", text.partitions.merge, chooseMerge, { image: "merge" }),
        lever(me, "replace_throughput", text.throughput.heading, () =>
          changeThroughput(
            context,
            explorer.containerOf(at)?.throughput?.shared ? { database: at.database } : at,
            name(at.container),
            found?.partitions.length ?? 1,
            refresh,
          ),
        ),
      ),
      h("div", { class: "panel-body stack" }, body),
    ),
    h(
      "div",
      { class: "grid two" },
      panel(text.partitions.hottest, h("p", null, text.partitions.hottestSay), hot),
      panel(text.partitions.largest, h("p", null, text.partitions.largestSay), large),
    ),
    h(
      "section",
      { class: "panel", "aria-label": text.partitions.numbers },
      h(
        "div",
        { class: "panel-head" },
        h("h2", null, text.partitions.numbers),
        h("p", null, text.partitions.numbersSay(paths.map((path) => name(path)).join(", "))),
      ),
      numbers,
    ),
  );
}

const hottestOf = (list) =>
  list.reduce((a, b) => (a.ru.lastSecond / a.ru.allowed >= b.ru.lastSecond / b.ru.allowed ? a : b));

const rank = (values, kind, number, part, none) =>
  values.length
    ? h(
        "ul",
        { class: "ranks" },
        values.map((value) =>
          h(
            "li",
            null,
            h("span", { class: "clip" }, keyText(value.key, 80)),
            h("b", { class: "strong" }, number(value)),
            meter(part(value), kind, `${keyText(value.key, 80)}: ${number(value)}`),
          ),
        ),
      )
    : h("p", { class: "faint small" }, none);

// The same in exact numbers; rows stay, and their cells change.
class Numbers {
  #rows = new Map();
  #body = h("tbody");
  constructor(context, split) {
    this.context = context;
    this.split = split;
    const heads = text.partitions.columns;
    this.node = h(
      "div",
      { class: "table-wrap" },
      h(
        "table",
        { class: "table cards" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            heads.map(([word, isNumber]) => h("th", { class: isNumber ? "num" : "" }, word)),
            h("th", null, h("span", { class: "visually-hidden" }, text.partitions.actions)),
          ),
        ),
        this.#body,
      ),
    );
  }
  show(found) {
    const ids = found.partitions.map((part) => part.id).join();
    if (this.ids !== ids) {
      this.ids = ids;
      this.#rows.clear();
      put(
        this.#body,
        found.partitions.map((part) => this.#row(part)),
      );
    }
    for (const part of found.partitions) this.#refresh(part, found);
  }
  #row(part) {
    const cells = text.partitions.columns
      .slice(1)
      .map(([word, isNumber]) => h("td", { class: isNumber ? "num" : "", "data-l": word }));
    const title = h("td"),
      acts = h("td", { class: "num" });
    this.#rows.set(part.id, { title, cells, acts });
    return h("tr", { "data-p": part.id, id: `part-${part.id}` }, title, cells, acts);
  }
  #refresh(part, found) {
    const { title, cells, acts } = this.#rows.get(part.id),
      room = found.limits.physicalPartitionBytes,
      load = part.ru.allowed ? (100 * part.ru.lastSecond) / part.ru.allowed : 0;
    const measure = (value, beside, percentage, kind, label) =>
      h(
        "div",
        { class: "measure" },
        h("div", { class: "read" }, h("b", null, value), h("span", null, beside)),
        meter(percentage, kind, label),
      );
    put(
      title,
      h("b", { class: "strong" }, part.id),
      " ",
      part.change
        ? badge("info", text.space.changing(part.change, part.phase, part.copiedPercent))
        : isHot(part) && badge("bad", text.partitions.full),
    );
    const shown = [
      h("span", { class: "mono" }, `${hex(part.space[0])} – ${hex(part.space[1])}`),
      measure(
        rate(part.ru.lastSecond),
        count(part.ru.allowed),
        load,
        isHot(part) ? "full" : "",
        `${ru(part.ru.lastSecond)} ${text.of(count(part.ru.allowed))}`,
      ),
      measure(
        bytes(part.bytes),
        percent((100 * part.bytes) / room),
        (100 * part.bytes) / room,
        "storage",
        bytes(part.bytes),
      ),
      count(part.items),
      h("span", { class: part.ru.throttledLastMinute ? "bad strong" : "faint" }, count(part.ru.throttledLastMinute)),
      ms(part.p99Ms),
      h("span", { class: "muted" }, part.parents.join(", ") || text.partitions.none),
    ];
    cells.forEach((cell, index) => put(cell, shown[index]));
    if (acts.dataset.reason !== String(part.splitRefusal)) {
      acts.dataset.reason = String(part.splitRefusal);
      put(
        acts,
        lever(this.context.me, "split", text.partitions.split, () => this.split(part.id), {
          kind: "quiet",
          image: "split",
          "aria-label": text.partitions.splitOne(part.id),
          reason: part.splittable ? undefined : (part.splitRefusal ?? text.partitions.cannotSplit),
        }),
      );
    }
  }
}

// Two containers side by side: the same data, two keys, one scale.
import { balanceBox } from "../js/balance.js";
import { fragment, h, put, select, space } from "../js/dom.js";
import { bytes, count, name, stringify } from "../js/format.js";
import { heatLegend } from "../js/heat.js";
import { go } from "../js/router.js";
import { HashSpace } from "../js/space.js";
import { load, state } from "../js/states.js";
import { text } from "../js/texts.js";

const LIVE_MS = 1000;
const HEAT_MS = 15_000;

export function compare(context) {
  const { explorer, params } = context;
  const all = explorer.overview.containers.map((each) => `${each.database}/${each.container}`);
  if (!all.length) return state("box", text.compare.none, text.compare.noneWhy);
  const chosen = { left: params.get("left") ?? all[0], right: params.get("right") ?? all[1] ?? all[0] };
  const choose = (side) => {
    const box = select(
      all.map((each) => [each, each, each === chosen[side]]),
      {
        "aria-label": text.compare[side],
        onchange: () => {
          chosen[side] = box.value;
          go(`#/compare?${new URLSearchParams(chosen)}`);
        },
      },
    );
    return box;
  };
  const [a, b] = [column(context, chosen.left), column(context, chosen.right)];
  return fragment(
    h(
      "div",
      { class: "head" },
      h("div", null, h("h1", null, text.compare.title), h("p", { class: "muted small" }, text.compare.say)),
      space(),
      h(
        "div",
        { class: "compare-head" },
        choose("left"),
        h("span", { class: "faint" }, text.compare.with),
        choose("right"),
      ),
    ),
    h("div", { class: "grid two pair" }, a.top, b.top, a.panel, b.panel),
    heatLegend(),
  );
}

function column({ account, explorer, scope }, path) {
  const known = explorer.overview.containers.find((each) => `${each.database}/${each.container}` === path);
  const top = h("div", { class: "verdict-slot" }),
    body = h("div", { class: "panel-body space-slot" }),
    used = h("p");
  const panel = h(
    "section",
    { class: "panel", "aria-label": name(path) },
    h(
      "div",
      { class: "panel-head" },
      h("h2", null, name(path)),
      known?.partitionKey.map((each) => h("span", { class: "badge key" }, name(each))),
      space(),
      used,
    ),
    body,
  );
  if (!known) {
    put(body, state("search", text.compare.gone(name(path)), text.compare.goneWhy));
    return { top, panel };
  }
  const picture = new HashSpace(scope, text.space.of(name(path)), { compact: true });
  const show = ({ json: found }) => {
    const said = stringify(found.balance),
      sum = (value) => found.partitions.reduce((n, part) => n + value(part), 0);
    if (top.dataset.said !== said) {
      top.dataset.said = said;
      put(top, balanceBox(found.balance, undefined, "tall"));
    }
    put(
      used,
      text.compare.used(
        count(sum((part) => part.ru.lastSecond)),
        count(sum((part) => part.ru.allowed)),
        bytes(sum((part) => part.bytes)),
      ),
    );
    picture.show(found);
    return picture.node;
  };
  const ask = () => account.live(known, { signal: scope.signal });
  load(body, ask, show).then(() => {
    scope.every(LIVE_MS, async () => {
      show(await ask());
    });
    scope.every(HEAT_MS, async () =>
      picture.showHeat((await account.heat(known, { slices: 96, since: 0 }, { signal: scope.signal })).json),
    );
  });
  return { top, panel };
}

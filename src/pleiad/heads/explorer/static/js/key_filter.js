// Fields for the values of a partition key, one a level, that offer the values there are.
import { h, input, newId, put } from "./dom.js";
import { asTyped, typed, typedKey } from "./key_path.js";
import { Latest, isStopped } from "./scope.js";
import { text } from "./texts.js";
import { name, stringify } from "./format.js";

const OFFERED = 20;
const WAIT_MS = 150;

// A resource token for one logical partition has its key filled in: it opens nothing else.
export function keyFields({ account, at, me, paths, scope }, asked, placeholder = text.items.allValues) {
  const given = asked ?? me.scope?.key ?? [];
  const latest = new Latest(scope);
  let timer;
  const fields = paths.map((path, level) => {
    const list = h("datalist", { id: newId() });
    const box = input({
      list: list.id,
      placeholder,
      "aria-label": text.items.filterBy(name(path)),
      value: given[level] === undefined ? "" : asTyped(given[level]),
    });
    const offer = async () => {
      const above = fields.slice(0, level).map((each) => each.box.value);
      if (above.includes("")) return;
      const query = { prefix: String(box.value), limit: OFFERED };
      if (above.length) query.under = stringify(above.map(typed));
      try {
        const { json } = await account.keys(at, query, { signal: latest.next() });
        put(
          list,
          json.keys.map((key) => h("option", { value: asTyped(key[level]) })),
        );
      } catch (error) {
        if (!isStopped(error)) put(list);
      }
    };
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(offer, WAIT_MS);
    };
    box.addEventListener("focus", soon);
    box.addEventListener("input", soon);
    return { box, node: h("label", { class: "pre" }, h("span", null, name(path, 40)), box, list) };
  });
  return {
    nodes: fields.map((each) => each.node),
    get value() {
      return typedKey(fields.map((each) => each.box.value));
    },
    get isComplete() {
      return fields.every((each) => each.box.value !== "");
    },
    set value(key) {
      fields.forEach((each, level) => {
        each.box.value = key?.[level] === undefined ? "" : asTyped(key[level]);
      });
    },
  };
}

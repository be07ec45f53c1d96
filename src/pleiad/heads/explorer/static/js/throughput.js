// Throughput as a form: a fixed number of RU/s, or a most of them from which a tenth is always there.
import { ask } from "./dialogs.js";
import { field, h, input, put, seg, toast } from "./dom.js";
import { count } from "./format.js";
import { text } from "./texts.js";

const LEAST = { fixed: 400, autoscale: 1000 };
const STEP = { fixed: 100, autoscale: 1000 };

// `allowNone` offers to have none: what shares the throughput of its database, or a database that gives none.
export function throughputFields(given = { ru: 400 }, { allowNone } = {}) {
  let kind = given.autoscale ? "autoscale" : given.ru ? "fixed" : "none";
  const box = input({ type: "number", value: given.ru ?? LEAST.fixed, min: LEAST.fixed, step: STEP.fixed });
  const labelled = field(text.throughput.label, box, text.throughput.hint);
  const limits = () => {
    labelled.hidden = kind === "none";
    if (kind === "none") return;
    box.min = LEAST[kind];
    box.step = STEP[kind];
    if (Number(box.value) < LEAST[kind]) box.value = LEAST[kind];
  };
  const options = [
    ["fixed", text.throughput.fixed],
    ["autoscale", text.throughput.autoscale],
  ];
  if (allowNone) options.push(["none", allowNone]);
  const choice = seg(text.throughput.kind, options, kind, (value) => {
    kind = value;
    limits();
    choice.dispatchEvent(new Event("change", { bubbles: true }));
  });
  limits();
  return {
    node: h("div", { class: "stack" }, choice, labelled),
    get isValid() {
      return kind === "none" || (box.value !== "" && box.validity.valid);
    },
    get value() {
      return kind === "none"
        ? undefined
        : kind === "fixed"
          ? { ru: Number(box.value) }
          : { autoscaleMaximumRu: Number(box.value) };
    },
  };
}

export async function changeThroughput({ account, explorer }, at, title, partitions, done) {
  const { json } = await account.throughput(at);
  const fields = throughputFields({
    ru: json.ru ?? json.autoscaleMaximumRu,
    autoscale: json.autoscaleMaximumRu !== undefined,
  });
  const each = h("p", { class: "hint" });
  const tell = () => {
    const wanted = fields.value.ru ?? fields.value.autoscaleMaximumRu;
    put(
      each,
      partitions
        ? text.throughput.each(partitions, count(Math.round(wanted / partitions)), count(partitions * 10000))
        : "",
    );
  };
  tell();
  const dialog = ask({
    title: text.throughput.title(title),
    fields: [fields.node, each],
    action: text.throughput.action,
    isReady: () => fields.isValid,
    deed: async () => {
      await account.setThroughput(at, fields.value);
      toast(text.throughput.done);
      explorer.refresh().catch(() => {});
      done?.();
    },
  });
  dialog.addEventListener("input", tell);
  dialog.addEventListener("change", tell);
}

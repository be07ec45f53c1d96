// What a page of a query cost: its parts, the physical partitions it went to, the indexes, and advice in words.
import { button, h, icon, meter, toast } from "../js/dom.js";
import { charge, count, name } from "../js/format.js";
import { may } from "../js/rights.js";
import { text } from "../js/texts.js";

const pairs = (header) =>
  (header ?? "")
    .split(";")
    .filter(Boolean)
    .map((each) => each.split("="))
    .map(([key, value]) => [key, Number(value)]);

export async function costOf(context, { answer }, explained) {
  const { headers } = answer;
  const parts = pairs(headers.get("x-pleiad-charge-parts")).filter(([, value]) => value > 0);
  const metrics = Object.fromEntries(pairs(headers.get("x-ms-documentdb-query-metrics")));
  const visited = (headers.get("x-pleiad-partitions-visited") ?? "").split(",").filter(Boolean);
  return [
    h(
      "div",
      { class: "strip" },
      chargePart(answer, parts, metrics),
      partitionPart(context, visited, explained, metrics),
      indexPart(context, headers, explained),
    ),
    advicePart(explained),
  ];
}

const chargePart = (answer, parts, metrics) =>
  h(
    "div",
    null,
    h("span", { class: "label" }, text.query.chargeOfPage),
    h("div", { class: "big" }, charge(answer.charge), " ", h("small", null, "RU")),
    h(
      "ul",
      { class: "parts" },
      parts.map(([part, value]) =>
        h(
          "li",
          null,
          h("span", { class: "muted" }, text.query.parts[part]?.(metrics) ?? name(part.replaceAll("_", " "))),
          meter((100 * value) / (answer.charge || 1), "", `${charge(value)} RU`),
          h("b", null, charge(value)),
        ),
      ),
    ),
  );

function partitionPart({ explorer, at }, visited, explained, metrics) {
  const all = explorer.containerOf(at)?.partitions ?? [];
  const of = all.length || explained?.partitionCount || visited.length;
  return h(
    "div",
    null,
    h("span", { class: "label" }, text.query.visited(count(visited.length), count(of))),
    all.length > 0 &&
      h(
        "div",
        { class: "cells", role: "img", "aria-label": text.query.visitedList(visited.join(", ")) },
        all.map((each) =>
          h(
            "i",
            { class: visited.includes(each.id) ? "on" : "", vars: { w: each.space[1] - each.space[0] } },
            all.length <= 24 && each.id,
          ),
        ),
      ),
    explained?.why && h("p", { class: "small muted below" }, explained.why),
    explained?.atManyPartitions?.sentence && h("p", { class: "small muted" }, explained.atManyPartitions.sentence),
    metrics.totalExecutionTimeInMs !== undefined &&
      h("p", { class: "tiny faint" }, text.query.onServer(metrics.totalExecutionTimeInMs.toFixed(1))),
  );
}

// From the explanation; where a caller gets none, from the header that clients read.
function indexesOf(headers, explained) {
  if (explained?.indexes) return explained.indexes;
  let found = {};
  try {
    found = JSON.parse(decodeURIComponent(headers.get("x-ms-cosmos-index-utilization") ?? "{}"));
  } catch {
    /* too long for a header: none is told */
  }
  const listed = (part) => [
    ...(part?.SingleIndexes ?? []).map((each) => ({ paths: [each.IndexSpec], impact: each.IndexImpactScore })),
    ...(part?.CompositeIndexes ?? []).map((each) => ({
      paths: each.IndexSpecs,
      isComposite: true,
      impact: each.IndexImpactScore,
    })),
  ];
  return { used: listed(found.UtilizedIndexes), missing: listed(found.PotentialIndexes) };
}

function indexPart(context, headers, explained) {
  const { used, missing } = indexesOf(headers, explained);
  const line = (kind, image, word, index, extra) =>
    h(
      "li",
      null,
      h("span", { class: kind }, icon(image)),
      h(
        "span",
        null,
        h("b", null, word),
        " ",
        index.isComposite && text.query.composite,
        h("code", null, name(index.paths.join(", "))),
        extra,
      ),
    );
  return h(
    "div",
    null,
    h("span", { class: "label" }, text.query.indexes),
    h(
      "ul",
      { class: "reasons" },
      used.map((each) => line("good", "ok", text.query.used, each)),
      missing.map((each) =>
        line("warn", "warn", text.query.wouldHelp, each, [
          each.impact &&
            h("span", { class: "faint small" }, ` ${text.query.impact(String(each.impact).toLowerCase())}`),
          may(context.me, "replace_container") && each.isComposite && adder(context, each),
        ]),
      ),
      !used.length && !missing.length && h("li", { class: "faint" }, h("span"), text.query.noIndexes),
    ),
  );
}

// Adds a composite index to the policy of the container, which is built in the background.
function adder({ account, at, definition }, index) {
  const add = button(
    text.query.addToPolicy,
    async () => {
      add.disabled = true;
      const composite = index.paths.map((spec) => {
        const [path, order] = spec.trim().split(/\s+/);
        return { path: path.replace(/\/\?$/, ""), order: /^desc/i.test(order ?? "") ? "descending" : "ascending" };
      });
      const kept = Object.fromEntries(Object.entries(definition).filter(([key]) => !key.startsWith("_")));
      const policy = {
        ...kept.indexingPolicy,
        compositeIndexes: [...(kept.indexingPolicy.compositeIndexes ?? []), composite],
      };
      try {
        const { json } = await account.replaceContainer(at, { ...kept, indexingPolicy: policy }, definition._etag);
        Object.assign(definition, json);
        toast(text.query.added);
      } catch (error) {
        add.disabled = false;
        toast(error.message);
      }
    },
    { kind: "quiet" },
  );
  return add;
}

function advicePart(explained) {
  const found = explained?.advice ?? [];
  return (
    found.length > 0 &&
    h(
      "div",
      { class: "advice" },
      icon("info"),
      h(
        "div",
        null,
        found.map((each, index) => h("p", { class: index ? "muted small" : "strong" }, each.sentence)),
      ),
    )
  );
}

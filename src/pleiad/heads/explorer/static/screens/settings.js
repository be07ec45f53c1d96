// Settings of a container: what can change, what cannot, and what cannot be undone.
import { editor, json } from "../js/code.js";
import { confirmByName } from "../js/dialogs.js";
import { check, field, h, input, note, panel, put, space, toast } from "../js/dom.js";
import { count, name, shownJson } from "../js/format.js";
import { lever, may } from "../js/rights.js";
import { databaseAddress, go } from "../js/router.js";
import { act, load } from "../js/states.js";
import { text } from "../js/texts.js";
import { changeThroughput } from "../js/throughput.js";

export function settings(context) {
  const { account, at, explorer, me, scope, definition } = context;
  const found = explorer.containerOf(at),
    items = found?.items ?? 0;
  return h(
    "div",
    { class: "grid two" },
    me.mayAdminister && throughputPanel(context),
    panel(
      text.settings.key,
      undefined,
      h(
        "div",
        { class: "stack" },
        h(
          "p",
          { class: "muted" },
          h("code", { class: "strong" }, definition.partitionKey.paths.map((path) => name(path)).join(", ")),
          " ",
          text.settings.keySay,
        ),
        definition.uniqueKeyPolicy?.uniqueKeys?.length > 0 &&
          h(
            "p",
            { class: "muted" },
            text.settings.unique,
            " ",
            h(
              "code",
              null,
              name(definition.uniqueKeyPolicy.uniqueKeys.map((each) => each.paths.join(", ")).join("; ")),
            ),
            ". ",
            text.settings.uniqueSay,
          ),
      ),
    ),
    indexing(context),
    life(context),
    panel(
      text.settings.definition,
      undefined,
      h(
        "div",
        { class: "code wrap", tabindex: 0, role: "region", "aria-label": text.settings.definition },
        h("pre", null, json(shownJson(definition, 2))),
      ),
    ),
    panel(
      text.settings.delete,
      undefined,
      h(
        "div",
        { class: "stack" },
        h("p", { class: "muted" }, text.settings.deleteSay(items)),
        lever(
          me,
          "delete_container",
          text.settings.deleteAction,
          () =>
            confirmByName({
              title: text.settings.deleteTitle(name(at.container)),
              say: text.settings.deleteSay(items),
              name: at.container,
              action: text.settings.deleteAction,
              deed: async () => {
                await account.deleteContainer(at);
                if (!scope.signal.aborted) {
                  await explorer.refresh().catch(() => {});
                  go(databaseAddress(at.database));
                }
              },
            }),
          { kind: "danger" },
        ),
      ),
    ),
  );
}

function throughputPanel(context) {
  const { account, at, explorer, me, scope } = context;
  const slot = h("p", { class: "muted" });
  const partitions = () => explorer.containerOf(at)?.partitions.length ?? 1;
  const isShared = explorer.containerOf(at)?.throughput?.shared;
  const draw = async () => {
    if (isShared) {
      put(slot, text.settings.sharedThroughput);
      return;
    }
    await load(
      slot,
      () => account.throughput(at, { signal: scope.signal }),
      ({ json: { ru, autoscaleMaximumRu } }) =>
        text.settings.throughput(
          count(ru ?? autoscaleMaximumRu),
          autoscaleMaximumRu !== undefined,
          count(Math.round((ru ?? autoscaleMaximumRu) / partitions())),
          partitions(),
        ),
      { shape: () => text.states.loading },
    );
  };
  draw();
  return panel(
    text.throughput.heading,
    [
      space(),
      isShared
        ? h("a", { class: "button", href: databaseAddress(at.database) }, text.settings.ofDatabase)
        : lever(me, "replace_throughput", text.throughput.change, () =>
            changeThroughput(context, at, name(at.container), partitions(), draw),
          ),
    ],
    slot,
  );
}

// Puts a changed definition in the place of the one that was read, if nobody else has changed it since.
async function replace({ account, at, definition, explorer }, change) {
  const { id, partitionKey, ...rest } = definition;
  const kept = Object.fromEntries(Object.entries(rest).filter(([key]) => !key.startsWith("_")));
  const wanted = { id, partitionKey, ...kept, ...change };
  for (const key of Object.keys(wanted)) if (wanted[key] === undefined) delete wanted[key];
  const { json: made } = await account.replaceContainer(at, wanted, definition._etag);
  for (const key of Object.keys(definition)) delete definition[key];
  Object.assign(definition, made);
  explorer.refresh().catch(() => {});
  toast(text.settings.saved);
}

function indexing(context) {
  const { me, definition } = context;
  const code = editor(JSON.stringify(definition.indexingPolicy, null, 2), json, text.settings.indexing, {
      readOnly: !may(me, "replace_container"),
    }),
    slot = h("div", { class: "stack" });
  const save = lever(
    me,
    "replace_container",
    text.settings.save,
    () =>
      act(save, slot, async () => {
        let policy;
        try {
          policy = JSON.parse(code.text);
        } catch (error) {
          put(slot, note("bad", text.items.notJson, error.message));
          return;
        }
        await replace(context, { indexingPolicy: policy });
        code.text = JSON.stringify(definition.indexingPolicy, null, 2);
      }),
    { "data-save": "" },
  );
  return panel(
    text.settings.indexing,
    [space(), save],
    h("div", { class: "stack" }, slot, code.node, h("p", { class: "hint" }, text.settings.indexingHint)),
  );
}

function life(context) {
  const { me, definition } = context;
  const slot = h("div", { class: "stack" });
  const on = check(text.create.ttl, { checked: definition.defaultTtl !== undefined });
  const seconds = input({
    type: "number",
    min: 1,
    max: 2147483647,
    placeholder: text.create.ttlPlaceholder,
    value: definition.defaultTtl > 0 ? definition.defaultTtl : "",
  });
  const keep = input({
    type: "number",
    min: 0,
    max: 10080,
    value: definition.changeFeedPolicy?.retentionDuration ?? "",
    placeholder: text.settings.notKept,
  });
  const save = lever(me, "replace_container", text.settings.save, () =>
    act(save, slot, () =>
      replace(context, {
        defaultTtl: on.box.checked ? (seconds.value ? Number(seconds.value) : -1) : undefined,
        changeFeedPolicy:
          keep.value !== ""
            ? { retentionDuration: Number(keep.value) }
            : definition.changeFeedPolicy && { retentionDuration: 0 },
      }),
    ),
  );
  return panel(
    text.settings.life,
    [space(), save],
    h(
      "div",
      { class: "stack" },
      slot,
      on.node,
      field(text.create.ttlSeconds, seconds, text.settings.ttlHint),
      field(text.settings.keep, keep, text.settings.keepHint),
    ),
  );
}

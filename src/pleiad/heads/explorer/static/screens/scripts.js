// Stored procedures, triggers and functions: written, changed, run and deleted.
import { editor, json, script as paint, viewer } from "../js/code.js";
import { confirmByName } from "../js/dialogs.js";
import { field, fragment, h, input, note, panel, put, seg, select, space, toast } from "../js/dom.js";
import { charge, name, shownJson, visible } from "../js/format.js";
import { keyFields } from "../js/key_filter.js";
import { lever, may } from "../js/rights.js";
import { containerAddress, note as noteAddress } from "../js/router.js";
import { act, load, state } from "../js/states.js";
import { text } from "../js/texts.js";

const BEGINNINGS = {
  sprocs:
    'function (name) {\n  var container = getContext().getCollection();\n  getContext().getResponse().setBody("Hello, " + name);\n}\n',
  triggers:
    "function () {\n  var request = getContext().getRequest();\n  var item = request.getBody();\n  request.setBody(item);\n}\n",
  udfs: "function (value) {\n  return value;\n}\n",
};
const OPERATIONS = ["All", "Create", "Replace", "Delete", "Update"];

export function scripts(context) {
  const { account, at, me, params, scope } = context;
  let kind = params.get("kind") in BEGINNINGS ? params.get("kind") : "sprocs";
  const list = h("div"),
    beside = h("div", { class: "item-slot" });
  const show = () => {
    noteAddress(containerAddress(at, "scripts", { kind }));
    put(
      beside,
      h(
        "section",
        { class: "panel", "aria-label": text.scripts.script },
        state("script", text.scripts.chooseTitle, text.scripts.choose),
      ),
    );
    return load(
      list,
      () => account.scripts(at, kind, { signal: scope.signal }),
      (found) =>
        found.length
          ? h(
              "ul",
              { class: "pick-list" },
              found.map((each) =>
                h(
                  "li",
                  null,
                  h(
                    "button",
                    { type: "button", onclick: () => edit(each) },
                    h("b", null, name(each.id)),
                    each.triggerType &&
                      h("span", { class: "faint small" }, ` ${each.triggerType} ${each.triggerOperation}`),
                  ),
                ),
              ),
            )
          : state("script", text.scripts.none[kind], text.scripts.noneWhy[kind]),
    );
  };
  const edit = (each) => {
    put(beside, scriptPanel(context, kind, each, show));
    beside.querySelector("textarea")?.focus({ preventScroll: true });
  };
  show();
  return fragment(
    h(
      "div",
      { class: "row" },
      seg(
        text.scripts.kind,
        [
          ["sprocs", text.scripts.sprocs],
          ["triggers", text.scripts.triggers],
          ["udfs", text.scripts.udfs],
        ],
        kind,
        (value) => {
          kind = value;
          show();
        },
      ),
      space(),
      lever(me, "create_script", text.scripts.create, () => edit({ id: "", body: BEGINNINGS[kind] }), {
        kind: "primary",
        image: "plus",
      }),
    ),
    h("div", { class: "items" }, h("section", { class: "panel", "aria-label": text.scripts.title }, list), beside),
  );
}

function scriptPanel(context, kind, each, changed) {
  const { account, at, me } = context;
  const isNew = each.id === "",
    operation = isNew ? "create_script" : "replace_script";
  const id = input({ value: each.id, disabled: !isNew, required: true }),
    slot = h("div", { class: "stack" });
  const code = editor(each.body, paint, text.scripts.body, { readOnly: !may(me, operation) });
  const when = select(
      ["Pre", "Post"].map((value) => [value, value, value === each.triggerType]),
      {},
    ),
    what = select(
      OPERATIONS.map((value) => [value, value, value === each.triggerOperation]),
      {},
    );
  const save = lever(
    me,
    operation,
    [text.scripts.save, h("kbd", null, "Ctrl S")],
    () =>
      act(save, slot, async () => {
        const body = {
          id: id.value,
          body: code.text,
          ...(kind === "triggers" && { triggerType: when.value, triggerOperation: what.value }),
        };
        const done = isNew
          ? await account.createScript(at, kind, body)
          : await account.replaceScript(at, kind, each.id, body, each._etag);
        each._etag = done.json._etag;
        toast(text.scripts.saved(charge(done.charge)));
        if (isNew) changed();
      }),
    { kind: "primary", "data-save": "" },
  );
  const remove = lever(
    me,
    "delete_script",
    text.scripts.delete,
    () =>
      confirmByName({
        title: text.scripts.deleteTitle(name(each.id)),
        say: text.scripts.deleteSay,
        name: each.id,
        action: text.scripts.delete,
        deed: async () => {
          await account.deleteScript(at, kind, each.id);
          changed();
        },
      }),
    { kind: "danger", image: "trash" },
  );
  return h(
    "div",
    { class: "grid" },
    panel(
      isNew ? text.scripts.newTitle[kind] : name(each.id),
      [space(), !isNew && remove, save],
      h(
        "div",
        { class: "stack" },
        slot,
        field(text.create.name, id),
        kind === "triggers" &&
          h("div", { class: "row" }, field(text.scripts.when, when), field(text.scripts.operation, what)),
        code.node,
      ),
    ),
    kind === "sprocs" && !isNew && runPanel(context, each),
  );
}

function runPanel(context, each) {
  const { account, at, me, scope } = context;
  const args = input({ class: "input mono", value: "[]" }),
    keys = keyFields(context, undefined, text.scripts.keyPlaceholder),
    out = h("div", { class: "stack" });
  const run = lever(
    me,
    "script",
    [text.scripts.run, h("kbd", null, "Ctrl ⏎")],
    () =>
      act(run, out, async () => {
        let given;
        try {
          given = JSON.parse(args.value);
        } catch (error) {
          put(out, note("bad", text.scripts.badArguments, visible(error.message)));
          return;
        }
        if (!keys.isComplete) {
          put(out, note("warn", text.scripts.needsKey));
          return;
        }
        const done = await account.runScript(at, each.id, given, keys.value, scope.signal);
        const log = decodeURIComponent(done.headers.get("x-ms-documentdb-script-log-results") ?? "");
        put(
          out,
          h("p", { class: "small muted" }, text.scripts.ranFor(charge(done.charge))),
          viewer(shownJson(done.json, 2), json, text.scripts.answer),
          log && viewer(visible(log), (source) => [source], text.scripts.log),
        );
      }),
    { image: "play", kind: "primary", "data-run": "" },
  );
  return panel(
    text.scripts.runTitle,
    [space(), run],
    h(
      "div",
      { class: "stack" },
      h("div", { class: "filter" }, keys.nodes),
      field(text.scripts.arguments, args, text.scripts.argumentsHint),
      out,
    ),
  );
}

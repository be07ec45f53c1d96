// One item: seen, edited and saved only if nobody else has saved it since; a conflict shows both versions.
import { editor, json, viewer } from "../js/code.js";
import { RequestFailed } from "../js/client.js";
import { confirmByName } from "../js/dialogs.js";
import { badge, button, h, note, put, seg, space, toast } from "../js/dom.js";
import { bytes, charge, keyText, moment, name, parse, pretty, shownJson, stringify, visible } from "../js/format.js";
import { keyOf, steps, template } from "../js/key_path.js";
import { lever, may, refusal } from "../js/rights.js";
import { containerAddress } from "../js/router.js";
import { act, load } from "../js/states.js";
import { text } from "../js/texts.js";

const EDITED_BYTES_MAX = 200_000;
const SHOWN_CHARACTERS_MAX = 2_000;
const DIFFERENCES_MAX = 20;

export function itemPanel(context, place, { saved, gone }) {
  const { account, at, scope } = context;
  const panel = h("section", { class: "panel", "aria-label": text.items.item });
  const read = async () => {
    const where = /^\.{1,2}$/.test(place.id) && !place.self ? { ...place, self: await selfOf(context, place) } : place;
    return { where, answer: await account.item(at, where, { signal: scope.signal }) };
  };
  const again = () => load(panel, read, ({ where, answer }) => opened(context, where, answer, { saved, gone, again }));
  again();
  return panel;
}

async function selfOf({ account, at }, place) {
  const asked = {
    query: "SELECT VALUE c._self FROM c WHERE c.id = @id",
    parameters: [{ name: "@id", value: place.id }],
  };
  return (await account.query(at, asked, { key: place.key })).json.Documents[0];
}

function opened(context, place, answer, { saved, gone, again }) {
  const { account, at, me, paths } = context;
  const mayWrite = may(me, "replace");
  const slot = h("div", { class: "stack" }),
    body = h("div"),
    changed = h("span");
  let etag = answer.headers.get("etag"),
    original = pretty(answer.text),
    code;
  const item = parse(answer.text);

  const save = lever(me, "replace", [text.items.save, h("kbd", null, "Ctrl S")], () => act(save, slot, saveNow), {
    kind: "primary",
    "data-save": "",
  });
  const mark = () => {
    put(changed, code && code.text !== original && badge("warn", text.items.changed));
  };
  const edit = () => {
    code = editor(original, json, text.items.asJson, { readOnly: !mayWrite });
    code.area.addEventListener("input", mark);
    put(body, code.node, h("p", { class: "hint below" }, mayWrite ? text.items.saveHint : refusal(me)));
  };
  const view = () => {
    original = code?.text ?? original;
    code = undefined;
    put(body, viewer(shownJson(shortened(parse(original)), 2), json, text.items.asJson));
  };

  async function saveNow() {
    if (!code) return;
    const mistake = mistakeOf(code.text);
    if (mistake) {
      put(slot, note("bad", text.items.notJson, mistake));
      return;
    }
    try {
      const done = await account.replaceItem(at, place, code.text, etag);
      etag = done.headers.get("etag");
      original = pretty(done.text);
      code.text = original;
      mark();
      toast(text.items.savedFor(charge(done.charge)));
      saved();
    } catch (error) {
      if (!(error instanceof RequestFailed) || ![404, 412].includes(error.status)) throw error;
      put(slot, error.status === 404 ? goneNote() : await conflict());
    }
  }
  const goneNote = () =>
    note("warn", text.items.gone, text.items.goneWhy, [
      button(text.items.createAgain, (event) =>
        act(event.currentTarget, slot, async () => {
          await account.createItem(at, code.text, place.key);
          saved();
          again();
        }),
      ),
      button(text.items.letGo, gone),
    ]);

  async function conflict() {
    const theirs = await account.item(at, place);
    const done = () => put(slot);
    return [
      note("warn", text.items.conflict, text.items.conflictWhy(moment(new Date(parse(theirs.text)._ts * 1000))), [
        button(text.items.takeTheirs, () => {
          etag = theirs.headers.get("etag");
          original = pretty(theirs.text);
          code.text = original;
          mark();
          done();
        }),
        button(
          text.items.replaceTheirs,
          (event) => {
            etag = theirs.headers.get("etag");
            act(event.currentTarget, slot, saveNow);
          },
          { kind: "danger" },
        ),
        button(text.items.goOn, done),
      ]),
      differences(parse(theirs.text), parse(code.text)),
    ];
  }
  const remove = lever(
    me,
    "delete",
    text.items.delete,
    () =>
      confirmByName({
        title: text.items.deleteTitle,
        say: text.items.deleteSay,
        name: place.id,
        action: text.items.deleteAction,
        deed: async () => {
          await account.deleteItem(at, place, etag);
          toast(text.items.deleted);
          gone();
        },
      }),
    { kind: "danger", image: "trash" },
  );

  const size = answer.text.length,
    isLarge = size > EDITED_BYTES_MAX;
  if (isLarge || !mayWrite) view();
  else edit();
  return [
    h(
      "div",
      { class: "panel-head" },
      h("h2", { class: "item-id" }, name(place.id, 80)),
      h("span", { class: "badge info item-key" }, keyText(keyOf(item, paths), 60)),
      changed,
      space(),
      seg(
        text.items.viewOr,
        [
          ["edit", text.items.edit],
          ["view", text.items.view],
        ],
        isLarge || !mayWrite ? "view" : "edit",
        (which) => (which === "edit" ? edit() : view()),
      ),
      remove,
      save,
    ),
    facts(context, item, answer, size),
    h(
      "div",
      { class: "panel-body stack" },
      slot,
      isLarge && note("info", text.items.large(bytes(size)), text.items.largeWhy),
      body,
    ),
  ];
}

function facts({ at, me }, item, answer, size) {
  const partition = answer.headers.get("x-ms-documentdb-partitionkeyrangeid");
  return h(
    "dl",
    { class: "etag" },
    [
      [text.items.etag, h("code", null, visible(item._etag ?? "").replaceAll('"', ""))],
      [text.items.changedAt, moment(new Date(Number(item._ts) * 1000))],
      [text.items.size, bytes(size)],
      [text.items.readFor, `${charge(answer.charge)} RU`],
      [
        text.items.onPartition,
        me.mayAdminister ? h("a", { href: containerAddress(at, "partitions") }, partition) : partition,
      ],
    ].map(([term, what]) => h("div", null, h("dt", null, term), h("dd", null, what))),
  );
}

// Why a text is no JSON, with its place where the browser tells it.
function mistakeOf(source) {
  try {
    const value = JSON.parse(source);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? undefined : text.items.notObject;
  } catch (error) {
    return visible(error.message);
  }
}

// Long texts and long lists cut short, for reading.
function shortened(value, depth = 0) {
  if (typeof value === "string" && value.length > SHOWN_CHARACTERS_MAX)
    return `${value.slice(0, SHOWN_CHARACTERS_MAX)} ${text.items.more(value.length - SHOWN_CHARACTERS_MAX)}`;
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) {
    const kept = value.slice(0, SHOWN_CHARACTERS_MAX).map((each) => shortened(each, depth + 1));
    return value.length > kept.length ? [...kept, text.items.more(value.length - kept.length)] : kept;
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shortened(each, depth + 1)]));
}

// Where two versions differ, path by path; what the system adds is left out.
function differences(theirs, mine) {
  const found = [];
  const walk = (a, b, path) => {
    if (stringify(a) === stringify(b) || found.length >= DIFFERENCES_MAX) return;
    const areObjects = [a, b].every((each) => each !== null && typeof each === "object" && !Array.isArray(each));
    if (!areObjects) {
      found.push([path, a, b]);
      return;
    }
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
      if (path || !key.startsWith("_")) walk(a[key], b[key], `${path}/${key}`);
  };
  walk(theirs, mine, "");
  const line = (kind, sign, value, whose) =>
    h(
      "span",
      { class: kind },
      `${sign} ${value === undefined ? text.items.notThere : shownJson(value).slice(0, 400)}   ${whose}\n`,
    );
  return h(
    "div",
    { class: "code wrap" },
    h(
      "pre",
      null,
      found.length
        ? found.map(([path, a, b]) => [
            h("span", { class: "c" }, `  ${visible(path)}\n`),
            line("del", "-", a, text.items.theirs),
            line("add", "+", b, text.items.mine),
          ])
        : text.items.same,
    ),
  );
}

export function newItemPanel(context, key, created) {
  const { account, at, paths } = context;
  const begun = template(paths);
  paths.forEach((path, level) => {
    if (key?.[level] === undefined) return;
    const all = steps(path),
      owner = all.slice(0, -1).reduce((place, step) => place[step], begun);
    owner[all.at(-1)] = key[level];
  });
  const code = editor(stringify(begun, null, 2), json, text.items.asJson),
    slot = h("div", { class: "stack" });
  const save = button(
    [text.items.createAction, h("kbd", null, "Ctrl S")],
    () =>
      act(save, slot, async () => {
        const mistake = mistakeOf(code.text);
        if (mistake) {
          put(slot, note("bad", text.items.notJson, mistake));
          return;
        }
        const item = parse(code.text);
        const done = await account.createItem(at, code.text, keyOf(item, paths));
        toast(text.items.createdFor(charge(done.charge)));
        created(parse(done.text));
      }),
    { kind: "primary", "data-save": "" },
  );
  return h(
    "section",
    { class: "panel", "aria-label": text.items.newTitle },
    h("div", { class: "panel-head" }, h("h2", null, text.items.newTitle), space(), save),
    h(
      "div",
      { class: "panel-body stack" },
      slot,
      code.node,
      h("p", { class: "hint" }, text.items.newHint(paths.map((path) => name(path)).join(", "))),
    ),
  );
}

// A database: its throughput, its containers, its users and what they may do.
import { ask, confirmByName, reading } from "../js/dialogs.js";
import { badge, button, field, h, input, panel, put, select, space, toast } from "../js/dom.js";
import { count, name, stringify } from "../js/format.js";
import { typed } from "../js/key_path.js";
import { lever, may } from "../js/rights.js";
import { containerAddress, go } from "../js/router.js";
import { load, state } from "../js/states.js";
import { text } from "../js/texts.js";
import { changeThroughput } from "../js/throughput.js";
import { newContainer } from "./create.js";

export function database(context) {
  const { account, explorer, me, scope, database: id } = context;
  const slot = h("div", { class: "stack-blocks" });
  const draw = () => {
    const found = explorer.overview.databases.find((each) => each.id === id);
    put(
      slot,
      found
        ? whole(found)
        : state("db", text.database.none(name(id)), text.database.noneWhy, [
            h("a", { class: "button", href: "#/" }, text.home.title),
          ]),
    );
  };
  const whole = (found) => [
    h(
      "div",
      { class: "head" },
      h(
        "div",
        null,
        h("nav", { class: "crumbs", "aria-label": text.shell.path }, h("a", { href: "#/" }, text.home.crumb)),
        h("h1", null, name(id)),
      ),
      space(),
      lever(me, "create_container", text.create.container, () => newContainer(context, id), {
        kind: "primary",
        image: "plus",
      }),
    ),
    h(
      "div",
      { class: "grid two" },
      panel(
        text.throughput.heading,
        [
          space(),
          found.throughput &&
            lever(me, "replace_throughput", text.throughput.change, () =>
              changeThroughput(context, { database: id }, id, 0),
            ),
        ],
        h(
          "p",
          { class: "muted" },
          found.throughput
            ? text.database.shares(count(found.throughput.ru), found.throughput.autoscale)
            : text.database.ownEach,
        ),
      ),
      panel(
        text.database.delete,
        undefined,
        h(
          "div",
          { class: "stack" },
          h("p", { class: "muted" }, text.database.deleteSay(containersOf(explorer, id).length)),
          lever(
            me,
            "delete_database",
            text.database.deleteAction,
            () =>
              confirmByName({
                title: text.database.deleteTitle(name(id)),
                say: text.database.deleteSay(containersOf(explorer, id).length),
                name: id,
                action: text.database.deleteAction,
                deed: async () => {
                  await account.deleteDatabase(id);
                  await explorer.refresh();
                  go("#/");
                },
              }),
            { kind: "danger" },
          ),
        ),
      ),
    ),
    containerList(explorer, id),
    users(context),
  ];
  let drawn = "";
  const drawIfNew = () => {
    const shape = stringify([
      explorer.overview.databases.find((each) => each.id === id),
      containersOf(explorer, id).map((each) => each.container),
    ]);
    if (shape !== drawn) {
      drawn = shape;
      draw();
    }
  };
  drawIfNew();
  scope.listen(explorer.bus, "overview", drawIfNew);
  return slot;
}

const containersOf = (explorer, id) => explorer.overview.containers.filter((each) => each.database === id);
const containerList = (explorer, id) =>
  panel(
    text.database.containers,
    undefined,
    containersOf(explorer, id).length
      ? h(
          "ul",
          { class: "plain-list" },
          containersOf(explorer, id).map((each) =>
            h(
              "li",
              null,
              h("a", { class: "c-name", href: containerAddress(each, "items") }, name(each.container)),
              " ",
              h("span", { class: "faint mono tiny" }, name(each.partitionKey.join("  "))),
            ),
          ),
        )
      : h("p", { class: "muted" }, text.database.noContainers),
  );

function users(context) {
  const { account, me, scope, database: id } = context;
  const list = h("div");
  const draw = () =>
    load(
      list,
      () => account.users(id, { signal: scope.signal }),
      (found) =>
        found.length
          ? h(
              "ul",
              { class: "plain-list" },
              found.map((user) => userRow(context, user, draw)),
            )
          : h("p", { class: "muted" }, text.users.none),
    );
  draw();
  return panel(
    text.users.title,
    [
      h("p", null, text.users.say),
      space(),
      lever(
        me,
        "create_user",
        text.users.create,
        () => {
          const box = input({ required: true });
          ask({
            title: text.users.create,
            fields: field(text.create.name, box),
            action: text.users.createAction,
            isReady: () => box.value !== "",
            deed: async () => {
              await account.createUser(id, box.value);
              draw();
            },
          });
        },
        { image: "plus" },
      ),
    ],
    list,
  );
}

function userRow(context, user, changed) {
  const { account, me, scope, database: id } = context;
  const list = h("div", { class: "permissions" });
  const draw = () =>
    load(
      list,
      () => account.permissions(id, user.id, { signal: scope.signal }),
      (found) =>
        found.length
          ? h(
              "ul",
              null,
              found.map((each) => permissionRow(context, user, each, draw)),
            )
          : h("p", { class: "faint small" }, text.users.noPermissions),
    );
  const details = h(
    "details",
    {
      ontoggle: () => {
        if (details.open && !list.childElementCount) draw();
      },
    },
    h("summary", null, h("b", null, name(user.id)), h("span", { class: "faint small" }, ` ${text.users.permissions}`)),
    list,
    h(
      "div",
      { class: "row below" },
      lever(me, "create_permission", text.users.grant, () => grant(context, user, draw), { image: "plus" }),
      lever(
        me,
        "delete_user",
        text.users.delete,
        () =>
          confirmByName({
            title: text.users.deleteTitle(name(user.id)),
            say: text.users.deleteSay,
            name: user.id,
            action: text.users.delete,
            deed: async () => {
              await account.deleteUser(id, user.id);
              changed();
            },
          }),
        { kind: "danger" },
      ),
    ),
  );
  if (!may(me, "list_permissions"))
    return h("li", null, h("b", null, name(user.id)), " ", h("span", { class: "faint small" }, text.users.needsMaster));
  return h("li", null, details);
}

function permissionRow({ account, database: id }, user, each, changed) {
  return h(
    "li",
    { class: "row" },
    badge(each.permissionMode.toLowerCase() === "all" ? "warn" : "info", each.permissionMode),
    h("b", null, name(each.id)),
    h("code", { class: "small" }, name(each.resource)),
    each.resourcePartitionKey && h("code", { class: "small" }, name(stringify(each.resourcePartitionKey))),
    space(),
    button(text.users.token, () => showToken(each), { kind: "quiet", image: "key" }),
    button(
      text.users.revoke,
      () =>
        confirmByName({
          title: text.users.revokeTitle(name(each.id)),
          say: text.users.revokeSay,
          name: each.id,
          action: text.users.revoke,
          deed: async () => {
            await account.deletePermission(id, user.id, each.id);
            changed();
          },
        }),
      { kind: "quiet", image: "trash" },
    ),
  );
}

function showToken(permission) {
  const area = h("textarea", {
    class: "input mono",
    rows: 6,
    readonly: true,
    "aria-label": text.users.token,
    value: permission._token,
  });
  reading(text.users.tokenTitle(name(permission.id)), [
    h("p", { class: "muted" }, text.users.tokenSay),
    area,
    button(
      text.copy,
      async () => {
        await navigator.clipboard.writeText(permission._token);
        toast(text.copied);
      },
      { image: "copy" },
    ),
  ]);
}

function grant({ account, explorer, database: id }, user, changed) {
  const box = input({ required: true }),
    mode = select(
      [
        ["Read", text.users.read],
        ["All", text.users.all],
      ],
      {},
    );
  const target = select(
    containersOf(explorer, id).map((each) => [each.container, each.container]),
    {},
  );
  const key = input({ class: "input mono", placeholder: text.users.wholeContainer }),
    seconds = input({ type: "number", min: 10, max: 86400, value: 3600 });
  ask({
    title: text.users.grantTitle(name(user.id)),
    action: text.users.grant,
    isReady: () => box.value !== "" && target.value !== "",
    fields: [
      field(text.create.name, box),
      field(text.users.mode, mode),
      field(text.users.container, target),
      field(text.users.key, key, text.users.keyHint),
      field(text.users.seconds, seconds),
    ],
    deed: async () => {
      const body = { id: box.value, permissionMode: mode.value, resource: `dbs/${id}/colls/${target.value}` };
      if (key.value !== "")
        body.resourcePartitionKey = key.value.startsWith("[") ? JSON.parse(key.value) : [typed(key.value)];
      const { json } = await account.createPermission(id, user.id, body, Number(seconds.value));
      changed();
      showToken(json);
    },
  });
}

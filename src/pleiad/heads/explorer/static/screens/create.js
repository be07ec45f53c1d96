// New databases and containers.
import { ask } from "../js/dialogs.js";
import { button, check, field, h, input, put, select } from "../js/dom.js";
import { containerAddress, databaseAddress, go } from "../js/router.js";
import { text } from "../js/texts.js";
import { throughputFields } from "../js/throughput.js";

const LEVELS_MAX = 3;

export function newDatabase({ account, explorer }) {
  const id = input({ required: true, maxlength: 255 }),
    throughput = throughputFields({}, { allowNone: text.create.ownThroughput });
  ask({
    title: text.create.database,
    say: text.create.databaseSay,
    fields: [field(text.create.name, id), throughput.node],
    action: text.create.databaseAction,
    isReady: () => id.value !== "" && throughput.isValid,
    deed: async () => {
      await account.createDatabase(id.value, throughput.value);
      await explorer.refresh();
      go(databaseAddress(id.value));
    },
  });
}

export function newContainer({ account, explorer }, database) {
  const owners = explorer.overview.databases;
  const owner = select(
    owners.map((each) => [each.id, each.id, each.id === database]),
    {},
  );
  const newOwner = input({ required: true, maxlength: 255 });
  const id = input({ required: true, maxlength: 255 });
  const paths = [input({ class: "input mono", placeholder: "/userId" })];
  const unique = input({ class: "input mono", placeholder: text.create.uniquePlaceholder });
  const ttl = check(text.create.ttl),
    seconds = input({ type: "number", min: 1, max: 2147483647, placeholder: text.create.ttlPlaceholder });
  const slot = h("div"),
    throughputSlot = h("div");
  let throughput;
  const shares = () => owners.find((each) => each.id === owner.value)?.throughput;
  const drawThroughput = () => {
    throughput = throughputFields(shares() ? {} : { ru: 400 }, { allowNone: shares() && text.create.shared });
    put(throughputSlot, throughput.node);
  };
  const drawPaths = () =>
    put(
      slot,
      h(
        "div",
        { class: "stack-s" },
        paths.map((box, level) =>
          h(
            "div",
            { class: "row" },
            field(level ? text.create.level(level + 1) : text.create.key, box),
            level > 0 &&
              button(
                text.create.removeLevel,
                () => {
                  paths.splice(level, 1);
                  drawPaths();
                },
                { kind: "quiet" },
              ),
          ),
        ),
        h("p", { class: "hint" }, text.create.keyHint),
        paths.length < LEVELS_MAX &&
          button(
            text.create.addLevel,
            () => {
              paths.push(input({ class: "input mono", placeholder: ["", "/projectId", "/date"][paths.length] }));
              drawPaths();
              paths.at(-1).focus();
            },
            { kind: "quiet", image: "plus" },
          ),
      ),
    );
  owner.addEventListener("change", drawThroughput);
  drawPaths();
  drawThroughput();
  ask({
    title: text.create.container,
    action: text.create.containerAction,
    fields: [
      owners.length ? field(text.create.owner, owner) : field(text.create.newOwner, newOwner),
      field(text.create.name, id),
      slot,
      throughputSlot,
      h(
        "details",
        null,
        h("summary", null, text.create.policies),
        h(
          "div",
          { class: "stack below" },
          field(text.create.unique, unique, text.create.uniqueHint),
          ttl.node,
          field(text.create.ttlSeconds, seconds),
        ),
      ),
    ],
    isReady: () =>
      id.value !== "" &&
      (owners.length > 0 || newOwner.value !== "") &&
      paths.every((box) => box.value.startsWith("/")) &&
      throughput.isValid,
    deed: async () => {
      const database = owners.length ? owner.value : newOwner.value;
      if (!owners.length) await account.createDatabase(database);
      await account.createContainer(database, definition(), throughput.value);
      await explorer.refresh();
      go(containerAddress({ database, container: id.value }, "items"));
    },
  });

  function definition() {
    const keys = paths.map((box) => box.value);
    const made = {
      id: id.value,
      partitionKey: { paths: keys, kind: keys.length > 1 ? "MultiHash" : "Hash", version: 2 },
    };
    if (ttl.box.checked) made.defaultTtl = seconds.value ? Number(seconds.value) : -1;
    if (unique.value.trim())
      made.uniqueKeyPolicy = {
        uniqueKeys: unique.value.split(";").map((group) => ({ paths: group.split(",").map((path) => path.trim()) })),
      };
    return made;
  }
}

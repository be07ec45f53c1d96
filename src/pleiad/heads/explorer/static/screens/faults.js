// Faults on demand: which are in force, whom they hit, and a form to set one.
import { button, field, fragment, h, input, note, put, select, space, toast } from "../js/dom.js";
import { clock, count, name } from "../js/format.js";
import { may, lever } from "../js/rights.js";
import { act, load, state } from "../js/states.js";
import { text } from "../js/texts.js";

const EVERY_MS = 2000;
const KINDS = ["429", "449", "408", "410/1002", "410/1007", "500", "503", "late", "cut-before", "cut-after", "hold"];
const OPERATIONS = [
  "",
  "any",
  "read",
  "create",
  "upsert",
  "replace",
  "patch",
  "delete",
  "feed",
  "changes",
  "query",
  "batch",
  "script",
  "metadata_read",
  "metadata_write",
];
const PHASES = ["preparing", "dividing", "copying", "catching-up", "fenced", "committing"];

export function faults(context) {
  const { account, scope, me } = context;
  const list = h("div");
  const ask = () => account.faults({ signal: scope.signal });
  const show = ({ json }) =>
    json.faults.length
      ? h(
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
                text.faults.columns.map((word, index) => h("th", { class: index === 3 ? "num" : "" }, word)),
                h("th", null, h("span", { class: "visually-hidden" }, text.partitions.actions)),
              ),
            ),
            h(
              "tbody",
              null,
              json.faults.map((each) =>
                h(
                  "tr",
                  null,
                  h("td", null, h("b", null, text.faults.kinds[each.fault] ?? each.fault)),
                  h("td", { "data-l": text.faults.columns[1] }, target(each)),
                  h("td", { "data-l": text.faults.columns[2] }, howMany(each)),
                  h("td", { class: "num", "data-l": text.faults.columns[3] }, count(each.hits)),
                  h(
                    "td",
                    { "data-l": text.faults.columns[4] },
                    `${each.setAt ? clock(new Date(each.setAt)) : ""} – ${each.endsAt ? clock(new Date(each.endsAt)) : ""}`,
                  ),
                  h(
                    "td",
                    { class: "num" },
                    lever(
                      me,
                      "delete_fault",
                      text.faults.clear,
                      async () => {
                        await account.clearFault(each.id).catch(() => {});
                        draw();
                      },
                      { kind: "quiet", image: "trash" },
                    ),
                  ),
                ),
              ),
            ),
          ),
        )
      : state("info", text.faults.none, text.faults.noneWhy);
  let said = "";
  const draw = () =>
    load(list, ask, (answer) => {
      said = JSON.stringify(answer.json.faults.map((each) => [each.id, each.hits]));
      return show(answer);
    });
  draw().then(() =>
    scope.every(EVERY_MS, async () => {
      const answer = await ask(),
        now = JSON.stringify(answer.json.faults.map((each) => [each.id, each.hits]));
      if (now !== said && !list.contains(document.activeElement)) {
        said = now;
        put(list, show(answer));
      }
    }),
  );
  return fragment(
    h(
      "div",
      { class: "head" },
      h("div", null, h("h1", null, text.faults.title), h("p", { class: "muted small" }, text.faults.say)),
      space(),
      lever(me, "clear_faults", text.faults.clearAll, async () => {
        await account.clearFaults();
        draw();
      }),
    ),
    h(
      "section",
      { class: "panel", "aria-label": text.faults.inForce },
      h("div", { class: "panel-head" }, h("h2", null, text.faults.inForce)),
      list,
    ),
    may(me, "add_fault") && form(context, draw),
  );
}

const target = (each) =>
  name(
    [
      [each.database, each.container].filter(Boolean).join("/") || text.faults.everywhere,
      each.partition && text.space.partitionName(each.partition),
      each.operation ?? "",
      each.phase ?? "",
    ]
      .filter(Boolean)
      .join(", "),
  );
const howMany = (each) =>
  [
    each.share && text.faults.share(Math.round(each.share * 100)),
    each.count && text.faults.count(count(each.count)),
    each.delayMs && `${count(each.delayMs)} ms`,
  ]
    .filter(Boolean)
    .join(", ") || text.faults.untilEnd;

function form(context, changed) {
  const { account, explorer } = context;
  const kind = select(
      KINDS.map((each) => [each, text.faults.kinds[each]]),
      {},
    ),
    operation = select(
      OPERATIONS.map((each) => [each, each || text.faults.itemOperations]),
      {},
    ),
    phase = select(
      PHASES.map((each) => [each, each]),
      {},
    );
  const where = select(
    [
      ["", text.faults.everywhere],
      ...explorer.overview.containers.map((each, index) => [String(index), `${each.database}/${each.container}`]),
    ],
    {},
  );
  const partition = input({ placeholder: text.feed.all }),
    share = input({ type: "number", min: 1, max: 100, placeholder: "100" }),
    times = input({ type: "number", min: 1, placeholder: text.faults.unlimited }),
    delay = input({ type: "number", min: 0, max: 60000, value: 0 }),
    seconds = input({ type: "number", min: 1, max: 86400, value: 600 });
  const slot = h("div", { class: "stack" }),
    set = h("button", { type: "submit", class: "button primary" }, text.faults.set);
  const fields = {
    operation: field(text.faults.operation, operation),
    phase: field(text.faults.phase, phase),
    partition: field(text.space.partition, partition, text.faults.partitionHint),
    share: field(text.faults.shareLabel, share),
    times: field(text.faults.countLabel, times),
    delay: field(text.faults.delay, delay),
  };
  const fit = () => {
    const isHold = kind.value === "hold";
    for (const each of ["operation", "partition", "share", "times", "delay"]) fields[each].hidden = isHold;
    fields.phase.hidden = !isHold;
  };
  kind.addEventListener("change", fit);
  fit();
  const submit = async () => {
    const at = where.value === "" ? {} : explorer.overview.containers[Number(where.value)];
    const fault = {
      fault: kind.value,
      seconds: Number(seconds.value),
      ...(at.database && { database: at.database, container: at.container }),
    };
    if (kind.value === "hold") fault.phase = phase.value;
    else {
      if (operation.value) fault.operation = operation.value;
      if (partition.value.trim()) fault.partition = partition.value.trim();
      if (share.value) fault.share = Number(share.value) / 100;
      if (times.value) fault.count = Number(times.value);
      if (!share.value && !times.value) fault.share = 1;
      if (Number(delay.value)) fault.delayMs = Number(delay.value);
    }
    await account.addFault(fault);
    toast(text.faults.isSet);
    changed();
  };
  return h(
    "section",
    { class: "panel", "aria-label": text.faults.set },
    h("div", { class: "panel-head" }, h("h2", null, text.faults.setTitle), h("p", null, text.faults.setSay)),
    h(
      "form",
      {
        class: "panel-body stack",
        onsubmit: (event) => {
          event.preventDefault();
          act(set, slot, submit);
        },
      },
      h(
        "div",
        { class: "grid four form-grid" },
        field(text.faults.kind, kind),
        field(text.faults.where, where),
        fields.phase,
        fields.operation,
        fields.partition,
        fields.share,
        fields.times,
        fields.delay,
        field(text.faults.seconds, seconds),
      ),
      slot,
      h("div", { class: "row" }, set),
    ),
  );
}

// Faults that hit a container, said where its figures are shown.
export const faultNotes = ({ account, me }, found, at) =>
  found
    .filter(
      (each) =>
        !at ||
        !each.database ||
        (each.database === at.database && (!each.container || each.container === at.container)),
    )
    .map((each) =>
      note(
        "info",
        text.faults.note(text.faults.kinds[each.fault] ?? each.fault, target(each)),
        text.faults.noteWhy(
          each.setAt ? clock(new Date(each.setAt)) : "",
          count(each.hits),
          each.endsAt ? clock(new Date(each.endsAt)) : "",
        ),
        may(me, "delete_fault") && [button(text.faults.clear, () => account.clearFault(each.id))],
      ),
    );

// Completion in the query editor: paths seen in the container, keywords and functions, beneath the caret.
import { KEYWORDS } from "./code.js";
import { h, newId, put, say } from "./dom.js";
import { name } from "./format.js";
import { text } from "./texts.js";

const SHOWN_MAX = 8;
const FUNCTIONS = [
  "ABS",
  "ARRAY_CONTAINS",
  "ARRAY_LENGTH",
  "ARRAY_SLICE",
  "AVG",
  "CONCAT",
  "CONTAINS",
  "COUNT",
  "DateTimeAdd",
  "DateTimeDiff",
  "DateTimePart",
  "ENDSWITH",
  "FLOOR",
  "GetCurrentDateTime",
  "GetCurrentTimestamp",
  "INDEX_OF",
  "IS_ARRAY",
  "IS_BOOL",
  "IS_DEFINED",
  "IS_NULL",
  "IS_NUMBER",
  "IS_OBJECT",
  "IS_STRING",
  "LEFT",
  "LENGTH",
  "LOWER",
  "LTRIM",
  "MAX",
  "MIN",
  "REGEXMATCH",
  "REPLACE",
  "RIGHT",
  "ROUND",
  "RTRIM",
  "STARTSWITH",
  "SUBSTRING",
  "SUM",
  "ST_DISTANCE",
  "ST_WITHIN",
  "ToString",
  "StringToNumber",
  "TRIM",
  "UPPER",
  "VALUE",
];
const CLAUSES = ["ORDER BY", "GROUP BY"];

// The alias that the query gives the container, c when it gives none.
const aliasOf = (source) => {
  const match = /\bFROM\s+(\w+)(?:\s+(?:AS\s+)?(?!JOIN\b|WHERE\b|ORDER\b|GROUP\b|OFFSET\b|IN\b)(\w+))?/i.exec(source);
  return match?.[2] ?? match?.[1] ?? "c";
};

export function completion(code, paths) {
  const list = h("ul", {
    class: "complete",
    role: "listbox",
    id: newId(),
    "aria-label": text.query.completions,
    hidden: true,
  });
  const { area } = code;
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", list.id);
  code.node.append(list);
  let offered = [],
    at = 0,
    word = "";

  function find() {
    const before = area.value.slice(0, area.selectionStart);
    word = /[\w@][\w.@[\]"]*$/.exec(before)?.[0] ?? "";
    if (!word) return [];
    const alias = aliasOf(area.value),
      lower = word.toLowerCase();
    const ofPaths = paths()
      .filter((each) => each.expression)
      .map((each) => ({
        insert: alias + each.expression.slice(1),
        aside: text.query.completionPath(each.types.join(", "), Math.round(each.percent)),
      }));
    const words = word.includes(".")
      ? []
      : [...KEYWORDS, ...CLAUSES]
          .map((each) => ({ insert: each, aside: "" }))
          .concat(FUNCTIONS.map((each) => ({ insert: `${each}(`, aside: text.query.completionFunction })));
    const starts = [...ofPaths, ...words].filter(
      ({ insert }) => insert.toLowerCase().startsWith(lower) && insert.toLowerCase() !== lower,
    );
    const within =
      word.length > 2 && word.includes(".")
        ? []
        : ofPaths.filter(({ insert }) => insert.toLowerCase().includes(`.${lower}`));
    return [...new Map([...starts, ...within].map((each) => [each.insert, each])).values()].slice(0, SHOWN_MAX);
  }
  function show() {
    offered = find();
    at = 0;
    list.hidden = !offered.length;
    if (list.hidden) {
      area.removeAttribute("aria-activedescendant");
      return;
    }
    put(
      list,
      offered.map((each, index) =>
        h(
          "li",
          {
            role: "option",
            id: `${list.id}-${index}`,
            "aria-selected": "false",
            onpointerdown: (event) => {
              event.preventDefault();
              take(index);
            },
          },
          h("span", { class: "mono" }, name(each.insert, 60)),
          h("span", { class: "faint tiny" }, each.aside),
        ),
      ),
    );
    place();
    mark();
  }
  // The caret is found in the copy beneath, which has the same lines.
  function place() {
    const copy = code.node.querySelector("pre"),
      range = document.createRange(),
      walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
    let left = area.selectionStart - word.length,
      node = walker.nextNode();
    while (node && left > node.length) {
      left -= node.length;
      node = walker.nextNode();
    }
    if (!node) return;
    range.setStart(node, left);
    const box = range.getBoundingClientRect(),
      frame = code.node.getBoundingClientRect();
    list.style.left = `${Math.max(0, Math.min(frame.width - 300, box.left - frame.left))}px`;
    list.style.top = `${box.bottom - frame.top + code.node.scrollTop + 4}px`;
  }
  function mark() {
    [...list.children].forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
    area.setAttribute("aria-activedescendant", `${list.id}-${at}`);
    say(text.query.completionSay(offered[at].insert, at + 1, offered.length));
  }
  function take(index) {
    const end = area.selectionStart;
    area.setRangeText(offered[index].insert, end - word.length, end, "end");
    hide();
    area.dispatchEvent(new Event("input", { bubbles: true }));
    hide();
  }
  function hide() {
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  }

  area.addEventListener("input", (event) => {
    if (event.inputType?.startsWith("delete") && list.hidden) return;
    if (event.isTrusted) show();
  });
  area.addEventListener("blur", hide);
  area.addEventListener("click", hide);
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      show();
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") hide();
    if (list.hidden || event.ctrlKey || event.metaKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      at = (at + step + offered.length) % offered.length;
      mark();
    }
    if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      take(at);
    }
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      hide();
    }
    if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) hide();
  });
}

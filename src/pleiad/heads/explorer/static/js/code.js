// Highlighting for JSON, queries and scripts: text is cut into spans, never parsed as markup.
import { h, put } from "./dom.js";

const PAINTED_CHARACTERS_MAX = 60_000;

function cut(source, pattern, kind) {
  if (source.length > PAINTED_CHARACTERS_MAX) return [source];
  const out = [];
  let end = 0;
  for (const match of source.matchAll(pattern)) {
    if (match.index > end) out.push(source.slice(end, match.index));
    out.push(h("span", { class: kind(match) }, match[0]));
    end = match.index + match[0].length;
  }
  out.push(source.slice(end));
  return out;
}

const JSON_PARTS = /("[^"\\\n]*(?:\\.[^"\\\n]*)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g;
export const json = (source) =>
  cut(source, JSON_PARTS, (match) => {
    if (match[2]) return match[1].startsWith('"_') ? "k sys" : "k";
    if (match[1]) return "s";
    return /[-\d]/.test(match[0][0]) ? "n" : "l";
  });

export const KEYWORDS = [
  "SELECT",
  "TOP",
  "DISTINCT",
  "VALUE",
  "FROM",
  "JOIN",
  "IN",
  "WHERE",
  "AND",
  "OR",
  "NOT",
  "ORDER",
  "GROUP",
  "BY",
  "ASC",
  "DESC",
  "OFFSET",
  "LIMIT",
  "AS",
  "EXISTS",
  "BETWEEN",
  "LIKE",
  "NULL",
  "TRUE",
  "FALSE",
  "UNDEFINED",
];
const SQL_PARTS = new RegExp(
  String.raw`--[^\n]*|'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|@\w+|\b\d+(?:\.\d+)?\b|\b(?:${KEYWORDS.join("|")})\b`,
  "gi",
);
export const sql = (source) =>
  cut(source, SQL_PARTS, ([part]) => {
    if (part.startsWith("--")) return "c";
    if (part[0] === "@") return "param";
    if (/['"]/.test(part[0])) return "s";
    return /\d/.test(part[0]) ? "n" : "kw";
  });

const JS_PARTS =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\b\d+(?:\.\d+)?\b|\b(?:function|var|let|const|return|if|else|for|while|throw|new|try|catch|true|false|null|undefined|typeof)\b/g;
export const script = (source) =>
  cut(source, JS_PARTS, ([part]) => {
    if (part.startsWith("/")) return "c";
    if (/['"]/.test(part[0])) return "s";
    return /\d/.test(part[0]) ? "n" : "kw";
  });

export const viewer = (source, paint, label) =>
  h("div", { class: "code wrap", tabindex: 0, role: "region", "aria-label": label }, h("pre", null, paint(source)));

// A textarea above its highlighted copy: undo, selection, input methods and screen readers are the browser's own.
// A very long text has no copy: it is shown by the textarea itself, in a window of its own.
export function editor(source, paint, label, { extra = "", readOnly = false } = {}) {
  const copy = h("pre", { "aria-hidden": "true" });
  const area = h("textarea", {
    "aria-label": label,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    readonly: readOnly,
    value: source,
  });
  const node = h("div", { class: `code edit wrap ${extra}` }, copy, area);
  const repaint = () => {
    const isLong = area.value.length > PAINTED_CHARACTERS_MAX;
    node.classList.toggle("long", isLong);
    if (isLong) put(copy);
    else put(copy, paint(area.value), "\n");
  };
  area.addEventListener("input", repaint);
  repaint();
  return {
    node,
    area,
    repaint,
    get text() {
      return area.value;
    },
    set text(value) {
      area.value = value;
      repaint();
    },
  };
}

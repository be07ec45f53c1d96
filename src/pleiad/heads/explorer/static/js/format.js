// Numbers as people read them: thousands with commas, a space before the unit, no more digits than are known.
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
export const count = (n) => whole.format(n);
export const ru = (n) => `${n > 0 && n < 10 ? Number(n).toFixed(1) : count(n)} RU/s`;
export const rate = (n) => (n > 0 && n < 10 ? Number(n).toFixed(1) : count(n));
export const charge = (n) => Number(n).toFixed(2);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (n) => (n > 0 && n < 1 ? `${Math.max(0.01, n).toFixed(2)} %` : `${Math.round(n)} %`);
export const ms = (n) => (n === null || n === undefined ? "–" : `${n < 10 ? n.toFixed(1) : count(n)} ms`);
const UNITS = [
  ["TB", 2 ** 40],
  ["GB", 2 ** 30],
  ["MB", 2 ** 20],
  ["KB", 2 ** 10],
];
export function bytes(n) {
  for (const [unit, size] of UNITS) if (n >= size) return `${(n / size).toFixed(n / size < 10 ? 1 : 0)} ${unit}`;
  return `${Math.round(n)} B`;
}
export const short = (n) =>
  n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 10000 ? `${Math.round(n / 1000)} k` : count(n);

const two = (n) => String(n).padStart(2, "0");
export const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;
export const seconds = (date) => `${clock(date)}:${two(date.getSeconds())}`;
// A moment: the time where it is of today, else the date before it.
export function moment(date) {
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return new Date().toDateString() === date.toDateString() ? seconds(date) : `${day} ${clock(date)}`;
}
export function duration(secondsLong) {
  if (secondsLong < 90) return plural(Math.round(secondsLong), "second");
  if (secondsLong < 5400) return plural(Math.round(secondsLong / 60), "minute");
  if (secondsLong < 172800) return plural(Math.round(secondsLong / 3600), "hour");
  return plural(Math.round(secondsLong / 86400), "day");
}

// A place in the hash space, from 0 to 1, as two digits.
export const hex = (part) =>
  part >= 1
    ? "FF"
    : Math.floor(part * 256 + 1e-9)
        .toString(16)
        .toUpperCase()
        .padStart(2, "0");

// Characters that would not be seen, or would turn the text around them, as their escapes.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Cs}|[\u{e0000}-\u{e007f}]/gu;
const escaped = (text) =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
export const visible = (text) => String(text).replace(UNSEEN, escaped);
export function cut(text, most = 120) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
export const name = (text, most = 200) => visible(cut(String(text), most));

// JSON in which whole numbers beyond 2^53 stay what they are, where the browser can tell.
const exact = (_, value, context) =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? BigInt(context.source)
    : value;
const canWrite = typeof JSON.rawJSON === "function";
export const parse = (text) => (canWrite ? JSON.parse(text, exact) : JSON.parse(text));
const raw = (_, value) => (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value);
export const stringify = (value, indent) => JSON.stringify(value, raw, indent) ?? "";
// Its text for people to read: what cannot be seen is escaped, which means the same in JSON.
export const shownJson = (value, indent) => hideUnseen(stringify(value, indent));
const UNSEEN_IN_JSON =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const hideUnseen = (text) => text.replace(UNSEEN_IN_JSON, escaped);

// The text of an item, laid out anew without reading its numbers, so that every one of them stays as it is.
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;
export function pretty(text) {
  const out = [];
  let depth = 0,
    before = "";
  const line = () => out.push("\n", "  ".repeat(depth));
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === "}" || token === "]") {
      depth -= 1;
      if (before !== "{" && before !== "[") line();
    } else if (before === "{" || before === "[" || before === ",") line();
    out.push(token);
    if (token === "{" || token === "[") depth += 1;
    if (token === ":") out.push(" ");
    before = token;
  }
  return hideUnseen(out.join(""));
}
// A value in one line, for a cell of a table.
export function oneLine(value, most = 120) {
  if (value === undefined) return "";
  return typeof value === "string" ? name(value, most) : visible(cut(stringify(value), most));
}
// The partition key of an item as it is shown: its values, one behind the other.
export const keyText = (values, most = 80) =>
  values
    .map((value) =>
      value !== null && typeof value === "object" && !Object.keys(value).length
        ? "not there"
        : value === ""
          ? "“”"
          : oneLine(value, most),
    )
    .join(" › ");

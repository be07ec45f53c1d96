// Paths of a partition key, and the values that items have under them.
import { parse, stringify } from "./format.js";

const STEP = /\/(?:"((?:[^"\\]|\\.)*)"|([^/]*))/g;
export const steps = (path) =>
  [...path.matchAll(STEP)].map(([, quoted, plain]) => (quoted === undefined ? plain : JSON.parse(`"${quoted}"`)));

function valueAt(item, path) {
  let value = item;
  for (const step of steps(path)) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, step)) return undefined;
    value = value[step];
  }
  return value;
}
// The key of an item: what it does not have is an empty object, as in the header of a partition key.
export const keyOf = (item, paths) =>
  paths.map((path) => valueAt(item, path) ?? (valueAt(item, path) === null ? null : {}));
export const hasKey = (item, paths) => paths.every((path) => valueAt(item, path) !== undefined);

// An item that has the paths, to begin from.
export function template(paths) {
  const item = { id: crypto.randomUUID() };
  for (const path of paths) {
    let place = item;
    const all = steps(path);
    for (const step of all.slice(0, -1)) place = place[step] ??= {};
    place[all.at(-1)] ??= "";
  }
  return item;
}

// A key value as somebody types it: a text as it is, or JSON where it looks like it.
export function typed(text) {
  if (!/^(-?\d|"|true$|false$|null$|\{\}$)/.test(text)) return text;
  try {
    return parse(text);
  } catch {
    return text;
  }
}
export const asTyped = (value) => (typeof value === "string" && typed(value) === value ? value : stringify(value));

// The first levels of a key, as far as they are filled in; undefined when none is.
export function typedKey(texts) {
  const end = texts.findIndex((each) => each === "");
  const given = end < 0 ? texts : texts.slice(0, end);
  return given.length ? given.map(typed) : undefined;
}

// Building blocks for the page. Text always goes in as text nodes, so content cannot become markup.
import { ICONS } from "./icons.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "vars") for (const [key, v] of Object.entries(value)) node.style.setProperty(`--${key}`, v);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else if (name === "checked") node.checked = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

export function append(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const fragment = (...children) => append(document.createDocumentFragment(), children);
export const put = (node, ...children) => {
  node.replaceChildren();
  return append(node, children);
};

let lastId = 0;
export const newId = () => `n${++lastId}`;

export const icon = (name, label) =>
  s(
    "svg",
    {
      viewBox: "0 0 16 16",
      width: 16,
      height: 16,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": "1.5",
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
      "aria-hidden": label ? undefined : "true",
      role: label ? "img" : undefined,
      "aria-label": label,
    },
    s("path", { d: ICONS[name] }),
  );

const LEVEL_ICONS = { good: "ok", warn: "warn", bad: "bad", info: "info" };

export const badge = (level, text) =>
  h("span", { class: `badge ${level}` }, LEVEL_ICONS[level] && icon(LEVEL_ICONS[level]), text);

export const panel = (title, aside, body, extra = "") =>
  h(
    "section",
    { class: `panel ${extra}`, "aria-label": title },
    h("div", { class: "panel-head" }, h("h2", null, title), aside),
    h("div", { class: "panel-body" }, body),
  );

export const meter = (percent, kind = "", label = undefined) =>
  h(
    "div",
    { class: `meter ${kind}`, role: "img", "aria-label": label ?? `${Math.round(percent)} %` },
    h("i", { vars: { v: Math.max(0, Math.min(100, percent)) } }),
  );

export const note = (level, say, why, acts) =>
  h(
    "div",
    { class: `note ${level}`, role: level === "bad" ? "alert" : "status" },
    icon(LEVEL_ICONS[level]),
    h("div", null, h("p", { class: "say" }, say), why && h("p", null, why)),
    acts && h("div", { class: "acts" }, acts),
  );

export const space = () => h("div", { class: "space" });

export const button = (text, onclick, { kind = "", image, type = "button", ...rest } = {}) =>
  h("button", { type, class: `button ${kind}`, onclick, ...rest }, image && icon(image), text);

// A choice of one; the pressed button says which.
export function seg(label, options, chosen, pick) {
  const group = h("div", { class: "seg", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    group.append(
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(value === chosen),
          "data-value": value,
          onclick: () => {
            for (const each of group.children) each.setAttribute("aria-pressed", String(each.dataset.value === value));
            pick?.(value);
          },
        },
        text,
      ),
    );
  }
  return group;
}

// A labelled control, with a hint beneath that its reader hears too.
export function field(label, control, hint) {
  control.id ||= newId();
  const below = hint && h("span", { class: "hint", id: `${control.id}-hint` }, hint);
  if (below) control.setAttribute("aria-describedby", below.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, below);
}
export const input = (props) => h("input", { class: "input", autocomplete: "off", spellcheck: "false", ...props });
export const check = (label, props) => {
  const box = h("input", { type: "checkbox", ...props });
  return { box, node: h("label", { class: "check" }, box, label) };
};
export const select = (options, props) =>
  h(
    "select",
    { class: "input", ...props },
    options.map(([value, text, selected]) => h("option", { value, selected }, text)),
  );

let tipNode;
// One tooltip for the whole page; what it says is also in an accessible name or in a table.
export function tip(node, text) {
  const show = (x, y) => {
    tipNode ??= document.body.appendChild(h("div", { class: "tip", hidden: true }));
    put(tipNode, text());
    tipNode.hidden = false;
    const box = tipNode.getBoundingClientRect();
    tipNode.style.left = `${Math.max(8, Math.min(innerWidth - box.width - 8, x - box.width / 2))}px`;
    tipNode.style.top = `${y - box.height - 12 < 4 ? y + 18 : y - box.height - 12}px`;
  };
  node.addEventListener("pointermove", (event) => show(event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    if (node.matches(":focus-visible")) show(box.left + box.width / 2, box.top);
  });
  node.addEventListener("blur", hideTip);
  return node;
}
export function hideTip() {
  if (tipNode) tipNode.hidden = true;
}

// Says it on the screen for a moment, and to a screen reader.
export function toast(text) {
  const node = document.body.appendChild(h("div", { class: "toast", role: "status" }, text));
  setTimeout(() => node.remove(), 3200);
}
export function say(text) {
  document.getElementById("live").textContent = text;
}

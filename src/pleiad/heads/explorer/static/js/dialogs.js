// Dialogs: forms that ask before they do, and the confirmation by name of what cannot be undone.
import { button, h, input } from "./dom.js";
import { name as shown } from "./format.js";
import { act } from "./states.js";
import { text } from "./texts.js";

export function open(body, foot, { extra = "", label } = {}) {
  const form = h("form", { method: "dialog" }, body, foot);
  const dialog = h("dialog", { class: extra, "aria-label": label }, form);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && extra === "palette") dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// A form with one deed: the deed may fail, and then the form stays with what was entered.
export function ask({ title, say, fields, action, kind = "primary", isReady = () => true, deed }) {
  const failure = h("div", { class: "stack" });
  const go = h("button", { type: "submit", class: `button ${kind}`, disabled: !isReady() }, action);
  const dialog = open(
    h("div", { class: "dialog-body" }, h("h2", null, title), say && h("p", { class: "muted" }, say), fields, failure),
    h(
      "div",
      { class: "dialog-foot" },
      button(text.dialog.cancel, () => dialog.close()),
      go,
    ),
    { label: title },
  );
  const form = dialog.querySelector("form");
  form.addEventListener("input", () => {
    go.disabled = !isReady();
  });
  form.addEventListener("change", () => {
    go.disabled = !isReady();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    const done = await act(go, failure, async () => {
      await deed();
      return true;
    });
    if (done) dialog.close();
  });
  return dialog;
}

// What cannot be undone is confirmed by typing the name; the button says what it does.
export function confirmByName({ title, say, name, action, deed }) {
  const typed = input({ class: "input mono", "aria-label": text.dialog.typeToConfirm(shown(name)) });
  const wanted = shown(name, 100);
  return ask({
    title,
    say,
    action,
    kind: "danger solid",
    deed,
    isReady: () => typed.value === wanted || typed.value === name,
    fields: h(
      "div",
      { class: "field" },
      h(
        "span",
        { class: "label" },
        text.dialog.type,
        " ",
        h("code", { class: "strong" }, wanted),
        " ",
        text.dialog.toConfirm,
      ),
      typed,
    ),
  });
}

export const reading = (title, body) => {
  const dialog = open(
    h("div", { class: "dialog-body" }, h("h2", null, title), body),
    h(
      "div",
      { class: "dialog-foot" },
      button(text.dialog.close, () => dialog.close()),
    ),
    { label: title },
  );
  return dialog;
};

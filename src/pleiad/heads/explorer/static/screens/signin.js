// Sign-in: the key stays in this tab; requests are signed here.
import { button, field, h, input, note, put } from "../js/dom.js";
import { explained, state } from "../js/states.js";
import { text } from "../js/texts.js";

// Known to everybody and good for nothing but a local emulator; a server refuses it beyond its own machine.
const WELL_KNOWN = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const isLocal = () => /^(localhost|127\.|\[::1\]|.*\.localhost$)/.test(location.hostname);

function problemNote(problem) {
  if (problem.isOldLink) return note("warn", text.signIn.oldLink, text.signIn.oldLinkWhy);
  if (problem.status === 401)
    return note("bad", text.signIn.unknownKey, [
      text.signIn.unknownKeyWhy,
      " ",
      h("code", { class: "tiny" }, problem.message.slice(0, 300)),
    ]);
  const { title, words, todo } = explained(problem);
  return note("bad", title, [words, todo && ` ${todo}`]);
}

export function signInScreen(enter, problem) {
  const slot = h("div", { class: "stack" }, problem && problemNote(problem));
  const key = input({
    class: "input mono",
    type: "password",
    "aria-invalid": problem?.status === 401 ? "true" : undefined,
    required: true,
    autofocus: true,
  });
  const submit = h("button", { type: "submit", class: "button primary" }, text.signIn.action);
  const tryWith = async (credential) => {
    if (submit.getAttribute("aria-busy") === "true") return;
    submit.setAttribute("aria-busy", "true");
    put(slot);
    try {
      await enter(credential);
    } catch (error) {
      key.setAttribute("aria-invalid", "true");
      put(slot, problemNote(error));
      submit.removeAttribute("aria-busy");
    }
  };
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        if (key.value.trim()) tryWith(key.value);
      },
    },
    h(
      "div",
      null,
      h("img", { class: "sign-mark", src: "/_pleiad/page/css/icon.svg", alt: "", width: 56, height: 56 }),
      h("h1", null, text.signIn.title),
      h("p", { class: "muted" }, text.signIn.promise(location.host)),
    ),
    slot,
    field(text.signIn.label, key),
    h(
      "div",
      { class: "row" },
      submit,
      isLocal() && button(text.signIn.wellKnown, () => tryWith(WELL_KNOWN), { kind: "quiet" }),
    ),
    h("p", { class: "hint" }, text.signIn.link),
  );
  return h("div", { class: "sign" }, h("section", { class: "panel sign-card", "aria-label": text.signIn.title }, form));
}

// A browser gives a page its cryptography only where nobody in between can change the page.
export const plainHttp = () =>
  h(
    "div",
    { class: "sign" },
    h(
      "section",
      { class: "panel sign-card" },
      state("lock", text.signIn.plainTitle, text.signIn.plainWhy, [
        h("a", { class: "button primary", href: `https://${location.host}/` }, text.signIn.plainAction),
      ]),
    ),
  );

// What a panel shows instead of data: loading, empty, failed. It keeps its size, so that nothing jumps.
import { NotConnected, RequestFailed } from "./client.js";
import { button, h, icon, note, put } from "./dom.js";
import { isStopped } from "./scope.js";
import { text } from "./texts.js";
import { visible } from "./format.js";

const BONES_AFTER_MS = 200;

export const state = (image, title, why, acts) =>
  h(
    "div",
    { class: "state" },
    icon(image),
    h("strong", null, title),
    h("p", null, why),
    acts && h("div", { class: "row" }, acts),
  );

export const bones = () =>
  h(
    "div",
    { class: "panel-body stack bones", role: "status", "aria-label": text.states.loading },
    ["w3", "tall", "w2", "w3", "w1"].map((kind) => h("div", { class: `bone ${kind}` })),
  );

// What went wrong, in the server's own words, and what to do.
export function explained(error) {
  if (error instanceof NotConnected)
    return { title: text.failure.notConnected, words: error.message, todo: text.failure.todo.notConnected };
  if (error instanceof RequestFailed) {
    const known = text.failure.byStatus[error.status];
    return {
      title: known?.title ?? text.failure.title(error.status),
      words: visible(error.message),
      todo: known?.todo,
    };
  }
  return { title: text.failure.ownMistake, words: visible(error.message), todo: text.failure.todo.ownMistake };
}

export function failed(error, again) {
  const { title, words, todo } = explained(error);
  return state(
    "bad",
    title,
    [h("code", null, words), todo && ` ${todo}`],
    again && [button(text.failure.again, again, { kind: "primary" })],
  );
}
export function failedNote(error, acts) {
  const { title, words, todo } = explained(error);
  return note("bad", title, [h("code", null, words), todo && ` ${todo}`], acts);
}

// Fills a place with what a promise brings: bones after a moment, then the data or the failure with a way to try again.
export async function load(slot, work, show, { shape = bones } = {}) {
  const timer = setTimeout(() => {
    if (!slot.childElementCount || slot.dataset.failed) put(slot, shape());
  }, BONES_AFTER_MS);
  try {
    const found = await work();
    clearTimeout(timer);
    delete slot.dataset.failed;
    put(slot, show(found));
  } catch (error) {
    clearTimeout(timer);
    if (isStopped(error)) return;
    slot.dataset.failed = "yes";
    put(
      slot,
      failed(error, () => load(slot, work, show, { shape })),
    );
  }
}

// Does something a button asks for: busy meanwhile, and a failure shown in the place given.
export async function act(node, slot, work) {
  if (node.getAttribute("aria-busy") === "true") return;
  node.setAttribute("aria-busy", "true");
  put(slot);
  try {
    return await work();
  } catch (error) {
    if (!isStopped(error)) put(slot, failedNote(error));
    return undefined;
  } finally {
    node.removeAttribute("aria-busy");
  }
}

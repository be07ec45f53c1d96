// Upload of JSON lines: read piece by piece, several items at a time, with progress, and the lines that were refused.
import { open } from "../js/dialogs.js";
import { isStopped } from "../js/scope.js";
import { button, check, field, h, put } from "../js/dom.js";
import { bytes, charge, count, parse, stringify, visible } from "../js/format.js";
import { keyOf } from "../js/key_path.js";
import { text } from "../js/texts.js";

const AT_ONCE = 6;
const REFUSED_SHOWN = 50;

export function upload(context, finished) {
  const file = h("input", { type: "file", class: "input", accept: ".jsonl,.ndjson,.json,.txt,application/json" });
  const pasted = h("textarea", {
    class: "input mono",
    rows: 6,
    spellcheck: "false",
    placeholder: '{"id": "1", …}\n{"id": "2", …}',
  });
  const upsert = check(text.upload.upsert, { checked: true });
  const slot = h("div", { class: "stack" });
  const start = button(text.upload.action, () => run(), { kind: "primary" });
  const stop = button(text.dialog.close, () => dialog.close());
  let abort;
  const dialog = open(
    h(
      "div",
      { class: "dialog-body" },
      h("h2", null, text.upload.title),
      h("p", { class: "muted" }, text.upload.say),
      field(text.upload.file, file),
      field(text.upload.pasted, pasted),
      upsert.node,
      slot,
    ),
    h("div", { class: "dialog-foot" }, stop, start),
    { label: text.upload.title },
  );
  dialog.addEventListener("close", () => abort?.abort());

  async function run() {
    const source = file.files[0] ?? (pasted.value.trim() ? new Blob([pasted.value]) : undefined);
    if (!source) {
      put(slot, h("p", { class: "bad", role: "alert" }, text.upload.nothing));
      return;
    }
    abort = new AbortController();
    start.disabled = true;
    stop.textContent = text.dialog.cancel;
    const shown = progress(slot, source.size);
    try {
      await send(context, source, upsert.box.checked, shown, abort.signal);
    } catch (error) {
      if (!isStopped(error)) shown.refuse(0, error);
    }
    shown.end(abort.signal.aborted);
    start.disabled = false;
    stop.textContent = text.dialog.close;
    finished();
  }
}

async function send({ account, at, paths }, source, upsert, shown, signal) {
  const under = new Set();
  for await (const { line, number, read } of lines(source)) {
    if (signal.aborted) break;
    if (!line.trim()) continue;
    while (under.size >= AT_ONCE) await Promise.race(under);
    const work = (async () => {
      try {
        const answer = await account.createItem(at, line, keyOf(parse(line), paths), { upsert, signal });
        shown.add(read, answer.charge);
      } catch (error) {
        if (!isStopped(error)) shown.refuse(number, error, read);
      }
    })().finally(() => under.delete(work));
    under.add(work);
  }
  await Promise.all(under);
}

// The lines of a file, or the elements of a JSON array, with how much of the file has been read.
async function* lines(source) {
  const decoder = new TextDecoder();
  let rest = "",
    number = 0,
    read = 0;
  const reader = source.stream().getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const piece = next.value;
    read += piece.length;
    rest += decoder.decode(piece, { stream: true });
    if (number === 0 && rest.trimStart().startsWith("[")) continue;
    const parts = rest.split("\n");
    rest = parts.pop();
    for (const line of parts) yield { line, number: ++number, read };
  }
  rest += decoder.decode();
  if (number === 0 && rest.trimStart().startsWith("[")) {
    for (const item of parse(rest))
      yield {
        line: stringify(item),
        number: ++number,
        read,
      };
  } else if (rest.trim()) yield { line: rest, number: ++number, read };
}

function progress(slot, total) {
  const filled = h("i", { vars: { v: 0 } });
  const line = h(
    "div",
    {
      class: "progress",
      role: "progressbar",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": 0,
      "aria-label": text.upload.title,
    },
    filled,
  );
  const words = h("p", { class: "small", role: "status" }),
    refusals = h("ul", { class: "refusals" });
  put(slot, line, words, refusals);
  let done = 0,
    refused = 0,
    spent = 0,
    far = 0,
    asked = false,
    last = "";
  const show = () => {
    asked = false;
    const percent = total ? Math.min(100, Math.round((100 * far) / total)) : 100;
    filled.style.setProperty("--v", percent);
    line.setAttribute("aria-valuenow", percent);
    words.textContent =
      text.upload.progress(count(done), count(refused), bytes(far), bytes(total), charge(spent)) + last;
  };
  const soon = () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(show);
    }
  };
  return {
    add(read, ru) {
      done += 1;
      spent += ru;
      far = Math.max(far, read);
      soon();
    },
    refuse(number, error, read = far) {
      refused += 1;
      far = Math.max(far, read);
      if (refused <= REFUSED_SHOWN)
        refusals.append(
          h(
            "li",
            null,
            h("b", null, text.upload.line(number)),
            " ",
            h("code", null, visible(error.message).slice(0, 300)),
          ),
        );
      soon();
    },
    end(isCancelled) {
      if (!isCancelled) far = total;
      last = isCancelled ? text.upload.cancelled : text.upload.done;
      show();
    },
  };
}

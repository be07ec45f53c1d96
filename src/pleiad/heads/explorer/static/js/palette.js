// Jump to a container or a screen, and the list of keys.
import { h, input, put } from "./dom.js";
import { open, reading } from "./dialogs.js";
import { name } from "./format.js";
import { containerAddress } from "./router.js";
import { text } from "./texts.js";

const SHOWN_MAX = 9;

export function jump(containers, tabs, others) {
  if (document.querySelector("dialog")) return;
  const places = containers.flatMap((each) =>
    tabs.map(([tab, title]) => ({
      title: `${name(each.database)} / ${name(each.container)} › ${title}`,
      address: containerAddress(each, tab),
      aside: name(each.partitionKey.join(", ")),
    })),
  );
  places.push(...others.map(([title, address]) => ({ title, address, aside: "" })));
  const list = h("ul", { "aria-label": text.shell.jump });
  const show = (asked) =>
    put(
      list,
      places
        .filter((each) => asked.split(/\s+/).every((word) => each.title.toLowerCase().includes(word)))
        .slice(0, SHOWN_MAX)
        .map((each) =>
          h(
            "li",
            null,
            h(
              "a",
              { href: each.address, onclick: () => dialog.close() },
              h("span", null, each.title),
              h("span", { class: "faint mono tiny" }, each.aside),
            ),
          ),
        ),
    );
  const box = input({
    placeholder: text.shell.jumpTo,
    "aria-label": text.shell.jumpTo,
    autofocus: true,
    oninput: () => show(box.value.toLowerCase().trim()),
    onkeydown: (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        list.querySelector("a")?.click();
      }
      if (event.key === "ArrowDown") {
        event.preventDefault();
        list.querySelector("a")?.focus();
      }
    },
  });
  const dialog = open([box, list], null, { extra: "palette", label: text.shell.jump });
  list.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")],
      at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") {
      event.preventDefault();
      links[at + 1]?.focus();
    }
    if (event.key === "ArrowUp") {
      event.preventDefault();
      (links[at - 1] ?? box).focus();
    }
  });
  show("");
}

export const keys = () =>
  reading(
    text.keys.title,
    h(
      "dl",
      { class: "keys" },
      text.keys.list.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)]),
    ),
  );

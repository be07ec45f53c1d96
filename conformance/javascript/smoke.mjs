// Uses the operations of the official JavaScript client against a server, and says what came back wrong.
// ACCOUNT_HOST and ACCOUNT_KEY name the server; SECTIONS is a comma-separated list of the names below
// (foundation if not given, all for every one). Exit code 1 when a check failed.

import { counts } from "./check.mjs";
import { access } from "./sections/access.mjs";
import { batch, bulk } from "./sections/batch.mjs";
import { catalog } from "./sections/catalog.mjs";
import { changeFeed } from "./sections/change_feed.mjs";
import { conditions } from "./sections/conditions.mjs";
import { encryption } from "./sections/encryption.mjs";
import { items } from "./sections/items.mjs";
import { paging } from "./sections/paging.mjs";
import { queries } from "./sections/queries.mjs";
import { scripts } from "./sections/scripts.mjs";
import { splits } from "./sections/splits.mjs";

const SECTIONS = {
  foundation: [catalog, items, access],
  batch: [batch],
  bulk: [bulk],
  queries: [queries],
  paging: [paging],
  conditions: [conditions],
  changefeed: [changeFeed],
  scripts: [scripts],
  encryption: [encryption],
  splits: [splits],
};

const asked = (process.env.SECTIONS || "foundation").split(",").map((name) => name.trim());
const names = asked.includes("all") ? Object.keys(SECTIONS) : asked;
const unknown = names.filter((name) => !(name in SECTIONS));
if (unknown.length > 0) {
  console.error(`unknown section ${unknown.join(", ")}; there are ${Object.keys(SECTIONS).join(", ")}`);
  process.exit(2);
}

for (const section of names.flatMap((name) => SECTIONS[name])) {
  try {
    await section();
  } catch (error) {
    // What a section sets up for its checks failed, so none of the rest could be checked.
    counts.failed += 1;
    console.log(`FAIL  ${section.name}: could not be set up: ${error?.code ?? ""} ${error?.message ?? error}`);
  }
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
// The client keeps timers alive; without this the process would wait for them.
process.exit(counts.failed === 0 ? 0 : 1);

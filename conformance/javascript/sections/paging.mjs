// Pages of ordered queries whose sort keys are equal many times: each item once, in every order and page size.

import assert from "node:assert/strict";
import { check, newClient, newContainer, withDatabase } from "../check.mjs";

const ITEMS = 126;
const IN_ONE_KEY = ITEMS / 9;
const MIXED = [undefined, null, false, true, -1, 2.5, "a", "b"];
const KEYS = [
  [],
  ["c.same"],
  ["c.same DESC"],
  ["c.tied"],
  ["c.tied DESC"],
  ["c.mixed"],
  ["c.mixed DESC"],
  ["c.tied", "c.other"],
  ["c.tied DESC", "c.other DESC"],
  ["c.tied", "c.other DESC"],
  ["c.tied DESC", "c.other"],
];

export async function paging() {
  await withDatabase(newClient(), "paging", async (database) => {
    const composite = (first, second) => [{ path: "/tied", order: first }, { path: "/other", order: second }];
    const indexingPolicy = {
      includedPaths: [{ path: "/*" }],
      compositeIndexes: [composite("ascending", "ascending"), composite("ascending", "descending")],
    };
    const container = await newContainer(database, "paging", { throughput: 30000, indexingPolicy });
    for (let n = 0; n < ITEMS; n += 1) {
      const mixed = MIXED[n % MIXED.length];
      await container.items.create({ id: `p${n}`, pk: `k${n % 9}`, same: 1, tied: n % 3, other: n % 2, mixed });
    }
    for (const keys of KEYS) await inPages(container, keys);
    await lastPage(container);
  });
}

async function inPages(container, keys) {
  const order = keys.length > 0 ? ` ORDER BY ${keys.join(", ")}` : "";
  const query = `SELECT * FROM c${order}`;
  const name = `paging:${order || " no order"}`;
  // The client refuses to merge values of several types, which it does when the server need not end pages for it.
  const merges = !keys[0]?.startsWith("c.mixed");
  if (merges) {
    await check(`${name} at once`, async () => {
      inOrder((await container.items.query(query).fetchAll()).resources, keys, ITEMS);
    });
  }
  for (const size of [1, 7, 50]) {
    await check(`${name} in pages of ${size}`, async () => {
      const iterator = container.items.query(query, { maxItemCount: size });
      const seen = [];
      while (iterator.hasMoreResults()) seen.push(...((await iterator.fetchNext()).resources ?? []));
      inOrder(seen, keys, ITEMS);
    });
  }
  // Of several keys it asks for the rest by `c.a >= 1 AND c.b >= 2`, which leaves rows out.
  if (merges && keys.length < 2) {
    await check(`${name}, each page by a client that has seen nothing yet`, async () => {
      inOrder(await resumed(container, query, {}), keys, ITEMS);
    });
  }
  await check(`${name} in one logical partition`, async () => {
    const { resources } = await container.items.query(query, { partitionKey: "k4" }).fetchAll();
    const found = await resumed(container, query, { partitionKey: "k4" });
    inOrder(found, keys, IN_ONE_KEY);
    assert.deepEqual(found.map((item) => item.id), resources.map((item) => item.id));
  });
}

/** Require every item once and in the order asked for; how equal ones of several partitions are merged is the client's. */
function inOrder(found, keys, count) {
  assert.equal(found.length, count);
  assert.equal(new Set(found.map((item) => item.id)).size, count);
  for (let n = 1; n < found.length; n += 1) {
    assert.ok(compared(found[n - 1], found[n], keys) <= 0, `${found[n - 1].id} stands before ${found[n].id}`);
  }
}

/** Every page by a new client, from the token that the last one got. */
async function resumed(container, query, options) {
  const found = [];
  let continuationToken;
  do {
    const again = newClient().database(container.database.id).container(container.id);
    const asked = { maxItemCount: 11, enableQueryControl: true, continuationToken, ...options };
    const page = await again.items.query(query, asked).fetchNext();
    found.push(...(page.resources ?? []));
    continuationToken = page.continuationToken;
    assert.ok(found.length <= ITEMS, "the pages do not end");
  } while (continuationToken);
  return found;
}

async function lastPage(container) {
  await check("paging: a token over all partitions is JSON", async () => {
    const options = { maxItemCount: 5, enableQueryControl: true };
    const page = await container.items.query("SELECT * FROM c ORDER BY c.tied", options).fetchNext();
    assert.equal(typeof JSON.parse(page.continuationToken), "object");
  });
  await check("paging: a page that is exactly full and the last one still has a token", async () => {
    const options = { maxItemCount: IN_ONE_KEY, partitionKey: "k4" };
    const iterator = container.items.query("SELECT * FROM c", options);
    const page = await iterator.fetchNext();
    assert.equal(page.resources.length, IN_ONE_KEY);
    const { continuationToken } = page;
    assert.ok(continuationToken);
    const rest = await container.items.query("SELECT * FROM c", { ...options, continuationToken }).fetchNext();
    assert.deepEqual(rest.resources ?? [], []);
    assert.ok(!rest.continuationToken);
  });
}

/** The order of the query language: by type, then by value. */
function compared(a, b, keys) {
  for (const key of keys) {
    const [path, direction] = key.split(" ");
    const name = path.slice(2);
    // The type of null is called object.
    const rank = (value) => ["undefined", "object", "boolean", "number", "string"].indexOf(typeof value);
    const [left, right] = [a[name], b[name]];
    const order = rank(left) - rank(right) || (left === right ? 0 : left < right ? -1 : 1);
    if (order !== 0) return direction === "DESC" ? -order : order;
  }
  return 0;
}

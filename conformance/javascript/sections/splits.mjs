// The client goes on through splits and merges: writes, reads, batches, bulk, queries and the change feed.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";
import { check, endpoint, key, newClient, newContainer, sleep, until, withDatabase } from "../check.mjs";

const LOAD_MS_MAX = 120_000;
const KEYS = 24;
const FIXED = 100;
const PARTITIONS_MAX = 6;
const FEED_PAGES = 10;

/** A signed call of the admin API, on a container. */
async function admin(method, container, name, body) {
  const path = `_pleiad/v1/dbs/${container.database.id}/colls/${container.id}`;
  const date = new Date().toUTCString();
  const text = `${method.toLowerCase()}\n${name}\n${path}\n${date.toLowerCase()}\n\n`;
  const proof = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const answer = await fetch(new URL(`/${path}/${name}`, endpoint), {
    method,
    headers: { authorization: encodeURIComponent(`type=master&ver=1.0&sig=${proof}`), "x-ms-date": date },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

async function partitions(container) {
  const { status, body } = await admin("GET", container, "partitions");
  assert.equal(status, 200, body.message);
  return body;
}

/** Splits a partition, or merges two neighbours; what another change has overtaken is let go. */
async function change(container, load) {
  const ids = (await partitions(container)).partitions.map((each) => each.id);
  const index = Math.floor(Math.random() * ids.length);
  const isSplit = ids.length < 2 || (ids.length < PARTITIONS_MAX && Math.random() < 0.6);
  const first = Math.min(index, ids.length - 2);
  const { status, body } = isSplit
    ? await admin("POST", container, "split", { partition: ids[index] })
    : await admin("POST", container, "merge", { partitions: ids.slice(first, first + 2) });
  assert.ok([201, 202, 400, 404, 410, 412].includes(status), `${status} ${body.message}`);
  if (status === 201) load.changes += 1;
  await sleep(80); // the pace of changes: with none between them, others come to nothing else
}

const keyOf = (n) => `k${n % KEYS}`;

/** Upserts an item, reads it back, counts, and deletes every fourth. */
async function write(container, load) {
  const n = load.writes;
  const [id, pk] = [`w${n % 50}`, keyOf(n)];
  await container.items.upsert({ id, pk, n });
  assert.equal((await container.item(id, pk).read()).resource.n, n);
  load.items.set(`${pk}/${id}`, n);
  await container.item("counter", keyOf(0)).patch([{ op: "incr", path: "/count", value: 1 }]);
  if (n % 4 === 0) {
    await container.item(id, pk).delete();
    load.items.delete(`${pk}/${id}`);
  }
  load.writes += 1;
}

async function writePair(container, load) {
  const pk = keyOf(load.pairs);
  const operations = ["pair-a", "pair-b"].map((id) => {
    return { operationType: "Upsert", resourceBody: { id, pk, n: load.pairs } };
  });
  const { code, result } = await container.items.batch(operations, pk);
  assert.equal(code, 200);
  assert.ok(result.every((entry) => entry.statusCode < 300));
  for (const id of ["pair-a", "pair-b"]) load.items.set(`${pk}/${id}`, load.pairs);
  load.pairs += 1;
}

/** Every operation of a bulk is done, over all partitions; the client waits a second before it sends any again. */
async function writeBulk(container, load) {
  const operations = Array.from({ length: 60 }, (_, n) => ({
    operationType: "Upsert",
    partitionKey: keyOf(n),
    resourceBody: { id: `bulk${n}`, pk: keyOf(n), n: load.bulks },
  }));
  const results = await container.items.executeBulkOperations(operations);
  for (const { response, error } of results) {
    assert.ok(response?.statusCode < 300, `${response?.statusCode ?? error?.code} ${error?.message ?? ""}`);
  }
  for (let n = 0; n < 60; n += 1) load.items.set(`${keyOf(n)}/bulk${n}`, load.bulks);
  load.bulks += 1;
}

/** The items that nobody changes are there once each, over pages and with a continuation. */
async function query(container, load) {
  const all = Array.from({ length: FIXED }, (_, n) => n);
  const ordered = container.items.query("SELECT VALUE c.n FROM c WHERE c.fixed ORDER BY c.n", { maxItemCount: 15 });
  const found = [];
  while (ordered.hasMoreResults()) {
    found.push(...((await ordered.fetchNext()).resources ?? []));
    await sleep(5); // a reader at leisure: partitions change between its pages
  }
  assert.deepEqual(found, all);
  const plain = await container.items.query("SELECT VALUE c.n FROM c WHERE c.fixed", { maxItemCount: 15 }).fetchAll();
  assert.deepEqual(plain.resources.sort((a, b) => a - b), all);
  const total = await container.items.query("SELECT VALUE COUNT(1) FROM c WHERE c.fixed").fetchAll();
  assert.deepEqual(total.resources, [FIXED]);
  load.queries += 1;
}

/** The pages of a query of one logical partition, each asked for with the continuation of the one before. */
async function queryByToken(container, load) {
  const pk = keyOf(load.tokens);
  const text = "SELECT VALUE c.n FROM c WHERE c.fixed";
  const found = [];
  let continuationToken;
  do {
    const options = { partitionKey: pk, maxItemCount: 2, continuationToken };
    const page = await container.items.query(text, options).fetchNext();
    found.push(...(page.resources ?? []));
    continuationToken = page.continuationToken;
  } while (continuationToken);
  const expected = Array.from({ length: FIXED }, (_, n) => n).filter((n) => keyOf(n) === pk);
  assert.deepEqual(found.sort((a, b) => a - b), expected);
  load.tokens += 1;
}

/** Reads some pages of the change feed from the last continuation on; whether there was anything. */
async function follow(container, load) {
  const changeFeedStartFrom = load.token
    ? ChangeFeedStartFrom.Continuation(load.token)
    : ChangeFeedStartFrom.Beginning();
  const options = { changeFeedStartFrom, maxItemCount: 20 };
  let pages = 0;
  for await (const page of container.items.getChangeFeedIterator(options).getAsyncIterator()) {
    load.token = page.continuationToken;
    if (page.statusCode === StatusCodes.NotModified) break;
    pages += 1;
    for (const item of page.result) load.seen.set(`${item.pk}/${item.id}`, item.n ?? item.count);
    if (pages === FEED_PAGES) break;
  }
  load.feeds += 1;
  return pages > 0;
}

const ACTIVITIES = {
  "the partitions change": [change, "changes"],
  "writes, reads, patches and deletes": [write, "writes"],
  "batches": [writePair, "pairs"],
  "bulk": [writeBulk, "bulks"],
  "queries over all partitions": [query, "queries"],
  "queries with a continuation": [queryByToken, "tokens"],
  "the change feed": [follow, "feeds"],
};

const TIMES_LEAST = { bulks: 1, changes: 15 };

const isEnough = (load, counter) => load[counter] >= (TIMES_LEAST[counter] ?? 5);

/** Everything at once until each was done often enough; the first error of each activity, by its name. */
async function loadUntilEnough(container, load) {
  const errors = {};
  const endsAt = Date.now() + LOAD_MS_MAX;
  const isDone = () => Object.entries(ACTIVITIES).every(([name, [, counter]]) => errors[name] || isEnough(load, counter));
  const working = Object.entries(ACTIVITIES).map(async ([name, [act]]) => {
    try {
      while (!isDone() && Date.now() < endsAt) await act(container, load);
    } catch (error) {
      errors[name] = error;
    }
  });
  await Promise.all(working);
  return errors;
}

async function settled(container) {
  await until(async () => (await partitions(container)).settled, "a change of the partitions does not end");
}

export async function splits() {
  await withDatabase(newClient(), "splits", async (database) => {
    const container = await newContainer(database, "splits", { throughput: 20000 });
    for (let n = 0; n < FIXED; n += 1) await container.items.create({ id: `f${n}`, pk: keyOf(n), fixed: true, n });
    await container.items.create({ id: "counter", pk: keyOf(0), count: 0 });
    const load = { items: new Map(), seen: new Map(), token: undefined };
    for (const [, counter] of Object.values(ACTIVITIES)) load[counter] = 0;
    const errors = await loadUntilEnough(container, load);
    for (const [name, [, counter]] of Object.entries(ACTIVITIES)) {
      await check(`splits: ${name}`, async () => {
        if (errors[name]) throw errors[name];
        assert.ok(isEnough(load, counter), `only ${load[counter]} times`);
      });
    }
    await afterwards(container, load);
  });
}

async function afterwards(container, load) {
  await settled(container);
  await check("splits: afterwards every acknowledged write is there once", async () => {
    const { resources } = await container.items.query("SELECT * FROM c").fetchAll();
    assert.equal(resources.length, FIXED + 1 + load.items.size);
    const found = new Map(resources.map((item) => [`${item.pk}/${item.id}`, item.n]));
    for (const [name, n] of load.items) assert.equal(found.get(name), n, name);
    assert.equal((await container.item("counter", keyOf(0)).read()).resource.count, load.writes);
  });
  await check("splits: afterwards the change feed has told the last version of everything", async () => {
    while (await follow(container, load));
    for (const [name, n] of load.items) assert.equal(load.seen.get(name), n, name);
  });
}

// Items: create, read, upsert, replace, patch, delete, feeds, conditions, keys, ids, unique keys, time to live.

import assert from "node:assert/strict";
import { check, newClient, newContainer, refused, until, withDatabase } from "../check.mjs";

export async function items() {
  await withDatabase(newClient(), "items", async (database) => {
    const container = await newContainer(database, "items");
    await writing(container);
    await conditions(container);
    await patching(container);
    await identifiers(container);
    await keys(container);
    await hierarchicalKeys(database);
    await feeds(database);
    await partitionKeyDelete(container);
    await uniqueKeys(database);
    await timeToLive(database);
  });
}

async function writing(container) {
  const item = container.item("one", "a");
  await check("items: create", async () => {
    const { statusCode, resource, headers } = await container.items.create({ id: "one", pk: "a", n: 1 });
    assert.equal(statusCode, 201);
    assert.equal(resource.n, 1);
    assert.ok(resource._rid && resource._self && resource._etag && resource._ts);
    assert.equal(headers.etag, resource._etag);
    assert.ok(Number(headers["x-ms-request-charge"]) > 0);
    assert.ok(headers["x-ms-session-token"]);
  });
  await check("items: create again is 409", () =>
    refused(409, () => container.items.create({ id: "one", pk: "a" })));
  await check("items: the same id under another key is another item", async () => {
    assert.equal((await container.items.create({ id: "one", pk: "b" })).statusCode, 201);
  });
  await check("items: create without an id gets one from the client", async () => {
    const { resource } = await container.items.create({ pk: "a" });
    assert.match(resource.id, /^[0-9a-f-]{36}$/);
  });
  await check("items: create without an id is 400 when the client gives none", () =>
    refused(400, () => container.items.create({ pk: "a" }, { disableAutomaticIdGeneration: true })));
  await check("items: read", async () => {
    const { statusCode, resource } = await item.read();
    assert.equal(statusCode, 200);
    assert.equal(resource.n, 1);
  });
  await check("items: read of a missing one is 404", () => refused(404, () => container.item("none", "a").read()));
  await check("items: upsert creates, then replaces", async () => {
    assert.equal((await container.items.upsert({ id: "two", pk: "a", n: 1 })).statusCode, 201);
    const { statusCode, resource } = await container.items.upsert({ id: "two", pk: "a", n: 2 });
    assert.equal(statusCode, 200);
    assert.equal(resource.n, 2);
  });
  await check("items: replace", async () => {
    const { statusCode, resource } = await item.replace({ id: "one", pk: "a", n: 5, text: "naïve – 日本 🎉 \u2028" });
    assert.equal(statusCode, 200);
    assert.equal(resource.text, "naïve – 日本 🎉 \u2028");
    assert.equal((await item.read()).resource.n, 5);
  });
  await check("items: replace of a missing one is 404", () =>
    refused(404, () => container.item("none", "a").replace({ id: "none", pk: "a" })));
  await check("items: delete", async () => {
    const created = container.item("gone", "a");
    await container.items.create({ id: "gone", pk: "a" });
    assert.equal((await created.delete()).statusCode, 204);
    await refused(404, () => created.read());
    await refused(404, () => created.delete());
  });
  await check("items: values come back as they were", async () => {
    const body = { id: "values", pk: "a", int: 9007199254740991, float: 0.1, tiny: 5e-324, empty: {}, list: [[], null, true] };
    await container.items.create(body);
    const { resource } = await container.item("values", "a").read();
    for (const name of Object.keys(body)) assert.deepEqual(resource[name], body[name], name);
  });
}

async function conditions(container) {
  const item = container.item("etag", "a");
  await check("etag: a current one lets a replace pass, a stale one is 412", async () => {
    const { resource: first } = await container.items.create({ id: "etag", pk: "a", n: 0 });
    const current = { accessCondition: { type: "IfMatch", condition: first._etag } };
    const { resource: second } = await item.replace({ id: "etag", pk: "a", n: 1 }, current);
    assert.notEqual(second._etag, first._etag);
    await refused(412, () => item.replace({ id: "etag", pk: "a", n: 2 }, current));
    await refused(412, () => container.items.upsert({ id: "etag", pk: "a", n: 2 }, current));
    await refused(412, () => item.delete(current));
    assert.equal((await item.read()).resource.n, 1);
  });
  await check("etag: an unchanged item is read as 304", async () => {
    const { resource } = await item.read();
    const { statusCode } = await item.read({ accessCondition: { type: "IfNoneMatch", condition: resource._etag } });
    assert.equal(statusCode, 304);
  });
}

async function patching(container) {
  const item = container.item("patch", "a");
  await container.items.create({ id: "patch", pk: "a", n: 1, old: "x", list: [1, 3], nested: { deep: 1 } });
  await check("patch: add, set, replace, remove, incr and move", async () => {
    const operations = [
      { op: "add", path: "/list/1", value: 2 },
      { op: "add", path: "/list/-", value: 4 },
      { op: "set", path: "/nested/deep", value: "set" },
      { op: "replace", path: "/n", value: 10 },
      { op: "incr", path: "/n", value: 2.5 },
      { op: "incr", path: "/counter", value: 1 },
      { op: "move", from: "/old", path: "/renamed" },
      { op: "remove", path: "/list/0" },
    ];
    const { statusCode, resource } = await item.patch(operations);
    assert.equal(statusCode, 200);
    assert.deepEqual(resource.list, [2, 3, 4]);
    assert.deepEqual(resource.nested, { deep: "set" });
    assert.equal(resource.n, 12.5);
    assert.equal(resource.counter, 1);
    assert.equal(resource.renamed, "x");
    assert.ok(!("old" in resource));
  });
  await check("patch: a condition that holds lets it pass", async () => {
    const body = { condition: "from c where c.counter = 1", operations: [{ op: "set", path: "/seen", value: true }] };
    assert.equal((await item.patch(body)).resource.seen, true);
  });
  await check("patch: a condition that does not hold is 412", async () => {
    const body = { condition: "from c where c.counter > 5", operations: [{ op: "set", path: "/seen", value: 0 }] };
    await refused(412, () => item.patch(body));
    assert.equal((await item.read()).resource.seen, true);
  });
  await check("patch: replace and remove of a missing path are 400", async () => {
    await refused(400, () => item.patch([{ op: "replace", path: "/absent", value: 1 }]));
    await refused(400, () => item.patch([{ op: "remove", path: "/absent" }]));
  });
  await check("patch: incr of a text is 400", () =>
    refused(400, () => item.patch([{ op: "incr", path: "/renamed", value: 1 }])));
  await check("patch: more than ten operations are 400", () =>
    refused(400, () => item.patch(Array.from({ length: 11 }, (_, n) => ({ op: "set", path: `/f${n}`, value: n })))));
  await check("patch: the id and the partition key cannot be patched", async () => {
    await refused(400, () => item.patch([{ op: "set", path: "/id", value: "other" }]));
    await refused(400, () => item.patch([{ op: "set", path: "/pk", value: "other" }]));
  });
  await check("patch: a missing item is 404", () =>
    refused(404, () => container.item("none", "a").patch([{ op: "set", path: "/n", value: 1 }])));
}

async function identifiers(container) {
  const ids = ["with space", " leading", "percent%20sign", "plus+and&amp", "quote'\"s", "日本語", "emoji 🎉", "é", "dots..", "a=b;c,d", "[x](y)", "@:!$*~"];
  for (const id of ids) {
    await check(`ids: ${JSON.stringify(id)} is created, read, replaced and deleted`, async () => {
      await container.items.create({ id, pk: id });
      const item = container.item(id, id);
      assert.equal((await item.read()).resource.id, id);
      assert.equal((await item.replace({ id, pk: id, n: 1 })).resource.n, 1);
      assert.equal((await item.delete()).statusCode, 204);
    });
  }
  await check("ids: 1023 bytes are accepted, more are refused", async () => {
    const id = "x".repeat(1023);
    await container.items.create({ id, pk: "a" });
    assert.equal((await container.item(id, "a").read()).statusCode, 200);
    await refused(400, () => container.items.create({ id: `${id}x`, pk: "a" }));
  });
}

async function keys(container) {
  const variants = [["a text", "text"], ["an empty text", ""], ["a number", 12.5], ["a negative number", -1], ["zero", 0], ["true", true], ["false", false], ["null", null], ["nothing", undefined]];
  for (const [label, value] of variants) {
    await check(`keys: ${label} as partition key`, async () => {
      const body = value === undefined ? { id: "variant" } : { id: "variant", pk: value };
      assert.equal((await container.items.create(body)).statusCode, 201);
      const item = container.item("variant", value);
      assert.deepEqual((await item.read()).resource.pk, value);
      assert.equal((await item.replace({ ...body, n: 1 })).resource.n, 1);
      assert.equal((await item.delete()).statusCode, 204);
    });
  }
  await check("keys: a key that differs from the item's is 400", async () => {
    await container.items.create({ id: "differs", pk: "b" });
    await refused(400, () => container.item("differs", "b").replace({ id: "differs", pk: "a" }));
  });
}

async function hierarchicalKeys(database) {
  const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
  const container = await newContainer(database, "levels", { partitionKey });
  await check("keys: a hierarchical key finds its item, another does not", async () => {
    await container.items.create({ id: "h", tenant: "t1", user: "u1" });
    assert.equal((await container.item("h", ["t1", "u1"]).read()).statusCode, 200);
    await refused(404, () => container.item("h", ["t1", "u2"]).read());
  });
  await check("keys: part of a hierarchical key is not enough for a point read", () =>
    refused(400, () => container.item("h", ["t1"]).read()));
}

async function feeds(database) {
  const container = await newContainer(database, "feeds", { throughput: 12000 });
  for (let n = 0; n < 25; n += 1) await container.items.create({ id: `i${n}`, pk: `p${n % 7}`, n });
  await check("feeds: readAll reads items of all partitions", async () => {
    const { resources } = await container.items.readAll().fetchAll();
    assert.equal(new Set(resources.map((found) => found.id)).size, 25);
    assert.equal(resources.length, 25);
  });
  await check("feeds: pages have the size asked for and miss nothing", async () => {
    const iterator = container.items.readAll({ maxItemCount: 4 });
    const seen = [];
    while (iterator.hasMoreResults()) {
      const { resources } = await iterator.fetchNext();
      assert.ok((resources ?? []).length <= 4);
      seen.push(...(resources ?? []).map((found) => found.id));
    }
    assert.equal(seen.length, 25);
    assert.equal(new Set(seen).size, 25);
  });
  await check("feeds: a continuation token starts where a page ended", async () => {
    const { resources: first, continuationToken } = await container.items.readAll({ maxItemCount: 5 }).fetchNext();
    assert.ok(continuationToken);
    const { resources: next } = await container.items.readAll({ maxItemCount: 5, continuationToken }).fetchNext();
    const firstIds = new Set(first.map((found) => found.id));
    assert.ok(next.length > 0 && next.every((found) => !firstIds.has(found.id)));
  });
}

async function partitionKeyDelete(container) {
  await check("partition key delete: removes one logical partition only", async () => {
    for (const id of ["x", "y"]) await container.items.create({ id, pk: "wipe" });
    await container.items.create({ id: "x", pk: "keep" });
    await container.deleteAllItemsForPartitionKey("wipe");
    await refused(404, () => container.item("x", "wipe").read());
    await refused(404, () => container.item("y", "wipe").read());
    assert.equal((await container.item("x", "keep").read()).statusCode, 200);
  });
}

async function uniqueKeys(database) {
  const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/email"] }] };
  const container = await newContainer(database, "unique", { uniqueKeyPolicy });
  await check("unique keys: the same value in one logical partition is 409", async () => {
    await container.items.create({ id: "1", pk: "a", email: "e@x" });
    await refused(409, () => container.items.create({ id: "2", pk: "a", email: "e@x" }));
  });
  await check("unique keys: the same value in another logical partition is accepted", async () => {
    assert.equal((await container.items.create({ id: "2", pk: "b", email: "e@x" })).statusCode, 201);
  });
}

async function timeToLive(database) {
  const container = await newContainer(database, "ttl", { defaultTtl: -1 });
  await check("ttl: an item vanishes when its time is over, others stay", async () => {
    await container.items.create({ id: "short", pk: "a", ttl: 1 });
    await container.items.create({ id: "long", pk: "a" });
    await until(async () => (await container.item("short", "a").read()).statusCode === 404, "it does not vanish");
    assert.equal((await container.item("long", "a").read()).statusCode, 200);
    assert.equal((await container.items.create({ id: "short", pk: "a" })).statusCode, 201);
  });
  await check("ttl: zero is 400", () => refused(400, () => container.items.create({ id: "zero", pk: "a", ttl: 0 })));
}

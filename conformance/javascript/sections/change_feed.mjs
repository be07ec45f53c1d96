// The change feed: pulled from the beginning, from now, from a time, by key and by range, and with all versions.

import assert from "node:assert/strict";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
  StatusCodes,
} from "@azure/cosmos";
import { check, newClient, newContainer, withDatabase } from "../check.mjs";

async function drain(container, options) {
  const seen = [];
  let token;
  for await (const page of container.items.getChangeFeedIterator(options).getAsyncIterator()) {
    token = page.continuationToken;
    if (page.statusCode === StatusCodes.NotModified) break;
    seen.push(...page.result);
  }
  return { seen, token };
}

async function ids(container, changeFeedStartFrom, options = {}) {
  const { seen } = await drain(container, { changeFeedStartFrom, ...options });
  return seen.map((found) => found.id);
}

async function latestVersions(database) {
  const container = await newContainer(database, "changes", { throughput: 12000 });
  for (let n = 0; n < 10; n += 1) await container.items.create({ id: `i${n}`, pk: `p${n}` });
  const all = Array.from({ length: 10 }, (_, n) => `i${n}`);
  await check("change feed: from the beginning all items are seen once", async () => {
    const seen = await ids(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 3 });
    assert.deepEqual(seen.sort(), all);
  });
  await check("change feed: a continuation sees only what came later", async () => {
    const { token } = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    await container.items.upsert({ id: "i3", pk: "p3", changed: true });
    assert.deepEqual(await ids(container, ChangeFeedStartFrom.Continuation(token)), ["i3"]);
  });
  await check("change feed: of one partition key", async () => {
    assert.deepEqual(await ids(container, ChangeFeedStartFrom.Beginning("p5")), ["i5"]);
  });
  await check("change feed: from now the past is not seen", async () => {
    const { seen, token } = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    assert.deepEqual(seen, []);
    await container.items.upsert({ id: "i4", pk: "p4", changed: true });
    assert.deepEqual(await ids(container, ChangeFeedStartFrom.Continuation(token)), ["i4"]);
  });
  await check("change feed: from a time", async () => {
    const hour = 3_600_000;
    const ago = ChangeFeedStartFrom.Time(new Date(Date.now() - hour));
    assert.deepEqual((await ids(container, ago)).sort(), all);
    assert.deepEqual(await ids(container, ChangeFeedStartFrom.Time(new Date(Date.now() + hour))), []);
  });
  await check("change feed: the ranges together give everything once", async () => {
    const ranges = await container.getFeedRanges();
    assert.equal(ranges.length, 2);
    const seen = [];
    for (const range of ranges) seen.push(...(await ids(container, ChangeFeedStartFrom.Beginning(range))));
    assert.deepEqual(seen.sort(), all);
  });
}

async function allVersions(database) {
  const changeFeedPolicy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10));
  const container = await newContainer(database, "versions", { throughput: 12000, changeFeedPolicy });
  const changeFeedMode = ChangeFeedMode.AllVersionsAndDeletes;
  const follow = (changeFeedStartFrom) => drain(container, { changeFeedStartFrom, changeFeedMode });
  for (const [name, key] of [["of a container", undefined], ["of one partition key", "p1"]]) {
    await check(`change feed of all versions ${name}: creates, replaces, and deletes with the item before`, async () => {
      const { seen: before, token } = await follow(ChangeFeedStartFrom.Now(key));
      assert.deepEqual(before, []);
      await container.items.create({ id: "v", pk: "p1", n: 1 });
      await container.items.upsert({ id: "v", pk: "p1", n: 2 });
      await container.item("v", "p1").delete();
      const { seen } = await follow(ChangeFeedStartFrom.Continuation(token));
      const told = seen.map((entry) => [entry.metadata.operationType, entry.previous?.n, entry.current?.n]);
      assert.deepEqual(told, [["create", undefined, 1], ["replace", undefined, 2], ["delete", 2, undefined]]);
      assert.equal(seen[2].metadata.previousImageLSN, seen[1].metadata.lsn);
    });
  }
  await check("change feed of all versions: a container without a policy says that it must be enabled", async () => {
    const plain = await newContainer(database, "plain");
    const changeFeedStartFrom = ChangeFeedStartFrom.Now();
    await assert.rejects(drain(plain, { changeFeedStartFrom, changeFeedMode }), /must be enabled/);
  });
}

export async function changeFeed() {
  await withDatabase(newClient(), "changes", async (database) => {
    await latestVersions(database);
    await allVersions(database);
  });
}

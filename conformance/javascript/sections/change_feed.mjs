// The change feed, pulled from the beginning and from now.

import assert from "node:assert/strict";
import { ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";
import { check, newClient, newContainer, withDatabase } from "../check.mjs";

export async function changeFeed() {
  await withDatabase(newClient(), "changes", async (database) => {
    const container = await newContainer(database, "changes", { throughput: 12000 });
    for (let n = 0; n < 10; n += 1) await container.items.create({ id: `i${n}`, pk: `p${n}` });
    const drain = async (options) => {
      const seen = [];
      let token;
      for await (const page of container.items.getChangeFeedIterator(options).getAsyncIterator()) {
        token = page.continuationToken;
        if (page.statusCode === StatusCodes.NotModified) break;
        seen.push(...page.result.map((found) => found.id));
      }
      return { seen, token };
    };
    await check("change feed: from the beginning all items are seen once", async () => {
      const { seen } = await drain({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(), maxItemCount: 3 });
      assert.deepEqual([...seen].sort(), Array.from({ length: 10 }, (_, n) => `i${n}`));
    });
    await check("change feed: a continuation sees only what came later", async () => {
      const { token } = await drain({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
      await container.items.upsert({ id: "i3", pk: "p3", changed: true });
      const { seen } = await drain({ changeFeedStartFrom: ChangeFeedStartFrom.Continuation(token) });
      assert.deepEqual(seen, ["i3"]);
    });
    await check("change feed: of one partition key", async () => {
      const { seen } = await drain({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning("p5") });
      assert.deepEqual(seen, ["i5"]);
    });
  });
}

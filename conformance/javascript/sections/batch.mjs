// Transactional batch and bulk.

import assert from "node:assert/strict";
import { check, newClient, newContainer, withDatabase } from "../check.mjs";

export async function batch() {
  await withDatabase(newClient(), "batch", async (database) => {
    const container = await newContainer(database, "batch");
    await check("batch: all operations of one partition key succeed together", async () => {
      await container.items.create({ id: "old", pk: "a", n: 1 });
      const { code, result } = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "new", pk: "a" } },
          { operationType: "Upsert", resourceBody: { id: "up", pk: "a" } },
          { operationType: "Read", id: "old" },
          { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "a", n: 2 } },
          { operationType: "Patch", id: "old", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
          { operationType: "Delete", id: "up" },
        ],
        "a",
      );
      assert.equal(code, 200);
      assert.deepEqual(result.map((entry) => entry.statusCode), [201, 201, 200, 200, 200, 204]);
      assert.equal((await container.item("old", "a").read()).resource.n, 3);
    });
    await check("batch: one failure undoes everything", async () => {
      const { code, result } = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "undone", pk: "a" } },
          { operationType: "Create", resourceBody: { id: "old", pk: "a" } },
        ],
        "a",
      );
      assert.equal(code, 207);
      assert.deepEqual(result.map((entry) => entry.statusCode), [424, 409]);
      assert.equal((await container.item("undone", "a").read()).statusCode, 404);
    });
  });
}

export async function bulk() {
  await withDatabase(newClient(), "bulk", async (database) => {
    const container = await newContainer(database, "bulk", { throughput: 12000 });
    await check("bulk: operations over many partition keys succeed each for itself", async () => {
      const operations = Array.from({ length: 120 }, (_, n) => ({
        operationType: "Create",
        partitionKey: `p${n}`,
        resourceBody: { id: `i${n}`, pk: `p${n}` },
      }));
      const created = await container.items.executeBulkOperations(operations);
      assert.deepEqual(new Set(created.map((entry) => entry.response?.statusCode)), new Set([201]));
      const again = await container.items.executeBulkOperations([
        operations[0],
        { operationType: "Delete", id: "i1", partitionKey: "p1" },
      ]);
      assert.equal(again[0].error?.code, 409);
      assert.equal(again[1].response?.statusCode, 204);
    });
    await check("bulk: operations on one item keep their order", async () => {
      const named = { id: "one", partitionKey: "one" };
      const resourceBody = { id: "one", pk: "one", n: 1 };
      const done = await container.items.executeBulkOperations([
        { operationType: "Create", partitionKey: "one", resourceBody },
        { operationType: "Read", ...named },
        { operationType: "Replace", ...named, resourceBody: { ...resourceBody, n: 2 } },
        { operationType: "Patch", ...named, resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
        { operationType: "Read", ...named },
        { operationType: "Delete", ...named },
        { operationType: "Read", ...named },
      ]);
      const statuses = done.map((entry) => entry.response?.statusCode ?? entry.error?.code);
      assert.deepEqual(statuses, [201, 200, 200, 200, 200, 204, 404]);
      assert.deepEqual([done[1].response.resourceBody.n, done[4].response.resourceBody.n], [1, 3]);
    });
  });
}

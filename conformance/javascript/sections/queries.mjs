// Queries in one logical partition and over all of them.

import assert from "node:assert/strict";
import { check, newClient, newContainer, refused, withDatabase } from "../check.mjs";

export async function queries() {
  await withDatabase(newClient(), "queries", async (database) => {
    const container = await newContainer(database, "queries", { throughput: 12000 });
    for (let n = 0; n < 30; n += 1) {
      await container.items.create({ id: `i${n}`, pk: `p${n % 5}`, n, even: n % 2 === 0, tags: [`t${n % 3}`] });
    }
    await checks(container);
  });
}

async function checks(container) {
  const all = async (query, options) => (await container.items.query(query, options).fetchAll()).resources;
  await check("queries: filter with parameters in one partition", async () => {
    const query = { query: "SELECT * FROM c WHERE c.n > @n", parameters: [{ name: "@n", value: 10 }] };
    const found = await all(query, { partitionKey: "p1" });
    assert.deepEqual(found.map((item) => item.n).sort((a, b) => a - b), [11, 16, 21, 26]);
  });
  await check("queries: order by over all partitions", async () => {
    const found = await all("SELECT VALUE c.n FROM c ORDER BY c.n DESC");
    assert.deepEqual(found, Array.from({ length: 30 }, (_, n) => 29 - n));
  });
  await check("queries: order by in pages", async () => {
    const iterator = container.items.query("SELECT VALUE c.n FROM c ORDER BY c.n", { maxItemCount: 7 });
    const seen = [];
    while (iterator.hasMoreResults()) seen.push(...((await iterator.fetchNext()).resources ?? []));
    assert.deepEqual(seen, Array.from({ length: 30 }, (_, n) => n));
  });
  await check("queries: count, sum, min, max and avg", async () => {
    assert.deepEqual(await all("SELECT VALUE COUNT(1) FROM c"), [30]);
    assert.deepEqual(await all("SELECT VALUE SUM(c.n) FROM c"), [435]);
    assert.deepEqual(await all("SELECT VALUE MIN(c.n) FROM c"), [0]);
    assert.deepEqual(await all("SELECT VALUE MAX(c.n) FROM c"), [29]);
    assert.deepEqual(await all("SELECT VALUE AVG(c.n) FROM c"), [14.5]);
  });
  await check("queries: distinct, group by, offset and limit, top", async () => {
    assert.equal((await all("SELECT DISTINCT VALUE c.pk FROM c")).length, 5);
    const groups = await all("SELECT c.even, COUNT(1) AS total FROM c GROUP BY c.even");
    assert.deepEqual(groups.map((group) => group.total), [15, 15]);
    assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 2"), [3, 4]);
    assert.deepEqual(await all("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n"), [0, 1]);
  });
  await check("queries: join with an array", async () => {
    assert.equal((await all("SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 't0'")).length, 10);
  });
  await check("queries: a text that is no query is 400", () => refused(400, () => all("SELEC * FROM c")));
  await check("queries: the plan of a query", async () => {
    const { result } = await container.getQueryPlan("SELECT TOP 3 * FROM c ORDER BY c.n");
    assert.deepEqual(result.queryInfo.orderBy, ["Ascending"]);
  });
}

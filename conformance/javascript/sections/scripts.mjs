// Stored procedures, triggers and user-defined functions.

import assert from "node:assert/strict";
import { check, newClient, newContainer, withDatabase } from "../check.mjs";

export async function scripts() {
  await withDatabase(newClient(), "scripts", async (database) => {
    const container = await newContainer(database, "scripts");
    await check("scripts: a stored procedure is created, run, replaced and deleted", async () => {
      const body = "function (name) { getContext().getResponse().setBody('hello ' + name); }";
      const { storedProcedure } = await container.scripts.storedProcedures.create({ id: "hello", body });
      assert.equal((await storedProcedure.execute("a", ["world"])).resource, "hello world");
      const changed = "function () { getContext().getResponse().setBody(42); }";
      await storedProcedure.replace({ id: "hello", body: changed });
      assert.equal((await storedProcedure.execute("a", [])).resource, 42);
      assert.equal((await storedProcedure.delete()).statusCode, 204);
    });
    await check("scripts: a pre-trigger changes the item that is written", async () => {
      const body =
        "function () { var r = getContext().getRequest(); var b = r.getBody(); b.stamped = true; r.setBody(b); }";
      await container.scripts.triggers.create({ id: "stamp", body, triggerType: "Pre", triggerOperation: "All" });
      const { resource } = await container.items.create({ id: "1", pk: "a" }, { preTriggerInclude: ["stamp"] });
      assert.equal(resource.stamped, true);
    });
    await check("scripts: a user-defined function is used in a query", async () => {
      await container.scripts.userDefinedFunctions.create({ id: "twice", body: "function (n) { return n * 2; }" });
      const { resources } = await container.items.query("SELECT VALUE udf.twice(21)").fetchAll();
      assert.deepEqual(resources, [42]);
    });
  });
}

// Stored procedures, triggers and user-defined functions.

import assert from "node:assert/strict";
import { check, newClient, newContainer, withDatabase } from "../check.mjs";

const NOTHING = "function () {}";

function stampBody() {
  const request = getContext().getRequest();
  const body = request.getBody();
  body.stamped = request.getOperationType();
  request.setBody(body);
}

async function definitions(container, name, scripts, scriptOf, more) {
  await check(`scripts: a ${name} is created, read, listed, queried, replaced and deleted`, async () => {
    const { resource: made } = await scripts.create({ id: "defined", body: NOTHING, ...more });
    assert.equal(made.body, NOTHING);
    assert.ok(made._rid && made._self && made._etag && made._ts);
    await assert.rejects(scripts.create({ id: "defined", body: NOTHING, ...more }), { code: 409 });
    assert.deepEqual((await scriptOf("defined").read()).resource, made);
    assert.deepEqual((await scripts.readAll().fetchAll()).resources, [made]);
    const query = { query: "SELECT * FROM s WHERE s.id = @id", parameters: [{ name: "@id", value: "defined" }] };
    assert.deepEqual((await scripts.query(query).fetchAll()).resources, [made]);
    const body = "function () { return 1; }";
    const { resource: changed } = await scriptOf("defined").replace({ id: "defined", body, ...more });
    assert.equal(changed.body, body);
    assert.equal(changed._rid, made._rid);
    assert.equal((await scriptOf("defined").delete()).statusCode, 204);
    await assert.rejects(scriptOf("defined").read(), { code: 404 });
  });
}

async function procedures(container) {
  const { storedProcedures } = container.scripts;
  const run = async (body, parameters = [], options = {}) => {
    const { storedProcedure } = await storedProcedures.create({ id: `p${Math.random()}`, body });
    return storedProcedure.execute("a", parameters, options);
  };
  await check("scripts: a stored procedure answers what it sets as body", async () => {
    const hello = "function (name) { getContext().getResponse().setBody('hello ' + name); }";
    const answer = await run(hello, ["world"]);
    assert.equal(answer.resource, "hello world");
    assert.ok(Number(answer.headers["x-ms-request-charge"]) >= 1);
    assert.deepEqual((await run("function (a) { __.response.setBody({ a: a }); }", [[1, null]])).resource, { a: [1, null] });
  });
  await check("scripts: a stored procedure as a function of the client's own language", async () => {
    const answer = await run(function (n) {
      getContext().getResponse().setBody(n * 2);
    }, [21]);
    assert.equal(answer.resource, 42);
  });
  await check("scripts: the log of a stored procedure comes back when it is asked for", async () => {
    const body = "function () { console.log('the value of %s is %s.', 'x', 1); }";
    assert.equal((await run(body)).headers["x-ms-documentdb-script-log-results"], undefined);
    const { headers } = await run(body, [], { enableScriptLogging: true });
    assert.equal(decodeURIComponent(headers["x-ms-documentdb-script-log-results"]), "the value of x is 1.");
  });
  await check("scripts: a stored procedure writes all or nothing", async () => {
    const write = `function (ids, fails) {
      ids.forEach(function (id) { __.createDocument(__.getSelfLink(), { id: id, pk: "a" }); });
      __.queryDocuments(__.getSelfLink(), "SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.id, 'w')", function (e, found) {
        if (fails) throw new Error("on purpose");
        __.response.setBody(found[0]);
      });
    }`;
    assert.equal((await run(write, [["w1", "w2"], false])).resource, 2);
    await assert.rejects(run(write, [["w3", "w4"], true]), (error) => error.code === 400 && /on purpose/.test(error.message));
    const { resources } = await container.items.query("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'w')").fetchAll();
    assert.deepEqual(resources.sort(), ["w1", "w2"]);
  });
  await check("scripts: a stored procedure that cannot be compiled is a 400", async () => {
    await assert.rejects(run("function ( {"), { code: 400, substatus: 65535 });
  });
}

async function triggers(container) {
  const { triggers: all } = container.scripts;
  await check("scripts: a pre-trigger changes the item that is written", async () => {
    await all.create({ id: "stamp", body: stampBody, triggerType: "Pre", triggerOperation: "All" });
    const { resource } = await container.items.create({ id: "1", pk: "a" }, { preTriggerInclude: ["stamp"] });
    assert.equal(resource.stamped, "Create");
    const { resource: replaced } = await container.item("1", "a").replace({ id: "1", pk: "a" }, { preTriggerInclude: ["stamp"] });
    assert.equal(replaced.stamped, "Replace");
    const { resource: plain } = await container.items.upsert({ id: "1", pk: "a" });
    assert.equal(plain.stamped, undefined);
  });
  await check("scripts: a post-trigger writes in the transaction of the item", async () => {
    const body = `function () {
      var made = getContext().getResponse().getBody();
      __.createDocument(__.getSelfLink(), { id: made.id + "-log", pk: made.pk });
      if (made.fails) throw new Error("on purpose");
    }`;
    await all.create({ id: "log", body, triggerType: "Post", triggerOperation: "Create" });
    await container.items.create({ id: "2", pk: "a" }, { postTriggerInclude: "log" });
    assert.equal((await container.item("2-log", "a").read()).statusCode, 200);
    const failing = container.items.create({ id: "3", pk: "a", fails: true }, { postTriggerInclude: "log" });
    await assert.rejects(failing, { code: 400 });
    assert.equal((await container.item("3", "a").read()).statusCode, 404);
    assert.equal((await container.item("3-log", "a").read()).statusCode, 404);
  });
  await check("scripts: a trigger that is missing or of another operation is refused", async () => {
    await assert.rejects(container.items.create({ id: "4", pk: "a" }, { preTriggerInclude: ["absent"] }), { code: 400 });
    await assert.rejects(container.item("2", "a").delete({ postTriggerInclude: "log" }), { code: 400 });
  });
}

async function functions(container) {
  await check("scripts: a user-defined function is used in a query", async () => {
    const body = "function (n) { return n === undefined ? 'none' : n * 2; }";
    await container.scripts.userDefinedFunctions.create({ id: "twice", body });
    assert.deepEqual((await container.items.query("SELECT VALUE udf.twice(21)").fetchAll()).resources, [42]);
    await container.items.upsert({ id: "u", pk: "u", n: 4 });
    const filtered = "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) = 8";
    assert.deepEqual((await container.items.query(filtered).fetchAll()).resources, [8]);
    await assert.rejects(container.items.query("SELECT VALUE udf.absent(1)").fetchAll(), { code: 400 });
  });
}

export async function scripts() {
  await withDatabase(newClient(), "scripts", async (database) => {
    const container = await newContainer(database, "scripts");
    const { scripts } = container;
    const trigger = { triggerType: "Pre", triggerOperation: "All" };
    await definitions(container, "stored procedure", scripts.storedProcedures, (id) => scripts.storedProcedure(id), {});
    await definitions(container, "trigger", scripts.triggers, (id) => scripts.trigger(id), trigger);
    const { userDefinedFunctions } = scripts;
    await definitions(container, "function", userDefinedFunctions, (id) => scripts.userDefinedFunction(id), {});
    await procedures(container);
    await triggers(container);
    await functions(container);
  });
}

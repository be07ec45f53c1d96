// Users, permissions and clients that hold resource tokens instead of the account key.

import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";
import { check, endpoint, newClient, newContainer, refused, withDatabase } from "../check.mjs";

export async function access() {
  await withDatabase(newClient(), "access", async (database) => {
    const container = await newContainer(database, "guarded");
    await container.items.create({ id: "1", pk: "a" });
    await container.items.create({ id: "1", pk: "b" });
    await users(database);
    await permissions(database, container);
    await tokens(database, container);
  });
}

async function users(database) {
  await check("users: create, read, upsert, list, query, replace, delete", async () => {
    assert.equal((await database.users.create({ id: "ada" })).statusCode, 201);
    await refused(409, () => database.users.create({ id: "ada" }));
    assert.equal((await database.user("ada").read()).resource.id, "ada");
    assert.equal((await database.users.upsert({ id: "ada" })).statusCode, 200);
    assert.deepEqual((await database.users.readAll().fetchAll()).resources.map((found) => found.id), ["ada"]);
    const { resources } = await database.users.query("SELECT * FROM root r WHERE r.id = 'ada'").fetchAll();
    assert.equal(resources.length, 1);
    assert.equal((await database.user("ada").replace({ id: "grace" })).resource.id, "grace");
    assert.equal((await database.user("grace").delete()).statusCode, 204);
    await refused(404, () => database.user("grace").read());
  });
}

async function permissions(database, container) {
  await check("permissions: create, read, upsert, list, replace, delete", async () => {
    const { user } = await database.users.create({ id: "holder" });
    const definition = { id: "p", permissionMode: "read", resource: container.url };
    const created = await user.permissions.create(definition);
    assert.equal(created.statusCode, 201);
    assert.match(created.resource._token, /^type=resource/);
    await refused(409, () => user.permissions.create(definition));
    assert.equal((await user.permission("p").read()).resource.permissionMode.toLowerCase(), "read");
    assert.equal((await user.permissions.upsert({ ...definition, permissionMode: "all" })).statusCode, 200);
    assert.equal((await user.permissions.readAll().fetchAll()).resources.length, 1);
    const { resource } = await user.permission("p").replace({ ...definition, permissionMode: "read" });
    assert.equal(resource.permissionMode.toLowerCase(), "read");
    assert.equal((await user.permission("p").delete()).statusCode, 204);
    await refused(404, () => user.permission("p").read());
  });
}

async function tokens(database, container) {
  const { user } = await database.users.create({ id: "tokens" });
  const guarded = async (id, definition) => {
    const { resource } = await user.permissions.create({ id, resource: container.url, ...definition });
    const client = new CosmosClient({ endpoint, resourceTokens: { [container.url]: resource._token } });
    return client.database(database.id).container(container.id);
  };
  await check("tokens: a read token reads and may not write", async () => {
    const reader = await guarded("read", { permissionMode: "read" });
    assert.equal((await reader.item("1", "a").read()).statusCode, 200);
    await refused(403, () => reader.items.create({ id: "2", pk: "a" }));
    await refused(403, () => reader.item("1", "a").delete());
  });
  await check("tokens: a token for one partition key reaches no other", async () => {
    const bound = await guarded("bound", { permissionMode: "read", resourcePartitionKey: ["a"] });
    assert.equal((await bound.item("1", "a").read()).statusCode, 200);
    await refused(403, () => bound.item("1", "b").read());
  });
  await check("tokens: a full token writes items and deletes the container, and does not change it", async () => {
    const writer = await guarded("all", { permissionMode: "all" });
    assert.equal((await writer.items.create({ id: "2", pk: "a" })).statusCode, 201);
    await refused(403, () => writer.replace({ id: writer.id, partitionKey: { paths: ["/pk"] }, defaultTtl: 1 }));
    assert.equal((await writer.delete()).statusCode, 204);
  });
}

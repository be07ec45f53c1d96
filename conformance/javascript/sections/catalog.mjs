// Account, databases, containers, throughput.

import assert from "node:assert/strict";
import { check, newClient, newContainer, refused, withDatabase } from "../check.mjs";

export async function catalog() {
  const client = newClient();
  await account(client);
  await databases(client);
  await withDatabase(client, "catalog", async (database) => {
    await containers(database);
    await throughput(client, database);
  });
}

async function account(client) {
  await check("account: read", async () => {
    const { resource, headers } = await client.getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
    assert.ok(resource.writableLocations.length >= 1);
    assert.ok(headers["x-ms-activity-id"]);
  });
  await check("account: a wrong key is 401", async () => {
    const wrongKey = Buffer.from("this is not the key of the account").toString("base64");
    await refused(401, () => newClient({ key: wrongKey }).database("any").read());
  });
}

async function databases(client) {
  const id = `check-databases-${Date.now().toString(36)}`;
  await check("databases: create", async () => {
    const { statusCode, resource } = await client.databases.create({ id });
    assert.equal(statusCode, 201);
    assert.equal(resource.id, id);
    assert.ok(resource._rid && resource._self && resource._etag && resource._ts);
  });
  await check("databases: create again is 409", () => refused(409, () => client.databases.create({ id })));
  await check("databases: createIfNotExists finds it", async () => {
    const { statusCode } = await client.databases.createIfNotExists({ id });
    assert.equal(statusCode, 200);
  });
  await check("databases: read", async () => {
    const { resource } = await client.database(id).read();
    assert.equal(resource.id, id);
  });
  await check("databases: list", async () => {
    const { resources } = await client.databases.readAll().fetchAll();
    assert.ok(resources.some((found) => found.id === id));
  });
  await check("databases: query by id", async () => {
    const query = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] };
    const { resources } = await client.databases.query(query).fetchAll();
    assert.deepEqual(resources.map((found) => found.id), [id]);
  });
  await check("databases: delete", async () => {
    const { statusCode } = await client.database(id).delete();
    assert.equal(statusCode, 204);
  });
  await check("databases: read after delete is 404", () => refused(404, () => client.database(id).read()));
  await check("databases: createIfNotExists creates it", async () => {
    const { statusCode, database } = await client.databases.createIfNotExists({ id });
    assert.equal(statusCode, 201);
    await database.delete();
  });
}

async function containers(database) {
  await check("containers: create with a hash key", async () => {
    const { statusCode, resource } = await database.containers.create({ id: "hash", partitionKey: "/pk" });
    assert.equal(statusCode, 201);
    assert.deepEqual(resource.partitionKey.paths, ["/pk"]);
    assert.equal(resource.partitionKey.kind, "Hash");
    assert.equal(resource.indexingPolicy.indexingMode, "consistent");
    assert.ok(resource._docs && resource._rid && resource._self);
  });
  await check("containers: create with a hierarchical key", async () => {
    const partitionKey = { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 };
    const { resource } = await database.containers.create({ id: "levels", partitionKey });
    assert.deepEqual(resource.partitionKey, partitionKey);
  });
  await check("containers: create again is 409", () =>
    refused(409, () => database.containers.create({ id: "hash", partitionKey: "/pk" })));
  await check("containers: create in a missing database is 404", () =>
    refused(404, () => database.client.database("absent").containers.create({ id: "c", partitionKey: "/pk" })));
  await check("containers: createIfNotExists finds it", async () => {
    const { statusCode } = await database.containers.createIfNotExists({ id: "hash", partitionKey: "/pk" });
    assert.equal(statusCode, 200);
  });
  await check("containers: read", async () => {
    const { resource } = await database.container("levels").read();
    assert.equal(resource.id, "levels");
  });
  await check("containers: list", async () => {
    const { resources } = await database.containers.readAll().fetchAll();
    assert.deepEqual(resources.map((found) => found.id).sort(), ["hash", "levels"]);
  });
  await check("containers: query by id", async () => {
    const query = "SELECT * FROM root r WHERE r.id = 'hash'";
    const { resources } = await database.containers.query(query).fetchAll();
    assert.deepEqual(resources.map((found) => found.id), ["hash"]);
  });
  await check("containers: replace changes policies", async () => {
    const { resource } = await database.container("hash").read();
    resource.defaultTtl = 60;
    resource.indexingPolicy.excludedPaths = [{ path: "/ignored/*" }, { path: '/"_etag"/?' }];
    const { statusCode, resource: replaced } = await database.container("hash").replace(resource);
    assert.equal(statusCode, 200);
    assert.equal(replaced.defaultTtl, 60);
    assert.ok(replaced.indexingPolicy.excludedPaths.some((entry) => entry.path === "/ignored/*"));
    assert.notEqual(replaced._etag, resource._etag);
  });
  await check("containers: the partition key cannot be replaced", async () => {
    const { resource } = await database.container("hash").read();
    await refused(400, () => database.container("hash").replace({ ...resource, partitionKey: { paths: ["/other"] } }));
  });
  await check("containers: delete", async () => {
    const { statusCode } = await database.container("levels").delete();
    assert.equal(statusCode, 204);
    await refused(404, () => database.container("levels").read());
  });
}

async function throughput(client, database) {
  await check("throughput: read and replace of a container", async () => {
    const container = await newContainer(database, "manual", { throughput: 500 });
    const { resource, offer } = await container.readOffer();
    assert.equal(resource.content.offerThroughput, 500);
    resource.content.offerThroughput = 700;
    const { resource: replaced } = await offer.replace(resource);
    assert.equal(replaced.content.offerThroughput, 700);
    assert.equal((await container.readOffer()).resource.content.offerThroughput, 700);
  });
  await check("throughput: autoscale of a container", async () => {
    const container = await newContainer(database, "autoscale", { maxThroughput: 4000 });
    const { resource } = await container.readOffer();
    assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 4000);
  });
  await check("throughput: of a database", async () => {
    const id = `${database.id}-shared`;
    const { database: shared } = await client.databases.create({ id, throughput: 600 });
    try {
      assert.equal((await shared.readOffer()).resource.content.offerThroughput, 600);
    } finally {
      await shared.delete();
    }
  });
  await check("throughput: offers can be listed and read", async () => {
    const { resources } = await client.offers.readAll().fetchAll();
    assert.ok(resources.length >= 2);
    const { resource } = await client.offer(resources[0].id).read();
    assert.equal(resource.id, resources[0].id);
  });
  await check("throughput: 12000 RU/s are two physical partitions", async () => {
    const container = await newContainer(database, "wide", { throughput: 12000 });
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, 2);
    assert.equal((await container.getFeedRanges()).length, 2);
  });
}

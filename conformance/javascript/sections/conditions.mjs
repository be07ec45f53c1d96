// Unchanged resources, tokens of sessions and of Entra, kinds of shapes, and the name of the account.

import assert from "node:assert/strict";
import { Agent } from "node:https";
import { CosmosClient } from "@azure/cosmos";
import { check, endpoint, key, newClient, newContainer, refused, withDatabase } from "../check.mjs";

export async function conditions() {
  await withDatabase(newClient(), "conditions", async (database) => {
    const container = await newContainer(database, "conditions", { throughput: 400 });
    await unchanged(database, container);
    await sessions(container);
    await entra(database, container);
    await shapes(database);
  });
  await check("account: it has the name that it was asked by", async () => {
    const asked = endpoint.replace("127.0.0.1", "localhost");
    const { resource } = await new CosmosClient({ endpoint: asked, key }).getDatabaseAccount();
    for (const region of [...resource.writableLocations, ...resource.readableLocations]) {
      assert.equal(new URL(region.databaseAccountEndpoint).host, new URL(asked).host);
    }
  });
}

async function unchanged(database, container) {
  const { user } = await database.users.create({ id: "reader" });
  const { permission } = await user.permissions.create({ id: "p", permissionMode: "read", resource: container.url });
  const { storedProcedure } = await container.scripts.storedProcedures.create({ id: "s", body: "function () {}" });
  const { trigger } = await container.scripts.triggers.create({
    id: "t", body: "function () {}", triggerOperation: "All", triggerType: "Pre",
  });
  const { userDefinedFunction } = await container.scripts.userDefinedFunctions.create({ id: "u", body: "function () {}" });
  const { offer } = await container.readOffer();
  // Not the container: the client looks into the body that such an answer does not have.
  const named = { database, user, permission, storedProcedure, trigger, userDefinedFunction, offer };
  for (const [name, resource] of Object.entries(named)) {
    await check(`etag: an unchanged ${name} is read as 304, and a changed one whole`, async () => {
      const read = await resource.read();
      const condition = read.resource._etag ?? read.headers.etag;
      assert.equal((await resource.read({ accessCondition: { type: "IfNoneMatch", condition } })).statusCode, 304);
      const other = await resource.read({ accessCondition: { type: "IfNoneMatch", condition: '"another"' } });
      assert.equal(other.resource._rid, read.resource._rid);
    });
  }
}

async function sessions(container) {
  await container.items.create({ id: "s", pk: "s" });
  const options = { sessionToken: "this is no token" };
  await check("sessions: a text that is no token is 400 for a read, a write and a query", async () => {
    await refused(400, () => container.item("s", "s").read(options));
    await refused(400, () => container.item("missing", "s").read(options));
    await refused(400, () => container.items.create({ id: "s2", pk: "s" }, options));
    await refused(400, () => container.items.query("SELECT * FROM c", { ...options, partitionKey: "s" }).fetchAll());
  });
}

async function entra(database, container) {
  const part = (text) => Buffer.from(text).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const claims = { aud: "https://localhost.localhost", iss: "https://sts.fake-issuer.net/x", iat: now, nbf: now, exp: now + 3600 };
  const header = { typ: "JWT", alg: "RS256", kid: "CosmosEmulatorPrimaryMaster" };
  const token = [JSON.stringify(header), JSON.stringify(claims), key].map(part).join(".");
  const aadCredentials = { getToken: async () => ({ token, expiresOnTimestamp: (now + 3600) * 1000 }) };
  // Over HTTPS, which is answered on the same port: the client sends such a token in no other way.
  const agent = new Agent({ rejectUnauthorized: false });
  const client = new CosmosClient({ endpoint: endpoint.replace("http:", "https:"), aadCredentials, agent });
  await check("entra: a token reads and writes items, and makes no containers", async () => {
    const seen = client.database(database.id).container(container.id);
    assert.equal((await seen.items.upsert({ id: "e", pk: "e" })).statusCode, 201);
    assert.equal((await seen.item("e", "e").read()).statusCode, 200);
    await refused(403, () => client.database(database.id).containers.create({ id: "mine", partitionKey: "/pk" }));
  });
}

async function shapes(database) {
  const definition = (type, box) => ({
    id: `${type}${box ? "-box" : ""}`,
    partitionKey: { paths: ["/pk"] },
    geospatialConfig: { type },
    indexingPolicy: {
      includedPaths: [{ path: "/*" }],
      spatialIndexes: [{ path: "/shape/?", types: ["Point", "Polygon"], ...(box && { boundingBox: box }) }],
    },
  });
  const box = { xmin: -10, ymin: -10, xmax: 10, ymax: 10 };
  await check("shapes: a geometry needs a bounding box and a geography must have none", async () => {
    await refused(400, () => database.containers.create(definition("Geometry")));
    assert.equal((await database.containers.create(definition("Geometry", box))).statusCode, 201);
    await refused(400, () => database.containers.create(definition("Geography", box)));
    assert.equal((await database.containers.create(definition("Geography"))).statusCode, 201);
  });
}

// Client-side encryption: keys, policies, and items that the client encrypts before the server sees them.

import assert from "node:assert/strict";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
  EncryptionAlgorithm,
  EncryptionQueryBuilder,
  EncryptionType,
  KeyEncryptionAlgorithm,
} from "@azure/cosmos";
import { check, newClient, refused, withDatabase } from "../check.mjs";

const ALGORITHM = EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256;
const VAULT = "CHECK_VAULT";
const SHIFTS = { first: 1, second: 2 };

/** Stands for a vault: wraps a key by moving each byte, by how much the key encryption key says. */
const resolver = {
  encryptionKeyResolverName: VAULT,
  wrapKey: async (name, _algorithm, plain) => Buffer.from(plain).map((byte) => byte + SHIFTS[name]),
  unwrapKey: async (name, _algorithm, wrapped) => Buffer.from(wrapped).map((byte) => byte - SHIFTS[name]),
};

const newEncryptingClient = () => newClient({ clientEncryptionOptions: { keyEncryptionKeyResolver: resolver } });

const wrappedBy = (value) => ({ type: VAULT, name: value, value, algorithm: KeyEncryptionAlgorithm.RSA_OAEP });

function encrypting(...paths) {
  const includedPaths = paths.map((path) => ({
    path,
    clientEncryptionKeyId: "key",
    encryptionType: EncryptionType.DETERMINISTIC,
    encryptionAlgorithm: ALGORITHM,
  }));
  return { includedPaths, policyFormatVersion: 2 };
}

const own = ({ id, pk, open, secret, deep }) => ({ id, pk, open, secret, deep });
const newItem = (id, pk = "a") => ({ id, pk, open: `open ${id}`, secret: `secret ${id}`, deep: { list: [1, 2.5, null] } });

async function newEncryptedContainer(database, id, paths = ["/id", "/pk", "/secret", "/deep"], pk = "/pk") {
  const definition = { id, partitionKey: { paths: [pk] }, clientEncryptionPolicy: encrypting(...paths) };
  const { container } = await database.containers.create(definition);
  await container.initializeEncryption();
  return container;
}

export async function encryption() {
  await withDatabase(newEncryptingClient(), "encryption", async (database) => {
    await check("encryption: a key is created once, and wrapped anew", async () => {
      const created = await database.createClientEncryptionKey("key", ALGORITHM, wrappedBy("first"));
      assert.equal(created.statusCode, 201);
      assert.ok(created.requestCharge > 0 && created.etag);
      await refused(409, () => database.createClientEncryptionKey("key", ALGORITHM, wrappedBy("second")));
      const rewrapped = await database.rewrapClientEncryptionKey("key", wrappedBy("second"));
      assert.equal(rewrapped.statusCode, 200);
      assert.equal(rewrapped.clientEncryptionKeyProperties.encryptionKeyWrapMetadata.value, "second");
    });
    await encryptedItems(database);
    await check("encryption: change feeds come back in the clear, of all versions too", () => encryptedFeeds(database));
    await check("encryption: a client learns that a container was made anew with another policy", async () => {
      const container = await newEncryptedContainer(database, "anew");
      const other = newEncryptingClient().database(database.id).container("anew");
      await other.items.create(newItem("1"));
      await container.delete();
      await newEncryptedContainer(database, "anew", ["/open"]);
      const mismatch = /possible mismatch in Client Encryption Policy/;
      await assert.rejects(() => other.items.create(newItem("2")), mismatch);
      assert.deepEqual(own((await other.items.create(newItem("2"))).resource), newItem("2"));
    });
    await check("encryption: a resource token of a container creates no keys", async () => {
      const container = await newEncryptedContainer(database, "token");
      const { user } = await database.users.create({ id: "user" });
      const right = { id: "right", permissionMode: "all", resource: container.url };
      const { resource } = await user.permissions.create(right);
      const resourceTokens = { [database.id]: resource._token };
      const clientEncryptionOptions = { keyEncryptionKeyResolver: resolver };
      const restricted = newClient({ key: undefined, resourceTokens, clientEncryptionOptions }).database(database.id);
      await refused(403, () => restricted.createClientEncryptionKey("other", ALGORITHM, wrappedBy("first")));
    });
  });
}

async function encryptedItems(database) {
  const container = await newEncryptedContainer(database, "items");
  const plain = newClient().database(database.id).container("items");
  await check("encryption: items come back in the clear, and the server has them encrypted", async () => {
    assert.deepEqual(own((await container.items.create(newItem("1"))).resource), newItem("1"));
    assert.deepEqual(own((await container.item("1", "a").read()).resource), newItem("1"));
    const [stored] = (await plain.items.readAll().fetchAll()).resources;
    assert.equal(stored.open, "open 1");
    assert.ok(stored.id !== "1" && stored.pk !== "a" && stored.secret !== "secret 1");
  });
  await check("encryption: queries compare encrypted parameters", async () => {
    const query = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.secret = @secret AND c.deep = @deep");
    query.addParameter("@secret", "secret 1", "/secret");
    query.addParameter("@deep", newItem("1").deep, "/deep");
    const found = await (await container.items.getEncryptionQueryIterator(query)).fetchAll();
    assert.deepEqual(found.resources.map(own), [newItem("1")]);
    assert.deepEqual((await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources, [1]);
  });
  await check("encryption: patch, batch, bulk and deleting a key", async () => {
    const patched = await container.item("1", "a").patch([{ op: "replace", path: "/secret", value: "patched" }]);
    assert.deepEqual(own(patched.resource), { ...newItem("1"), secret: "patched" });
    const { code, result } = await container.items.batch(
      [
        { operationType: "Create", resourceBody: newItem("2") },
        { operationType: "Replace", id: "1", resourceBody: newItem("1") },
      ],
      "a",
    );
    assert.equal(code, 200);
    assert.deepEqual(own(result[0].resourceBody), newItem("2"));
    const done = await container.items.bulk([
      { operationType: "Create", resourceBody: newItem("3", "b") },
      { operationType: "Read", id: "1", partitionKey: "a" },
      { operationType: "Delete", id: "2", partitionKey: "a" },
    ]);
    assert.deepEqual(done.map((entry) => entry.statusCode), [201, 200, 204]);
    assert.deepEqual(own(done[1].resourceBody), newItem("1"));
    await container.deleteAllItemsForPartitionKey("a");
    assert.equal((await container.item("1", "a").read()).statusCode, 404);
    assert.equal((await container.item("3", "b").read()).statusCode, 200);
  });
}

async function encryptedFeeds(database) {
  const definition = {
    id: "feeds",
    partitionKey: { paths: ["/pk"] },
    clientEncryptionPolicy: encrypting("/id", "/pk", "/secret"),
    changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5)),
  };
  const { container } = await database.containers.create(definition);
  const versions = container.items.getChangeFeedIterator({
    changeFeedStartFrom: ChangeFeedStartFrom.Now("a"),
    changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
  });
  await versions.readNext();
  await container.items.create(newItem("1"));
  const latest = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning("a") });
  assert.deepEqual((await latest.readNext()).result.map(own), [newItem("1")]);
  await container.item("1", "a").delete();
  const { result } = await versions.readNext();
  assert.deepEqual(own(result[0].current), newItem("1"));
  assert.deepEqual(own(result[1].previous), newItem("1"));
}

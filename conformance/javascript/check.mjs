// One check is one line of output. A check that throws has failed; the rest of its section still runs.

import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";

const WELL_KNOWN_KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

export const endpoint = process.env.ACCOUNT_HOST ?? "http://localhost:8081/";
export const key = process.env.ACCOUNT_KEY ?? WELL_KNOWN_KEY;

const UNTIL_MS_MAX = 240_000;

export const counts = { passed: 0, failed: 0 };

export async function check(name, action) {
  try {
    await action();
    counts.passed += 1;
    console.log(`ok    ${name}`);
  } catch (error) {
    counts.failed += 1;
    console.log(`FAIL  ${name}: ${describe(error)}`);
  }
}

/** Await the action and require that the service refuses it with this status; return the error. */
export async function refused(status, action) {
  let response;
  try {
    response = await action();
  } catch (error) {
    assert.equal(Number(error.code), status, `expected ${status}: ${describe(error)}`);
    return error;
  }
  // The client returns, rather than throws, the 404 of an item read.
  assert.equal(response?.statusCode, status, `expected a refusal with ${status}`);
  return response;
}

export function newClient(options = {}) {
  return new CosmosClient({ endpoint, key, ...options });
}

/** Run the action with a database of its own, deleted afterwards. */
export async function withDatabase(client, label, action) {
  const id = `check-${label}-${Date.now().toString(36)}-${Math.floor(Math.random() * 1e9).toString(36)}`;
  const { database } = await client.databases.create({ id });
  try {
    await action(database);
  } finally {
    await database.delete().catch(() => undefined);
  }
}

export async function newContainer(database, id, definition = {}) {
  const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
  const { container } = await database.containers.create({ id, partitionKey, ...definition });
  return container;
}

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits for what announces itself by no event, as long as that takes; what never comes fails. */
export async function until(holds, text) {
  const endsAt = Date.now() + UNTIL_MS_MAX;
  while (!(await holds())) {
    assert.ok(Date.now() < endsAt, text);
    await sleep(20);
  }
}

function describe(error) {
  const text = String(error?.message ?? error).split(/\s+/).join(" ");
  const status = error?.code === undefined ? "" : `[${error.code}] `;
  return `${status}${text}`.slice(0, 400);
}

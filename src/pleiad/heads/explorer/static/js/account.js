// What the page asks the account for: one function each, named as the service names it.
import { stringify } from "./format.js";

const KEY = "x-ms-documentdb-partitionkey";
// Headers are Latin letters: everything else of a key value is escaped, which means the same in JSON.
const keyHeader = (values) =>
  stringify(values).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const container = (at) => ["dbs", at.database, "colls", at.container];
const admin = (at) => ["_pleiad", "v1", "dbs", at.database, "colls", at.container];
const compact = (headers) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined && value !== ""));

export class Account {
  constructor(client) {
    this.client = client;
  }
  get = (segments, options) => this.client.send("GET", segments, options);
  #admin = (at, name, options) => this.get([...admin(at), name], options);

  // -- what the server tells about itself and its containers -------------------------------------
  me = (options) => this.get(["_pleiad", "v1", "me"], options);
  overview = (options) => this.get(["_pleiad", "v1", "overview"], options);
  warnings = (options) => this.get(["_pleiad", "v1", "warnings"], options);
  faults = (options) => this.get(["_pleiad", "v1", "faults"], options);
  addFault = (fault, options) => this.client.send("POST", ["_pleiad", "v1", "faults"], { ...options, body: fault });
  clearFault = (id, options) => this.client.send("DELETE", ["_pleiad", "v1", "faults", id], options);
  clearFaults = (options) => this.client.send("DELETE", ["_pleiad", "v1", "faults"], options);
  accountHistory = (minutes, options) => this.get(["_pleiad", "v1", "history"], { ...options, query: { minutes } });
  history = (at, minutes, options) => this.#admin(at, "history", { ...options, query: { minutes } });
  heat = (at, query, options) => this.#admin(at, "heat", { ...options, query });
  partitions = (at, query, options) => this.#admin(at, "partitions", { ...options, query });
  live = (at, options) => this.#admin(at, "live", options);
  paths = (at, options) => this.#admin(at, "paths", { ...options, query: { sample: 100 } });
  explain = (at, asked, options) => this.client.send("POST", [...admin(at), "explain"], { ...options, body: asked });
  advice = (at, options) => this.#admin(at, "advice", options);
  startAdvice = (at, plan) => this.client.send("POST", [...admin(at), "advice"], { body: plan });
  cancelAdvice = (at) => this.client.send("DELETE", [...admin(at), "advice"]);
  adviceReport = (at, options) => this.get([...admin(at), "advice", "report"], options);
  advicePage = (at) => this.get([...admin(at), "advice", "page"], { form: "text" });
  workload = (at, options) => this.#admin(at, "workload", options);
  switchWorkload = (at, record) => this.client.send("PUT", [...admin(at), "workload"], { body: { record } });
  copies = (options) => this.get(["_pleiad", "v1", "copies"], options);
  startCopy = (plan) => this.client.send("POST", ["_pleiad", "v1", "copies"], { body: plan });
  cancelCopy = (id) => this.client.send("DELETE", ["_pleiad", "v1", "copies", id]);
  completeCopy = (id) => this.client.send("POST", ["_pleiad", "v1", "copies", id, "complete"]);
  accountLive = (options) => this.get(["_pleiad", "v1", "live"], options);
  keys = (at, query, options) => this.#admin(at, "keys", { ...options, query });
  split = (at, partition) => this.client.send("POST", [...admin(at), "split"], { body: { partition }, retries: false });
  merge = (at, partitions) =>
    this.client.send("POST", [...admin(at), "merge"], { body: { partitions }, retries: false });
  throughput = (at, options) => this.get([...place(at), "throughput"], options);
  setThroughput = (at, value) => this.client.send("PUT", [...place(at), "throughput"], { body: value });
  share = (at, value) => this.client.send("PUT", [...admin(at), "partitions"], { body: { ru: value }, retries: false });

  // -- databases and containers ------------------------------------------------------------------
  createDatabase = (id, throughput) => this.client.send("POST", ["dbs"], { body: { id }, headers: offer(throughput) });
  deleteDatabase = (database) => this.client.send("DELETE", ["dbs", database]);
  createContainer = (database, definition, throughput) =>
    this.client.send("POST", ["dbs", database, "colls"], { body: definition, headers: offer(throughput) });
  container = (at, options) => this.get(container(at), options);
  replaceContainer = (at, definition, etag) =>
    this.client.send("PUT", container(at), { body: definition, headers: compact({ "if-match": etag }) });
  deleteContainer = (at) => this.client.send("DELETE", container(at));
  ranges = (at, options) => this.get([...container(at), "pkranges"], options);

  // -- items -------------------------------------------------------------------------------------
  query(at, asked, { key, continuation, pageItems, reports = false, signal, onWait, form } = {}) {
    const headers = compact({
      "content-type": "application/query+json",
      "x-ms-documentdb-isquery": "True",
      "x-ms-documentdb-query-enablecrosspartition": "True",
      "x-ms-max-item-count": pageItems && String(pageItems),
      "x-ms-continuation": continuation,
      [KEY]: key && keyHeader(key),
    });
    if (reports) {
      for (const name of [
        "x-ms-documentdb-populatequerymetrics",
        "x-ms-cosmos-populateindexmetrics-v2",
        "x-ms-cosmos-populatequeryadvice",
      ])
        headers[name] = "True";
    }
    return this.client.send("POST", [...container(at), "docs"], { body: asked, headers, signal, onWait, form });
  }
  item = (at, item, options = {}) => this.client.send("GET", ...itemPath(at, item, { ...options, form: "text" }));
  createItem = (at, body, key, { upsert = false, ...options } = {}) =>
    this.client.send("POST", [...container(at), "docs"], {
      ...options,
      body,
      headers: compact({ [KEY]: keyHeader(key), "x-ms-documentdb-is-upsert": upsert ? "True" : undefined }),
      form: "text",
    });
  replaceItem = (at, item, body, etag) =>
    this.client.send("PUT", ...itemPath(at, item, { body, headers: compact({ "if-match": etag }), form: "text" }));
  deleteItem = (at, item, etag) =>
    this.client.send("DELETE", ...itemPath(at, item, { headers: compact({ "if-match": etag }) }));
  changes(at, { mode, etag, key, range, since, pageItems, signal }) {
    const headers = compact({
      "a-im": mode === "all" ? "Full-Fidelity Feed" : "Incremental Feed",
      "if-none-match": etag,
      "if-modified-since": since,
      "x-ms-max-item-count": String(pageItems),
      "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15",
      [KEY]: key && keyHeader(key),
      "x-ms-documentdb-partitionkeyrangeid": range,
    });
    return this.get([...container(at), "docs"], { headers, signal });
  }

  // -- scripts, users, permissions ---------------------------------------------------------------
  list = (segments, member, options) => this.get(segments, options).then(({ json }) => json[member]);
  scripts = (at, kind, options) =>
    this.list(
      [...container(at), kind],
      { sprocs: "StoredProcedures", triggers: "Triggers", udfs: "UserDefinedFunctions" }[kind],
      options,
    );
  createScript = (at, kind, body) => this.client.send("POST", [...container(at), kind], { body });
  replaceScript = (at, kind, id, body, etag) =>
    this.client.send("PUT", [...container(at), kind, id], { body, headers: compact({ "if-match": etag }) });
  deleteScript = (at, kind, id) => this.client.send("DELETE", [...container(at), kind, id]);
  runScript = (at, id, args, key, signal) =>
    this.client.send("POST", [...container(at), "sprocs", id], {
      body: args,
      signal,
      headers: { [KEY]: keyHeader(key), "x-ms-documentdb-script-enable-logging": "True" },
    });
  users = (database, options) => this.list(["dbs", database, "users"], "Users", options);
  createUser = (database, id) => this.client.send("POST", ["dbs", database, "users"], { body: { id } });
  deleteUser = (database, id) => this.client.send("DELETE", ["dbs", database, "users", id]);
  permissions = (database, user, options) =>
    this.list(["dbs", database, "users", user, "permissions"], "Permissions", options);
  createPermission = (database, user, body, seconds) =>
    this.client.send("POST", ["dbs", database, "users", user, "permissions"], {
      body,
      headers: compact({ "x-ms-documentdb-expiry-seconds": seconds && String(seconds) }),
    });
  deletePermission = (database, user, id) =>
    this.client.send("DELETE", ["dbs", database, "users", user, "permissions", id]);
}

const place = (at) => (at.container === undefined ? ["_pleiad", "v1", "dbs", at.database] : admin(at));

function offer(throughput) {
  if (throughput?.ru) return { "x-ms-offer-throughput": String(throughput.ru) };
  if (throughput?.autoscaleMaximumRu)
    return { "x-ms-cosmos-offer-autopilot-settings": stringify({ maxThroughput: throughput.autoscaleMaximumRu }) };
  return {};
}

// By its id; an id that means a place to a browser's addresses ("." and "..") goes by the rids of its self link.
function itemPath(at, item, options) {
  const headers = { ...options.headers, [KEY]: keyHeader(item.key) };
  if (!/^\.{1,2}$/.test(item.id) || !item.self) return [[...container(at), "docs", item.id], { ...options, headers }];
  const segments = item.self.split("/").filter(Boolean);
  return [segments, { ...options, headers, link: segments.at(-1).toLowerCase() }];
}

// A client of the account like any other: every request is signed here, with the browser's own cryptography, and the
// key itself is never sent. The date that is signed is x-ms-date, since a page cannot set Date.
import { parse, stringify } from "./format.js";
import { text } from "./texts.js";

const VERSION = "2020-07-15";
// What programs look for in a message, before what is said to people.
const FOR_PROGRAMS = /^Resource Not Found\. Learn more: \S+ (?=\S)/;
const RETRIES_MAX = 9;
const RETRY_SECONDS_MAX = 30;

export class RequestFailed extends Error {
  constructor(status, { code = "", message = "", substatus = 0, retryAfterMs = 0, activityId = "", body = {} } = {}) {
    super(message || text.failure.noText(status));
    Object.assign(this, { status, code, substatus, retryAfterMs, activityId, body });
  }
}
export class NotConnected extends Error {}

// Told to whoever shows it: "ok" or "lost", with the time of the last answer.
export const connection = Object.assign(new EventTarget(), { state: "ok", lastAnswerAt: new Date() });
function heard(isThere) {
  const state = isThere ? "ok" : "lost";
  if (isThere) connection.lastAnswerAt = new Date();
  if (connection.state === state) return;
  connection.state = state;
  connection.dispatchEvent(new Event("change"));
}

export const canSign = () => globalThis.crypto?.subtle !== undefined;

const decoded = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const encoded = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));

export class Client {
  #proof;

  // The credential is a key of the account, or a resource token, which is sent as it is.
  static async open(credential) {
    const client = new Client();
    if (credential.startsWith("type=resource") || credential.startsWith("type%3Dresource")) {
      const token = credential.startsWith("type%3D") ? credential : encodeURIComponent(credential);
      client.#proof = async () => token;
      return client;
    }
    let secret;
    try {
      secret = decoded(credential);
    } catch {
      throw new RequestFailed(401, { message: text.signIn.notBase64 });
    }
    const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    client.#proof = async (signed) => {
      const proof = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(signed));
      return encodeURIComponent(`type=master&ver=1.0&sig=${encoded(proof)}`);
    };
    return client;
  }

  // One request; waits and asks again when it is refused with 429, as clients do, and says so through onWait.
  async send(method, segments, options = {}) {
    let waited = 0;
    for (let tries = 0; ; tries++) {
      try {
        return await this.#once(method, segments, options);
      } catch (error) {
        if (!(error instanceof RequestFailed) || error.status !== 429 || options.retries === false) throw error;
        waited += error.retryAfterMs;
        if (tries >= RETRIES_MAX || waited > RETRY_SECONDS_MAX * 1000) throw error;
        options.onWait?.(error.retryAfterMs);
        await pause(error.retryAfterMs, options.signal);
      }
    }
  }

  async #once(method, segments, { body, headers = {}, query, signal, link, form = "json" } = {}) {
    const date = new Date().toUTCString();
    const signed = [method.toLowerCase(), ...signedParts(segments, link), date.toLowerCase(), "", ""].join("\n");
    const sent = { ...headers, "x-ms-date": date, "x-ms-version": VERSION, authorization: await this.#proof(signed) };
    if (body !== undefined && !sent["content-type"]) sent["content-type"] = "application/json";
    let answer, said;
    try {
      answer = await fetch(address(segments, query), {
        method,
        headers: sent,
        signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        body: body === undefined || typeof body === "string" ? body : stringify(body),
      });
      said = await answer.text();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      heard(false);
      throw new NotConnected(text.failure.noAnswer(location.host));
    }
    heard(true);
    if (!answer.ok && answer.status !== 304) throw failure(answer, said);
    return {
      status: answer.status,
      headers: answer.headers,
      text: said,
      json: form === "json" && said ? parse(said) : undefined,
      charge: Number(answer.headers.get("x-ms-request-charge") ?? 0),
    };
  }
}

const address = (segments, query) => {
  const asked = query ? `?${new URLSearchParams(query)}` : "";
  return `/${segments.map((each) => encodeURIComponent(each.toWellFormed?.() ?? each)).join("/")}${asked}`;
};

// The type and the link that are signed: of a resource its own, of a feed those of its owner. An offer, and whatever is
// asked for by rids, is signed by the last rid alone.
function signedParts(segments, link) {
  const isFeed = segments.length % 2 === 1;
  const kind = isFeed ? segments.at(-1) : (segments.at(-2) ?? "");
  if (link !== undefined) return [kind.toLowerCase(), link];
  if (kind === "offers") return [kind, (segments[1] ?? "").toLowerCase()];
  return [kind.toLowerCase(), (isFeed ? segments.slice(0, -1) : segments).join("/")];
}

function failure(answer, said) {
  let body = {};
  try {
    body = JSON.parse(said);
  } catch {
    /* no JSON: the status has to do */
  }
  const header = (name) => Number(answer.headers.get(name) ?? 0);
  return new RequestFailed(answer.status, {
    code: body.code,
    message: String(body.message ?? "")
      .split("\r\nActivityId:")[0]
      .replace(FOR_PROGRAMS, ""),
    body,
    substatus: header("x-ms-substatus"),
    retryAfterMs: Math.max(20, header("x-ms-retry-after-ms")),
    activityId: answer.headers.get("x-ms-activity-id") ?? "",
  });
}

export const pause = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });

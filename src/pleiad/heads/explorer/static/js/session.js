// Who is signed in: the key or token of this tab, and what it may do. Nothing of it outlives the tab.
import { Account } from "./account.js";
import { Client } from "./client.js";

const STORED = "pleiad.credential";

export const stored = () => sessionStorage.getItem(STORED);
export function forget() {
  sessionStorage.removeItem(STORED);
}

// Opens the account with a credential; it is kept only when the server knows it.
export async function signIn(credential) {
  const account = new Account(await Client.open(credential.trim()));
  const { json: me } = await account.me({ retries: false });
  sessionStorage.setItem(STORED, credential.trim());
  return { account, me };
}

// The token of a link that works once: taken out of the address and of the history before anything else is done.
export function takeHandover() {
  const match = /^#handover=([^&]+)$/.exec(location.hash);
  if (!match) return undefined;
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  return decodeURIComponent(match[1]);
}
export async function keyFor(token) {
  const answer = await fetch("/_pleiad/handover", {
    method: "POST",
    headers: { "x-pleiad-handover": token },
    cache: "no-store",
    credentials: "omit",
  });
  if (!answer.ok) throw Object.assign(new Error(), { status: answer.status });
  return (await answer.json()).key;
}

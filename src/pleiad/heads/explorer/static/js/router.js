// Addresses: every screen is one, so that it can be linked, reloaded and gone back to.
import { stringify } from "./format.js";

export const containerAddress = (at, tab = "items", params = {}) => {
  const asked = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== undefined && value !== ""),
  ).toString();
  return `#/c/${encodeURIComponent(at.database)}/${encodeURIComponent(at.container)}/${tab}${asked ? `?${asked}` : ""}`;
};
export const databaseAddress = (database) => `#/d/${encodeURIComponent(database)}`;
export const itemAddress = (at, id, key) => containerAddress(at, "items", { id, pk: stringify(key) });

export function here() {
  const [path, asked = ""] = location.hash.slice(1).split("?");
  let parts = [];
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    /* not an address of ours: home */
  }
  return { parts, params: new URLSearchParams(asked) };
}
export const go = (address) => {
  if (location.hash === address) dispatchEvent(new Event("hashchange"));
  else location.hash = address;
};
// Changes the address without drawing the screen anew.
export const note = (address) => history.replaceState(null, "", address);

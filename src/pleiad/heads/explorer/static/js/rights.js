// What the key or token may do, and buttons that say why they are switched off.
import { button, toast } from "./dom.js";
import { text } from "./texts.js";

export const may = (me, operation) => me.operations.includes(operation);
export const refusal = (me) => (me.caller === "resource token" ? text.rights.token : text.rights.readOnly);

// A button for an operation: switched off, with the reason, for those who may not.
export function lever(me, operation, label, onclick, options = {}) {
  const reason = may(me, operation) ? options.reason : refusal(me);
  const { reason: _, ...rest } = options;
  if (!reason) return button(label, onclick, rest);
  return button(label, () => toast(reason), { ...rest, "aria-disabled": "true", title: reason, "data-reason": reason });
}

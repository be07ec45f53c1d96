// The life of one screen: what it listens to, repeats and has under way ends when it is left.
import { NotConnected, pause } from "./client.js";

export class Scope {
  #abort = new AbortController();
  get signal() {
    return this.#abort.signal;
  }
  listen(target, type, handler) {
    target.addEventListener(type, handler, { signal: this.signal });
  }
  leave() {
    this.#abort.abort();
  }
  onLeave(handler) {
    this.signal.addEventListener("abort", handler, { once: true });
  }

  // Does it again and again, one after the other, while the page is seen; a failure is told and waited out.
  async every(milliseconds, work, failed = () => {}) {
    while (!this.signal.aborted) {
      try {
        if (!document.hidden) await work();
      } catch (error) {
        if (this.signal.aborted) return;
        failed(error);
        if (error instanceof NotConnected) await pause(1000, this.signal).catch(() => {});
      }
      await pause(milliseconds, this.signal).catch(() => {});
    }
  }
}

// A place of its own for what is asked for again before the last answer is there: only the last counts.
export class Latest {
  #abort;
  constructor(scope) {
    this.scope = scope;
  }
  next() {
    this.#abort?.abort();
    this.#abort = new AbortController();
    return AbortSignal.any([this.scope.signal, this.#abort.signal]);
  }
  stop() {
    this.#abort?.abort();
  }
}
export const isStopped = (error) => error?.name === "AbortError";

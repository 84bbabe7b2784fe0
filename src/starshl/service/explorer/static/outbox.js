// Changes on their way to the service. The browser keeps each of them until it is stored, so that none is lost with a tab.

import { newKey } from "./shared.js";

const PREFIX = "starshl-unsent/";
const MOST_AT_ONCE = 100;

/** Do something with the storage of the browser, which may be full or forbidden. */
function withStorage(action) {
  try { return action(localStorage); } catch { return undefined; }
}

/** Changes of one collection in the order in which they were made. */
export class Outbox {
  /** Begin with what earlier tabs could not send; ``collection`` is known by more than its name. */
  constructor(collection) {
    const prefix = `${PREFIX}${collection}/`;
    const earlier = withStorage((storage) => Object.keys(storage).filter((name) => name.startsWith(prefix)).sort()) ?? [];
    this.name = `${prefix}${Date.now()}-${newKey()}`;
    this.changes = earlier.flatMap((name) => withStorage((storage) => JSON.parse(storage.getItem(name))) ?? []);
    this.save();
    // A tab that is still open may own one of them. It sends the same changes with the same keys, which does no harm.
    for (const name of earlier) withStorage((storage) => storage.removeItem(name));
  }

  get length() { return this.changes.length; }

  add(change) {
    this.changes.push({ key: newKey(), ...change });
    this.save();
  }

  /** The next changes to send. */
  first() { return this.changes.slice(0, MOST_AT_ONCE); }

  /** Forget changes that the service has stored or refused. */
  forget(sent) {
    const keys = new Set(sent.map((change) => change.key));
    this.changes = this.changes.filter((change) => !keys.has(change.key));
    this.save();
  }

  /** Store in the browser what waits. */
  save() {
    withStorage((storage) => {
      if (this.changes.length) storage.setItem(this.name, JSON.stringify(this.changes));
      else storage.removeItem(this.name);
    });
  }
}

// Changes on their way to the service. The browser keeps each of them until it is stored, so that none is lost with a tab.

const PREFIX = "starshl-unsent/";
const MOST_AT_ONCE = 100;

/** A key by which the service knows a change again; crypto.randomUUID is not there on pages without HTTPS. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Do something with the storage of the browser, which may be full or forbidden. */
function withStorage(action) {
  try { return action(localStorage); } catch { return undefined; }
}

/** Changes of one collection in the order in which they were made. */
export class Outbox {
  /** Begin with what earlier tabs could not send; ``collection`` is known by more than its name. */
  constructor(collection) {
    this.prefix = `${PREFIX}${collection}/`;
    this.name = `${this.prefix}${Date.now()}-${newKey()}`;
    this.adopted = withStorage((storage) => Object.keys(storage).filter((name) => name.startsWith(this.prefix)).sort()) ?? [];
    this.changes = this.adopted.flatMap((name) => withStorage((storage) => JSON.parse(storage.getItem(name))) ?? []);
    this.n_adopted = this.changes.length;
    this.keep();
    // A tab that is still open may own one of them. It sends the same changes with the same keys, which does no harm.
    for (const name of this.adopted) withStorage((storage) => storage.removeItem(name));
  }

  get length() { return this.changes.length; }

  add(change) {
    this.changes.push({ key: newKey(), ...change });
    this.keep();
  }

  /** The next changes to send. */
  first() { return this.changes.slice(0, MOST_AT_ONCE); }

  /** Forget changes that the service has stored or refused. */
  forget(done) {
    const keys = new Set(done.map((change) => change.key));
    this.changes = this.changes.filter((change) => !keys.has(change.key));
    this.keep();
  }

  /** Let the browser keep what waits. */
  keep() {
    withStorage((storage) => {
      if (this.changes.length) storage.setItem(this.name, JSON.stringify(this.changes));
      else storage.removeItem(this.name);
    });
  }
}

// A small IndexedDB shelf for edits that have not reached the server yet. Where the browser gives
// no database (private windows), memory takes its place and `lasting` says so.

const STORES = ["events", "histories"];

export class Shelf {
  constructor(name) {
    this.name = name;
    this.lasting = true;
    this.memory = { events: new Map(), histories: new Map() };
  }

  async open() {
    try {
      this.database = await new Promise((resolve, reject) => {
        const request = indexedDB.open(this.name, 1);
        request.onupgradeneeded = () => {
          request.result.createObjectStore("events", { keyPath: "id" });
          request.result.createObjectStore("histories", { keyPath: "task" });
        };
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
        request.onblocked = () => reject(new Error("blocked"));
      });
      this.database.onversionchange = () => this.database.close();
    } catch {
      this.lasting = false;
    }
    return this;
  }

  async all(store) {
    if (!this.lasting) return [...this.memory[store].values()];
    return this.#ask(store, "readonly", (box) => box.getAll());
  }

  async get(store, key) {
    if (!this.lasting) return this.memory[store].get(key);
    return this.#ask(store, "readonly", (box) => box.get(key));
  }

  /** Put and delete in one transaction, so that a crash leaves all of it or nothing. */
  async write(store, put, remove = []) {
    if (!STORES.includes(store) || (!put.length && !remove.length)) return;
    if (this.lasting) {
      try {
        await this.#ask(store, "readwrite", (box) => {
          for (const entry of put) box.put(entry);
          for (const key of remove) box.delete(key);
          return null;
        });
        return;
      } catch {
        this.lasting = false; // full or gone: go on in memory, and say so
      }
    }
    for (const entry of put) this.memory[store].set(entry.id ?? entry.task, entry);
    for (const key of remove) this.memory[store].delete(key);
  }

  #ask(store, mode, act) {
    return new Promise((resolve, reject) => {
      const deal = this.database.transaction(store, mode);
      const request = act(deal.objectStore(store));
      deal.oncomplete = () => resolve(request?.result);
      deal.onabort = deal.onerror = () => reject(deal.error);
    });
  }
}

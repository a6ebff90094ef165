// What scripts find on a page, for their tests in Node: just enough of it to load them.
//   node --import ./tests/scripts/page.js --test tests/scripts/*.test.js
import * as module from "node:module";

const hooks = new URL("./apps.js", import.meta.url);
if (module.registerHooks) module.registerHooks(await import(hooks.href));
else module.register(hooks); // before Node 22.15

const held = new Map();
globalThis.window = globalThis;
globalThis.document = { documentElement: { lang: "en", dataset: { zone: "UTC" } }, cookie: "", addEventListener() {}, querySelector: () => null };
globalThis.location = { href: "http://site.test/", host: "site.test", protocol: "http:" };
globalThis.addEventListener = () => undefined;
Object.defineProperty(globalThis, "localStorage", {
  value: {
    get length() {
      return held.size;
    },
    key: (place) => [...held.keys()][place] ?? null,
    getItem: (name) => held.get(name) ?? null,
    setItem: (name, value) => void held.set(name, String(value)),
    removeItem: (name) => void held.delete(name),
    clear: () => held.clear(),
  },
});

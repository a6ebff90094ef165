// The modules of a page that come in bundles (aiplatform/lib/bundles.py): each runs once, when it is first imported.

/** @typedef {{$load: (name: string) => any, $import: (address: string) => Promise<any>, $exports: (getters: Record<string, () => any>) => void, $url: string}} Tools */
/** @typedef {{root: string, run: (tools: Tools) => void | Promise<void>, values: any, started: boolean}} Entry */

/** @type {Map<string, Entry>} */
const modules = new Map();

/**
 * Add a module unless an earlier bundle had it.
 * @param {string} name  path below the static files
 * @param {string} root  address of the static files
 * @param {(tools: Tools) => void | Promise<void>} run
 */
export function define(name, root, run) {
  if (!modules.has(name)) modules.set(name, { root, run, values: Object.create(null), started: false });
}

/** @param {string} name @returns {Entry} */
function known(name) {
  const entry = modules.get(name);
  if (!entry) throw new Error(`No bundle of this page has the module ${name}.`);
  return entry;
}

/** Run a module that was not run yet; a promise where it waits at its top level. @param {string} name */
function start(name) {
  const entry = known(name);
  if (entry.started) return;
  entry.started = true;
  return entry.run({
    $load: load,
    $import: (address) => loadLater(address, name, entry.root),
    $exports: (getters) => {
      for (const [key, get] of Object.entries(getters)) Object.defineProperty(entry.values, key, { get, enumerable: true });
    },
    $url: entry.root + name,
  });
}

/** Run an entry of a page; its failure does not keep other entries from running. @param {string} name */
export function launch(name) {
  try {
    Promise.resolve(start(name)).catch(reportError);
  } catch (error) {
    reportError(error);
  }
}

/** What a module exports. @param {string} name */
export function load(name) {
  start(name);
  return known(name).values;
}

/** `import(address)` in the module `importer`: the module that is here already, or the one that its own bundle has. */
async function loadLater(address, importer, root) {
  const url = new URL(address, new URL(importer, root));
  const name = url.href.startsWith(root) ? url.href.slice(root.length) : "";
  if (!name) return import(url.href);
  if (modules.has(name)) return load(name);
  const values = await import(`${root}bundle/${name}`);
  return modules.has(name) ? load(name) : values;
}

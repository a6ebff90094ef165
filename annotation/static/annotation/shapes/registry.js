// The kinds of shapes this page has. The server says which there are and where the module of each is;
// a module's default export is its class.
import { OutlineKind } from "./outline.js";

const kinds = new Map();
/** For shapes of a kind the server learned after this page was opened: seen, not drawn anew. */
const unknown = new OutlineKind({ name: "", label: "", tool: "", key: "", hint: "", filled: true });

/** @param {{name: string, module: string}[]} list  kinds as the page was given them, in the order of their buttons */
export async function loadKinds(list) {
  const modules = await Promise.all(list.map(({ module }) => import(module)));
  for (const [place, facts] of list.entries()) kinds.set(facts.name, new modules[place].default(facts));
}

export const allKinds = () => [...kinds.values()];

export const kindNamed = (name) => kinds.get(name) ?? unknown;

/** The kind of a shape. */
export const kindOf = (shape) => kindNamed(shape.kind);

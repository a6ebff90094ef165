// Below /static/ the apps lie side by side; on disk each has a folder of its own. So "../base/i18n.js" in a script of
// annotation/static/annotation/ means aiplatform/static/base/i18n.js.
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = readdirSync(ROOT)
  .map((app) => `${ROOT}${app}/static/`)
  .filter((folder) => existsSync(folder));

/** Find a relative import where the browser finds it, and read it as a module. */
export function resolve(specifier, context, next) {
  if (!specifier.startsWith(".") || !context.parentURL) return next(specifier, context);
  const wanted = fileURLToPath(new URL(specifier, context.parentURL));
  const [, below] = /\/static\/(.+)$/.exec(wanted) ?? [];
  if (!below) return next(specifier, context);
  const folder = FOLDERS.find((one) => existsSync(one + below));
  if (!folder) throw new Error(`No app has ${below}, which ${context.parentURL} imports.`);
  return { url: pathToFileURL(folder + below).href, format: "module", shortCircuit: true };
}

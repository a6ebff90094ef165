// What this reader opened by the palette last, in the browser's storage. Kept by reader: browsers are shared.
const MAX_RECENT = 8;

/** @typedef {{name: string, kind: string, icon: string, url: string}} Recent */

const name = () => `aip.recent.${document.documentElement.dataset.reader ?? ""}`;

/** @returns {Recent[]} the newest first */
export function recent() {
  try {
    const stored = JSON.parse(localStorage.getItem(name()) ?? "[]");
    return Array.isArray(stored) ? stored.filter((one) => typeof one?.url === "string" && one.url.startsWith("/")) : [];
  } catch {
    return [];
  }
}

/** @param {Recent} opened */
export function remember({ name: label, kind, icon, url }) {
  const rows = [{ name: label, kind, icon, url }, ...recent().filter((one) => one.url !== url)].slice(0, MAX_RECENT);
  try {
    localStorage.setItem(name(), JSON.stringify(rows));
  } catch {
    // storage is switched off: nothing is remembered
  }
}

/**
 * Results with those opened last in front, in that order; the others keep theirs.
 * @template {{url: string}} Row
 * @param {Row[]} results
 * @param {Recent[]} [opened]
 */
export function recentFirst(results, opened = recent()) {
  const rank = new Map(opened.map((one, place) => [one.url, place]));
  const place = (row) => rank.get(row.url) ?? MAX_RECENT;
  return [...results].sort((one, other) => place(one) - place(other));
}

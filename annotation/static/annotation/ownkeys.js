// A person's own keys over the map, as plain data: {action id: [key, …]} names only what differs from the map.
// Nothing here touches the page; every function returns a new choice and leaves the one given alone.

/** Keys the page or the browser needs for itself. */
const KEPT = ["Escape", "Tab", "Shift+Tab", " ", "Shift+ ", "F5", "F11", "F12", "Ctrl+N", "Ctrl+T", "Ctrl+W", "Ctrl+R"];
const MODIFIERS = ["Control", "Shift", "Alt", "Meta", "AltGraph", "CapsLock", "Dead", "Process", "Unidentified"];

export const isModifier = (key) => MODIFIERS.includes(key);
export const isKept = (key) => KEPT.includes(key) || KEPT.includes(key.replace("Shift+", ""));

/** {keys, also} of an entry under a choice; a key somebody gave to another action is no longer the entry's. */
export function effective(entry, own, map) {
  const known = map.filter(({ id }) => id !== entry.id && own[id]);
  const taken = new Set(known.flatMap(({ id }) => own[id]));
  return {
    keys: (own[entry.id] ?? entry.keys).filter((key) => own[entry.id] || !taken.has(key)),
    also: own[entry.id] ? [] : (entry.also ?? []).filter((key) => !taken.has(key)),
  };
}

/** Entries other than `id` that use one of `keys` now. */
export function clashes(id, keys, own, map) {
  return map.filter((entry) => {
    return entry.id !== id && effective(entry, own, map).keys.some((key) => keys.includes(key));
  });
}

/** The choice with `keys` for one entry; what equals the map again is not kept. */
function chosen(own, entry, keys) {
  const { [entry.id]: _, ...rest } = own;
  const same = keys.length === entry.keys.length && keys.every((key, place) => key === entry.keys[place]);
  return same ? rest : { ...rest, [entry.id]: [...new Set(keys)] };
}

/** Give `key` to an entry at `place` among its keys (one past the end: one more). */
export function give(own, map, entry, place, key) {
  if (entry.digits) return chosen(own, entry, nine(key));
  const keys = [...effective(entry, own, map).keys];
  keys[place] = key;
  return chosen(own, entry, keys);
}

/** The same, and the entry that had `key` gets the key given up, or one fewer where there is none. */
export function swap(own, map, entry, place, key, other) {
  const given = effective(entry, own, map).keys[place];
  const theirs = effective(other, own, map).keys.flatMap((one) => (one === key ? (given ? [given] : []) : [one]));
  return chosen(give(own, map, entry, place, key), other, theirs);
}

/** The map's own keys for one entry, and for those that hold them. Returns {own, ids}. */
export function reset(own, map, id) {
  const ids = [];
  const open = [id];
  let left = { ...own };
  while (open.length) {
    const next = open.pop();
    const entry = map.find((one) => one.id === next);
    const { [entry.id]: _, ...rest } = left;
    left = rest;
    ids.push(entry.id);
    for (const [holder, keys] of Object.entries(left)) {
      if (!open.includes(holder) && map.some((one) => one.id === holder) && keys.some((key) => entry.keys.includes(key))) open.push(holder);
    }
  }
  return { own: left, ids };
}

/** "Alt+3" → ["Alt+1", …, "Alt+9"]. */
export function nine(key) {
  return Array.from({ length: 9 }, (_, place) => key.replace(/[1-9]$/, String(place + 1)));
}

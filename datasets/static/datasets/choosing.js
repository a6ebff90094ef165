// Files people choose or drop, folders included, with their paths.

/** Files of an <input>, a whole folder's with the paths below it. */
export function chosenFiles(list) {
  return [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/**
 * Everything in what was dropped, folders walked through. Call it while the event is handled: later it is empty.
 * @param {DataTransfer} dropped
 */
export function droppedFiles(dropped) {
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return Promise.resolve(chosenFiles(dropped.files));
  return Promise.all(entries.map((entry) => walk(entry, ""))).then((lists) => lists.flat());
}

async function walk(entry, above) {
  const path = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ path, file }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // a hundred at a time
    if (!batch.length) break;
    for (const inner of batch) found.push(...(await walk(inner, `${path}/`)));
  }
  return found;
}

/** What to call several files: their folder, or the first of them. */
export function nameOf(found) {
  const tops = new Set(found.map(({ path }) => path.split("/")[0]));
  const [top] = tops;
  return tops.size === 1 ? top : `${top} +${found.length - 1}`;
}

/**
 * A name for a dataset of these files: what their names have in common, else the first one's. Empty where that has no letter.
 * @param {{path: string}[]} found
 * @param {number} room
 */
export function titleOf(found, room = 50) {
  const tops = [...new Set(found.map(({ path }) => path.split("/")[0].replace(/(\.tar)?\.[a-z0-9]{1,4}$/i, "")))];
  let common = tops[0] || "";
  for (const top of tops) while (!top.startsWith(common)) common = common.slice(0, -1);
  if (tops.length > 1) common = common.replace(/[^\p{L}]+$/u, "");
  const words = (common || tops[0] || "").replace(/[^\p{L}\p{N}_.+()-]+/gu, " ").slice(0, room);
  return words.replace(/^[^\p{L}\p{N}_(]+|[^\p{L}\p{N}_)+]+$/gu, "");
}

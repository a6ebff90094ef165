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

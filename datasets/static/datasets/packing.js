// Several files as one tar, without reading them: a File that is made of headers and of the files themselves.
//
// The bytes are read piece by piece while they are sent, so a folder larger than the memory can be packed. The same
// files give the same tar, so that an upload that broke off goes on.

const BLOCK = 512;
const encoder = new TextEncoder();

/**
 * @param {{path: string, file: File}[]} found  paths as they are to stand in the tar
 * @param {string} name  of the tar
 */
export function packed(found, name) {
  const parts = [];
  let newest = 0;
  for (const { path, file } of withoutTwins(found)) {
    newest = Math.max(newest, file.lastModified);
    parts.push(...headers(path, file), file);
    if (file.size % BLOCK) parts.push(new Uint8Array(BLOCK - (file.size % BLOCK)));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new File(parts, name, { lastModified: newest, type: "application/x-tar" });
}

/** Sorted by path; of two that are one name on many computers the second gets a number. */
function withoutTwins(found) {
  const taken = new Set();
  const sorted = [...found].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.file.size - b.file.size));
  return sorted.map(({ path, file }) => {
    const dot = path.lastIndexOf(".");
    const [stem, ending] = dot > path.lastIndexOf("/") + 1 ? [path.slice(0, dot), path.slice(dot)] : [path, ""];
    let free = path;
    for (let number = 2; taken.has(key(free)); number += 1) free = `${stem} (${number})${ending}`;
    taken.add(key(free));
    return { path: free, file };
  });
}

const key = (path) => path.normalize("NFC").toLowerCase();

/** The header of a file; before it, where a name or a size does not fit into one, a header that says them in full. */
function headers(path, file) {
  const name = encoder.encode(path);
  const plain = name.length <= 100 && name.length === path.length && file.size < 8 ** 11;
  if (plain) return [header(name, file.size, file.lastModified, "0")];
  const records = [...record(`path=${path}\n`), ...record(`size=${file.size}\n`)];
  const said = new Uint8Array(Math.ceil(records.length / BLOCK) * BLOCK);
  said.set(records);
  return [
    header(encoder.encode("pax"), records.length, file.lastModified, "x"),
    said,
    header(encoder.encode("long"), Math.min(file.size, 8 ** 11 - 1), file.lastModified, "0"),
  ];
}

/** One line of a pax header: its own length in bytes, a space, the text. */
function record(text) {
  const bytes = encoder.encode(text);
  let length = bytes.length + 3;
  while (String(length).length + 1 + bytes.length !== length) length = String(length).length + 1 + bytes.length;
  return encoder.encode(`${length} ${text}`);
}

function header(name, size, modified, kind) {
  const block = new Uint8Array(BLOCK);
  const put = (at, text) => block.set(encoder.encode(text), at);
  const octal = (value, width) => `${Math.floor(value).toString(8).padStart(width - 1, "0")}\0`;
  block.set(name.slice(0, 100), 0);
  put(100, octal(0o644, 8));
  put(108, octal(0, 8));
  put(116, octal(0, 8));
  put(124, octal(size, 12));
  put(136, octal(Math.max(0, modified / 1000), 12));
  put(148, "        ");
  put(156, kind);
  put(257, "ustar\0");
  put(263, "00");
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}

// A table as text, from a spreadsheet or a file: cells between tabs, else commas or semicolons, with quotes.

/** Names that a header may give the columns, in lower case, besides the heads of the table on the page. */
const HEADERS = {
  user: "username", login: "username", name: "nickname", nickname: "nickname", "full name": "nickname",
  roles: "role", clusters: "cluster", groups: "group", mail: "email", "e-mail": "email", tel: "phone",
  username: "username", role: "role", cluster: "cluster", group: "group", email: "email", phone: "phone", password: "password",
};

/** What a header may call each column: names of the API, common ones, and the heads of the page in its language. */
export function names(form) {
  const known = { ...HEADERS };
  for (const head of form.querySelectorAll("thead th[id]")) known[head.textContent.trim().toLowerCase()] = head.id.slice(2);
  return known;
}

/** The character between cells: of the first line, where it stands most often. @param {string} text */
function separatorOf(text) {
  const line = text.split(/\r?\n/, 1)[0];
  const counted = ["\t", ",", ";"].map((sign) => [line.split(sign).length, sign]);
  return counted.reduce((best, next) => (next[0] > best[0] ? next : best))[1];
}

/** @param {string} text @returns {string[][]} lines of cells, without empty lines */
function cells(text) {
  const separator = separatorOf(text);
  const lines = [[""]];
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    const line = lines[lines.length - 1];
    if (quoted && sign === '"' && text[at + 1] === '"') {
      line[line.length - 1] += sign;
      at += 1;
    } else if (sign === '"' && (quoted || !line[line.length - 1])) {
      quoted = !quoted;
    } else if (!quoted && sign === separator) {
      line.push("");
    } else if (!quoted && sign === "\n") {
      lines.push([""]);
    } else {
      line[line.length - 1] += sign;
    }
  }
  return lines.map((line) => line.map((cell) => cell.trim())).filter((line) => line.some(Boolean));
}

/**
 * Read a table. `columns` are the fields that a header names (unknown names as they are), null without a header.
 * @param {string} text
 * @param {Record<string, string>} known
 * @returns {{columns: string[] | null, rows: string[][]}}
 */
export function parseTable(text, known) {
  const rows = cells(text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n"));
  const header = rows[0]?.map((cell) => cell.toLowerCase()) ?? [];
  const named = header.filter((cell) => cell in known).map((cell) => known[cell]);
  const isHeader = named.includes("username") && new Set(named).size === named.length;
  return isHeader ? { columns: header.map((cell) => known[cell] ?? cell), rows: rows.slice(1) } : { columns: null, rows };
}

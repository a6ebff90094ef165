// Tables pasted from a spreadsheet or read from a file.
import assert from "node:assert/strict";
import test from "node:test";
import { parseTable } from "../../accounts/static/accounts/pasted_table.js";

const KNOWN = { username: "username", name: "nickname", role: "role", "用户名": "username" };

test("reads cells between tabs without a header", () => {
  assert.deepEqual(parseTable("rosa\tRosa Luz\r\ntom\tTom\r\n\r\n", KNOWN), { columns: null, rows: [["rosa", "Rosa Luz"], ["tom", "Tom"]] });
});

test("reads columns in the order of a header, unknown ones as they are", () => {
  const table = parseTable('\ufeffRole,Username,shoe size\nUser,"li, wei",40', KNOWN);
  assert.deepEqual(table, { columns: ["role", "username", "shoe size"], rows: [["User", "li, wei", "40"]] });
});

test("takes a header in the language of the page and semicolons", () => {
  assert.deepEqual(parseTable("用户名;name\nli;李", KNOWN), { columns: ["username", "nickname"], rows: [["li", "李"]] });
});

test("keeps quotes and line breaks inside quotes", () => {
  assert.deepEqual(parseTable('rosa\t"says ""hi""\nagain"', KNOWN).rows, [["rosa", 'says "hi"\nagain']]);
});

test("does not take users of these names for a header", () => {
  assert.equal(parseTable("username\tUsername\nrosa\tRosa", KNOWN).columns, null);
  assert.deepEqual(parseTable("username", KNOWN).rows, []);
});

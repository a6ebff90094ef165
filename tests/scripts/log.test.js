import assert from "node:assert/strict";
import { test } from "node:test";
import { plain, segments, visible } from "../../workers/static/workers/ansi.js";
import { Hits, firstError } from "../../workers/static/workers/hits.js";
import { LONGEST, Lines, MOST, cardOf, collapse, columns, isCut } from "../../workers/static/workers/lines.js";
import { readLine, said } from "../../workers/static/workers/phases.js";
import { ROW, Rows } from "../../workers/static/workers/rows.js";
import { Shown } from "../../workers/static/workers/shown.js";

const lines = (text) => {
  const made = new Lines();
  made.append(text);
  return made;
};
const all = (made) => Array.from({ length: made.count }, (_, i) => made.at(i));

test("lines join pieces that were cut anywhere", () => {
  const made = lines("one\ntw");
  assert.deepEqual(all(made), ["one", "tw"]);
  made.append("o\n");
  assert.deepEqual(all(made), ["one", "two"]);
  assert.equal(made.prepend("a\nb\n"), 2);
  assert.deepEqual(all(made), ["a", "b", "one", "two"]);
});

test("a progress bar stands as its last state", () => {
  assert.equal(collapse("10 %\r50 %\r90 %"), "90 %");
  assert.equal(collapse("90 %\r"), "90 %");
  assert.deepEqual(all(lines("10 %\r99 %\r\nnext\r\n")), ["99 %", "next"]);
});

test("a huge line is cut and says so, too many lines lose the oldest", () => {
  const [line] = all(lines(`${"x".repeat(LONGEST + 5)}\n`));
  assert.ok(isCut(line) && line.length === LONGEST + 1);
  const made = lines("");
  const dropped = made.append("x\n".repeat(MOST + 1));
  assert.equal(dropped, MOST / 10 + 1);
  assert.deepEqual([made.count, made.dropped], [MOST + 1 - dropped, dropped]);
});

test("columns count wide signs twice and tabs to the next eight", () => {
  assert.equal(columns("abc"), 3);
  assert.equal(columns("学习"), 4);
  assert.equal(columns("ab\tc"), 9);
});

test("segments honour colours and end them", () => {
  assert.deepEqual(segments("a\x1b[1;31mb\x1b[0mc"), [
    { text: "a", classes: [], colour: "" },
    { text: "b", classes: ["ansi-b", "ansi-1"], colour: "" },
    { text: "c", classes: [], colour: "" },
  ]);
  assert.deepEqual(segments("\x1b[31mr\x1b[39md").map(({ classes }) => classes), [["ansi-1"], []]);
});

test("segments lift dark colours until they can be read", () => {
  assert.equal(segments("\x1b[38;2;255;255;255mx")[0].colour, "rgb(255 255 255)");
  assert.equal(segments("\x1b[38;2;0;0;0mx")[0].colour, "rgb(115 115 115)");
  assert.equal(segments("\x1b[38;5;231mx")[0].colour, "rgb(255 255 255)");
  assert.deepEqual(segments("\x1b[48;5;9;1mx")[0].classes, ["ansi-b"]); // a ground is skipped with its number
});

test("other control characters become signs", () => {
  assert.equal(visible("\x1b]0;title\x07"), "␛]0;title␇");
  assert.equal(visible("\u202eevil"), "\ufffdevil");
  assert.equal(plain("\x1b[31mred\x1b[0m"), "red");
});

test("rows lie one below the other, wrapped lines over several", () => {
  const rows = new Rows(lines(`short\n${"x".repeat(25)}\nlast\n`), () => 10);
  assert.deepEqual([rows.topOf(2), rows.lineAt(1e6)], [2 * ROW, 2]);
  rows.wrap = true;
  assert.deepEqual([0, 1, 2, 3].map((line) => rows.topOf(line) / ROW), [0, 1, 4, 5]);
  assert.deepEqual([0, 1, 3, 4, 99].map((row) => rows.lineAt(row * ROW)), [0, 1, 1, 2, 2]);
});

test("rows count again after lines came", () => {
  const made = lines("a\n");
  const rows = new Rows(made, () => 10);
  rows.wrap = true;
  assert.equal(rows.topOf(9), ROW);
  made.append("b\n");
  rows.changed();
  assert.equal(rows.topOf(9), 2 * ROW);
});

test("hits begin at the line in view and go round", () => {
  const hits = new Hits(lines("Loss 1\nother\nloss 2\n\x1b[31mLOSS 3\x1b[0m\n"));
  hits.search("LOSS", 1);
  assert.deepEqual([hits.found, hits.line], [[0, 2, 3], 2]);
  hits.step(1);
  hits.step(1);
  assert.equal(hits.line, 0);
  hits.step(-1);
  assert.equal(hits.line, 3);
  hits.search("nothing", 0);
  assert.equal(hits.line, undefined);
});

test("hits after the last line in view go back to the first", () => {
  const hits = new Hits(lines("loss\nother\n"));
  hits.search("loss", 1);
  assert.equal(hits.line, 0);
});

test("firstError finds words that look like one, within colours too", () => {
  assert.equal(firstError(lines("fine\nterrors\n\x1b[31mTraceback (most recent call last)\x1b[0m\n")), 2);
  assert.equal(firstError(lines("fine\n")), -1);
});

test("lines of the platform's own are told in words, others stand as they are", () => {
  const line = readLine('[command] not_started program=/bin/x why="No such \\"file\\""');
  assert.deepEqual(line?.facts, { program: "/bin/x", why: 'No such "file"' });
  assert.equal(line && said(line), '/bin/x could not be started: No such "file"');
  for (const other of ["[epoch 3] own", "[network] unheard of", "[image] constructor", "network own", "[network] own port=1", "[image] layer number=2", "[program] exited"]) assert.equal(readLine(other), null);
});

test("a view shows the phases that are wanted, each line with its place in the log", () => {
  const shown = new Shown(lines("[network] own\nstep 1\n[program] exited code=0 seconds=2.0\n"));
  assert.equal(shown.count, 3);
  assert.deepEqual([shown.tagAt(0), shown.tagAt(1)], ["network", ""]);
  shown.phases.add("program");
  shown.changed();
  assert.deepEqual(Array.from({ length: shown.count }, (_, i) => shown.placeOf(i)), [1, 2]);
  assert.match(shown.at(1), /^\[Program\] Exited with code 0/);
});

test("a view orders lines by the card that they say they come from", () => {
  assert.deepEqual(["[rank2]: a", "[default1]:b", "[1,3]<stdout>:c", "d"].map(cardOf), [2, 1, 3, -1]);
  const shown = new Shown(lines("[rank1]: b\n[rank0]: a\nplain\n[rank0]: c\n"));
  assert.deepEqual(shown.processes, [0, 1]);
  shown.byCard = true;
  shown.changed();
  assert.deepEqual(all(shown), ["plain", "[rank0]: a", "[rank0]: c", "[rank1]: b"]);
});

test("a view shows the lines of one process", () => {
  const shown = new Shown(lines("[network] own\n[rank10]: b\n[rank2]: a\nplain\n[rank10]: c\n"));
  assert.deepEqual(shown.processes, [2, 10]);
  shown.process = 10;
  shown.changed();
  assert.deepEqual(all(shown), ["[rank10]: b", "[rank10]: c"]);
  assert.equal(shown.before(3), 1);
  shown.process = -1;
  shown.changed();
  assert.equal(shown.count, 5);
});

test("a view offers processes wherever in the log their lines are, and none where all come from one", () => {
  const made = lines(`[rank0]: a\n${"plain\n".repeat(3000)}`);
  const shown = new Shown(made);
  assert.deepEqual(shown.processes, []);
  made.append("[rank3]: late\n");
  assert.deepEqual(shown.processes, [0, 3]);
  made.prepend("[rank1]: early\n");
  assert.deepEqual(shown.processes, [0, 1, 3]);
  made.clear();
  assert.deepEqual(shown.processes, []);
});

test("shown lines know how many of them stand before a place in the log", () => {
  const shown = new Shown(lines("[network] own\nstep 1\n[network] host\nstep 2\n"));
  assert.equal(shown.before(3), 3);
  shown.phases.add("network");
  shown.changed();
  assert.deepEqual([shown.before(1), shown.before(2), shown.before(3)], [1, 1, 2]);
});

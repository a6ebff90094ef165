// Shapes of histograms over steps and of graphs by name, as numbers to draw. Pure: no DOM.

/** @typedef {{low: number, high: number, counts: number[], bands: number[]}} Histogram */
/** @typedef {{step: number, facts: Histogram}} Moment */

/**
 * Outlines of histograms one behind the other, the newest in front: each a list of [x, y] from left to right.
 * @param {Moment[]} moments  by step
 * @param {{width: number, height: number, top: number}} size  `top`: how far the last one lies above the first
 */
export function ridges(moments, { width, height, top }) {
  const low = Math.min(...moments.map(({ facts }) => facts.low));
  const high = Math.max(...moments.map(({ facts }) => facts.high));
  const wide = high - low || 1;
  const densest = Math.max(...moments.map(({ facts }) => Math.max(...facts.counts.map((count) => count / bucketOf(facts, wide)))));
  const x = (value) => ((value - low) / wide) * width;
  const room = height - top;
  const outlines = moments.map(({ step, facts }, place) => {
    const base = height - (moments.length > 1 ? (top * (moments.length - 1 - place)) / (moments.length - 1) : 0);
    const bucket = bucketOf(facts, wide);
    const points = facts.counts.map((count, i) => [x(facts.low + bucket * (i + 0.5)), base - (count / bucket / densest) * room]);
    return { step, base, points: [[x(facts.low), base], ...points, [x(facts.high === facts.low ? facts.low + bucket : facts.high), base]] };
  });
  return { low, high, outlines };
}

/** Width of a bucket; all values of one are drawn as a narrow one. @param {Histogram} facts @param {number} wide */
const bucketOf = (facts, wide) => (facts.high - facts.low || wide / 50) / facts.counts.length;

/**
 * Bands of a distribution over steps: pairs of lines from the outside in, and the middle.
 * @param {Moment[]} moments  by step
 * @param {{width: number, height: number}} size
 */
export function bands(moments, { width, height }) {
  const low = Math.min(...moments.map(({ facts }) => facts.bands[0]));
  const high = Math.max(...moments.map(({ facts }) => facts.bands[facts.bands.length - 1]));
  const first = moments[0].step;
  const last = moments[moments.length - 1].step;
  const x = (step) => (last === first ? width / 2 : ((step - first) / (last - first)) * width);
  const y = (value) => height - ((value - low) / (high - low || 1)) * height;
  const line = (number) => moments.map(({ step, facts }) => [x(step), y(facts.bands[number])]);
  const count = moments[0].facts.bands.length;
  const areas = [];
  for (let i = 0; i < Math.floor(count / 2); i += 1) areas.push([...line(i), ...line(count - 1 - i).reverse()]);
  return { low, high, first, last, areas, middle: line(Math.floor(count / 2)) };
}

/** @typedef {[string, string, number[]]} Node  name, what it does, numbers of its inputs */
/** @typedef {{name: string, label: string, op: string, count: number, inputs: Set<string>, members: string[]}} Box */

/**
 * What lies directly within a scope: a box for each node and each scope below, with what it gets from its neighbours.
 * @param {Node[]} nodes
 * @param {string} scope  "" for the whole; names are parted by slashes
 */
export function within(nodes, scope) {
  const begin = scope ? `${scope}/` : "";
  /** @type {Map<string, Box>} */
  const boxes = new Map();
  /** @type {(string | null)[]} */
  const boxOf = nodes.map(([name]) => {
    if (!name.startsWith(begin)) return null;
    const label = name.slice(begin.length).split("/")[0];
    return label ? begin + label : null;
  });
  nodes.forEach(([name, op, inputs], place) => {
    const own = boxOf[place];
    if (own === null) return;
    const box = boxes.get(own) ?? { name: own, label: own.slice(begin.length), op: "", count: 0, inputs: new Set(), members: [] };
    boxes.set(own, box);
    box.count += 1;
    if (name === own) box.op = op;
    if (box.members.length < 200) box.members.push(name);
    for (const input of inputs) {
      const other = boxOf[input];
      if (other !== null && other !== undefined && other !== own) box.inputs.add(other);
    }
  });
  return [...boxes.values()];
}

/** Whether a box has more in it. @param {Box} box */
export const opens = (box) => box.count > 1 || box.members[0] !== box.name;

/**
 * Rows of boxes from the inputs down: each below all that it gets something from, as far as there is no circle.
 * @param {Box[]} boxes
 */
export function rows(boxes) {
  const byName = new Map(boxes.map((box) => [box.name, box]));
  /** @type {Map<string, number>} */
  const depth = new Map();
  const waiting = new Map(boxes.map((box) => [box.name, [...box.inputs].filter((name) => byName.has(name)).length]));
  /** @type {Map<string, string[]>} */
  const outputs = new Map();
  for (const box of boxes) for (const input of box.inputs) outputs.set(input, [...(outputs.get(input) ?? []), box.name]);
  const ready = boxes.filter((box) => waiting.get(box.name) === 0).map((box) => box.name);
  for (const name of ready) depth.set(name, 0);
  const left = boxes.map((box) => box.name);
  while (depth.size < boxes.length || ready.length) {
    if (!ready.length) {
      const next = left.find((name) => !depth.has(name)); // a circle: begin it somewhere
      if (next === undefined) break;
      depth.set(next, Math.max(0, ...[...(byName.get(next)?.inputs ?? [])].map((input) => (depth.get(input) ?? -1) + 1)));
      ready.push(next);
    }
    const name = /** @type {string} */ (ready.shift());
    for (const output of outputs.get(name) ?? []) {
      const missing = (waiting.get(output) ?? 0) - 1;
      waiting.set(output, missing);
      if (missing > 0 || depth.has(output)) continue;
      depth.set(output, Math.max(...[...(byName.get(output)?.inputs ?? [])].map((input) => (depth.get(input) ?? -1) + 1)));
      ready.push(output);
    }
  }
  /** @type {Box[][]} */
  const found = [];
  for (const box of boxes) {
    const at = depth.get(box.name) ?? 0;
    while (found.length <= at) found.push([]);
    found[at].push(box);
  }
  return found.filter((row) => row.length);
}

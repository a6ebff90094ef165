// Layered layout: the longest path decides how far right a step stands, four sweeps pull neighbours to one height.

const GAP_X = 72;
const GAP_Y = 28;
const SWEEPS = 4;

/**
 * A place for every step.
 * @param {import("./graph.js").Graph} graph
 * @param {{width: number, height: (id: string) => number}} size
 * @returns {Map<string, import("./graph.js").Place>}
 */
export function layered(graph, size) {
  const { layers, before, after } = layersOf(graph);
  const rank = new Map(); // id → its place in its layer, -0.5 at the top to 0.5 at the bottom
  const number = (ids) => {
    for (const [n, id] of ids.entries()) rank.set(id, (n + 0.5) / ids.length - 0.5);
  };
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const ids of down ? layers : [...layers].reverse()) {
      const pull = new Map(ids.map((id) => [id, middle((down ? before : after).get(id) ?? [], rank, rank.get(id))]));
      ids.sort((a, b) => pull.get(a) - pull.get(b) || (a < b ? -1 : 1));
      number(ids);
    }
  }
  /** @type {Map<string, import("./graph.js").Place>} */
  const places = new Map();
  layers.forEach((ids, depth) => {
    let y = -ids.reduce((sum, id) => sum + size.height(id) + GAP_Y, -GAP_Y) / 2;
    for (const id of ids) {
      places.set(id, [depth * (size.width + GAP_X), Math.round(y)]);
      y += size.height(id) + GAP_Y;
    }
  });
  return places;
}

const middle = (ids, rank, otherwise) => (ids.length ? ids.reduce((sum, id) => sum + rank.get(id), 0) / ids.length : otherwise);

/** Steps by the length of the longest way to them, and their neighbours; each link is read once. */
function layersOf(graph) {
  /** @type {Map<string, string[]>} */
  const before = new Map();
  /** @type {Map<string, string[]>} */
  const after = new Map();
  /** @type {Map<string, number>} */
  const depths = new Map();
  /** @type {string[][]} */
  const layers = [];
  for (const id of graph.order()) {
    const near = graph.linksTo(id).map(({ from }) => from).filter((from) => depths.has(from));
    before.set(id, near);
    for (const from of near) after.set(from, [...(after.get(from) ?? []), id]);
    const depth = near.reduce((deepest, from) => Math.max(deepest, (depths.get(from) ?? 0) + 1), 0);
    depths.set(id, depth);
    while (layers.length <= depth) layers.push([]);
    layers[depth].push(id);
  }
  return { layers, before, after };
}

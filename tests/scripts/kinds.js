// The kinds of shapes as a page is told of them, for tests.
import { loadKinds } from "../../annotation/static/annotation/shapes/registry.js";

const KINDS = [
  { name: "bbox", label: "Box", tool: "box", key: "R", hint: "Box: drag, or click two corners", filled: true, module: "./box.js" },
  { name: "polygon", label: "Polygon", tool: "polygon", key: "P", hint: "Polygon: click the corners", filled: true, module: "./polygon.js" },
];

export const loadDrawn = () => loadKinds(KINDS);

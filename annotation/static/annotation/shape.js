// Shapes as the scene holds them: plain records that are replaced, never changed.
import { newId } from "./journal.js";

/** A shape a person makes now. */
export const newShape = (kind, rings, label) => ({ id: newId(), kind, rings, label, source: "manual" });

/** A shape as the server sends it, without what only the server needs. */
export const shapeFrom = ({ id, kind, label, rings, source, number }) => ({ id, kind, label, rings, source, number });

// Make or change a shape by typing its coordinates: the way without a pointer.
import { t } from "../base/i18n.js";
import { boxRing, flawOf, round2 } from "./geometry.js";

const element = (tag, props = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), props);
  made.append(...children);
  return made;
};

/**
 * Ask for numbers. Resolves to {kind, rings, label} or null.
 * @param shape  the shape to change, or null for a new one
 */
export function askNumbers({ desk, shape }) {
  const { image, labels } = desk;
  const box = shape?.kind === "bbox" ? shape.rings[0] : null;
  const fields = Object.fromEntries(
    [
      ["x", t("Left"), box ? box[0] : 0],
      ["y", t("Top"), box ? box[1] : 0],
      ["width", t("Width"), box ? round2(box[2] - box[0]) : ""],
      ["height", t("Height"), box ? round2(box[5] - box[1]) : ""],
    ].map(([name, text, value]) => {
      const input = element("input", { className: "input", type: "number", name, value, step: "any", min: 0, required: true });
      return [name, { input, row: element("label", { className: "form-row" }, element("span", { textContent: text }), input) }];
    }),
  );
  const points = element("textarea", { className: "input mono", rows: 8, name: "points", spellcheck: false });
  points.value = shape && !box ? shape.rings.map(asLines).join("\n\n") : "";
  points.placeholder = "10, 10\n120, 10\n120, 80";
  const kind = element("select", { className: "input", name: "kind", disabled: Boolean(shape) });
  kind.append(new Option(t("Box"), "bbox"), new Option(t("Polygon"), "polygon"));
  kind.value = shape?.kind ?? desk.labelOf(desk.label)?.shape ?? "bbox";
  const label = element("select", { className: "input", name: "label" });
  for (const entry of labels) label.append(new Option(`${entry.supercategory} / ${entry.name}`, entry.id));
  label.value = shape?.label ?? desk.label;
  const problem = element("p", { className: "form-error", hidden: true });
  problem.setAttribute("role", "alert");
  const boxPart = element("div", { className: "grid cols-2" }, ...Object.values(fields).map(({ row }) => row));
  const polygonPart = element("label", { className: "form-row" }, element("span", { textContent: t("Corners, one per line: x, y") }), points);
  const parts = () => {
    boxPart.hidden = kind.value !== "bbox";
    polygonPart.hidden = kind.value !== "polygon";
    for (const { input } of Object.values(fields)) input.disabled = boxPart.hidden;
  };
  kind.addEventListener("change", parts);
  label.addEventListener("change", () => {
    if (shape) return;
    kind.value = desk.labelOf(Number(label.value)).shape;
    parts();
  });
  parts();
  const title = shape ? t("Change by numbers") : t("Draw by numbers");
  const cancel = element("button", { type: "button", className: "btn", textContent: t("Cancel") });
  const save = element("button", { className: "btn btn-primary", textContent: shape ? t("Change") : t("Add") });
  const note = t("In pixels from the top left corner. The image is %(width)s × %(height)s.", image);
  const form = element(
    "form",
    { noValidate: true },
    element("div", { className: "dialog-head" }, element("h2", { id: "numbers-title", textContent: title })),
    element(
      "div",
      { className: "dialog-body" },
      element("p", { className: "muted", textContent: note }),
      element("label", { className: "form-row" }, element("span", { textContent: t("Class") }), label),
      element("label", { className: "form-row" }, element("span", { textContent: t("Shape") }), kind),
      boxPart,
      polygonPart,
      problem,
    ),
    element("div", { className: "dialog-foot" }, cancel, save),
  );
  const dialog = element("dialog", { className: "dialog" }, form);
  dialog.setAttribute("aria-labelledby", "numbers-title");
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    let answer = null;
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const rings = kind.value === "bbox" ? boxFrom(fields) : ringsFrom(points.value);
      const said = judge(rings, image);
      problem.hidden = !said;
      problem.textContent = said ?? "";
      if (said) return;
      answer = { kind: kind.value, rings, label: Number(label.value) };
      dialog.close();
    });
  });
}

const asLines = (ring) => {
  const lines = [];
  for (let i = 0; i < ring.length; i += 2) lines.push(`${ring[i]}, ${ring[i + 1]}`);
  return lines.join("\n");
};

function boxFrom(fields) {
  const number = (name) => (fields[name].input.value.trim() === "" ? NaN : Number(fields[name].input.value));
  const [x, y] = [number("x"), number("y")];
  return [boxRing(x, y, x + number("width"), y + number("height")).map(round2)];
}

/** Lines of "x, y"; an empty line starts another part. */
function ringsFrom(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((part) => part.trim().split(/[\s,;]+/).map(Number).map(round2));
}

function judge(rings, image) {
  const numbers = rings.flat();
  if (numbers.some((value) => !Number.isFinite(value)) || rings.some((ring) => ring.length % 2)) {
    return t("Every field needs a number.");
  }
  for (const ring of rings) {
    for (let i = 0; i < ring.length; i += 2) {
      if (ring[i] < 0 || ring[i + 1] < 0 || ring[i] > image.width || ring[i + 1] > image.height) {
        return t("All points lie within the image: 0 to %(width)s and 0 to %(height)s.", image);
      }
    }
  }
  return flawText(flawOf(rings));
}

/** A sentence for what flawOf found, or null. */
export function flawText(flaw) {
  return {
    few: t("A polygon needs at least 3 corners."),
    many: t("A polygon has at most 10,000 corners."),
    area: t("The shape covers no area."),
    crossing: t("Lines of the polygon cross."),
  }[flaw] ?? null;
}

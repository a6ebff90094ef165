// Make or change a shape by typing its coordinates: the way without a pointer.
import { t } from "../base/i18n.js";
import { fullName } from "./labels.js";
import { element } from "./shapes/fields.js";
import { allKinds, kindNamed } from "./shapes/registry.js";

/**
 * Ask for numbers. Resolves to {kind, rings, label} or null.
 * @param shape  the shape to change, or null for a new one
 */
export function askNumbers({ desk, shape }) {
  const { image, labels } = desk;
  const fields = new Map(allKinds().map((kind) => [kind.name, kind.fields(shape?.kind === kind.name ? shape.rings : null)]));
  const kind = element("select", { className: "input", name: "kind", disabled: Boolean(shape) });
  for (const entry of allKinds()) kind.append(new Option(entry.label, entry.name));
  const drawn = allKinds().find(({ tool }) => tool === (desk.lastDrawing ?? "")) ?? allKinds()[0];
  kind.value = shape?.kind ?? drawn.name;
  const label = element("select", { className: "input", name: "label" });
  const open = labels.filter(({ id }) => !shape || id === shape.label || desk.allows(id, shape.kind));
  for (const entry of open) label.append(new Option(fullName(entry), entry.id));
  label.value = shape?.label ?? desk.label;
  const problem = element("p", { className: "form-error", hidden: true });
  problem.setAttribute("role", "alert");
  /** A class that is drawn as one kind leaves no choice. */
  const bound = () => {
    const drawn = desk.labelOf(Number(label.value))?.shape;
    const only = !shape && fields.has(drawn);
    if (only) kind.value = drawn;
    kind.disabled = Boolean(shape) || only;
  };
  const parts = () => {
    for (const [name, { part, inputs }] of fields) {
      part.hidden = name !== kind.value;
      for (const input of inputs) input.disabled = part.hidden;
    }
  };
  kind.addEventListener("change", parts);
  label.addEventListener("change", () => {
    bound();
    parts();
  });
  bound();
  parts();
  const title = shape ? t("Edit coordinates") : t("Enter coordinates");
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
      ...[...fields.values()].map(({ part }) => part),
      problem,
    ),
    element("div", { className: "dialog-foot" }, save, cancel),
  );
  const dialog = element("dialog", { className: "dialog" }, form);
  dialog.setAttribute("aria-labelledby", "numbers-title");
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    /** @type {{kind: string, rings: number[][], label: number} | null} */
    let answer = null;
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const rings = fields.get(kind.value).rings();
      const said = judge(kindNamed(kind.value), rings, image);
      problem.hidden = !said;
      problem.textContent = said ?? "";
      if (said) return;
      answer = { kind: kind.value, rings, label: Number(label.value) };
      dialog.close();
    });
  });
}

function judge(kind, rings, image) {
  const numbers = rings.flat();
  if (numbers.some((value) => !Number.isFinite(value)) || rings.some((ring) => ring.length % 2)) {
    return t("Every field needs a number.");
  }
  for (const ring of rings) {
    for (let i = 0; i < ring.length; i += 2) {
      if (ring[i] < 0 || ring[i + 1] < 0 || ring[i] > image.width || ring[i + 1] > image.height) {
        return t("All points must be inside the image: 0 to %(width)s and 0 to %(height)s.", image);
      }
    }
  }
  return kind.sentence(kind.flaw(rings));
}

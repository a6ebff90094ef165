// The form of a new environment: machines are asked for where it is distributed, with what that makes in all.

/** @type {HTMLFormElement} */
const form = document.getElementById("submit-form");
const [type, nodes, cards] = ["task_type", "nodes", "gpus_per_node"].map(
  (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name)),
);
const total = /** @type {HTMLInputElement} */ (document.getElementById("total-cards"));
const parts = [.../** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-distributed]"))];

function show() {
  const distributed = type.value === "distributed";
  for (const part of parts) part.hidden = !distributed;
  nodes.required = distributed;
  total.value = nodes.value && cards.value ? String(Number(nodes.value) * Number(cards.value)) : "";
}

for (const field of [type, nodes, cards]) field.addEventListener("input", show);
show();

export {}; // a module of its own, as it is loaded

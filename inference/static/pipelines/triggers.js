// @ts-check
// The form of a trigger shows the fields of the chosen kind alone.

const form = document.querySelector("[data-trigger-form]");
const kind = /** @type {HTMLSelectElement | null} */ (form?.querySelector('[name="kind"]') ?? null);

/** Hide what belongs to other kinds. */
function show() {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (form?.querySelectorAll("[data-kind]") ?? []))
    part.hidden = part.dataset.kind !== kind?.value;
}

kind?.addEventListener("change", show);
show();

export {};

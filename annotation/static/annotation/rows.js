// One more row in a form of rows (Django formsets): copies the template and counts on.
for (const box of document.querySelectorAll("[data-rows]")) {
  /** @type {HTMLInputElement} */
  const total = box.querySelector(`[name="${box.dataset.rows}-TOTAL_FORMS"]`);
  const list = box.querySelector("[data-rows-list]");
  const template = box.querySelector("template");
  box.querySelector("[data-rows-add]").addEventListener("click", () => {
    const holder = document.createElement("template");
    holder.innerHTML = template.innerHTML.replaceAll("__prefix__", total.value);
    const row = /** @type {Element} */ (holder.content.firstElementChild);
    list.append(row);
    total.value = String(Number(total.value) + 1);
    row.querySelector("input")?.focus();
  });
}

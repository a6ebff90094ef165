// The runs to view together: the button counts the selected ones and is enabled while there are some.
/** @type {HTMLButtonElement | null} */
const button = document.querySelector("[data-view-runs]");

function count() {
  const chosen = document.querySelectorAll("input[name=run]:checked").length;
  if (!button) return;
  button.disabled = !chosen || chosen > Number(button.dataset.most);
  const shown = button.querySelector("[data-count]");
  if (shown) shown.textContent = chosen ? String(chosen) : "";
}

document.addEventListener("change", count);
document.addEventListener("htmx:afterSwap", count);
count();

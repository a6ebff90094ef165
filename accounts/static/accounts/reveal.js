// <button data-reveal="id_password" aria-pressed="false" hidden>: shows what is typed into a password field, and hides it again.

/** @type {NodeListOf<HTMLButtonElement>} */
const buttons = document.querySelectorAll("[data-reveal]");
for (const button of buttons) {
  const field = /** @type {HTMLInputElement} */ (document.getElementById(button.dataset.reveal ?? ""));
  const show = (shown) => {
    field.type = shown ? "text" : "password";
    button.setAttribute("aria-pressed", String(shown));
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    show(field.type === "password");
    field.focus();
  });
  field.form?.addEventListener("submit", () => show(false)); // a browser keeps what it takes for a plain text
}

// Dialogs over the native <dialog>: focus is kept inside and goes back by itself, Escape closes.
//
// In a page:  <button data-dialog-open="delete-job">…   <dialog id="delete-job" class="dialog">
//             <dialog data-dialog-now>: opens with the page
//             <button data-dialog-close>                 <input data-confirm-name="job-7"> keeps the submit
//                                                        button shut until the name stands in it.
// In scripts: if (await ask({ title, text, act: t("Stop"), danger: true })) …
import { t } from "./i18n.js";

// a dialog whose form came back refused opens with the page
/** @type {NodeListOf<HTMLDialogElement>} */
const refused = document.querySelectorAll("dialog[data-dialog-now]");
for (const dialog of refused) dialog.showModal();

/** Show a dialog; Enter pressed at once never destroys anything, so the focus is on the way out. @param {HTMLDialogElement} dialog */
function show(dialog) {
  dialog.showModal();
  if (!document.activeElement?.matches(".btn-danger")) return;
  /** @type {HTMLElement | null} */
  const close = dialog.querySelector("[data-dialog-close]");
  close?.focus();
}

document.addEventListener("click", (event) => {
  const opener = /** @type {Element} */ (event.target).closest?.("[data-dialog-open]");
  if (opener) {
    /** @type {HTMLDialogElement | null} */
    const dialog = document.getElementById(opener.dataset.dialogOpen ?? "");
    if (dialog) {
      event.preventDefault();
      guard(dialog);
      show(dialog);
    }
    return;
  }
  const closer = /** @type {Element} */ (event.target).closest?.("[data-dialog-close]");
  if (closer) {
    event.preventDefault();
    closer.closest("dialog")?.close("");
    return;
  }
  if (event.target instanceof HTMLDialogElement && event.target.open && outside(event)) event.target.close("");
});

function outside(event) {
  const box = event.target.getBoundingClientRect();
  const { clientX: x, clientY: y } = event;
  if (x === 0 && y === 0) return false; // pressed by keyboard
  return x < box.left || x > box.right || y < box.top || y > box.bottom;
}

/** Shut the dialog's submit button until the asked name is typed. */
function guard(dialog) {
  for (const input of dialog.querySelectorAll("[data-confirm-name]")) {
    const button = dialog.querySelector("[data-confirm-submit]") || dialog.querySelector("button:not([type=button])");
    const judge = () => {
      if (button) button.disabled = input.value.trim() !== input.dataset.confirmName;
    };
    input.value = "";
    input.oninput = judge;
    judge();
  }
}

/**
 * Ask before an act. Resolves to true when the person agrees.
 * @param {{title: string, text?: string, act?: string, danger?: boolean, typeName?: string}} what
 *   `text`: what goes and what stays. `typeName`: the name to type first.
 */
export function ask({ title, text = "", act = t("Continue"), danger = false, typeName = "" }) {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.setAttribute("aria-labelledby", "ask-title");
  const form = document.createElement("form");
  form.method = "dialog";
  const head = Object.assign(document.createElement("div"), { className: "dialog-head" });
  head.append(Object.assign(document.createElement("h2"), { id: "ask-title", textContent: title }));
  const body = Object.assign(document.createElement("div"), { className: "dialog-body" });
  if (text) body.append(Object.assign(document.createElement("p"), { textContent: text }));
  if (typeName) {
    const label = document.createElement("label");
    label.className = "form-row";
    const input = Object.assign(document.createElement("input"), { className: "input", autocomplete: "off" });
    input.dataset.confirmName = typeName;
    label.append(t("Type %(name)s to confirm", { name: typeName }), input);
    body.append(label);
  }
  const foot = Object.assign(document.createElement("div"), { className: "dialog-foot" });
  const no = Object.assign(document.createElement("button"), { type: "button", className: "btn", textContent: t("Cancel") });
  no.dataset.dialogClose = "";
  const yes = Object.assign(document.createElement("button"), {
    value: "yes",
    className: `btn btn-primary${danger ? " btn-danger" : ""}`,
    textContent: act,
  });
  yes.dataset.confirmSubmit = "";
  foot.append(yes, no);
  form.append(head, body, foot);
  dialog.append(form);
  document.body.append(dialog);
  guard(dialog);
  show(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
  });
}

// <form data-ask="Revoke this token?" data-ask-text="What goes" data-ask-act="Revoke"> asks before it is sent.
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.dataset.ask || form.dataset.asked) return;
  event.preventDefault();
  ask({ title: form.dataset.ask, text: form.dataset.askText, act: form.dataset.askAct, danger: true }).then((yes) => {
    if (!yes) return;
    form.dataset.asked = "yes";
    if (!form.isConnected) { // the page refreshed meanwhile; a form outside the document cannot be sent
      form.hidden = true;
      document.body.append(form);
    }
    form.requestSubmit(event.submitter);
  });
});

/** Elements whose question is open: no part of the page around them is refreshed meanwhile. @type {Set<Element>} */
const asking = new Set();

document.addEventListener("htmx:beforeRequest", (event) => {
  if ([...asking].some((one) => event.detail.elt.contains(one))) event.preventDefault();
});

// hx-confirm="Stop this job?" asks with our dialog instead of the browser's.
document.addEventListener("htmx:confirm", (event) => {
  const { question, elt, issueRequest } = event.detail;
  if (!question) return;
  event.preventDefault();
  const pressed = event.detail.triggeringEvent?.submitter ?? elt; // a form asks for its button
  const danger = pressed.matches?.(".btn-danger, .menu-danger") ?? false;
  asking.add(elt);
  ask({ title: question, text: elt.dataset?.confirmText, act: elt.dataset?.confirmAct || t("Continue"), danger }).then((yes) => {
    asking.delete(elt);
    if (yes) issueRequest(true);
  });
});

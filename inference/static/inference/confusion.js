// The confusion matrix of an evaluation; a press on a place of it shows the images behind it.
import { grouped, t } from "../base/i18n.js";

/** Fill the table of results/_confusion.html from what a scoring calls "confusion". */
export function drawConfusion({ labels, matrix, background = false, unit = "" }) {
  const names = labels.map((label) => label || t("background"));
  const target = document.getElementById("confusion");
  const head = document.createElement("thead");
  const headRow = head.insertRow();
  headRow.append(document.createElement("td"));
  for (const [answer, name] of names.entries()) {
    headRow.append(header(name, "col", `,${answer}`, t("Images with prediction %(answer)s", { answer: name })));
  }
  const body = document.createElement("tbody");
  matrix.forEach((row, truth) => {
    const total = row.reduce((sum, value) => sum + value, 0);
    const tr = body.insertRow();
    tr.append(header(names[truth], "row", `${truth},`, t("Images with ground truth %(truth)s", { truth: names[truth] })));
    row.forEach((count, answer) => {
      const td = tr.insertCell();
      if (background && truth === labels.length - 1 && answer === truth) return;
      td.append(cell(count, total, truth, answer, names, unit));
    });
  });
  target.replaceChildren(head, body);
}

/** The name of a class; a press on it shows the images of its whole row or column. */
function header(text, scope, key, title) {
  const th = document.createElement("th");
  th.scope = scope;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "confusion-class";
  button.textContent = text;
  button.title = title;
  button.setAttribute("aria-label", title);
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => showCell(button, key));
  th.append(button);
  return th;
}

/** One place of the matrix. Counts of pixels are shown as shares of their row, for nobody counts pixels. */
function cell(count, total, truth, answer, names, unit) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = unit ? share(count, total) : String(count);
  button.disabled = count === 0;
  const counted = unit ? `${grouped(count)} ${unit}` : count;
  button.title = t("%(truth)s predicted as %(answer)s: %(count)s", { truth: names[truth], answer: names[answer], count: counted });
  button.setAttribute("aria-label", button.title);
  button.setAttribute("aria-pressed", "false");
  if (count) {
    const depth = Math.min(4, Math.max(1, Math.ceil((4 * count) / Math.max(total, 1))));
    button.className = `${truth === answer ? "right" : "wrong"}-${depth}`;
  }
  button.addEventListener("click", () => showCell(button, `${truth},${answer}`));
  return button;
}

function share(count, total) {
  const percent = (100 * count) / Math.max(total, 1);
  return `${count && percent < 0.1 ? "<0.1" : percent.toFixed(1)} %`;
}

function showCell(button, key) {
  const was = button.getAttribute("aria-pressed") === "true";
  for (const other of document.querySelectorAll("#confusion [aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
  button.setAttribute("aria-pressed", String(!was));
  const gallery = document.getElementById("gallery");
  const address = was ? String(gallery.dataset.url) : `${gallery.dataset.url}?cell=${encodeURIComponent(key)}`;
  htmx.ajax("GET", address, { target: "#gallery", swap: "innerHTML" });
  if (!was) location.hash = "images";
}

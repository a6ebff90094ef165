// The table of new users: rows are added and removed, filled by a paste or from a file, and counted on the button.
// Without this script the table has a fixed number of rows and a button that sends for more.
import { t, tn } from "../base/i18n.js";
import { toast } from "../base/toast.js";
import { names, parseTable } from "./pasted_table.js";

const PASTED = "name:"; // before a name that is no choice here; the server looks it up or refuses it at its cell

/** @param {HTMLFormElement} form */
function enhance(form) {
  const body = form.querySelector("tbody");
  /** @type {HTMLTemplateElement} */
  const blank = form.querySelector("[data-row-template]");
  /** @type {HTMLInputElement} */
  const total = form.querySelector('[name="u-TOTAL_FORMS"]');
  const status = form.querySelector("[data-table-status]");
  /** @type {HTMLAnchorElement} */
  const importLink = form.querySelector("[data-fill-from-file]");
  const most = Number(form.dataset.max);
  const rows = () => /** @type {HTMLTableRowElement[]} */ ([...body.querySelectorAll("[data-user-row]")]);

  /** The field of a column, null where the table has no such column. @returns {any} */
  const cell = (row, column) => row.querySelector(`[data-column="${column}"]`);
  const isEmpty = (row) => ![...row.querySelectorAll("input")].some((input) => input.value.trim());

  /** Give rows their numbers, in what is sent and in what is read, and the button its count. */
  function renumber() {
    rows().forEach((row, index) => {
      for (const element of row.querySelectorAll("*")) {
        for (const name of ["id", "name", "aria-describedby"]) {
          const value = element.getAttribute(name);
          if (value) element.setAttribute(name, value.replace(/\b(id_)?u-(\d+|__prefix__)-/, `$1u-${index}-`));
        }
        if (element.dataset.label) element.setAttribute("aria-label", `${element.dataset.label} ${index + 1}`);
      }
      row.querySelector("th").textContent = String(index + 1);
    });
    total.value = String(rows().length);
    count();
  }

  function count() {
    const filled = rows().filter((row) => !isEmpty(row)).length;
    form.querySelector("[data-create] span").textContent = filled ? tn("Create %(count)s user", "Create %(count)s users", filled) : t("Create users");
  }

  /** A role that starts no jobs needs no cluster: the cell is shut, unless a group may bring further roles. */
  function judgeCluster(row) {
    const role = cell(row, "role");
    const cluster = cell(row, "cluster");
    if (!role || !cluster) return;
    const isIdle = role.dataset.withoutJobs.split(" ").includes(role.value) && !cell(row, "group")?.value;
    if (isIdle && !cluster.disabled) cluster.dataset.before = cluster.value;
    if (isIdle) cluster.value = "";
    else if (cluster.disabled) cluster.value = cluster.dataset.before ?? "";
    cluster.disabled = isIdle;
    cluster.title = isIdle ? t("This role starts no jobs and needs no cluster.") : "";
  }

  function add() {
    if (rows().length >= most) {
      toast(t("At most %(max)s users can be created at once.", { max: most }), "fail");
      return null;
    }
    body.append(blank.content.cloneNode(true));
    const row = /** @type {HTMLTableRowElement} */ (body.lastElementChild);
    row.querySelector("[data-remove-row]").hidden = false;
    renumber();
    return row;
  }

  function follow(row) {
    return row.nextElementSibling ?? add();
  }

  /** Put a text into a cell: of a choice by its label, else the text itself. */
  function put(row, column, text) {
    const field = cell(row, column);
    if (!field) return;
    if (field instanceof HTMLSelectElement) {
      const wanted = text.toLowerCase();
      let option = [...field.options].find((known) => known.text.toLowerCase() === wanted);
      if (!option && text) {
        option = new Option(text, PASTED + text);
        field.append(option);
      }
      if (option && text) field.value = option.value;
    } else {
      field.value = text;
    }
    clearError(field);
    /** @type {HTMLInputElement | null} */
    const box = form.querySelector(`[name="columns"][value="${column}"]`);
    if (box && text) box.checked = true;
  }

  function clearError(field) {
    const box = field.closest("td");
    box.classList.remove("has-error");
    box.querySelector(".form-error")?.parentElement.remove();
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }

  /** Fill rows from `start` with a table, whose columns are named or begin at `column`. */
  function fill(table, start, column) {
    const shown = [...start.querySelectorAll("[data-column]")].filter((field) => field.offsetParent).map((field) => field.dataset.column);
    const columns = table.columns ?? shown.slice(shown.indexOf(column));
    const known = new Set([...start.querySelectorAll("[data-column]")].map((field) => field.dataset.column));
    const widest = Math.max(...table.rows.map((values) => values.length));
    const unknown = (table.columns ?? []).filter((name) => !known.has(name));
    for (let at = columns.length; at < widest; at += 1) unknown.push(String(at + 1));
    const free = most - rows().indexOf(start);
    if (table.rows.length > free) {
      const words = t("The table has %(rows)s rows; at most %(max)s users can be created at once. Import larger tables in the background.", { rows: table.rows.length, max: most });
      toast(words, "fail", { href: importLink.href, more: t("Import") });
      return;
    }
    let row = start;
    table.rows.forEach((values, index) => {
      if (index) row = follow(row);
      values.forEach((value, at) => {
        if (columns[at]) put(row, columns[at], value);
      });
      judgeCluster(row);
    });
    count();
    cell(row, "username").focus();
    status.textContent = tn("%(count)s row filled", "%(count)s rows filled", table.rows.length);
    if (unknown.length) toast(t("Columns that were ignored: %(names)s", { names: unknown.join(", ") }), "info");
  }

  /** The row that a file begins at: the first empty one. */
  const firstEmpty = () => rows().find(isEmpty) ?? add();

  body.addEventListener("input", (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    clearError(field);
    if (field.dataset.column === "username") cell(field.closest("tr"), "nickname").placeholder = field.value;
    count();
  });

  body.addEventListener("change", (event) => {
    const row = /** @type {Element} */ (event.target).closest("tr");
    if (row) judgeCluster(row);
  });

  body.addEventListener("paste", (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const inName = field.dataset.column === "username" && text.includes(",");
    if (!field.dataset?.column || !(/[\t\n\r]/.test(text.trim()) || inName)) return;
    event.preventDefault();
    const table = parseTable(text, names(form));
    if (table.rows.length) fill(table, field.closest("tr"), field.dataset.column);
  });

  body.addEventListener("keydown", (event) => {
    const field = /** @type {HTMLElement} */ (event.target);
    const row = field.closest("tr");
    if (!row || !field.dataset.column || event.isComposing) return;
    const last = [...row.querySelectorAll("[data-column]")].filter((one) => one.offsetParent).at(-1);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(form.querySelector("[data-create]"));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!row.nextElementSibling && isEmpty(row)) form.querySelector("[data-create]").focus();
      else cell(follow(row) ?? row, "username").focus();
    } else if (event.key === "Tab" && !event.shiftKey && field === last && !row.nextElementSibling && !isEmpty(row)) {
      const next = add();
      if (!next) return;
      event.preventDefault();
      cell(next, "username").focus();
    }
  });

  body.addEventListener("click", (event) => {
    const row = /** @type {Element} */ (event.target).closest("[data-remove-row]")?.closest("tr");
    if (!row) return;
    const near = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    renumber();
    cell(near ?? add(), "username").focus();
  });

  // sent once: a second response would have no passwords
  form.addEventListener("submit", (event) => {
    if (form.getAttribute("aria-busy") === "true") event.preventDefault();
    form.setAttribute("aria-busy", "true");
    form.querySelector("[data-create]").setAttribute("aria-busy", "true");
  });
  addEventListener("pageshow", () => {
    form.removeAttribute("aria-busy");
    form.querySelector("[data-create]").removeAttribute("aria-busy");
  });

  form.querySelector("[data-add-row]").addEventListener("click", (event) => {
    event.preventDefault();
    const row = add();
    if (row) cell(row, "username").focus();
  });

  /** @type {HTMLInputElement} */
  const file = form.querySelector("[data-table-file]");
  importLink.addEventListener("click", (event) => {
    event.preventDefault();
    file.click();
  });
  file.addEventListener("change", async () => {
    const chosen = file.files?.[0];
    file.value = "";
    if (!chosen) return;
    const table = parseTable(decode(new Uint8Array(await chosen.arrayBuffer())), names(form));
    if (table.rows.length) fill(table, firstEmpty() ?? rows().at(-1), "username");
    else toast(t("The file has no rows."), "fail");
  });

  rows().forEach(judgeCluster); // a form that came back, or that the browser restored
  if (matchMedia("(width <= 700px)").matches) for (const row of rows().slice(1).filter(isEmpty)) row.remove(); // rows are blocks there
  renumber();
  for (const button of form.querySelectorAll("tbody [data-remove-row]")) button.hidden = false;
  for (const row of rows()) cell(row, "nickname").placeholder = cell(row, "username").value;
  const wrong = body.querySelector('[aria-invalid="true"]');
  /** @type {HTMLElement} */ (wrong ?? cell(rows()[0], "username")).focus();
}

/** Text of a file: UTF-8 or UTF-16 with its mark, else GBK as Chinese spreadsheets write it. @param {Uint8Array} bytes */
function decode(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("gb18030").decode(bytes);
  }
}

/** @type {HTMLFormElement | null} */
const form = document.querySelector("[data-new-users]");
if (form) enhance(form);

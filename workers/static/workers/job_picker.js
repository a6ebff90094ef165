// <input data-jobs="/api/v1/jobs/">: numbers of jobs between commas; one's own jobs are found by name or number as one
// types the last of them. Without scripts the numbers are typed. Arrows choose, Enter takes, Escape closes.
import { api, explain } from "../base/api.js";
import { t } from "../base/i18n.js";

const PAUSE_MS = 160;
const SHOWN = 8;

/** @param {HTMLInputElement} input */
function enhance(input) {
  const list = Object.assign(document.createElement("ul"), { className: "found-list plain job-picker-list", id: `${input.id}_found`, hidden: true });
  const names = Object.assign(document.createElement("span"), { className: "small muted" });
  const box = Object.assign(document.createElement("div"), { className: "job-picker" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", t("Jobs found"));
  for (const [name, value] of Object.entries({ role: "combobox", autocomplete: "off", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id })) input.setAttribute(name, value);
  input.placeholder = t("Job name or number");
  input.before(box);
  box.append(input, list, names);
  /** Names of the jobs that were found, by number. @type {Map<string, string>} */
  const known = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let at = -1;

  const words = () => input.value.split(",").map((word) => word.trim());
  const hits = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll(".found-hit")]);

  function tell() {
    names.textContent = words().filter((word) => known.has(word)).map((word) => `${word} ${known.get(word)}`).join(" · ");
  }

  function close() {
    clearTimeout(timer);
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  /** @param {{id: number, name: string}} job */
  function take(job) {
    known.set(String(job.id), job.name);
    input.value = `${[...words().slice(0, -1), job.id].join(", ")}, `;
    close();
    tell();
    input.focus();
  }

  async function find() {
    const word = words().at(-1) ?? "";
    try {
      const { results } = await api.get(`${input.dataset.jobs}?${new URLSearchParams({ mine: "1", search: word, limit: String(SHOWN) })}`);
      at = -1;
      list.replaceChildren(
        ...results.map((/** @type {any} */ job, /** @type {number} */ place) => {
          known.set(String(job.id), job.name);
          const hit = Object.assign(document.createElement("li"), { className: "found-hit", id: `${list.id}_${place}` });
          hit.setAttribute("role", "option");
          hit.setAttribute("aria-selected", "false");
          const number = Object.assign(document.createElement("span"), { className: "num muted", textContent: String(job.id) });
          hit.append(number, Object.assign(document.createElement("span"), { className: "grow cut", textContent: job.name }));
          hit.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
          hit.addEventListener("click", () => take(job));
          return hit;
        }),
      );
      list.hidden = !results.length || document.activeElement !== input;
      input.setAttribute("aria-expanded", String(!list.hidden));
      tell();
    } catch (error) {
      explain(error);
    }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(find, PAUSE_MS);
  }

  input.addEventListener("input", () => {
    tell();
    soon();
  });
  input.addEventListener("focus", soon);
  input.addEventListener("blur", () => {
    close();
    input.value = input.value.replace(/[\s,]+$/, "");
  });
  input.addEventListener("keydown", (event) => {
    const lines = hits();
    if (list.hidden || !lines.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      lines[at]?.setAttribute("aria-selected", "false");
      at = (at + (event.key === "ArrowDown" ? 1 : -1) + lines.length) % lines.length;
      lines[at].setAttribute("aria-selected", "true");
      lines[at].scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", lines[at].id);
    } else if (event.key === "Enter" && lines[at]) {
      event.preventDefault();
      lines[at].click();
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
}

for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-jobs]"))) enhance(input);

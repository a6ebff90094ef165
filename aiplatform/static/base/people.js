// <textarea data-people="/people/find/">: usernames, one tag each, found by name as one types.
//
// The textarea stays what the form sends, so without scripts people write into it themselves. Arrows choose, Enter adds,
// Backspace in an empty box takes the last one out; many usernames are pasted at once.
import { api, explain } from "./api.js";
import { icon } from "./icons.js";
import { t, tn } from "./i18n.js";

const PAUSE_MS = 160;
const BETWEEN = /[\s,;，；、]+/;

/** @typedef {{username: string, nickname?: string}} Person */

/** Make one textarea a search.
 * @param {HTMLTextAreaElement} text
 */
function enhance(text) {
  const most = Number(text.dataset.most) || Infinity;
  /** @type {Map<string, Person>} by the username in lower case */
  const chosen = new Map();
  const needed = text.required;
  const id = text.id;

  const box = make("div", "people");
  const tags = make("ul", "people-tags plain");
  const input = Object.assign(make("input", "people-input"), { type: "text", autocomplete: "off", spellcheck: false });
  const list = Object.assign(make("ul", "people-list found-list plain"), { hidden: true, id: `${id}_found` });
  const said = make("span", "sr-only");
  said.setAttribute("aria-live", "polite");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", t("Users found"));
  for (const [name, value] of Object.entries({
    role: "combobox",
    autocapitalize: "none",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
    "aria-describedby": text.getAttribute("aria-describedby") ?? "",
    "aria-invalid": text.getAttribute("aria-invalid") ?? "false",
    placeholder: t("Name or username"),
  })) {
    if (value) input.setAttribute(name, value);
  }
  text.id = `${id}_text`;
  input.id = id;
  text.hidden = true;
  text.required = false;
  const field = make("div", "people-field");
  field.append(tags, input);
  box.append(field, list, said);
  text.after(box);

  let timer = 0;
  let at = -1;
  /** @type {AbortController | null} */
  let running = null;

  /** Write what is chosen, and what stands half typed, where the form sends it from. */
  function keep() {
    const names = [...chosen.values()].map((person) => person.username);
    text.value = [...names, input.value.trim()].filter(Boolean).join(", ");
    input.required = needed && !chosen.size;
    input.hidden = most === 1 && chosen.size === 1;
  }

  /** @param {Person} person */
  function tag(person) {
    const item = make("li", "tag");
    const name = make("span", "cut");
    name.textContent = person.nickname || person.username;
    item.append(name);
    if (person.nickname && person.nickname !== person.username) {
      const user = make("span", "muted mono");
      user.textContent = person.username;
      item.append(user);
    }
    const drop = Object.assign(make("button", "btn-quiet"), { type: "button" });
    drop.setAttribute("aria-label", t("Remove %(name)s", { name: person.username }));
    drop.append(icon("close"));
    drop.addEventListener("click", () => {
      remove(person.username);
      input.focus();
    });
    item.append(drop);
    return item;
  }

  function draw() {
    tags.replaceChildren(...[...chosen.values()].map(tag));
    tags.scrollTop = tags.scrollHeight;
    keep();
  }

  /** @param {Person[]} people */
  function add(people) {
    for (const person of people) {
      if (most === 1) chosen.clear();
      const key = person.username.toLowerCase();
      if (!chosen.get(key)?.nickname) chosen.set(key, person);
    }
    input.value = "";
    close();
    draw();
    said.textContent = tn("%(count)s user selected", "%(count)s users selected", chosen.size);
  }

  /** @param {string} username */
  function remove(username) {
    chosen.delete(username.toLowerCase());
    draw();
    said.textContent = t("%(name)s removed", { name: username });
  }

  /** @param {string} words */
  const names = (words) => words.split(BETWEEN).filter(Boolean).map((username) => ({ username }));

  function close() {
    clearTimeout(timer);
    running?.abort();
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  /** @param {string} words */
  function note(words) {
    const line = make("li", "found-note");
    line.setAttribute("role", "option");
    line.setAttribute("aria-disabled", "true");
    line.textContent = words;
    return line;
  }

  /** @param {{people: Person[], more: boolean}} found */
  function show({ people, more }) {
    at = -1;
    const hits = people.map((person, number) => {
      const line = make("li", "found-hit");
      line.id = `${list.id}_${number}`;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", "false");
      const name = make("span", "grow cut");
      name.textContent = person.nickname || person.username;
      const user = make("span", "muted mono");
      user.textContent = person.username;
      line.append(icon(chosen.has(person.username.toLowerCase()) ? "check" : "person"), name, user);
      line.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
      line.addEventListener("click", () => add([person]));
      return line;
    });
    if (more) hits.push(note(t("More users match: enter more of the name.")));
    if (!people.length) hits.push(note(t("No user with this name. Press Enter to use it as a username.")));
    list.replaceChildren(...hits);
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  async function ask() {
    const words = input.value.trim();
    running?.abort();
    if (!words) return close();
    running = new AbortController();
    try {
      show(await api.get(`${text.dataset.people}?q=${encodeURIComponent(words)}`, { signal: running.signal }));
    } catch (error) {
      explain(error);
    }
  }

  /** @param {number} step */
  function move(step) {
    const hits = [...list.querySelectorAll(".found-hit")];
    if (!hits.length) return;
    hits[at]?.setAttribute("aria-selected", "false");
    at = (at + step + hits.length) % hits.length;
    hits[at].setAttribute("aria-selected", "true");
    hits[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", hits[at].id);
  }

  input.addEventListener("input", () => {
    keep();
    if (/[,;，；、]/.test(input.value)) return add(names(input.value));
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("paste", (event) => {
    const pasted = event.clipboardData?.getData("text") ?? "";
    if (names(pasted).length < 2) return;
    event.preventDefault();
    add(names(`${input.value} ${pasted}`));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && input.value.trim()) {
      event.preventDefault();
      const hits = list.hidden ? [] : [...list.querySelectorAll(".found-hit")];
      if (hits[at]) hits[at].click();
      else add(names(input.value));
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault(); // not the dialog around it
      event.stopPropagation();
      close();
    } else if (event.key === "Backspace" && !input.value && chosen.size) {
      remove([...chosen.keys()][chosen.size - 1]);
    }
  });
  input.addEventListener("blur", close);
  field.addEventListener("click", () => input.focus());

  const written = names(text.value);
  for (const person of written) chosen.set(person.username.toLowerCase(), person);
  draw();
}

/** @template {keyof HTMLElementTagNameMap} K @param {K} name @param {string} className @returns {HTMLElementTagNameMap[K]} */
function make(name, className) {
  return Object.assign(document.createElement(name), { className });
}

/** @type {NodeListOf<HTMLTextAreaElement>} */
const fields = document.querySelectorAll("textarea[data-people]");
for (const field of fields) enhance(field);

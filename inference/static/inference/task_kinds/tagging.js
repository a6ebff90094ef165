// A tagger's answer: a bar for each class, those above the threshold as tags. The slider decides without asking again.
import { t } from "../../base/i18n.js";
import { tryIt } from "../tryit.js";

/** @type {HTMLInputElement} */
let slider; // _try_controls.html
let shown = []; // the newest answer
let chosen = false; // whether the reader moved the threshold; until then it is the model's

tryIt({ query: "?top_k=12", begin, answered });

function begin() {
  slider = document.getElementById("score");
  slider.addEventListener("input", () => {
    chosen = true;
    say();
  });
  say();
}

function answered(found) {
  shown = found;
  if (found.length && !chosen) slider.value = String(Math.round(100 * found[0].threshold));
  say();
}

function say() {
  const threshold = Number(slider.value) / 100;
  document.getElementById("score-value").textContent = threshold.toFixed(2);
  document.getElementById("answers").replaceChildren(...shown.map((one) => bar(one, one.score >= threshold)));
}

function bar(one, present) {
  const row = document.createElement("div");
  row.className = `answer-row${present ? "" : " muted"}`;
  const name = document.createElement("span");
  name.className = "cut";
  name.title = one.name;
  if (present) name.append(Object.assign(document.createElement("span"), { className: "tag", textContent: one.name }));
  else name.textContent = one.name;
  const meter = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: one.score });
  meter.setAttribute("aria-label", present ? t("%(name)s, on the image", { name: one.name }) : one.name);
  const share = Object.assign(document.createElement("span"), { className: "num mono", textContent: `${(100 * one.score).toFixed(1)} %` });
  row.append(name, meter, share);
  return row;
}

// An embedder's answer: the class that the nearest known images name, and those images, nearest first.
import { t } from "../../base/i18n.js";
import { hueOf, tryIt } from "../tryit.js";

tryIt({
  query: "?neighbours=10",
  answered([found]) {
    const head = row(found, t("share of the votes"), found.score);
    head.classList.add("answer-head");
    document.getElementById("answers").replaceChildren(head, ...found.neighbours.map((near) => row(near, near.image, near.similarity)));
  },
});

function row(one, beside, value) {
  const line = document.createElement("div");
  line.className = "answer-row answer-near";
  const name = document.createElement("span");
  name.className = "cut";
  const swatch = document.createElement("span");
  swatch.className = "mask-swatch";
  swatch.style.background = hueOf(one.class_id);
  name.append(swatch, one.name);
  const word = Object.assign(document.createElement("span"), { className: "cut muted", textContent: beside, title: beside });
  const meter = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: Math.max(0, value) });
  meter.setAttribute("aria-label", one.name);
  const number = Object.assign(document.createElement("span"), { className: "num mono", textContent: value.toFixed(3) });
  line.append(name, word, meter, number);
  return line;
}

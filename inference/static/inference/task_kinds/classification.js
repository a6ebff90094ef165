// A classifier's answer: the most probable classes as bars below the picture.
import { tryIt } from "../tryit.js";

tryIt({
  query: "?top_k=10",
  answered(found) {
    document.getElementById("answers").replaceChildren(...found.map(bar));
  },
});

function bar(one) {
  const row = document.createElement("div");
  row.className = "answer-row";
  const name = Object.assign(document.createElement("span"), { className: "cut", textContent: one.name, title: one.name });
  const meter = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: one.score });
  meter.setAttribute("aria-label", one.name);
  const share = Object.assign(document.createElement("span"), { className: "num mono", textContent: `${(100 * one.score).toFixed(1)} %` });
  row.append(name, meter, share);
  return row;
}

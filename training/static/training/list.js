// Keeps the list of trainings fresh while one of them is alive, but never under somebody's hands.

let waited = 0;

setInterval(() => {
  const rows = document.querySelector("#training-rows[data-refresh-s]");
  const busy = document.hidden || document.querySelector("dialog[open]") || rows?.contains(document.activeElement);
  waited += 1;
  if (!rows || busy || waited < Number(rows.dataset.refreshS || 5)) return;
  waited = 0;
  window.htmx.trigger(rows, "again");
}, 1000);

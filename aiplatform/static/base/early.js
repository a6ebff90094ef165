// Runs before the first paint, so that nothing jumps: the side bar opens as it was left.
// A classic script, as modules run too late. What it cannot read it leaves alone.
try {
  if (localStorage.getItem("aip.side") === "slim") document.documentElement.dataset.side = "slim";
} catch {
  // storage is switched off: the bar stays wide
}

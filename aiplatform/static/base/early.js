// Runs before the first paint, so that nothing moves: the side bar and its groups open as they were left, tables have the
// density and the columns that were chosen. A classic script, because modules run too late. Without storage the defaults
// of the page apply.
{
  const { dataset } = document.documentElement;
  const shut = new Set((dataset.sideFolded ?? "").split(" ").filter(Boolean));
  dataset.scripts = "on";
  try {
    if (localStorage.getItem("aip.side") === "slim") dataset.side = "slim";
    if (localStorage.getItem(`aip.density.${dataset.reader}`) === "compact") dataset.density = "compact";
    const columns = JSON.parse(localStorage.getItem(`aip.columns.${dataset.reader}`) ?? "{}");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(Object.values(columns).map(({ css }) => css).join(""));
    document.adoptedStyleSheets = [sheet];
    const stored = JSON.parse(localStorage.getItem(`aip.groups.${dataset.reader}`) ?? "{}");
    for (const [group, open] of Object.entries(stored)) {
      if (open) shut.delete(group);
      else shut.add(group);
    }
  } catch {
    // storage is switched off, or holds something else
  }
  dataset.sideShut = [...shut].join(" ");
}

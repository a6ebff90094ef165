// Runs before the first paint, so that nothing moves: the side bar and its groups open as they were left.
// A classic script, because modules run too late. Without storage the defaults of the page apply.
{
  const { dataset } = document.documentElement;
  const shut = new Set((dataset.sideFolded ?? "").split(" ").filter(Boolean));
  try {
    if (localStorage.getItem("aip.side") === "slim") dataset.side = "slim";
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

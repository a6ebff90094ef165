// Tabs over the parts of an evaluation, which are all loaded with the page: the hash of the address names the open one.
const nav = document.querySelector("[data-section-tabs]");
const links = [...nav.querySelectorAll("a")];
const partOf = (link) => document.getElementById(`part-${link.hash.slice(1)}`);

function open() {
  const chosen = links.find((link) => link.hash === location.hash) ?? links[0];
  for (const link of links) {
    if (link === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    partOf(link).hidden = link !== chosen;
  }
  if (!location.hash) return;
  chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (partOf(chosen).getBoundingClientRect().top > innerHeight / 2) nav.scrollIntoView({ block: "start" });
}

addEventListener("hashchange", open);
open();

// Light, dark or as the system says, for pages whose reader just chose. The server remembers it.
import { api, explain } from "./api.js";

const MEDIA = { light: "not all", dark: "all", "": "(prefers-color-scheme: dark)" };

function wear(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  /** @type {HTMLLinkElement} */
  const dark = document.getElementById("dark-theme");
  dark.media = MEDIA[theme];
  for (const button of document.querySelectorAll("[data-theme-set]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeSet === theme));
  }
  document.dispatchEvent(new CustomEvent("themechange", { detail: { theme } })); // charts and canvases redraw
}

for (const button of document.querySelectorAll("[data-theme-set]")) {
  button.addEventListener("click", () => {
    wear(button.dataset.themeSet);
    api.patch("/api/v1/me/", { theme: button.dataset.themeSet }).catch(explain);
  });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.dispatchEvent(new CustomEvent("themechange", { detail: { theme: "" } }));
});

/** A colour of the running theme, for canvases: token("--accent"). */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

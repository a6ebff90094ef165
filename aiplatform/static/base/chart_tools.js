// What charts of a page have in common: smoothing, scale and axis, and the tabs Model and System.
// Templates: components/chart_tools.html, components/chart_tabs.html.

/** @typedef {{smooth: number, byLog: boolean, axis: "step" | "epoch" | "time", tab: "model" | "system"}} View */

/** Tab of a metric: what the platform measures of nodes is apart from what a program reports. @param {string} key @returns {"model" | "system"} */
export const tabOf = (key) => (key.startsWith("system/") ? "system" : "model");

export class ChartTools {
  /**
   * @param {HTMLElement} root
   * @param {{look: () => void, axis: () => void, tab: () => void}} changed  what to do once each of them was chosen
   */
  constructor(root, changed) {
    this.root = root;
    this.view = /** @type {View} */ ({ smooth: 0, byLog: false, axis: "step", tab: "model" });
    this.isChosen = false;
    /** @param {string} name */
    const part = (name) => root.querySelector(`[data-chart-${name}]`);
    part("smooth")?.addEventListener("input", ({ target }) => {
      this.view.smooth = Number(/** @type {HTMLInputElement} */ (target).value);
      const output = part("smoothed");
      if (output) output.textContent = this.view.smooth.toFixed(2).replace(/\.?0+$/, "") || "0";
      changed.look();
    });
    part("log")?.addEventListener("click", ({ currentTarget }) => {
      this.view.byLog = !this.view.byLog;
      /** @type {HTMLElement} */ (currentTarget).setAttribute("aria-pressed", String(this.view.byLog));
      changed.look();
    });
    part("axis")?.addEventListener("change", ({ target }) => {
      this.view.axis = /** @type {View["axis"]} */ (/** @type {HTMLSelectElement} */ (target).value);
      changed.axis();
    });
    this.tabs = part("tabs");
    this.tabs?.addEventListener("click", ({ target }) => {
      const tab = /** @type {Element} */ (target).closest("[data-chart-tab]")?.dataset.chartTab;
      if (tab) this.choose(tab, changed.tab);
    });
    this.tabs?.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const tab = this.view.tab === "model" ? "system" : "model";
      this.choose(tab, changed.tab);
      this.tabs?.querySelector(`[data-chart-tab=${tab}]`).focus();
    });
    const asked = new URLSearchParams(location.search).get("charts");
    if (asked === "system") this.choose("system");
  }

  /** @param {string} tab @param {() => void} [then] */
  choose(tab, then) {
    this.isChosen = true;
    const address = new URL(location.href);
    if (tab === "system") address.searchParams.set("charts", "system");
    else address.searchParams.delete("charts");
    history.replaceState(history.state, "", address);
    this.open(tab);
    then?.();
  }

  /** @param {string} tab */
  open(tab) {
    this.view.tab = tab === "system" ? "system" : "model";
    for (const button of this.tabs?.querySelectorAll("[data-chart-tab]") ?? []) {
      const isOpen = button.dataset.chartTab === this.view.tab;
      button.setAttribute("aria-selected", String(isOpen));
      button.tabIndex = isOpen ? 0 : -1;
    }
    for (const grid of this.root.querySelectorAll("[data-chart-grid]")) grid.hidden = grid.dataset.chartGrid !== this.view.tab;
  }

  /** Show the tabs while both have charts; where there are only charts of the system, they are shown. @param {string[]} keys */
  offer(keys) {
    const there = new Set(keys.map(tabOf));
    if (this.tabs) this.tabs.hidden = !there.has("system");
    for (const grid of this.root.querySelectorAll("[data-chart-grid]")) {
      if (there.has("system")) {
        grid.setAttribute("role", "tabpanel");
        grid.setAttribute("aria-labelledby", `tab-${grid.id.replace(/^charts-/, "")}`);
      }
    }
    if (!this.isChosen) this.open(there.has("system") && !there.has("model") ? "system" : "model");
  }

  /** @param {string} key */
  gridOf(key) {
    return this.root.querySelector(`[data-chart-grid=${tabOf(key)}]`);
  }
}

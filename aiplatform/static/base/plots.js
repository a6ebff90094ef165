// The chart library, for pages that may have nothing to draw: it is loaded with the first chart.

/** @type {Promise<void> | null} */
let loading = null;

/** Load `uPlot`, once per page. @returns {Promise<void>} */
export function loadPlots() {
  loading ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = new URL("../uplot/uPlot.iife.js", import.meta.url).href;
    script.addEventListener("load", () => done());
    script.addEventListener("error", () => {
      loading = null; // the next chart tries again
      script.remove();
      fail(new Error(script.src));
    });
    document.head.append(script);
  });
  return loading;
}

/** Call `begin` once `element` is on the screen or almost. @param {Element} element @param {() => void} begin */
export function whenNear(element, begin) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      begin();
    },
    { rootMargin: "200px" },
  );
  observer.observe(element);
}

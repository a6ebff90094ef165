// The whole screen for the annotator: the frame goes, and the browser's own bars where it lets them.

const root = document.documentElement;

/** Go there, or come back. */
export async function toggleFullScreen() {
  if (root.classList.toggle("annotator-whole")) {
    await root.requestFullscreen?.().catch(() => {}); // refused: at least the frame is gone
  } else if (document.fullscreenElement) {
    await document.exitFullscreen();
  }
}

document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) root.classList.remove("annotator-whole"); // left by the browser's own Esc
});

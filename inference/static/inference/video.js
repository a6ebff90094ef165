// The film of a watched video: a click on the timeline, or on the time of an event, goes there.
const page = document.getElementById("video");
/** @type {HTMLVideoElement | null} */
const film = document.getElementById("film");

if (film) {
  const length = Number(page.dataset.length);
  const begin = Number(page.dataset.begin);
  const timeline = document.getElementById("timeline");
  const mark = document.getElementById("timeline-now");

  const seek = (at) => {
    film.currentTime = Math.max(0, at - begin);
    film.scrollIntoView({ block: "nearest" });
  };
  page.addEventListener("click", (event) => {
    /** @type {HTMLElement | null} */
    const time = /** @type {Element} */ (event.target).closest("[data-seek]");
    if (time) seek(Number(time.dataset.seek));
  });
  if (timeline) {
    timeline.addEventListener("click", (event) => {
      const box = timeline.getBoundingClientRect();
      seek(((event.clientX - box.left) / box.width) * length);
    });
    film.addEventListener("timeupdate", () => mark.setAttribute("x", String((1000 * (film.currentTime + begin)) / length)));
  }
}

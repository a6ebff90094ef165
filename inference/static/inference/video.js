// The film of a watched video: a click on the timeline, or on the time of an event, goes there.
const page = document.getElementById("video");
const film = /** @type {HTMLVideoElement | null} */ (document.getElementById("film"));

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
    const time = event.target instanceof Element ? event.target.closest("[data-seek]") : null;
    if (time instanceof HTMLElement) seek(Number(time.dataset.seek));
  });
  if (timeline) {
    timeline.addEventListener("click", (event) => {
      const box = timeline.getBoundingClientRect();
      seek(((event.clientX - box.left) / box.width) * length);
    });
    film.addEventListener("timeupdate", () => mark.setAttribute("x", String((1000 * (film.currentTime + begin)) / length)));
  }
}

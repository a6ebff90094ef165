// A place that files can be dropped on; while one hovers over it, it has the class is-over.

/** Call `take(files, dropped)` with what is dropped on `place`; folders stand in `dropped`, a DataTransfer, only. */
export function onDrop(place, take) {
  for (const name of ["dragenter", "dragover"]) {
    place.addEventListener(name, (event) => {
      event.preventDefault();
      place.classList.add("is-over");
    });
  }
  place.addEventListener("dragleave", () => place.classList.remove("is-over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("is-over");
    if (event.dataTransfer.files.length) take([...event.dataTransfer.files], event.dataTransfer);
  });
}

// A canvas that remembers for which view it was painted. While the view moves it is shifted and
// scaled as a picture, which costs nothing; it is painted anew when the view rests.

export class Layer {
  constructor(canvas, { buffered = false } = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.buffer = buffered ? document.createElement("canvas") : null;
    this.painted = null;
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    for (const canvas of [this.canvas, this.buffer]) {
      if (!canvas) continue;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.painted = null;
  }

  /** Show what was painted for another view as it would lie in this one. */
  follow(view) {
    if (!this.painted) return;
    const scale = view.scale / this.painted.scale;
    const x = view.x - this.painted.x * scale;
    const y = view.y - this.painted.y * scale;
    const still = scale === 1 && x === 0 && y === 0;
    this.canvas.style.transform = still ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
  }

  matches(view) {
    const painted = this.painted;
    return painted && painted.scale === view.scale && painted.x === view.x && painted.y === view.y;
  }

  /** A cleared context in image coordinates. */
  begin(view, context = this.context) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.aim(view, context);
    return context;
  }

  aim(view, context = this.context) {
    const scale = view.scale * this.ratio;
    context.setTransform(scale, 0, 0, scale, view.x * this.ratio, view.y * this.ratio);
  }

  finished(view) {
    this.painted = { scale: view.scale, x: view.x, y: view.y };
    this.canvas.style.transform = "";
  }

  /** Bring the buffer to the front. */
  swap(view) {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.context.drawImage(this.buffer, 0, 0);
    this.finished(view);
  }
}

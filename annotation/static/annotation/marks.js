// What the active layer draws: outlines with handles, half-made shapes, guides. All in image
// coordinates, with sizes divided by the scale so that they look the same at every zoom.

export const HANDLE = 5; // CSS pixels from the middle of a handle to its side

export function outline(context, path, scale, colour, { fill = 0.28, line = 2, dashed = false } = {}) {
  context.globalAlpha = fill;
  context.fillStyle = colour;
  context.fill(path, "evenodd");
  context.globalAlpha = 1;
  context.lineJoin = "round";
  context.setLineDash([]);
  context.lineWidth = (line + 2) / scale;
  context.strokeStyle = "rgba(255, 255, 255, 0.85)";
  context.stroke(path);
  if (dashed) context.setLineDash([6 / scale, 4 / scale]);
  context.lineWidth = line / scale;
  context.strokeStyle = colour;
  context.stroke(path);
  context.setLineDash([]);
}

export function handle(context, x, y, scale, colour, { round = false, strong = false, faint = false } = {}) {
  const half = (faint ? HANDLE - 2 : strong ? HANDLE + 1 : HANDLE) / scale;
  context.globalAlpha = faint ? 0.7 : 1;
  context.beginPath();
  if (round) context.arc(x, y, half, 0, 2 * Math.PI);
  else context.rect(x - half, y - half, 2 * half, 2 * half);
  context.fillStyle = strong ? colour : "#ffffff";
  context.fill();
  context.lineWidth = 1.5 / scale;
  context.strokeStyle = colour;
  context.stroke();
  context.globalAlpha = 1;
}

/** Thin lines through the pointer, over the whole image. */
export function guides(context, x, y, image, scale) {
  if (x < 0 || y < 0 || x > image.width || y > image.height) return;
  for (const [colour, dash] of [
    ["rgba(0, 0, 0, 0.55)", []],
    ["rgba(255, 255, 255, 0.9)", [4 / scale, 4 / scale]],
  ]) {
    context.setLineDash(dash);
    context.lineWidth = 1 / scale;
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(image.width, y);
    context.moveTo(x, 0);
    context.lineTo(x, image.height);
    context.stroke();
  }
  context.setLineDash([]);
}

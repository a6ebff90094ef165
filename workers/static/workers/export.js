// Charts and figures as files of the reader's.

export function savePng(plot, title, name) {
  const canvas = document.createElement("canvas");
  const source = plot.ctx.canvas;
  const ratio = window.devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  canvas.width = source.width;
  canvas.height = source.height + 28 * ratio;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.fillStyle = style.getPropertyValue("--surface").trim();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--ink").trim();
  pen.font = `${14 * ratio}px sans-serif`;
  pen.fillText(title, 8 * ratio, 19 * ratio);
  pen.drawImage(source, 0, 28 * ratio);
  canvas.toBlob((blob) => save(blob, `${name.replace(/\W+/g, "-")}.png`));
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

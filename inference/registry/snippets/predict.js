// What the model says of a picture, in a browser, by onnxruntime-web: the same numbers as `python run.py picture.png`.
//
//   import * as ort from "onnxruntime-web/wasm";
//   import { load, predict, pixelsOf } from "./predict.js";
//
//   const session = await load(ort, "../model/model.onnx");
//   const found = await predict(ort, session, await pixelsOf(file)); // a File, a Blob, an <img>, a <canvas>, a frame
//
// It has no dependencies of its own. Pictures that are JPEG, or see-through, are decoded by each browser in its own way,
// so their numbers differ a little; those of PNG, BMP and lossless WebP do not.

const MODEL = {};

const GREY = 114; // beside a picture that keeps its shape
const MOST_CANDIDATES = 1000; // of a class, before those that overlap are left out
const BITS = 22; // of the fixed-point weights of resampling

/** A session that runs the network on one thread of the processor. */
export async function load(ort, address) {
  return ort.InferenceSession.create(address, { executionProviders: ["wasm"] });
}

/** The pixels of a picture, upright: {width, height, data: RGBA}. */
export async function pixelsOf(source) {
  const bitmap = await createImageBitmap(source, { imageOrientation: "from-image", colorSpaceConversion: "none" });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, bitmap.width, bitmap.height);
}

/** {task, image, predictions} of pixels; `limits` may replace score_threshold, iou_threshold and max_detections. */
export async function predict(ort, session, pixels, limits = {}) {
  const { values, placement } = prepared(pixels);
  const { name, channels, height, width } = MODEL.input;
  const fed = { [name]: new ort.Tensor("float32", values, [1, channels, height, width]) };
  const outputs = await session.run(fed);
  const asked = { ...MODEL.decode, ...limits };
  const predictions = READ[MODEL.task](outputs, placement, asked);
  return { task: MODEL.task, image: { width: pixels.width, height: pixels.height }, predictions };
}

// --- before the network

/** The input [channels, height, width] of pixels, and where the picture is in it. */
export function prepared(pixels) {
  const { width, height, channels, mean, std, resize, order } = MODEL.input;
  const own = { width: pixels.width, height: pixels.height, data: coloured(pixels, channels) };
  let placed = own;
  const placement = { width: own.width, height: own.height, scaleX: 1, scaleY: 1, left: 0, top: 0 };
  if (resize === "letterbox") {
    const scale = Math.min(width / own.width, height / own.height);
    const wide = Math.min(width, Math.max(1, roundEven(own.width * scale)));
    const high = Math.min(height, Math.max(1, roundEven(own.height * scale)));
    placement.left = Math.floor((width - wide) / 2);
    placement.top = Math.floor((height - high) / 2);
    placement.scaleX = wide / own.width;
    placement.scaleY = high / own.height;
    placed = framed(resized(own, wide, high, channels), width, height, placement, channels);
  } else {
    placement.scaleX = width / own.width;
    placement.scaleY = height / own.height;
    placed = resized(own, width, height, channels);
  }
  const values = new Float32Array(channels * width * height);
  for (let channel = 0; channel < channels; channel += 1) {
    const from = order === "BGR" ? channels - 1 - channel : channel; // of red, green, blue, as mean and std are
    const less = Math.fround(mean[from]);
    const by = Math.fround(std[from]);
    for (let place = 0; place < width * height; place += 1) {
      values[channel * width * height + place] = Math.fround(placed.data[place * channels + from] - less) / by;
    }
  }
  return { values, placement };
}

/** RGB, or the brightness by ITU-R BT.601, of RGBA. */
function coloured(pixels, channels) {
  const count = pixels.width * pixels.height;
  const data = new Uint8Array(count * channels);
  for (let place = 0; place < count; place += 1) {
    const [red, green, blue] = pixels.data.subarray(place * 4, place * 4 + 3);
    if (channels === 1) data[place] = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
    else data.set([red, green, blue], place * 3);
  }
  return data;
}

/** A picture of another size: each new pixel is the mean of those below a triangle around it, rows first. */
function resized(picture, width, height, channels) {
  const across = along(picture.data, picture.width, picture.height, width, channels, 1, picture.width);
  const down = along(across, picture.height, width, height, channels, width, 1);
  return { width, height, data: down };
}

/** Resample lines of `size` pixels to `wanted`; `step` between pixels of a line, `jump` between lines, in pixels. */
function along(data, size, lines, wanted, channels, step, jump) {
  if (size === wanted) return data;
  const made = new Uint8Array(wanted * lines * channels);
  const scale = size / wanted;
  const spread = Math.max(scale, 1);
  const newJump = step === 1 ? wanted : jump;
  for (let at = 0; at < wanted; at += 1) {
    const centre = (at + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - spread + 0.5), 0);
    const end = Math.min(Math.trunc(centre + spread + 0.5), size);
    const weights = [];
    for (let one = first; one < end; one += 1) {
      weights.push(Math.max(1 - Math.abs((one - centre + 0.5) * (1 / spread)), 0));
    }
    const whole = weights.reduce((sum, weight) => sum + weight, 0);
    const fixed = weights.map((weight) => Math.trunc(0.5 + (weight / whole) * 2 ** BITS));
    for (let line = 0; line < lines; line += 1) {
      for (let channel = 0; channel < channels; channel += 1) {
        let sum = 2 ** (BITS - 1);
        fixed.forEach((weight, place) => {
          sum += data[((first + place) * step + line * jump) * channels + channel] * weight;
        });
        made[(at * step + line * newJump) * channels + channel] = Math.min(255, Math.floor(sum / 2 ** BITS));
      }
    }
  }
  return made;
}

/** A picture on grey ground. */
function framed(picture, width, height, placement, channels) {
  const data = new Uint8Array(width * height * channels).fill(GREY);
  for (let row = 0; row < picture.height; row += 1) {
    const line = picture.data.subarray(row * picture.width * channels, (row + 1) * picture.width * channels);
    data.set(line, ((row + placement.top) * width + placement.left) * channels);
  }
  return { width, height, data };
}

// --- after the network

const READ = { classification: classesOf, tagging: tagsOf, detection: boxesOf };

function classAt(place) {
  const known = MODEL.classes[place];
  return known ? { class_id: known.id, name: known.name } : { class_id: place, name: String(place) };
}

function classesOf(outputs) {
  const asked = MODEL.outputs.probabilities ?? MODEL.outputs.logits;
  const scores = [...outputs[asked].data];
  const likely = MODEL.outputs.probabilities ? scores : softmax(scores);
  return order(likely).map((place) => ({ ...classAt(place), score: rounded(likely[place], 6) }));
}

function tagsOf(outputs, _placement, limits) {
  const asked = MODEL.outputs.probabilities ?? MODEL.outputs.logits;
  const scores = [...outputs[asked].data];
  const likely = MODEL.outputs.probabilities ? scores : scores.map((score) => 0.5 * (1 + Math.tanh(score / 2)));
  const threshold = limits.score_threshold;
  return order(likely).map((place) => ({
    ...classAt(place), score: rounded(likely[place], 6), present: likely[place] >= threshold, threshold,
  }));
}

function boxesOf(outputs, placement, limits) {
  const { boxes, scores } = LAYOUTS[Object.keys(MODEL.outputs).join(" ")](outputs);
  const found = [];
  for (let type = 0; type < (scores[0]?.length ?? 0); type += 1) {
    const places = scores.flatMap((row, place) =>
      row[type] >= limits.score_threshold && boxes[place].every(Number.isFinite) ? [place] : [],
    );
    const likely = places.map((place) => scores[place][type]);
    const best = order(likely).slice(0, MOST_CANDIDATES).map((place) => places[place]);
    for (const place of apart(best, boxes, limits)) found.push({ place, type, score: scores[place][type] });
  }
  const kept = order(found.map((one) => one.score)).slice(0, limits.max_detections).map((place) => found[place]);
  return kept.map(({ place, type, score }) => ({
    ...classAt(type), score: rounded(score, 6), box: inPicture(boxes[place], placement).map((edge) => rounded(edge, 2)),
  }));
}

/** Of boxes, best first, those that no better one overlaps too much. */
function apart(places, boxes, limits) {
  const kept = [];
  for (const place of places) {
    if (kept.length >= limits.max_detections) break;
    if (kept.every((other) => overlap(boxes[other], boxes[place]) <= limits.iou_threshold)) kept.push(place);
  }
  return kept;
}

function overlap(one, other) {
  const size = (box) => Math.max(box[2] - box[0], 0) * Math.max(box[3] - box[1], 0);
  const wide = Math.max(Math.min(one[2], other[2]) - Math.max(one[0], other[0]), 0);
  const high = Math.max(Math.min(one[3], other[3]) - Math.max(one[1], other[1]), 0);
  return (wide * high) / Math.max(size(one) + size(other) - wide * high, 1e-9);
}

function inPicture(box, { width, height, scaleX, scaleY, left, top }) {
  const moved = (value, offset, scale) => Math.fround(Math.fround(value - offset) / Math.fround(scale));
  const x = (value) => Math.min(Math.max(moved(value, left, scaleX), 0), width);
  const y = (value) => Math.min(Math.max(moved(value, top, scaleY), 0), height);
  return [x(box[0]), y(box[1]), x(box[2]), y(box[3])];
}

/** How networks of different makers lay out boxes, by the roles of their outputs: corners, and a score for each class. */
const LAYOUTS = {
  "boxes scores": (outputs) => ({ boxes: rowsOf(outputs, "boxes"), scores: rowsOf(outputs, "scores") }),
  yolo: (outputs) => {
    const columns = rowsOf(outputs, "yolo");
    const rows = columns[0].map((_one, place) => columns.map((column) => column[place]));
    return { boxes: rows.map(corners), scores: rows.map((row) => row.slice(4)) };
  },
  yolov5: (outputs) => {
    const rows = rowsOf(outputs, "yolov5");
    return { boxes: rows.map(corners), scores: rows.map((row) => row.slice(5).map((one) => Math.fround(one * row[4]))) };
  },
  end2end: (outputs) => {
    const rows = rowsOf(outputs, "end2end");
    const scores = rows.map((row) => MODEL.classes.map((_one, type) => (Math.trunc(row[5]) === type ? row[4] : 0)));
    return { boxes: rows.map((row) => row.slice(0, 4)), scores };
  },
  "detr_logits detr_boxes": (outputs) => ({
    boxes: parts(outputs), scores: rowsOf(outputs, "detr_logits").map((row) => softmax(row).slice(0, -1)),
  }),
  "detr_sigmoid_logits detr_boxes": (outputs) => ({
    boxes: parts(outputs),
    scores: rowsOf(outputs, "detr_sigmoid_logits").map((row) => row.map((one) => 1 / (1 + Math.exp(-one)))),
  }),
};

function parts(outputs) {
  const { width, height } = MODEL.input;
  const rows = rowsOf(outputs, "detr_boxes");
  return rows.map(([x, y, wide, high]) => corners([x * width, y * height, wide * width, high * height]));
}

function corners([x, y, wide, high]) {
  return [x - wide / 2, y - high / 2, x + wide / 2, y + high / 2];
}

/** The rows of the first picture of an output [N, rows, columns]. */
function rowsOf(outputs, role) {
  const { data, dims } = outputs[MODEL.outputs[role]];
  const [, count, columns] = dims;
  return Array.from({ length: count }, (_one, row) => [...data.subarray(row * columns, (row + 1) * columns)]);
}

function softmax(scores) {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const whole = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / whole);
}

/** Places of numbers, the highest first, equal ones in their order. */
function order(numbers) {
  return numbers.map((_one, place) => place).sort((one, other) => numbers[other] - numbers[one]);
}

/** To the nearest whole number; a half to the even one. */
function roundEven(number) {
  const below = Math.floor(number);
  const more = number - below;
  if (more === 0.5) return below % 2 ? below + 1 : below;
  return more < 0.5 ? below : below + 1;
}

function rounded(number, digits) {
  return roundEven(number * 10 ** digits) / 10 ** digits;
}

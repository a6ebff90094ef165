"""Box arithmetic of the detector: points of the feature maps, target assignment, overlap, suppression."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MAX_WEIGHT = 5.0  # of an object of a rare class, to one of the most frequent
SMALLEST, LARGEST = 4.0, 8.0  # a feature map answers for objects of 4 to 8 strides from point to side


def points(shapes: list[tuple[int, int]], strides: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Centres of all cells of all maps in input pixels [P, 2], and their strides [P]."""
    places, steps = [], []
    for (rows, columns), stride in zip(shapes, strides, strict=True):
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        places.append((torch.stack([x, y], -1).reshape(-1, 2).float() + 0.5) * stride)
        steps.append(torch.full((rows * columns,), float(stride)))
    return torch.cat(places), torch.cat(steps)


def assign(
    places: Tensor, steps: Tensor, boxes: Tensor, valid: Tensor, *, strides: tuple[int, ...], radius: float
) -> tuple[Tensor, Tensor]:
    """Which box each point answers for: the smallest one whose centre is near and whose size suits the map.

    Args:
        places, steps: [P, 2] and [P], from `points`.
        boxes, valid: [N, K, 4] xyxy and [N, K]; rows that are not valid are padding.
        radius: how near the centre, in strides.

    Returns:
        box index [N, P] (-1: background) and distances left, top, right, bottom to the box's sides [N, P, 4].
    """
    if boxes.shape[1] == 0:
        nothing = places.new_zeros((len(boxes), len(places), 4))
        return torch.full(nothing.shape[:2], -1, device=places.device), nothing
    centers, step = places[None, :, None, :], steps[None, :, None]
    box = boxes[:, None]
    sides = torch.cat([centers - box[..., :2], box[..., 2:] - centers], -1)  # [N, P, K, 4]
    off_centre = (centers - (box[..., :2] + box[..., 2:]) / 2).abs().amax(-1)
    reach = sides.amax(-1)
    low = torch.where(step == min(strides), 0.0, SMALLEST * step)
    high = torch.where(step == max(strides), float("inf"), LARGEST * step)
    suits = (sides.amin(-1) > 0) & (off_centre < radius * step) & (reach >= low) & (reach < high)
    size = (boxes[..., 2:] - boxes[..., :2]).prod(-1)[:, None].expand_as(reach)
    smallest, chosen = size.masked_fill(~suits | ~valid[:, None], float("inf")).min(-1)
    distances = sides.gather(2, chosen[..., None, None].expand(-1, -1, 1, 4)).squeeze(2)
    return torch.where(smallest.isinf(), -1, chosen), distances


def class_weights(classes: np.ndarray, count: int) -> Tensor:
    """How much an object of each class counts: rare ones more, by the root, so that few steps reach them too.

    Args:
        classes: index of the class of each object, of `count` classes.
    """
    counts = np.bincount(classes, minlength=count).clip(min=1)
    weights = np.sqrt(counts.max() / counts).clip(max=MAX_WEIGHT)
    return torch.from_numpy(weights * counts.sum() / (weights * counts).sum()).float()


def padded(objects: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes [K, 4] and classes [K] of each image as tensors [N, K, 4], [N, K], and which of the K are real [N, K]."""
    max_boxes = max(len(boxes) for boxes, _ in objects)
    boxes = torch.zeros(len(objects), max_boxes, 4)
    classes = torch.zeros(len(objects), max_boxes, dtype=torch.int64)
    valid = torch.zeros(len(objects), max_boxes, dtype=torch.bool)
    for index, (own, kinds) in enumerate(objects):
        boxes[index, : len(own)] = torch.from_numpy(own)
        classes[index, : len(own)] = torch.from_numpy(kinds)
        valid[index, : len(own)] = True
    return boxes, classes, valid


def overlap(ours: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """IoU and GIoU of boxes given as distances [M, 4] from the same points."""
    small, large = torch.minimum(ours, theirs), torch.maximum(ours, theirs)
    both = (small[:, 0] + small[:, 2]) * (small[:, 1] + small[:, 3])
    around = (large[:, 0] + large[:, 2]) * (large[:, 1] + large[:, 3])
    areas = [(side[:, 0] + side[:, 2]) * (side[:, 1] + side[:, 3]) for side in (ours, theirs)]
    union = (areas[0] + areas[1] - both).clamp(min=1e-6)
    iou = both / union
    return iou, iou - (around - union) / around.clamp(min=1e-6)


def nms(boxes: np.ndarray, scores: np.ndarray, *, iou: float) -> np.ndarray:
    """Greedy non-maximum suppression within one class: indices of the remaining boxes [M, 4] xyxy, best first."""
    order = np.argsort(-scores, kind="stable")
    x0, y0, x1, y1 = boxes[order].T
    area = (x1 - x0) * (y1 - y0)
    wide = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    high = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    both = wide.clip(0) * high.clip(0)
    hides = both > iou * (area[:, None] + area - both)
    alive = np.ones(len(order), bool)
    for index in range(len(order)):
        if alive[index]:
            alive[index + 1 :] &= ~hides[index, index + 1 :]
    return np.asarray(order[alive])

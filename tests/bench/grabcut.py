"""What a mask from a box costs nothing to learn: GrabCut in the true boxes of `nuts`, scored as masks are.

`python -m tests.bench.grabcut` prints COCO's mask AP50 of the images that `instances-nuts` is scored on, beside that of
the ellipses in the boxes. It needs OpenCV, which the platform does not: `pip install --target FOLDER
opencv-python-headless`, then PYTHONPATH=FOLDER. Rother, Kolmogorov, Blake: GrabCut, 2004.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as coco_masks
from PIL import Image

from tests import public_data
from tests.presets import versions
from training.presets import coco, data, masks

ROUNDS = 5


def main() -> None:
    """Score both, or say why not."""
    public = public_data.find()
    if importlib.util.find_spec("cv2") is None:
        sys.exit("OpenCV is not installed, so there is nothing to compare with; see the head of this file.")
    if public is None:
        sys.exit("nuts is public data that is not here (tests/public_data.py).")
    with tempfile.TemporaryDirectory(prefix="grabcut-") as scratch:
        version = data.read(versions.nuts(Path(str(public)) / "nuts" / "coco", Path(scratch) / "nuts"))
        rows = [row for row, image in enumerate(version.images) if image.split == "val"]
        for name, drawn in (("grabcut", grabcut), ("ellipses", ellipse)):
            print(json.dumps({"bench": f"nuts-{name}", "mask_ap50": scored(version, rows, drawn)}))


def scored(version: data.Version, rows: list[int], drawn: Any) -> float:
    """Mask AP50 of `drawn(pixels, shape)`, given the true box and class of each object."""
    every = masks.read(version)
    truth: dict[str, Any] = {"info": {}, "images": [], "annotations": []}
    truth["categories"] = [{"id": one["id"], "name": one["name"]} for one in version.classes]
    answers = []
    for row in rows:
        image = version.images[row]
        size = (image.width, image.height)
        with Image.open(version.folder / "images" / image.path) as opened:
            pixels = np.asarray(opened.convert("RGB"))
        truth["images"].append({"id": row + 1, "width": image.width, "height": image.height})
        for shape in every[row]:
            one = {"id": len(answers) + 1, "image_id": row + 1, "category_id": shape["category_id"], "iscrowd": 0}
            mask = _runs(masks.covered(shape, 1, 1, size, "ellipse"))
            truth["annotations"].append({**one, "bbox": shape["bbox"], "area": shape["area"], "segmentation": mask})
            answers.append({**one, "score": 1.0, "segmentation": _runs(drawn(pixels, shape))})
    return coco.precision(truth, answers, masks=True)[0][1]


def grabcut(pixels: np.ndarray, shape: dict[str, Any]) -> np.ndarray:
    """What GrabCut takes for the object in the true box."""
    import cv2

    cv2.setRNGSeed(0)
    mask = np.zeros(pixels.shape[:2], np.uint8)
    box = [round(side) for side in shape["bbox"]]
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(np.ascontiguousarray(pixels[..., ::-1]), mask, box, *models, ROUNDS, cv2.GC_INIT_WITH_RECT)
    return np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD))


def ellipse(pixels: np.ndarray, shape: dict[str, Any]) -> np.ndarray:
    """The ellipse in the true box."""
    size = (pixels.shape[1], pixels.shape[0])
    return masks.covered({**shape, "segmentation": []}, 1, 1, size, "ellipse")


def _runs(mask: np.ndarray) -> dict[str, Any]:
    return dict(coco_masks.encode(np.asfortranarray(mask, np.uint8)))


if __name__ == "__main__":
    main()

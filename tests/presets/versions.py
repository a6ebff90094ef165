"""Dataset versions as the platform lays them out, made from public folders or out of thin air."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from aiplatform.cli.demo import digits
from tests.presets import defects as drawn_defects
from tests.presets import figures as drawn_figures
from tests.presets import outlines as drawn_outlines
from tests.presets import symbols as drawn_symbols


def write(
    folder: Path,
    *,
    task: str,
    classes: list[str],
    images: list[dict[str, Any]],
    shapes: list[dict[str, Any]],
    said: dict[str, dict[str, Any]] | None = None,
) -> Path:
    """Write dataset.json, manifest.jsonl and annotations.json beside `folder/images/`.

    Args:
        images: manifest lines.
        shapes: {"image": index, "class": index, "bbox": [x, y, w, h]}, and more of COCO's fields if there are any.
        said: what annotations.json says of classes beyond their names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [{"id": number, "name": name, "supercategory": ""} for number, name in enumerate(classes, start=1)]
    about = {"format": 1, "dataset_id": 1, "version": 1, "name": folder.name, "task": task, "classes": names}
    (folder / "dataset.json").write_text(json.dumps({**about, "images": len(images), "annotations": len(shapes)}))
    (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in images))
    if task == "detection":
        coco = {
            "images": [
                {"id": number, "file_name": image["path"], "width": image["width"], "height": image["height"]}
                for number, image in enumerate(images, start=1)
            ],
            "annotations": [
                {
                    "id": number,
                    "image_id": shape["image"] + 1,
                    "category_id": shape["class"] + 1,
                    "bbox": shape["bbox"],
                    "area": shape["bbox"][2] * shape["bbox"][3],
                    "iscrowd": 0,
                    **{name: value for name, value in shape.items() if name not in ("image", "class")},
                }
                for number, shape in enumerate(shapes, start=1)
            ],
            "categories": [(said or {}).get(name["name"], {}) | name for name in names],
        }
        (folder / "annotations.json").write_text(json.dumps(coco))
    return folder


def _line(path: str, size: tuple[int, int], split: str, label: int | None = None) -> dict[str, Any]:
    return {
        "path": path,
        "sha256": hashlib.sha256(path.encode()).hexdigest(),
        "width": size[0],
        "height": size[1],
        "split": split,
        "label": label,
    }


def squares(folder: Path, *, train: int = 24, val: int = 8, boxes: bool = True, enlarged: int = 1) -> Path:
    """Bright squares and dark squares on grey noise: a detection version anybody can learn."""
    draw = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    images, shapes = [], []
    for number in range(train + val):
        pixels = draw.integers(100, 130, (64, 96, 3), dtype=np.uint8)
        for kind in (0, 1):
            side = int(draw.integers(14, 26))
            x, y = int(draw.integers(0, 96 - side)), int(draw.integers(0, 64 - side))
            pixels[y : y + side, x : x + side] = (235, 20)[kind]
            bbox = [enlarged * value for value in (x, y, side, side)]
            shapes.append({"image": number, "class": kind, "bbox": bbox})
        name, size = f"{number:03d}.png", (enlarged * 96, enlarged * 64)
        Image.fromarray(pixels).resize(size).save(folder / "images" / name)
        images.append(_line(name, size, "train" if number < train else "val"))
    return write(folder, task="detection", classes=["bright", "dark"], images=images, shapes=shapes if boxes else [])


def shades(folder: Path, *, train: int = 64, val: int = 16) -> Path:
    """Grey pictures, bright above or bright below: a classification version."""
    draw = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    images = []
    for number in range(train + val):
        pixels = draw.integers(0, 90, (16, 16), dtype=np.uint8)
        kind = number % 2
        pixels[8 * kind : 8 * kind + 8] += 120
        name = f"{number:03d}.png"
        Image.fromarray(pixels).save(folder / "images" / name)
        images.append(_line(name, (16, 16), "train" if number < train else "val", kind + 1))
    return write(folder, task="classification", classes=["above", "below"], images=images, shapes=[])


def bccd(source: Path, folder: Path) -> Path:
    """Convert BCCD's VOC folder; its two boxes without area are left out."""
    classes = ["RBC", "WBC", "Platelets"]
    folder.mkdir(parents=True)
    (folder / "images").symlink_to(source / "JPEGImages")
    images, shapes = [], []
    for split in ("train", "val", "test"):
        for name in (source / "ImageSets" / "Main" / f"{split}.txt").read_text().split():
            root = ElementTree.parse(source / "Annotations" / f"{name}.xml").getroot()
            with Image.open(source / "JPEGImages" / f"{name}.jpg") as picture:
                size = picture.size
            for thing in root.iter("object"):
                x0, y0, x1, y1 = (float(thing.findtext(f"bndbox/{k}") or 0) for k in ("xmin", "ymin", "xmax", "ymax"))
                if x1 > x0 and y1 > y0:
                    kind = classes.index(thing.findtext("name") or "")
                    shapes.append({"image": len(images), "class": kind, "bbox": [x0, y0, x1 - x0, y1 - y0]})
            images.append(_line(f"{name}.jpg", size, split))
    return write(folder, task="detection", classes=classes, images=images, shapes=shapes)


def fashion(source: Path, folder: Path) -> Path:
    """Unpack the Fashion-MNIST zip, class folders `train/0` … `test/9`."""
    with zipfile.ZipFile(source) as archive:
        archive.extractall(folder / "images")
    images = []
    for path in sorted((folder / "images").rglob("*.png")):
        split = "train" if "train" in path.parts else "test"
        images.append(_line(str(path.relative_to(folder / "images")), (28, 28), split, int(path.parent.name) + 1))
    return write(folder, task="classification", classes=[str(n) for n in range(10)], images=images, shapes=[])


def digits_demo(folder: Path) -> Path:
    """What `up --demo` trains on, without the platform."""
    made = digits.draw(digits.COUNTS, classes=digits.CLASSES)
    return _drawn(folder, made, [str(number) for number in digits.CLASSES])


def symbols(folder: Path, *, train: int = 260, val: int = 40) -> Path:
    """Small drawn symbols on photograph-like grounds, upright and lying, 4:3 and 16:9 (tests/presets/symbols.py)."""
    return _drawn(folder, drawn_symbols.draw({"train": train, "val": val}), list(drawn_symbols.CLASSES))


def large_symbols(folder: Path) -> Path:
    """The same symbols on pictures of four times the area, where a whole picture is more than a model can look at."""
    return _drawn(folder, drawn_symbols.draw({"train": 80, "val": 20}, larger=2), list(drawn_symbols.CLASSES))


def outlines(folder: Path, *, train: int = 260, val: int = 40, size: tuple[int, int] = drawn_outlines.SIZE) -> Path:
    """Filled shapes with polygons around them (tests/presets/outlines.py)."""
    return _outlined(folder, drawn_outlines.draw({"train": train, "val": val}, size=size))


def large_outlines(
    folder: Path,
    *,
    train: int = 60,
    val: int = 16,
    size: tuple[int, int] = (2048, 1536),
    shapes: tuple[int, int] = (8, 20),
) -> Path:
    """Shapes of 24 to 62 pixels on pictures that are more than a model can look at as a whole."""
    sides = 24 / min(size), 62 / min(size)
    return _outlined(folder, drawn_outlines.draw({"train": train, "val": val}, size=size, sides=sides, shapes=shapes))


def _outlined(folder: Path, made: list[drawn_outlines.Picture]) -> Path:
    (folder / "images").mkdir(parents=True)
    images, shapes = [], []
    for number, picture in enumerate(made):
        picture.image.save(folder / "images" / picture.name, compress_level=1)  # grain hardly packs
        images.append(_line(picture.name, picture.image.size, picture.split))
        shapes += [_polygon(number, drawn_outlines.CLASSES.index(name), [ring]) for name, ring in picture.outlines]
    return write(folder, task="detection", classes=list(drawn_outlines.CLASSES), images=images, shapes=shapes)


def figures(
    folder: Path, *, train: int = 260, val: int = 40, size: tuple[int, int] = drawn_figures.SIZE, most: int = 2
) -> Path:
    """Drawn people, fish and clocks with keypoints (tests/presets/figures.py)."""
    made = drawn_figures.draw({"train": train, "val": val}, size=size, most=most)
    (folder / "images").mkdir(parents=True)
    classes = list(drawn_figures.SKELETONS)
    images, shapes = [], []
    for number, picture in enumerate(made):
        picture.image.save(folder / "images" / picture.name)
        images.append(_line(picture.name, picture.image.size, picture.split))
        shapes += [_posed(number, classes.index(one.kind), one) for one in picture.figures]
    said = {name: {"keypoints": names, "skeleton": links} for name, (names, links) in drawn_figures.SKELETONS.items()}
    return write(folder, task="detection", classes=classes, images=images, shapes=shapes, said=said)


def _posed(image: int, kind: int, figure: drawn_figures.Figure) -> dict[str, Any]:
    known = sum(point[2] > 0 for point in figure.points)
    points = [value for point in figure.points for value in point]
    return {"image": image, "class": kind, "bbox": list(figure.box), "keypoints": points, "num_keypoints": known}


def nuts(source: Path, folder: Path) -> Path:
    """The 18 photographs of dates, figs and hazelnuts with their polygons; every third is scored on."""
    coco = json.loads((source / "trainval.json").read_text())
    folder.mkdir(parents=True)
    (folder / "images").symlink_to(source / "images")
    places = {entry["id"]: place for place, entry in enumerate(coco["images"])}
    images = [
        _line(entry["file_name"], (entry["width"], entry["height"]), "train" if place % 3 else "val")
        for place, entry in enumerate(coco["images"])
    ]
    shapes = [
        _polygon(places[one["image_id"]], one["category_id"] - 1, one["segmentation"]) for one in coco["annotations"]
    ]
    return write(
        folder, task="detection", classes=[c["name"] for c in coco["categories"]], images=images, shapes=shapes
    )


def _polygon(image: int, kind: int, rings: list[list[float]]) -> dict[str, Any]:
    points = [value for ring in rings for value in ring]
    left, top = min(points[::2]), min(points[1::2])
    bbox = [left, top, max(points[::2]) - left, max(points[1::2]) - top]
    return {"image": image, "class": kind, "bbox": bbox, "segmentation": rings, "attributes": {"shape": "polygon"}}


def _drawn(folder: Path, made: list[digits.Drawing], classes: list[str]) -> Path:
    (folder / "images").mkdir(parents=True)
    images, shapes = [], []
    for number, drawing in enumerate(made):
        drawing.image.save(folder / "images" / drawing.name, quality=92)
        images.append(_line(drawing.name, drawing.image.size, drawing.split))
        shapes += [{"image": number, "class": classes.index(box[0]), "bbox": list(box[1:])} for box in drawing.boxes]
    return write(folder, task="detection", classes=classes, images=images, shapes=shapes)


def defects(folder: Path, *, train: int = 60, test: int = 60) -> Path:
    """Cloth without defects to learn from, with and without to be judged (tests/presets/defects.py)."""
    images = []
    for one in drawn_defects.draw(train=train, test=test):
        path = folder / "images" / one.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.jpeg)
        size = (drawn_defects.SIZE, drawn_defects.SIZE)
        images.append(_line(one.name, size, one.split, 1 + drawn_defects.CLASSES.index(one.kind)))
    return write(folder, task="classification", classes=list(drawn_defects.CLASSES), images=images, shapes=[])


def crops(source: Path, folder: Path) -> Path:
    """Each box of BCCD cut out, with a tenth around it: the kind of a cell is the class of its image."""
    boxed = bccd(source, folder.with_name(f"{folder.name}-boxed"))
    coco = json.loads((boxed / "annotations.json").read_text())
    lines = [json.loads(line) for line in (boxed / "manifest.jsonl").read_text().splitlines()]
    (folder / "images").mkdir(parents=True)
    images = []
    for one in coco["annotations"]:
        line, (x, y, w, h) = lines[one["image_id"] - 1], one["bbox"]
        corners = (x - w / 10, y - h / 10, x + 1.1 * w, y + 1.1 * h)
        name = f"{one['id']:05d}.png"
        with Image.open(boxed / "images" / line["path"]) as whole:
            cut = whole.crop(tuple(round(corner) for corner in corners))
        cut.save(folder / "images" / name)
        images.append(_line(name, cut.size, line["split"], one["category_id"]))
    names = [str(entry["name"]) for entry in coco["categories"]]
    return write(folder, task="classification", classes=names, images=images, shapes=[])

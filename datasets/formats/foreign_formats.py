"""Annotation formats that are recognized by name but not read, with the export that is. No Django, no database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_HEAD_BYTES = 64 << 10
COCO = "COCO"


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format and how it is recognized.

    Args:
        label: as its tool calls it.
        export: format of this platform that the tool or a converter writes.
        suffixes: endings of its files, lower case.
        marks: all of these are in the first 64 KiB.
        pattern: or each of the first lines matches this.
    """

    label: str
    export: str
    suffixes: tuple[str, ...]
    marks: tuple[bytes, ...] = ()
    pattern: re.Pattern[bytes] | None = None


_NUMBER = rb"-?\d{1,9}(?:\.\d{0,9})?"
#: Source of each: the documentation of the tool. The first that fits is named, so narrow ones come first.
FORMATS = [
    ForeignFormat("VGG Image Annotator (VIA)", COCO, (".json",), (b'"_via_',)),
    ForeignFormat("VGG Image Annotator (VIA)", COCO, (".json",), (b'"regions"', b'"shape_attributes"')),
    ForeignFormat("VGG Image Annotator (VIA)", COCO, (".csv",), (b"region_shape_attributes",)),
    ForeignFormat("Supervisely", COCO, (".json",), (b'"classTitle"', b'"objects"')),
    ForeignFormat("Supervisely", COCO, (".json",), (b'"classes"', b'"tags"', b'"geometry_config"')),
    ForeignFormat("Datumaro", COCO, (".json",), (b'"items"', b'"label_id"')),
    ForeignFormat("Datumaro", COCO, (".json",), (b'"items"', b'"categories"', b'"labels"')),
    ForeignFormat("V7 Darwin", COCO, (".json",), (b"darwin", b'"annotations"')),
    ForeignFormat("Labelbox", COCO, (".json", ".ndjson"), (b'"data_row"',)),
    ForeignFormat("Labelbox", COCO, (".json", ".ndjson"), (b'"Labeled Data"',)),
    ForeignFormat("Scale AI", COCO, (".json",), (b'"task_id"', b'"response"', b'"annotations"')),
    ForeignFormat("Encord", COCO, (".json",), (b'"label_hash"',)),
    ForeignFormat("SuperAnnotate", COCO, (".json",), (b'"className"', b'"instances"')),
    ForeignFormat("Amazon SageMaker Ground Truth", COCO, (".manifest", ".jsonl", ".json"), (b'"source-ref"',)),
    ForeignFormat("Google Vertex AI", COCO, (".jsonl", ".json"), (b'"imageGcsUri"',)),
    ForeignFormat("Microsoft VoTT", "Pascal VOC", (".json", ".vott"), (b'"regions"', b'"asset"')),
    ForeignFormat("Create ML", COCO, (".json",), (b'"coordinates"', b'"label"')),
    ForeignFormat("BDD100K", COCO, (".json",), (b'"box2d"',)),
    ForeignFormat("Cityscapes", COCO, (".json",), (b'"imgHeight"', b'"polygon"')),
    ForeignFormat("FiftyOne", COCO, (".json",), (b'"_dataset_id"',)),
    ForeignFormat("Hugging Face image folder", COCO, (".jsonl",), (b'"file_name"',)),
    ForeignFormat("CVAT for video", "CVAT for images", (".xml",), (b"<annotations", b"<track ")),
    ForeignFormat("imglab (dlib)", "Pascal VOC", (".xml",), (b"<dataset", b"<image file=")),
    ForeignFormat("LabelMe 3", "LabelMe", (".xml",), (b"<annotation>", b"<polygon>", b"<pt>")),
    ForeignFormat("Open Images", COCO, (".csv",), (b"ImageID", b"LabelName")),
    ForeignFormat("TensorFlow Object Detection CSV", "Pascal VOC", (".csv",), (b"xmin", b"class")),
    ForeignFormat("Kaggle run lengths", COCO, (".csv",), (b"EncodedPixels",)),
    ForeignFormat("TFRecord", COCO, (".tfrecord", ".tfrecords", ".record")),
    ForeignFormat("TensorFlow label map", COCO, (".pbtxt",), (b"item", b"name")),
    ForeignFormat("MATLAB", COCO, (".mat",)),
    ForeignFormat(
        "KITTI", COCO, (".txt",), pattern=re.compile(rb"^[A-Za-z_]{2,40}(?: " + _NUMBER + rb"){14,15}\s*$")
    ),
    ForeignFormat(
        "DOTA", "YOLO segment", (".txt",),
        pattern=re.compile(rb"^(?:imagesource:.{0,99}|gsd:.{0,99}|(?:" + _NUMBER + rb" ){8}[\w-]{1,40} [0-2])\s*$"),
    ),
    ForeignFormat(
        "MOT Challenge", COCO, (".txt",), pattern=re.compile(rb"^\d{1,9},\d{1,9}(?:," + _NUMBER + rb"){4,8}\s*$")
    ),
]  # fmt: skip


def find(root: Path, name: str) -> ForeignFormat | None:
    """Return the format of a file that is no image and was not read; None for an unknown one."""
    suffix = PurePosixPath(name).suffix.lower()
    candidates = [entry for entry in FORMATS if suffix in entry.suffixes]
    if not candidates:
        return None
    head = _head(root / name)
    lines = [line[:400] for line in head.splitlines()[:5] if line.strip()]
    for entry in candidates:
        if entry.pattern is not None:
            if lines and all(entry.pattern.match(line) for line in lines):
                return entry
        elif all(mark in head for mark in entry.marks):
            return entry
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES).replace(b"\0", b"")
    except OSError:
        return b""

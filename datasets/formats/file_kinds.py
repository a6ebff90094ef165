"""Kinds of files other than images and annotations, so that the report can name each. No database."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path, PurePosixPath

from aiplatform.lib.wording import Message, message
from datasets.formats import foreign_formats

#: Taken as images; the first bytes decide later whether they are.
IMAGE_SUFFIXES = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".bmp", ".webp", ".gif", ".tif", ".tiff",
}  # fmt: skip
if importlib.util.find_spec("pillow_heif"):
    IMAGE_SUFFIXES |= {".heic", ".heif"}
_BY_SUFFIX = {
    "foreign_image": {
        ".avif", ".svg", ".psd", ".ai", ".eps", ".ico", ".jp2", ".j2k", ".jxl", ".exr", ".hdr", ".dcm", ".nii", ".tga",
        ".ppm", ".pgm", ".pbm", ".ps", ".wmf", ".emf", ".xcf", ".czi", ".nd2", ".svs",
    },
    "heic_photo": {".heic", ".heif"},
    "raw_photo": {
        ".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".dng", ".raf", ".orf", ".rw2", ".pef", ".srw", ".x3f",
    },
    "video": {
        ".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".wmv", ".flv", ".mpg", ".mpeg", ".ts", ".3gp",
    },
    "document": {
        ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".rtf", ".html", ".htm",
    },
    "archive_inside": {
        ".zip", ".tar", ".tgz", ".gz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".7z", ".rar", ".iso",
    },
    "array_file": {
        ".npy", ".npz", ".mat", ".h5", ".hdf5", ".pkl", ".pickle", ".parquet", ".tfrecord", ".record", ".pt", ".pth",
        ".onnx", ".lmdb", ".mdb", ".bin", ".safetensors",
    },
}  # fmt: skip
_SORTS = {suffix: sort for sort, suffixes in _BY_SUFFIX.items() for suffix in suffixes}
_HEAD_BYTES = 64 << 10
_LABEL_COLUMN = re.compile(
    r"x_?min|x1|class|label|class_name|category|rle|encodedpixels|bbox|boxes|box|labels|target|predictionstring|"
    r"polygon|segmentation"
)
_NUMBER = re.compile(r"(?<![\w.-])-?\d{1,9}(?:\.\d{0,12})?(?![\w.])")

#: Sort of a file that is not read → what the report says about one of them.
SENTENCES = {
    "foreign_image": message("report.foreign_image"),
    "heic_photo": message("report.heic_photo"),
    "raw_photo": message("report.raw_photo"),
    "video": message("report.video"),
    "document": message("report.document"),
    "archive_inside": message("report.archive_inside"),
    "array_file": message("report.array_file"),
    "other_labels": message("report.other_labels"),
    "captions": message("report.captions"),
    "csv_labels": message("report.csv_labels"),
    "class_texts": message("report.class_texts"),
    "odd_json": message("report.odd_json"),
    "odd_xml": message("report.odd_xml"),
    "other_file": message("report.other_file"),
}
#: Those of them that may hold what the user wanted: problems, not notes.
LOST = {"foreign_image", "heic_photo", "raw_photo", "video", "archive_inside"}
#: Codes of files that look like annotations and were not used.
LABELS = {
    "other_labels", "unread_labels", "captions", "csv_labels", "via_labels", "createml_labels", "foreign_labels",
    "mask_not_read", "bad_mask_image", "unreadable", "unsafe_xml", "not_coco",
    "class_texts", "ambiguous_image",
}  # fmt: skip


def describe(root: Path, name: str) -> tuple[str, Message]:
    """Return the sort of a file that is neither an image nor was read, and its message in the report."""
    if foreign := foreign_formats.find(root, name):
        return "foreign_labels", message("report.foreign_labels", format=foreign.label, advice=foreign.export)
    sort = sort_of(root, name)
    return sort, SENTENCES[sort]


def sort_of(root: Path, name: str) -> str:
    """The key in `SENTENCES` of a file that is neither an image nor was read."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in _SORTS:
        return _SORTS[suffix]
    if suffix == ".json":
        return _json(root / name)
    if suffix == ".xml":
        return "other_labels" if b"<annotation" in _head(root / name) else "odd_xml"
    if suffix in {".csv", ".tsv"}:
        return _table(root / name)
    if suffix == ".txt" and (_looks_like_yolo(root / name) or _has_numbers(root / name)):
        return "other_labels"
    return "other_file"


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES).replace(b"\0", b"")  # UTF-16 as ASCII
    except OSError:
        return b""


def _json(path: Path) -> str:
    head = _head(path)
    if b'"shapes"' in head or b'"imagePath"' in head:
        return "other_labels"
    if b'"segments_info"' in head or (b'"images"' in head and b'"file_name"' in head):
        return "captions" if b'"categories"' not in head or b'"caption"' in head else "other_labels"
    if b'"image_id"' in head and (b'"bbox"' in head or b'"segmentation"' in head):  # detections as COCO has them
        return "other_labels"
    if path.stem.startswith(("captions", "person_keypoints", "stuff", "panoptic")):
        return "captions"
    return "odd_json"


def _table(path: Path) -> str:
    if path.name.casefold() == "_classes.csv":  # Roboflow: a column per class
        return "csv_labels"
    head = _head(path).decode("utf-8", "replace").casefold().partition("\n")[0]
    columns = set(head.replace(";", ",").replace("\t", ",").replace('"', "").replace(" ", "").strip().split(","))
    has_name = columns & {"filename", "file_name", "image", "image_id", "imageid", "image_path", "path", "file", "id"}
    has_label = any(map(_LABEL_COLUMN.fullmatch, columns))
    return "csv_labels" if has_name and has_label else "other_file"


def _looks_like_yolo(path: Path) -> bool:
    lines = [line.split() for line in _head(path).decode("utf-8", "replace").splitlines()[:5] if line.strip()]
    return bool(lines) and all(parse_yolo_line(fields) is not None for fields in lines)


def _has_numbers(path: Path) -> bool:
    """Whether each of the first lines has four numbers or more, as boxes have in whatever form."""
    lines = [line for line in _head(path).decode("utf-8", "replace").splitlines()[:5] if line.strip()]
    return bool(lines) and all(len(_NUMBER.findall(line[:1000])) >= 4 for line in lines)


def parse_yolo_line(fields: list[str]) -> tuple[int, list[float]] | None:
    """Return class index and numbers of one line of a YOLO file; None for other lines. Numbers are not checked."""
    if len(fields) < 5:
        return None
    try:
        index = int(fields[0][:12]) if fields[0].isdecimal() else int(float(fields[0]))
        numbers = [float(word) for word in fields[1:]]
    except (ValueError, OverflowError):
        return None
    return (index, numbers) if 0 <= index < 1_000_000 else None

"""An import's report in words: what its codes mean, in a plural each, and its sentences in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib.wording import Message

PHASES = {
    "unpacking": _("Unpacking"),
    "reading": _("Reading the annotations"),
    "checking": _("Looking at every image"),
    "moving": _("Putting the images in place"),
    "writing": _("Writing the version"),
}
MEANINGS: dict[str, Any] = {
    # shapes
    "degenerate_box": ngettext_lazy("box without area, left out", "boxes without area, left out"),
    "degenerate_polygon": ngettext_lazy("polygon without area, left out", "polygons without area, left out"),
    "degenerate_mask": ngettext_lazy("empty mask, left out", "empty masks, left out"),
    "short_polygon": ngettext_lazy(
        "polygon of fewer than three points, left out", "polygons of fewer than three points, left out"
    ),
    "bad_box": ngettext_lazy("box that cannot be read", "boxes that cannot be read"),
    "bad_line": ngettext_lazy("line that cannot be read, left out", "lines that cannot be read, left out"),
    "same_line": ngettext_lazy("line that stands twice, left out", "lines that stand twice, left out"),
    "other_shape": ngettext_lazy(
        "shape that is no box and no polygon, left out", "shapes that are no box and no polygon, left out"
    ),
    "keypoints": ngettext_lazy("box whose keypoints were left out", "boxes whose keypoints were left out"),
    "score": ngettext_lazy("box whose score was left out", "boxes whose score was left out"),
    "lost_shapes": ngettext_lazy(
        "shape left out with an image or a file that cannot be used",
        "shapes left out with images or files that cannot be used",
    ),
    "outside_image": ngettext_lazy("shape off the image, left out", "shapes off the image, left out"),
    "clipped_box": ngettext_lazy("box cut at the image's edge", "boxes cut at the image's edge"),
    "beyond_edge": ngettext_lazy(
        "shape that sticks out of the image, kept", "shapes that stick out of the image, kept"
    ),
    "not_a_box": ngettext_lazy("box without four corners, left out", "boxes without four corners, left out"),
    "crossing": ngettext_lazy("polygon whose lines cross, left out", "polygons whose lines cross, left out"),
    "no_points": ngettext_lazy("shape without points, left out", "shapes without points, left out"),
    "no_area": ngettext_lazy("shape without area, left out", "shapes without area, left out"),
    "too_few_points": ngettext_lazy("shape of too few points, left out", "shapes of too few points, left out"),
    "too_many_points": ngettext_lazy("shape of too many points, left out", "shapes of too many points, left out"),
    "too_many_parts": ngettext_lazy("shape of too many parts, left out", "shapes of too many parts, left out"),
    "not_pairs": ngettext_lazy(
        "shape whose points are no pairs, left out", "shapes whose points are no pairs, left out"
    ),
    "not_numbers": ngettext_lazy("coordinate that is no number", "coordinates that are no numbers"),
    "not_finite": ngettext_lazy("coordinate that is no finite number", "coordinates that are no finite numbers"),
    "outside": ngettext_lazy("shape off the image, left out", "shapes off the image, left out"),
    "negative_box": ngettext_lazy("box of negative width or height", "boxes of negative width or height"),
    "bad_polygon": ngettext_lazy("polygon that cannot be read", "polygons that cannot be read"),
    "bad_mask": ngettext_lazy("mask that cannot be read", "masks that cannot be read"),
    "bad_area": ngettext_lazy("area that is no number", "areas that are no numbers"),
    "bad_annotation": ngettext_lazy("annotation that cannot be read", "annotations that cannot be read"),
    # what a COCO file says
    "not_coco": ngettext_lazy("file that is no COCO file", "files that are no COCO files"),
    "bad_id": ngettext_lazy("id that is no whole number", "ids that are no whole numbers"),
    "duplicate_id": ngettext_lazy("id that stands twice", "ids that stand twice"),
    "no_name": ngettext_lazy("class without a name", "classes without a name"),
    "unlike_category": ngettext_lazy(
        "class that two files call differently", "classes that two files call differently"
    ),
    "unknown_category": ngettext_lazy(
        "annotation of a class that is not there", "annotations of classes that are not there"
    ),
    "unknown_image": ngettext_lazy(
        "annotation of an image that is not there", "annotations of images that are not there"
    ),
    "unsafe_name": ngettext_lazy(
        "image whose path leads out of the data", "images whose paths lead out of the data"
    ),
    "mask_size": ngettext_lazy(
        "mask of another size than its image, skipped", "masks of another size than their image, skipped"
    ),
    "bad_shape": ngettext_lazy(
        "shape with unreadable coordinates, skipped", "shapes with unreadable coordinates, skipped"
    ),
    "pixel_line": ngettext_lazy(
        "line in pixels instead of fractions, skipped", "lines in pixels instead of fractions, skipped"
    ),
    "video_track": ngettext_lazy("box of a video track, skipped", "boxes of video tracks, skipped"),
    "ellipse": ngettext_lazy("ellipse converted to a polygon", "ellipses converted to polygons"),
    "predictions": ngettext_lazy("task with predictions only", "tasks with predictions only"),
    "not_submitted": ngettext_lazy(
        "object of a draft or a cancelled annotation, skipped", "objects of drafts or cancelled annotations, skipped"
    ),
    "fractions": ngettext_lazy(
        "dataset with coordinates that look like fractions", "datasets with coordinates that look like fractions"
    ),
    "other_names": ngettext_lazy("list of other class names", "lists of other class names"),
    "same_class_name": ngettext_lazy("class name that is used twice", "class names that are used twice"),
    "several_annotations": ngettext_lazy(
        "shape of a further annotation of a task, skipped", "shapes of further annotations of tasks, skipped"
    ),
    "tag": ngettext_lazy("class of an image as a whole, skipped", "classes of images as a whole, skipped"),
    "ambiguous_id": ngettext_lazy(
        "annotation whose category id stands for several classes, skipped",
        "annotations whose category ids stand for several classes, skipped",
    ),
    "same_annotation": ngettext_lazy("annotation listed twice", "annotations listed twice"),
    "new_id": ngettext_lazy("annotation with a new id", "annotations with new ids"),
    # classes
    "renumbered_class": ngettext_lazy("class with another id", "classes with other ids"),
    "no_class": ngettext_lazy(
        "object or image without a class, left out", "objects or images without a class, left out"
    ),
    "image_without_class": ngettext_lazy("image without a class, skipped", "images without a class, skipped"),
    "unnamed_class": ngettext_lazy(
        "class without a name, called by its number", "classes without a name, called by their numbers"
    ),
    "void_pixels": ngettext_lazy(
        "set of masks with undecided borders", "sets of masks with undecided borders"
    ),
    "extra_fields": ngettext_lazy(
        "entry with further fields that were not kept", "entries with further fields that were not kept"
    ),
    # images
    "bad_file_name": ngettext_lazy("image without a usable file name", "images without a usable file name"),
    "turned": ngettext_lazy("image whose shapes were rotated with it", "images whose shapes were rotated with them"),
    "matched_suffix": ngettext_lazy(
        "file name matched by the end of its path", "file names matched by the end of their path"
    ),
    "matched_case": ngettext_lazy("file name matched ignoring case", "file names matched ignoring case"),
    "matched_escape": ngettext_lazy("file name matched after decoding", "file names matched after decoding"),
    "matched_stem": ngettext_lazy(
        "file name matched ignoring its extension", "file names matched ignoring their extension"
    ),
    "matched_prefix": ngettext_lazy("file name matched without its prefix", "file names matched without their prefix"),
    "bad_image": ngettext_lazy("image that cannot be read, left out", "images that cannot be read, left out"),
    "bad_name": ngettext_lazy(
        "image whose name cannot be kept, left out", "images whose name cannot be kept, left out"
    ),
    "missing_image": ngettext_lazy("image that is named but not there", "images that are named but not there"),
    "unlisted_image": ngettext_lazy(
        "image no annotation file names, not annotated", "images no annotation file names, not annotated"
    ),
    "several_images": ngettext_lazy(
        "name that several images have; the nearest was taken", "names that several images have; the nearest was taken"
    ),
    "ambiguous_image": ngettext_lazy(
        "name that several images have; none was taken", "names that several images have; none was taken"
    ),
    "other_filename": ngettext_lazy(
        "annotation file that names another image", "annotation files that name another image"
    ),
    "duplicate_image": ngettext_lazy("image listed more than once", "images listed more than once"),
    "same_content": ngettext_lazy("image that is the same as another", "images that are the same as another"),
    "leak": ngettext_lazy(
        "image to score on that is also learned from", "images to score on that are also learned from"
    ),
    "two_splits": ngettext_lazy("image in two splits", "images in two splits"),
    "other_size": ngettext_lazy("image of another size than stated", "images of another size than stated"),
    "scaled": ngettext_lazy("set of shapes that was scaled", "sets of shapes that were scaled"),
    "not_scaled": ngettext_lazy("set of shapes that cannot be scaled", "sets of shapes that cannot be scaled"),
    "rotated": ngettext_lazy("image stored rotated", "images stored rotated"),
    "first_frame": ngettext_lazy(
        "image of several frames or pages, of which the first counts",
        "images of several frames or pages, of which the first counts",
    ),
    "stored_as_png": ngettext_lazy("image stored as PNG", "images stored as PNG"),
    # files
    "unread_labels": ngettext_lazy("annotation file that was not read", "annotation files that were not read"),
    "foreign_labels": ngettext_lazy(
        "annotation file of another tool, not read", "annotation files of other tools, not read"
    ),
    "other_encoding": ngettext_lazy("file in another encoding than UTF-8", "files in another encoding than UTF-8"),
    "uncertain_encoding": ngettext_lazy("file whose encoding is uncertain", "files whose encoding is uncertain"),
    "detected_masks": ngettext_lazy("folder read as masks by its content", "folders read as masks by their content"),
    "unsure_masks": ngettext_lazy("folder that may hold masks", "folders that may hold masks"),
    "unreadable": ngettext_lazy("annotation file that cannot be read", "annotation files that cannot be read"),
    "unsafe_xml": ngettext_lazy("XML file with entities", "XML files with entities"),
    "mask_not_read": ngettext_lazy("mask image, not read", "mask images, not read"),
    "mask_without_image": ngettext_lazy(
        "mask whose picture is not there, left out", "masks whose picture is not there, left out"
    ),
    "second_mask": ngettext_lazy(
        "further mask of a picture, left out", "further masks of pictures, left out"
    ),
    "other_palettes": ngettext_lazy("set of masks with several palettes", "sets of masks with several palettes"),
    "mixed_masks": ngettext_lazy("set of masks of several kinds", "sets of masks of several kinds"),
    "bad_mask_image": ngettext_lazy("mask that cannot be read", "masks that cannot be read"),
    "foreign_image": ngettext_lazy(
        "image of a kind that is not taken (save it as PNG or JPEG)",
        "images of a kind that is not taken (save them as PNG or JPEG)",
    ),
    "heic_photo": ngettext_lazy(
        "HEIC photo that is not read (save it as JPEG)", "HEIC photos that are not read (save them as JPEG)"
    ),
    "raw_photo": ngettext_lazy(
        "raw file of a camera (save it as JPEG or PNG)", "raw files of a camera (save them as JPEG or PNG)"
    ),
    "video": ngettext_lazy("video (take single frames out of it)", "videos (take single frames out of them)"),
    "document": ngettext_lazy("document, no part of the data", "documents, no part of the data"),
    "archive_inside": ngettext_lazy(
        "archive that was not opened (unpack it first)", "archives that were not opened (unpack them first)"
    ),
    "archive_refused": ngettext_lazy("archive inside that was refused", "archives inside that were refused"),
    "array_file": ngettext_lazy("file of numbers or a model, not read", "files of numbers or models, not read"),
    "other_labels": ngettext_lazy(
        "annotation file not read, because others were", "annotation files not read, because others were"
    ),
    "captions": ngettext_lazy(
        "COCO file not read (captions, keypoints, panoptic or without annotations)",
        "COCO files not read (captions, keypoints, panoptic or without annotations)",
    ),
    "class_texts": ngettext_lazy("text file of classes, not read", "text files of classes, not read"),
    "class_folders": ngettext_lazy(
        "image whose folder may be its class", "images whose folders may be their classes"
    ),
    "csv_labels": ngettext_lazy(
        "table of annotations, not read (convert it to COCO, YOLO or Pascal VOC)",
        "tables of annotations, not read (convert them to COCO, YOLO or Pascal VOC)",
    ),
    "via_labels": ngettext_lazy(
        "VIA file, not read (export COCO there)", "VIA files, not read (export COCO there)"
    ),
    "createml_labels": ngettext_lazy("Create ML file, not read", "Create ML files, not read"),
    "odd_json": ngettext_lazy("JSON file of no known kind", "JSON files of no known kind"),
    "odd_xml": ngettext_lazy("XML file of no known kind", "XML files of no known kind"),
    "other_file": ngettext_lazy("file that is no part of the data", "files that are no part of the data"),
    # the data as a whole
    "no_annotations": ngettext_lazy("data without the annotations asked for", "data without the annotations asked for"),
    "no_images": ngettext_lazy("data without an image that can be used", "data without an image that can be used"),
}  # fmt: skip


def meaning(code: str, count: int) -> str:
    """Return the text for `count` problems of a code: "boxes without area, left out"; by default the code itself."""
    text = MEANINGS.get(code)
    return str(text % count) if text is not None else code.replace("_", " ")


def problem(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem of a stored report as shown: `message` as text, and `says` with its code and facts."""
    says = Message.from_json(stored["message"])
    return {**stored, "message": str(says), "says": {"code": says.code, "facts": dict(says.facts)}}


def to_display(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored report as pages and the API show it. Reports older than message codes keep their texts."""
    shown = dict(report)
    if "problems" in report:
        shown["problems"] = [problem(stored) for stored in report["problems"]]
    if "groups" in report:
        shown["groups"] = [
            {**group, "examples": [problem(stored) for stored in group["examples"]]} for group in report["groups"]
        ]
    return shown

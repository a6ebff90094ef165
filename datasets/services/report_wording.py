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
    "checking": _("Checking every image"),
    "moving": _("Storing the images"),
    "writing": _("Writing the version"),
}
MEANINGS: dict[str, Any] = {
    # shapes
    "degenerate_box": ngettext_lazy("box without area, skipped", "boxes without area, skipped"),
    "degenerate_polygon": ngettext_lazy("polygon without area, skipped", "polygons without area, skipped"),
    "degenerate_mask": ngettext_lazy("empty mask, skipped", "empty masks, skipped"),
    "short_polygon": ngettext_lazy(
        "polygon with fewer than three points, skipped", "polygons with fewer than three points, skipped"
    ),
    "bad_box": ngettext_lazy("invalid box", "invalid boxes"),
    "bad_line": ngettext_lazy("invalid line, skipped", "invalid lines, skipped"),
    "same_line": ngettext_lazy("duplicate line, skipped", "duplicate lines, skipped"),
    "other_shape": ngettext_lazy(
        "shape that is neither box nor polygon, skipped", "shapes that are neither boxes nor polygons, skipped"
    ),
    "keypoints": ngettext_lazy("box whose keypoints were skipped", "boxes whose keypoints were skipped"),
    "score": ngettext_lazy("box whose confidence was ignored", "boxes whose confidence was ignored"),
    "lost_shapes": ngettext_lazy(
        "shape skipped with an unusable image or file",
        "shapes skipped with unusable images or files",
    ),
    "outside_image": ngettext_lazy("shape outside the image, skipped", "shapes outside the image, skipped"),
    "clipped_box": ngettext_lazy("box clipped to the image", "boxes clipped to the image"),
    "beyond_edge": ngettext_lazy(
        "shape extending beyond the image, kept", "shapes extending beyond the image, kept"
    ),
    "not_a_box": ngettext_lazy("box without four corners, skipped", "boxes without four corners, skipped"),
    "crossing": ngettext_lazy("self-intersecting polygon, skipped", "self-intersecting polygons, skipped"),
    "no_points": ngettext_lazy("shape without points, skipped", "shapes without points, skipped"),
    "no_area": ngettext_lazy("shape without area, skipped", "shapes without area, skipped"),
    "too_few_points": ngettext_lazy("shape with too few points, skipped", "shapes with too few points, skipped"),
    "too_many_points": ngettext_lazy("shape with too many points, skipped", "shapes with too many points, skipped"),
    "too_many_parts": ngettext_lazy("shape with too many parts, skipped", "shapes with too many parts, skipped"),
    "not_pairs": ngettext_lazy(
        "shape whose points are not pairs, skipped", "shapes whose points are not pairs, skipped"
    ),
    "not_numbers": ngettext_lazy("coordinate that is not a number", "coordinates that are not numbers"),
    "not_finite": ngettext_lazy("coordinate that is not finite", "coordinates that are not finite"),
    "outside": ngettext_lazy("shape outside the image, skipped", "shapes outside the image, skipped"),
    "negative_box": ngettext_lazy("box with negative width or height", "boxes with negative width or height"),
    "bad_polygon": ngettext_lazy("invalid polygon", "invalid polygons"),
    "bad_mask": ngettext_lazy("unreadable mask", "unreadable masks"),
    "bad_area": ngettext_lazy("invalid area", "invalid areas"),
    "bad_annotation": ngettext_lazy("invalid annotation", "invalid annotations"),
    # what a COCO file says
    "not_coco": ngettext_lazy("file that is not a COCO file", "files that are not COCO files"),
    "bad_id": ngettext_lazy("id that is not an integer", "ids that are not integers"),
    "duplicate_id": ngettext_lazy("duplicate id", "duplicate ids"),
    "no_name": ngettext_lazy("class without a name", "classes without a name"),
    "unlike_category": ngettext_lazy(
        "class with different names in two files", "classes with different names in two files"
    ),
    "unknown_category": ngettext_lazy(
        "annotation of an unknown class", "annotations of unknown classes"
    ),
    "unknown_image": ngettext_lazy(
        "annotation of a missing image", "annotations of missing images"
    ),
    "unsafe_name": ngettext_lazy(
        "image with a path outside the data", "images with paths outside the data"
    ),
    "mask_size": ngettext_lazy(
        "mask with a different size than its image, skipped", "masks with different sizes than their images, skipped"
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
    "other_names": ngettext_lazy("list with different class names", "lists with different class names"),
    "same_class_name": ngettext_lazy("duplicate class name", "duplicate class names"),
    "several_annotations": ngettext_lazy(
        "shape of an additional annotation of a task, skipped", "shapes of additional annotations of tasks, skipped"
    ),
    "tag": ngettext_lazy("image-level class, skipped", "image-level classes, skipped"),
    "ambiguous_id": ngettext_lazy(
        "annotation whose category id is used for several classes, skipped",
        "annotations whose category ids are used for several classes, skipped",
    ),
    "same_annotation": ngettext_lazy("annotation listed twice", "annotations listed twice"),
    "new_id": ngettext_lazy("annotation with a new id", "annotations with new ids"),
    # classes
    "renumbered_class": ngettext_lazy("class with a different id", "classes with different ids"),
    "no_class": ngettext_lazy(
        "object or image without a class, skipped", "objects or images without a class, skipped"
    ),
    "image_without_class": ngettext_lazy("image without a class, skipped", "images without a class, skipped"),
    "unnamed_class": ngettext_lazy(
        "class without a name, named by its number", "classes without a name, named by their numbers"
    ),
    "void_pixels": ngettext_lazy(
        "set of masks with undefined borders", "sets of masks with undefined borders"
    ),
    "extra_fields": ngettext_lazy(
        "entry with additional fields that were not kept", "entries with additional fields that were not kept"
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
    "bad_image": ngettext_lazy("unreadable image, skipped", "unreadable images, skipped"),
    "bad_name": ngettext_lazy(
        "image with an invalid name, skipped", "images with invalid names, skipped"
    ),
    "missing_image": ngettext_lazy("missing image", "missing images"),
    "unlisted_image": ngettext_lazy(
        "image without an entry in any annotation file, not annotated", "images without an entry in any annotation "
                                                                        "file, not annotated"
    ),
    "several_images": ngettext_lazy(
        "ambiguous image name; the nearest was used", "ambiguous image names; the nearest were used"
    ),
    "ambiguous_image": ngettext_lazy(
        "ambiguous image name; none was used", "ambiguous image names; none were used"
    ),
    "other_filename": ngettext_lazy(
        "annotation file that names another image", "annotation files that name another image"
    ),
    "duplicate_image": ngettext_lazy("image listed more than once", "images listed more than once"),
    "same_content": ngettext_lazy("duplicate image", "duplicate images"),
    "leak": ngettext_lazy(
        "validation or test image that is also a training image", "validation or test images that are also "
                                                                  "training images"
    ),
    "two_splits": ngettext_lazy("image in two splits", "images in two splits"),
    "other_size": ngettext_lazy("image with a different size than stated", "images with different sizes than stated"),
    "scaled": ngettext_lazy("set of shapes that was scaled", "sets of shapes that were scaled"),
    "not_scaled": ngettext_lazy("set of shapes that cannot be scaled", "sets of shapes that cannot be scaled"),
    "rotated": ngettext_lazy("image stored rotated", "images stored rotated"),
    "first_frame": ngettext_lazy(
        "image with several frames or pages, of which the first is used",
        "images with several frames or pages, of which the first is used",
    ),
    "stored_as_png": ngettext_lazy("image stored as PNG", "images stored as PNG"),
    # files
    "unread_labels": ngettext_lazy("annotation file that was not read", "annotation files that were not read"),
    "foreign_labels": ngettext_lazy(
        "annotation file of another tool, not read", "annotation files of other tools, not read"
    ),
    "other_encoding": ngettext_lazy("file not encoded in UTF-8", "files not encoded in UTF-8"),
    "uncertain_encoding": ngettext_lazy("file whose encoding is uncertain", "files whose encoding is uncertain"),
    "detected_masks": ngettext_lazy("folder read as masks by its content", "folders read as masks by their content"),
    "unsure_masks": ngettext_lazy("folder that may hold masks", "folders that may hold masks"),
    "unreadable": ngettext_lazy("unreadable annotation file", "unreadable annotation files"),
    "unsafe_xml": ngettext_lazy("XML file with entities", "XML files with entities"),
    "mask_not_read": ngettext_lazy("mask image, not read", "mask images, not read"),
    "mask_without_image": ngettext_lazy(
        "mask without an image, skipped", "masks without images, skipped"
    ),
    "second_mask": ngettext_lazy(
        "additional mask of an image, skipped", "additional masks of images, skipped"
    ),
    "other_palettes": ngettext_lazy("set of masks with several palettes", "sets of masks with several palettes"),
    "mixed_masks": ngettext_lazy("set of masks of several kinds", "sets of masks of several kinds"),
    "bad_mask_image": ngettext_lazy("unreadable mask", "unreadable masks"),
    "foreign_image": ngettext_lazy(
        "image in an unsupported format (save it as PNG or JPEG)",
        "images in unsupported formats (save them as PNG or JPEG)",
    ),
    "heic_photo": ngettext_lazy(
        "HEIC photo, not supported (save it as JPEG)", "HEIC photos, not supported (save them as JPEG)"
    ),
    "raw_photo": ngettext_lazy(
        "raw file of a camera (save it as JPEG or PNG)", "raw files of a camera (save them as JPEG or PNG)"
    ),
    "video": ngettext_lazy("video (extract frames)", "videos (extract frames)"),
    "document": ngettext_lazy("document, not part of the data", "documents, not part of the data"),
    "archive_inside": ngettext_lazy(
        "nested archive that was not opened (unpack it first)", "nested archives that were not opened (unpack them "
                                                                "first)"
    ),
    "archive_refused": ngettext_lazy("nested archive that was rejected", "nested archives that were rejected"),
    "array_file": ngettext_lazy("numeric or model file, not read", "numeric or model files, not read"),
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
        "annotation table, not supported (convert it to COCO, YOLO or Pascal VOC)",
        "annotation tables, not supported (convert them to COCO, YOLO or Pascal VOC)",
    ),
    "via_labels": ngettext_lazy(
        "VIA file, not supported (export COCO)", "VIA files, not supported (export COCO)"
    ),
    "createml_labels": ngettext_lazy("Create ML file, not supported", "Create ML files, not supported"),
    "odd_json": ngettext_lazy("JSON file of unknown format", "JSON files of unknown format"),
    "odd_xml": ngettext_lazy("XML file of unknown format", "XML files of unknown format"),
    "other_file": ngettext_lazy("file that does not belong to the data", "files that do not belong to the data"),
    # the data as a whole
    "no_annotations": ngettext_lazy("data without the requested annotations", "data without the requested annotations"),
    "no_images": ngettext_lazy("data without a usable image", "data without a usable image"),
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

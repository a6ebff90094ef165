"""What an import's report says about one file, image or shape: a sentence per code, filled with facts.

The names of groups are in `report_wording`.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Show, Wording, nested, thousands

#: "cells/1.png: " before what is said of a shape; nothing where its image is not known.
_WHERE = Show("image", lambda path: f"{path}: " if path else "")

FILES = {
    "foreign_image": _("Unsupported image format. Save it as PNG or JPEG."),
    "heic_photo": _("HEIC photos are not supported. Save it as JPEG."),
    "raw_photo": _("Raw files of cameras are not supported. Save it as JPEG or PNG."),
    "video": _("A video. Extract frames and upload those."),
    "document": _("A document, not part of the data."),
    "archive_inside": _("A nested archive that was not opened. Unpack it first."),
    "array_file": _("A numeric or model file, which is not read."),
    "other_labels": _("The file looks like annotations. It was not read, because other annotations were."),
    "unread_labels": _(
        "The file looks like annotations but was not read. Check its layout, or export COCO and upload that."
    ),
    "foreign_labels": _("A %(format)s file, which is not supported. Export %(advice)s and upload that."),
    "not_text": _("The file is not text in a known encoding. Save it as UTF-8."),
    "other_encoding": _("The file was read as %(name)s."),
    "uncertain_encoding": _(
        "The file was read as %(name)s; %(others)s fits nearly as well. Check the names, or choose the encoding."
    ),
    "captions": _("A COCO file that was not read: it has captions, keypoints, panoptic segments, or no annotations."),
    "class_texts": _(
        "The text names classes of images, which is not read. Put the images of each class in a folder of its name."
    ),
    "csv_labels": _("An annotation table. Tables are not supported; convert it to COCO, YOLO or Pascal VOC."),
    "via_labels": _("VIA annotations are not supported. Export COCO from VIA."),
    "createml_labels": _("Create ML annotations are not supported. Convert them to COCO, YOLO or Pascal VOC."),
    "odd_json": _("JSON file that is not a supported annotation file."),
    "odd_xml": _("XML file that is not a supported annotation file."),
    "other_file": _("Not part of the data."),
    "mask_not_read": _("Mask image next to an image. It was not imported as an image."),
}

IMAGES = {
    "too_deep": _("The image has values from %(low)s to %(high)s; 0 to 65535 can be stored. Convert it to 16 bits."),
    "turned": _("The shapes are given on the stored image and were rotated with it (EXIF orientation)."),
    "matched_suffix": _("“%(name)s” is matched to %(image)s by the end of its path."),
    "matched_case": _("“%(name)s” is matched to %(image)s, ignoring upper and lower case."),
    "matched_escape": _("“%(name)s” is matched to %(image)s after decoding percent signs."),
    "matched_stem": _("“%(name)s” is matched to %(image)s, ignoring the file extension."),
    "matched_prefix": _("“%(name)s” is matched to %(image)s without the prefix of the upload."),
    "no_tag": _("The image has no class and is not imported."),
    "file_empty": _("The file is empty."),
    "not_an_image": _("The content is not a JPEG, PNG, WebP, BMP, GIF or TIFF image."),
    "too_many_pixels": Wording(_("The image has more than %(most)s pixels."), most=thousands),
    "image_damaged": _("The image is damaged (%(error)s)."),
    "image_ended_reader": _("The image is damaged (the process that read it crashed)."),
    "no_pixels": _("The image has no pixels."),
    "fractions": _("The image contains floating-point values. Save it with 8 or 16 bits."),
    "file_unreadable": _("The file cannot be read (%(error)s)."),
    "not_followed": _("Links and special files are skipped."),
    "not_in_place": _("%(kind)s images cannot be used in place. Save it as PNG, or upload the folder."),
    "stored_as_png": _("%(kind)s images are stored as PNG: %(path)s."),
    "bad_name": _("The name is too long, invalid, or already in use."),
    "first_frame": _("The image has several frames or pages; only the first is used."),
    "rotated": _("The image is stored rotated; its shapes are interpreted on the upright image."),
    "other_size": _(
        "The annotations state %(stated_width)s × %(stated_height)s; the upright image has %(width)s × "
        "%(height)s pixels."
    ),
    "same_content": _("The image is identical to %(other)s."),
    "leak": _("The image is also in %(split)s, as %(other)s: metrics on it are misleading."),
    "missing_image": _("%(image)s not found."),
    "missing_own_image": _("Image “%(image)s” not found."),
    "image_in_label_file": _(
        "Image “%(image)s” not found. It is embedded in the file, which is not supported: save it next to the file."
    ),
    "missing_listed_image": _("The list names “%(image)s”, which does not exist."),
    "lonely_label_file": _("No image matches the name of this label file; the file was skipped."),
    "unlisted_image": _("No COCO file lists this image; it is imported as not annotated."),
    "several_images": Wording(
        _("%(count)s images are named %(name)s; the one nearest to the file was used: %(image)s."), count=thousands
    ),
    "ambiguous_image": Wording(
        _("%(count)s images are named %(name)s: %(places)s. The reference is ambiguous, so none was used."),
        count=thousands,
    ),
    "other_filename": _(
        "The file names “%(name)s”, but its own name is that of %(image)s, which was used. Both images exist."
    ),
    "image_listed_twice": _("%(image)s is listed twice; its annotations were merged."),
    "image_taken": _("%(image)s was already read from %(file)s."),
    "annotated_twice": _("%(file)s annotates the same image; this file was skipped."),
    "two_splits": _("“%(image)s” is already in %(split)s and stays there."),
    "class_folders": _("The images lie in folders that may be classes (%(names)s). Annotation files are read instead."),
    "class_folders_lost": _(
        "The images lie in folders that may be classes (%(names)s), which are not read in addition to annotation files."
    ),
    "scaled": _("All shapes were multiplied by %(factor)s, because all stated sizes differ by that factor."),
    "not_scaled": _(
        "The shapes were not scaled: the stated sizes do not differ from those of the images by one exact factor."
    ),
    "no_class_folder": _("The image is not in a class folder and was skipped."),
    "no_annotations": _(
        "No annotations of this format found. Supported: COCO, YOLO, Pascal VOC, CVAT for images, Label "
        "Studio, LabelMe, mask images and one folder per class."
    ),
    "no_images": _("None of its images can be used."),
}

MASKS = {
    "unsure_masks": _(
        "%(mask)s may be a mask of %(image)s. It is imported as an image. Choose what the images of this folder are."
    ),
    "detected_masks": _(
        "%(mask)s is read as a mask of %(image)s: it has few values and the same name. Choose images if this is wrong."
    ),
    "mask_size": _("The mask has %(rows)s × %(columns)s pixels (height × width), the image %(height)s × %(width)s."),
    "mask_swapped": _(
        "Height and width of the mask are swapped: it states %(rows)s × %(columns)s, "
        "the image has %(height)s × %(width)s pixels."
    ),
    "mask_without_image": _("The image of this mask was not found; the mask was skipped."),
    "second_mask": _("%(image)s already has a mask; this one was skipped."),
    "void_pixels": _("Pixels with the value 255 are undefined borders and were ignored."),
    "palette_colours": _("Masks of this set have different palettes. Each is read by the colors of its own palette."),
    "palette_numbers": _(
        "Masks of this set have different palettes. The list of classes names numbers, so the colors were not used."
    ),
    "colours_and_numbers": _(
        "Some masks of this set hold colors, others numbers. A class that has both is listed twice; join its names."
    ),
    "narrow_and_wide": _(
        "Masks of 8 and of 16 bits have no value in common. A class that has a value in both is listed twice."
    ),
    "mask_unreadable": _("The mask cannot be read (%(error)s)."),
    "mask_of_many_values": Wording(
        _("The mask contains %(count)s values; a mask must have one per class."), count=thousands
    ),
}

SHAPES = {
    "bad_shape": _("Coordinates of the shape are missing or not numbers."),
    "ellipse": _("The ellipse was converted to a polygon of 64 corners."),
    "video_track": _("The file annotates a video. Export “CVAT for images” there and upload that."),
    "tag_beside_shapes": _(
        "The image has the class “%(label)s” as a whole; a dataset with shapes keeps no such classes."
    ),
    "second_tag": _("%(image)s has a class already; “%(label)s” is skipped."),
    "predictions": _("The task has predictions and no annotation. Accept them in Label Studio and export again."),
    "not_submitted": _(
        "The task has only cancelled annotations or drafts. Submit them in Label Studio and export again."
    ),
    "fraction_boxes": _(
        "All coordinates are between 0 and 1 but are read as pixels. Convert fractions to pixels and import again."
    ),
    "several_annotations": _("The task has several annotations; the ground truth or else the newest is imported."),
    "image_lost": _("The shapes of this image were skipped with it."),
    "file_lost": _("The shapes of this image were skipped with it."),
    "image_id_lost": _("The shapes of image %(id)s, which cannot be used, were skipped."),
    "off_image": _("A shape outside the image was skipped."),
    "box_cut": _("A box extends beyond the image and was clipped."),
    "beyond_edge": _("A shape extends beyond the image and was kept."),
    "no_label": _("The shape has no label and was skipped."),
    "object_without_name": _("The object has no name and was skipped."),
    "object_without_box": _("The object has no valid box and was skipped."),
    "flat_object": _(
        "%(image)s: the box of %(label)s has no area (%(left)s, %(top)s, %(right)s, %(bottom)s) and was skipped."
    ),
    "flat_shape": Wording(_("%(where)sthe shape has no area and was skipped."), where=_WHERE),
    "flat_box": Wording(_("%(where)sthe box has no area and was skipped."), where=_WHERE),
    "flat_polygon": Wording(_("%(where)sthe polygon has no area and was skipped."), where=_WHERE),
    "short_polygon": Wording(_("%(where)sa polygon with fewer than 3 points was skipped."), where=_WHERE),
    "short_shape": Wording(_("%(where)sa shape with too few points was skipped."), where=_WHERE),
    "flawed_shape": Wording(_("%(where)s%(flaw)s The shape was skipped."), where=_WHERE, flaw=nested),
    "further_boxes": _("Parts of the object and its additional boxes are not imported."),
    "other_shape": _("A %(kind)s is neither a polygon nor a rectangle; it was skipped."),
    "empty_mask": _("The mask is empty and was skipped."),
    "rle_size": _("An RLE mask needs a size as height, width."),
    "rle_counts": _("An RLE mask needs counts: a list of integers, or compressed COCO text."),
    "rle_sum": _("The runs of the mask do not match its size."),
    "rle_short": _("The compressed text of the mask ends too early."),
    "rle_foreign": _("The compressed text of the mask contains an invalid character."),
    "rle_negative": _("The mask contains a negative run."),
    "polygon_list": _("segmentation must be a list of polygons or an RLE object."),
    "polygon_pairs": _("A polygon must be a list of x, y pairs of finite numbers."),
    "polygon_points": Wording(_("A polygon can have at most %(most)s points."), most=thousands),
    "bad_box": _("bbox must be four finite numbers: x, y, width, height."),
    "negative_box": _("A box must not have a negative width or height."),
    "bad_area": _("area must be a finite number."),
}

LABELS = {
    "at": Wording(_("%(path)s: %(says)s"), says=nested),
    "yolo_numbers": _("The line is not a class number followed by numbers from 0 to 1; it was skipped."),
    "yolo_pixels": _(
        "The line has numbers beyond 2, which look like pixels. YOLO uses fractions of width and height from 0 to 1."
    ),
    "yolo_shape": _("The line is neither a box nor a polygon and was skipped."),
    "same_line": _("The line appears twice in this file; the duplicate was skipped."),
    "yolo_keypoints": _("Keypoints of a box were skipped: YOLO keypoints are not supported."),
    "score": _("The confidence of a box was ignored."),
    "no_yaml_names": _("The class names of this file cannot be read. List them below “names:”, indented by spaces."),
    "other_names": _("The file lists other class names than %(file)s, whose names are used."),
    "same_class_name": Wording(_("%(count)s classes are named “%(name)s”."), count=thousands),
    "unnamed_class": _("Class %(index)s has no name in the list; it is named %(index)s."),
    "not_xml": _("The file is not valid XML (%(error)s)."),
    "file_too_large": Wording(_("The file is larger than %(most_mib)s MiB."), most_mib=thousands),
    "unsafe_xml": _("The file declares a document type or entities, which are not permitted."),
    "nested_json": _("The file is nested too deeply for COCO."),
    "not_json": _("The file is not JSON: %(error)s."),
    "not_coco": _("images, annotations and categories must be lists."),
    "extra_fields": _("Additional fields (%(names)s) are too large or not numbers."),
    "category_id": _("The category has no id that is a whole number or a text."),
    "image_id": _("The image has no id that is a whole number or a text."),
    "new_annotation_id": _("Annotation id %(id)s is not an integer or is used twice; the annotation gets a new id."),
    "same_annotation": _("Annotation %(id)s is listed twice with the same content; one is imported."),
    "category_id_twice": _("Category id %(id)s is used for classes with different names."),
    "ambiguous_category": _("Category id %(id)s is used for several classes; the annotation is skipped."),
    "renumbered_class": _("Class “%(name)s” has the id %(id)s in this file and %(number)s in the dataset."),
    "image_id_twice": _("Image id %(id)s is used for several images; its annotations are skipped."),
    "bad_file_name": _("file_name must be a text of at most 1000 characters."),
    "bad_annotation": _("An annotation must be an object."),
    "unknown_category": _("No category has the id %(id)s."),
    "unknown_image": _("No image has the id %(id)s."),
}

#: No longer written; reports of earlier versions have them.
EARLIER = {
    "not_utf8": _("The file is not UTF-8 text."),
    "annotation_id": _("An annotation id must be an integer."),
    "category_name": _("A category must have a name."),
    "annotation_id_twice": _("Annotation id %(id)s appears twice."),
    "unlike_category": _("Another file names category %(id)s “%(name)s”."),
    "unsafe_name": _("file_name must be a path inside the dataset."),
}

REPORT = EARLIER | FILES | IMAGES | MASKS | SHAPES | LABELS

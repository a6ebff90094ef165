"""What an import's report says about one file, image or shape: a sentence per code, filled with facts.

The names of groups are in `report_wording`.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Show, Wording, nested, thousands

#: "cells/1.png: " before what is said of a shape; nothing where its image is not known.
_WHERE = Show("image", lambda path: f"{path}: " if path else "")

FILES = {
    "foreign_image": Wording(_("Unsupported image format. Save it as PNG or JPEG.")),
    "heic_photo": Wording(_("HEIC photos are not supported. Save it as JPEG.")),
    "raw_photo": Wording(_("Raw files of cameras are not supported. Save it as JPEG or PNG.")),
    "video": Wording(_("A video. Extract frames and upload those.")),
    "document": Wording(_("A document, not part of the data.")),
    "archive_inside": Wording(_("A nested archive that was not opened. Unpack it first.")),
    "array_file": Wording(_("A numeric or model file, which is not read.")),
    "other_labels": Wording(_("The file looks like annotations. It was not read, because other annotations were.")),
    "unread_labels": Wording(
        _("The file looks like annotations but was not read. Check its layout, or export COCO and upload that.")
    ),
    "foreign_labels": Wording(_("A %(format)s file, which is not supported. Export %(advice)s and upload that.")),
    "not_text": Wording(_("The file is not text in a known encoding. Save it as UTF-8.")),
    "other_encoding": Wording(_("The file was read as %(name)s.")),
    "uncertain_encoding": Wording(
        _("The file was read as %(name)s; %(others)s fits nearly as well. Check the names, or choose the encoding.")
    ),
    "captions": Wording(
        _("A COCO file that was not read: it has captions, keypoints, panoptic segments, or no annotations.")
    ),
    "class_texts": Wording(
        _("The text names classes of images, which is not read. Put the images of each class in a folder of its name.")
    ),
    "csv_labels": Wording(_("An annotation table. Tables are not supported; convert it to COCO, YOLO or Pascal VOC.")),
    "via_labels": Wording(_("VIA annotations are not supported. Export COCO from VIA.")),
    "createml_labels": Wording(_("Create ML annotations are not supported. Convert them to COCO, YOLO or Pascal VOC.")),
    "odd_json": Wording(_("JSON file that is not a supported annotation file.")),
    "odd_xml": Wording(_("XML file that is not a supported annotation file.")),
    "other_file": Wording(_("Not part of the data.")),
    "mask_not_read": Wording(_("Mask image next to an image. It was not imported as an image.")),
}

IMAGES = {
    "too_deep": Wording(
        _("The image has values from %(low)s to %(high)s; 0 to 65535 can be stored. Convert it to 16 bits.")
    ),
    "turned": Wording(_("The shapes are given on the stored image and were rotated with it (EXIF orientation).")),
    "matched_suffix": Wording(_("“%(name)s” is matched to %(image)s by the end of its path.")),
    "matched_case": Wording(_("“%(name)s” is matched to %(image)s, ignoring upper and lower case.")),
    "matched_escape": Wording(_("“%(name)s” is matched to %(image)s after decoding percent signs.")),
    "matched_stem": Wording(_("“%(name)s” is matched to %(image)s, ignoring the file extension.")),
    "matched_prefix": Wording(_("“%(name)s” is matched to %(image)s without the prefix of the upload.")),
    "no_tag": Wording(_("The image has no class and is not imported.")),
    "file_empty": Wording(_("The file is empty.")),
    "not_an_image": Wording(_("The content is not a JPEG, PNG, WebP, BMP, GIF or TIFF image.")),
    "too_many_pixels": Wording(_("The image has more than %(most)s pixels."), most=thousands("most")),
    "image_damaged": Wording(_("The image is damaged (%(error)s).")),
    "image_ended_reader": Wording(_("The image is damaged (the process that read it crashed).")),
    "no_pixels": Wording(_("The image has no pixels.")),
    "fractions": Wording(_("The image contains floating-point values. Save it with 8 or 16 bits.")),
    "file_unreadable": Wording(_("The file cannot be read (%(error)s).")),
    "not_followed": Wording(_("Links and special files are skipped.")),
    "not_in_place": Wording(_("%(kind)s images cannot be used in place. Save it as PNG, or upload the folder.")),
    "stored_as_png": Wording(_("%(kind)s images are stored as PNG: %(path)s.")),
    "bad_name": Wording(_("The name is too long, invalid, or already in use.")),
    "first_frame": Wording(_("The image has several frames or pages; only the first is used.")),
    "rotated": Wording(_("The image is stored rotated; its shapes are interpreted on the upright image.")),
    "other_size": Wording(
        _(
            "The annotations state %(stated_width)s × %(stated_height)s; the upright image has %(width)s × "
            "%(height)s pixels."
        )
    ),
    "same_content": Wording(_("The image is identical to %(other)s.")),
    "leak": Wording(_("The image is also in %(split)s, as %(other)s: metrics on it are misleading.")),
    "missing_image": Wording(_("%(image)s not found.")),
    "missing_own_image": Wording(_("Image “%(image)s” not found.")),
    "image_in_label_file": Wording(
        _("Image “%(image)s” not found. It is embedded in the file, which is not supported: save it next to the file.")
    ),
    "missing_listed_image": Wording(_("The list names “%(image)s”, which does not exist.")),
    "lonely_label_file": Wording(_("No image matches the name of this label file; the file was skipped.")),
    "unlisted_image": Wording(_("No COCO file lists this image; it is imported as not annotated.")),
    "several_images": Wording(
        _("%(count)s images are named %(name)s; the one nearest to the file was used: %(image)s."),
        count=thousands("count"),
    ),
    "ambiguous_image": Wording(
        _("%(count)s images are named %(name)s: %(places)s. The reference is ambiguous, so none was used."),
        count=thousands("count"),
    ),
    "other_filename": Wording(
        _("The file names “%(name)s”, but its own name is that of %(image)s, which was used. Both images exist.")
    ),
    "image_listed_twice": Wording(_("%(image)s is listed twice; its annotations were merged.")),
    "image_taken": Wording(_("%(image)s was already read from %(file)s.")),
    "annotated_twice": Wording(_("%(file)s annotates the same image; this file was skipped.")),
    "two_splits": Wording(_("“%(image)s” is already in %(split)s and stays there.")),
    "class_folders": Wording(
        _("The images lie in folders that may be classes (%(names)s). Annotation files are read instead.")
    ),
    "class_folders_lost": Wording(
        _(
            "The images lie in folders that may be classes (%(names)s), which are not read in addition to "
            "annotation files."
        )
    ),
    "scaled": Wording(_("All shapes were multiplied by %(factor)s, because all stated sizes differ by that factor.")),
    "not_scaled": Wording(
        _("The shapes were not scaled: the stated sizes do not differ from those of the images by one exact factor.")
    ),
    "no_class_folder": Wording(_("The image is not in a class folder and was skipped.")),
    "no_annotations": Wording(
        _(
            "No annotations of this format found. Supported: COCO, YOLO, Pascal VOC, CVAT for images, Label "
            "Studio, LabelMe, mask images and one folder per class."
        )
    ),
    "no_images": Wording(_("None of its images can be used.")),
}

MASKS = {
    "unsure_masks": Wording(
        _("%(mask)s may be a mask of %(image)s. It is imported as an image. Choose what the images of this folder are.")
    ),
    "detected_masks": Wording(
        _(
            "%(mask)s is read as a mask of %(image)s: it has few values and the same name. Choose images if "
            "this is wrong."
        )
    ),
    "mask_size": Wording(
        _("The mask has %(rows)s × %(columns)s pixels (height × width), the image %(height)s × %(width)s.")
    ),
    "mask_swapped": Wording(
        _(
            "Height and width of the mask are swapped: it states %(rows)s × %(columns)s, "
            "the image has %(height)s × %(width)s pixels."
        )
    ),
    "mask_without_image": Wording(_("The image of this mask was not found; the mask was skipped.")),
    "second_mask": Wording(_("%(image)s already has a mask; this one was skipped.")),
    "void_pixels": Wording(_("Pixels with the value 255 are undefined borders and were ignored.")),
    "palette_colours": Wording(
        _("Masks of this set have different palettes. Each is read by the colors of its own palette.")
    ),
    "palette_numbers": Wording(
        _("Masks of this set have different palettes. The list of classes names numbers, so the colors were not used.")
    ),
    "colours_and_numbers": Wording(
        _("Some masks of this set hold colors, others numbers. A class that has both is listed twice; join its names.")
    ),
    "narrow_and_wide": Wording(
        _("Masks of 8 and of 16 bits have no value in common. A class that has a value in both is listed twice.")
    ),
    "mask_unreadable": Wording(_("The mask cannot be read (%(error)s).")),
    "mask_of_many_values": Wording(
        _("The mask contains %(count)s values; a mask must have one per class."), count=thousands("count")
    ),
}

SHAPES = {
    "bad_shape": Wording(_("Coordinates of the shape are missing or not numbers.")),
    "ellipse": Wording(_("The ellipse was converted to a polygon of 64 corners.")),
    "video_track": Wording(_("The file annotates a video. Export “CVAT for images” there and upload that.")),
    "tag_beside_shapes": Wording(
        _("The image has the class “%(label)s” as a whole; a dataset with shapes keeps no such classes.")
    ),
    "second_tag": Wording(_("%(image)s has a class already; “%(label)s” is skipped.")),
    "predictions": Wording(
        _("The task has predictions and no annotation. Accept them in Label Studio and export again.")
    ),
    "not_submitted": Wording(
        _("The task has only cancelled annotations or drafts. Submit them in Label Studio and export again.")
    ),
    "fraction_boxes": Wording(
        _("All coordinates are between 0 and 1 but are read as pixels. Convert fractions to pixels and import again.")
    ),
    "several_annotations": Wording(
        _("The task has several annotations; the ground truth or else the newest is imported.")
    ),
    "image_lost": Wording(_("The shapes of this image were skipped with it.")),
    "file_lost": Wording(_("The shapes of this image were skipped with it.")),
    "image_id_lost": Wording(_("The shapes of image %(id)s, which cannot be used, were skipped.")),
    "off_image": Wording(_("A shape outside the image was skipped.")),
    "box_cut": Wording(_("A box extends beyond the image and was clipped.")),
    "beyond_edge": Wording(_("A shape extends beyond the image and was kept.")),
    "no_label": Wording(_("The shape has no label and was skipped.")),
    "object_without_name": Wording(_("The object has no name and was skipped.")),
    "object_without_box": Wording(_("The object has no valid box and was skipped.")),
    "flat_object": Wording(
        _("%(image)s: the box of %(label)s has no area (%(left)s, %(top)s, %(right)s, %(bottom)s) and was skipped.")
    ),
    "flat_shape": Wording(_("%(where)sthe shape has no area and was skipped."), where=_WHERE),
    "flat_box": Wording(_("%(where)sthe box has no area and was skipped."), where=_WHERE),
    "flat_polygon": Wording(_("%(where)sthe polygon has no area and was skipped."), where=_WHERE),
    "short_polygon": Wording(_("%(where)sa polygon with fewer than 3 points was skipped."), where=_WHERE),
    "short_shape": Wording(_("%(where)sa shape with too few points was skipped."), where=_WHERE),
    "flawed_shape": Wording(
        _("%(where)s%(flaw)s The shape was skipped."),
        where=_WHERE,
        flaw=nested("flaw"),
    ),
    "further_boxes": Wording(_("Parts of the object and its additional boxes are not imported.")),
    "other_shape": Wording(_("A %(kind)s is neither a polygon nor a rectangle; it was skipped.")),
    "empty_mask": Wording(_("The mask is empty and was skipped.")),
    "rle_size": Wording(_("An RLE mask needs a size as height, width.")),
    "rle_counts": Wording(_("An RLE mask needs counts: a list of integers, or compressed COCO text.")),
    "rle_sum": Wording(_("The runs of the mask do not match its size.")),
    "rle_short": Wording(_("The compressed text of the mask ends too early.")),
    "rle_foreign": Wording(_("The compressed text of the mask contains an invalid character.")),
    "rle_negative": Wording(_("The mask contains a negative run.")),
    "polygon_list": Wording(_("segmentation must be a list of polygons or an RLE object.")),
    "polygon_pairs": Wording(_("A polygon must be a list of x, y pairs of finite numbers.")),
    "polygon_points": Wording(_("A polygon can have at most %(most)s points."), most=thousands("most")),
    "bad_box": Wording(_("bbox must be four finite numbers: x, y, width, height.")),
    "negative_box": Wording(_("A box must not have a negative width or height.")),
    "bad_area": Wording(_("area must be a finite number.")),
}

LABELS = {
    "at": Wording(_("%(path)s: %(says)s"), says=nested("says")),
    "yolo_numbers": Wording(_("The line is not a class number followed by numbers from 0 to 1; it was skipped.")),
    "yolo_pixels": Wording(
        _("The line has numbers beyond 2, which look like pixels. YOLO uses fractions of width and height from 0 to 1.")
    ),
    "yolo_shape": Wording(_("The line is neither a box nor a polygon and was skipped.")),
    "same_line": Wording(_("The line appears twice in this file; the duplicate was skipped.")),
    "yolo_keypoints": Wording(_("Keypoints of a box were skipped: YOLO keypoints are not supported.")),
    "score": Wording(_("The confidence of a box was ignored.")),
    "no_yaml_names": Wording(
        _("The class names of this file cannot be read. List them below “names:”, indented by spaces.")
    ),
    "other_names": Wording(_("The file lists other class names than %(file)s, whose names are used.")),
    "same_class_name": Wording(_("%(count)s classes are named “%(name)s”."), count=thousands("count")),
    "unnamed_class": Wording(_("Class %(index)s has no name in the list; it is named %(index)s.")),
    "not_xml": Wording(_("The file is not valid XML (%(error)s).")),
    "file_too_large": Wording(_("The file is larger than %(most_mib)s MiB."), most_mib=thousands("most_mib")),
    "unsafe_xml": Wording(_("The file declares a document type or entities, which are not permitted.")),
    "nested_json": Wording(_("The file is nested too deeply for COCO.")),
    "not_json": Wording(_("The file is not JSON: %(error)s.")),
    "not_coco": Wording(_("images, annotations and categories must be lists.")),
    "extra_fields": Wording(_("Additional fields (%(names)s) are too large or not numbers.")),
    "category_id": Wording(_("The category has no id that is a whole number or a text.")),
    "image_id": Wording(_("The image has no id that is a whole number or a text.")),
    "new_annotation_id": Wording(
        _("Annotation id %(id)s is not an integer or is used twice; the annotation gets a new id.")
    ),
    "same_annotation": Wording(_("Annotation %(id)s is listed twice with the same content; one is imported.")),
    "category_id_twice": Wording(_("Category id %(id)s is used for classes with different names.")),
    "ambiguous_category": Wording(_("Category id %(id)s is used for several classes; the annotation is skipped.")),
    "renumbered_class": Wording(_("Class “%(name)s” has the id %(id)s in this file and %(number)s in the dataset.")),
    "image_id_twice": Wording(_("Image id %(id)s is used for several images; its annotations are skipped.")),
    "bad_file_name": Wording(_("file_name must be a text of at most 1000 characters.")),
    "bad_annotation": Wording(_("An annotation must be an object.")),
    "unknown_category": Wording(_("No category has the id %(id)s.")),
    "unknown_image": Wording(_("No image has the id %(id)s.")),
}

#: No longer written; reports of earlier versions have them.
EARLIER = {
    "not_utf8": Wording(_("The file is not UTF-8 text.")),
    "annotation_id": Wording(_("An annotation id must be an integer.")),
    "category_name": Wording(_("A category must have a name.")),
    "annotation_id_twice": Wording(_("Annotation id %(id)s appears twice.")),
    "unlike_category": Wording(_("Another file names category %(id)s “%(name)s”.")),
    "unsafe_name": Wording(_("file_name must be a path inside the dataset.")),
}

REPORT = EARLIER | FILES | IMAGES | MASKS | SHAPES | LABELS

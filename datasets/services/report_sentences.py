"""What an import's report says about one file, image or shape: a sentence per code, filled with facts.

The names of groups are in `report_wording`.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Show, Wording, nested, thousands

#: "cells/1.png: " before what is said of a shape; nothing where its image is not known.
_WHERE = Show("image", lambda path: f"{path}: " if path else "")

FILES = {
    "foreign_image": Wording(_("An image of a kind that is not taken. Save it as PNG or JPEG.")),
    "heic_photo": Wording(_("A phone's HEIC photo, which this platform does not read. Save it as JPEG.")),
    "raw_photo": Wording(_("A camera's raw file. Save it as JPEG or PNG with the camera's program.")),
    "video": Wording(_("A video. Take single frames out of it and bring those.")),
    "document": Wording(_("A document, no part of the data.")),
    "archive_inside": Wording(_("An archive inside the archive that was not opened. Unpack it first.")),
    "array_file": Wording(_("A file of numbers or a model, which is not read.")),
    "other_labels": Wording(_("The file looks like annotations. It was not read, because other annotations were.")),
    "unread_labels": Wording(
        _("The file looks like annotations but was not read. Check its layout, or export COCO and upload that.")
    ),
    "foreign_labels": Wording(_("This is a file of %(format)s, which is not read. Export %(advice)s and upload that.")),
    "not_text": Wording(_("The file is not text in a known encoding. Save it as UTF-8.")),
    "other_encoding": Wording(_("The file was read as %(name)s.")),
    "uncertain_encoding": Wording(
        _("The file was read as %(name)s; %(others)s fits nearly as well. Check the names, or choose the encoding.")
    ),
    "captions": Wording(
        _("A COCO file that was not read: captions, keypoints or panoptic, or one without annotations.")
    ),
    "class_texts": Wording(
        _("The text names classes of images, which is not read. Put the images of each class in a folder of its name.")
    ),
    "csv_labels": Wording(_("A table of annotations. Tables are not read; convert it to COCO, YOLO or Pascal VOC.")),
    "via_labels": Wording(_("Annotations of VIA, which are not read. Export COCO there.")),
    "createml_labels": Wording(
        _("Annotations of Create ML, which are not read. Convert them to COCO, YOLO or Pascal VOC.")
    ),
    "odd_json": Wording(_("A JSON file that is no annotation file of a known kind.")),
    "odd_xml": Wording(_("An XML file that is no annotation file of a known kind.")),
    "other_file": Wording(_("No part of the data.")),
    "mask_not_read": Wording(_("A mask image beside a picture. It was not taken as a picture.")),
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
    "image_ended_reader": Wording(_("The image is damaged (reading it ended the process that read it).")),
    "no_pixels": Wording(_("The image has no pixels.")),
    "fractions": Wording(_("The image holds fractions, not colours. Save it with 8 or 16 bits.")),
    "file_unreadable": Wording(_("The file cannot be read (%(error)s).")),
    "not_followed": Wording(_("It is a link or a special file, which is not followed.")),
    "not_in_place": Wording(_("%(kind)s images cannot be used where they lie. Save it as PNG, or upload the folder.")),
    "stored_as_png": Wording(_("%(kind)s images are stored as PNG: %(path)s.")),
    "bad_name": Wording(_("The name is too long, no valid text, or taken.")),
    "first_frame": Wording(_("The image has several frames or pages; the first one counts.")),
    "rotated": Wording(_("The image is stored rotated; its shapes are read as lying on the upright image.")),
    "other_size": Wording(
        _(
            "The annotations say %(stated_width)s × %(stated_height)s, "
            "the upright image is %(width)s × %(height)s pixels."
        )
    ),
    "same_content": Wording(_("The image is the same as %(other)s.")),
    "leak": Wording(_("The image is also in %(split)s, as %(other)s: what is scored on it was learned.")),
    "missing_image": Wording(_("%(image)s is not there.")),
    "missing_own_image": Wording(_("Its image “%(image)s” is not there.")),
    "image_in_label_file": Wording(
        _("Its image “%(image)s” is not there. It stands in the file itself, which is not read: save it beside.")
    ),
    "missing_listed_image": Wording(_("The list names “%(image)s”, which is not there.")),
    "lonely_label_file": Wording(_("No image has the name of this label file; it was left out.")),
    "unlisted_image": Wording(_("No COCO file names this image; it counts as not annotated.")),
    "several_images": Wording(
        _("%(count)s images are called %(name)s; the one nearest to the file was taken: %(image)s."),
        count=thousands("count"),
    ),
    "ambiguous_image": Wording(
        _("%(count)s images are called %(name)s: %(places)s. Which one is meant is unclear, so none was used."),
        count=thousands("count"),
    ),
    "other_filename": Wording(
        _("The file names “%(name)s”, but has the name of %(image)s, which was taken. Both images are there.")
    ),
    "image_listed_twice": Wording(_("%(image)s is listed twice; its annotations were joined.")),
    "image_taken": Wording(_("%(image)s is already taken from %(file)s.")),
    "annotated_twice": Wording(_("%(file)s annotates the same image; this file was left out.")),
    "two_splits": Wording(_("“%(image)s” is already in %(split)s; it stays there.")),
    "class_folders": Wording(
        _("The images lie in folders that may be classes (%(names)s). Annotation files are read instead.")
    ),
    "class_folders_lost": Wording(
        _("The images lie in folders that may be classes (%(names)s), which are not read beside annotation files.")
    ),
    "scaled": Wording(_("All shapes were multiplied by %(factor)s, because all stated sizes differ by that factor.")),
    "not_scaled": Wording(
        _("The shapes were not scaled: the stated sizes do not differ from those of the images by one exact factor.")
    ),
    "no_class_folder": Wording(_("The image lies in no class folder and was left out.")),
    "no_annotations": Wording(
        _(
            "No annotations of this format were found. COCO, YOLO, Pascal VOC, CVAT for images, Label Studio, LabelMe, "
            "mask images and one folder per class are read."
        )
    ),
    "no_images": Wording(_("No image of it can be used.")),
}

MASKS = {
    "unsure_masks": Wording(
        _("%(mask)s may be a mask of %(image)s. It is imported as an image. Choose what the images of this folder are.")
    ),
    "detected_masks": Wording(
        _("%(mask)s is read as a mask of %(image)s: it has few values and the same name. Choose images if it is none.")
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
    "mask_without_image": Wording(_("The picture of this mask is not there; it was left out.")),
    "second_mask": Wording(_("%(image)s has a mask already; this one was left out.")),
    "void_pixels": Wording(_("Pixels of the value 255 are undecided borders; they became no object.")),
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
        _("The mask holds %(count)s values; a mask has one for each class."), count=thousands("count")
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
    "image_lost": Wording(_("The shapes of this image were left out with it.")),
    "file_lost": Wording(_("Its shapes were left out with it.")),
    "image_id_lost": Wording(_("Shapes of image %(id)s, which cannot be used, were left out with it.")),
    "off_image": Wording(_("A shape lies off the image and was left out.")),
    "box_cut": Wording(_("A box sticks out of the image and was cut at its edge.")),
    "beyond_edge": Wording(_("A shape sticks out of the image; it was kept as it is.")),
    "no_label": Wording(_("The shape has no label and was left out.")),
    "object_without_name": Wording(_("The object has no name and was left out.")),
    "object_without_box": Wording(_("The object has no readable box and was left out.")),
    "flat_object": Wording(
        _("%(image)s: box of %(label)s has no area (%(left)s, %(top)s, %(right)s, %(bottom)s) and was left out.")
    ),
    "flat_shape": Wording(_("%(where)sthe shape has no area and was left out."), where=_WHERE),
    "flat_box": Wording(_("%(where)sthe box has no area and was left out."), where=_WHERE),
    "flat_polygon": Wording(_("%(where)sthe polygon has no area and was left out."), where=_WHERE),
    "short_polygon": Wording(_("%(where)sa polygon of fewer than 3 points was left out."), where=_WHERE),
    "short_shape": Wording(_("%(where)sa shape of too few points was left out."), where=_WHERE),
    "flawed_shape": Wording(
        _("%(where)s%(flaw)s The shape was left out."),
        where=_WHERE,
        flaw=nested("flaw"),
    ),
    "further_boxes": Wording(_("Parts of the object and further boxes of it are not imported.")),
    "other_shape": Wording(_("A %(kind)s is no polygon and no rectangle; it was left out.")),
    "empty_mask": Wording(_("The mask is empty and was left out.")),
    "rle_size": Wording(_("An RLE mask needs its size as height, width.")),
    "rle_counts": Wording(_("An RLE mask needs counts: a list of whole numbers, or COCO's compressed text.")),
    "rle_sum": Wording(_("The mask's runs do not add up to its size.")),
    "rle_short": Wording(_("The mask's compressed text ends early.")),
    "rle_foreign": Wording(_("The mask's compressed text has a foreign character.")),
    "rle_negative": Wording(_("The mask has a negative run.")),
    "polygon_list": Wording(_("segmentation must be a list of polygons or an RLE object.")),
    "polygon_pairs": Wording(_("A polygon must be a list of x, y pairs of finite numbers.")),
    "polygon_points": Wording(_("A polygon may have at most %(most)s points."), most=thousands("most")),
    "bad_box": Wording(_("bbox must be four finite numbers: x, y, width, height.")),
    "negative_box": Wording(_("A box cannot have a negative width or height.")),
    "bad_area": Wording(_("area must be a finite number.")),
}

LABELS = {
    "at": Wording(_("%(path)s: %(says)s"), says=nested("says")),
    "yolo_numbers": Wording(_("The line is no class number with numbers from 0 to 1; it was left out.")),
    "yolo_pixels": Wording(
        _("The line has numbers beyond 2, which look like pixels. YOLO uses fractions of width and height from 0 to 1.")
    ),
    "yolo_shape": Wording(_("The line is neither a box nor a polygon; it was left out.")),
    "same_line": Wording(_("The line stands twice in this file; one was left out.")),
    "yolo_keypoints": Wording(_("The keypoints of a box were left out; YOLO's are not read.")),
    "score": Wording(_("A box came with a score, which was left out.")),
    "no_yaml_names": Wording(
        _("The class names of this file cannot be read. List them below “names:”, indented by spaces.")
    ),
    "other_names": Wording(_("The file lists other class names than %(file)s, whose names are used.")),
    "same_class_name": Wording(_("%(count)s classes are called “%(name)s”."), count=thousands("count")),
    "unnamed_class": Wording(_("Class %(index)s has no name in the list; it is called %(index)s.")),
    "not_xml": Wording(_("The file is not readable XML (%(error)s).")),
    "file_too_large": Wording(_("The file is larger than %(most_mib)s MiB."), most_mib=thousands("most_mib")),
    "unsafe_xml": Wording(_("The file declares a document type or entities, which annotations never need.")),
    "nested_json": Wording(_("The file is nested too deeply to be COCO.")),
    "not_json": Wording(_("The file is not JSON: %(error)s.")),
    "not_coco": Wording(_("images, annotations and categories must be lists.")),
    "extra_fields": Wording(_("Further fields (%(names)s) are too large or no numbers.")),
    "category_id": Wording(_("The category has no id that is a whole number or a text.")),
    "image_id": Wording(_("The image has no id that is a whole number or a text.")),
    "new_annotation_id": Wording(
        _("Annotation id %(id)s is no whole number or is used twice; the annotation gets a new id.")
    ),
    "same_annotation": Wording(_("Annotation %(id)s is listed twice with the same content; one is imported.")),
    "category_id_twice": Wording(_("Category id %(id)s stands for classes of different names.")),
    "ambiguous_category": Wording(_("Category id %(id)s stands for several classes; the annotation is skipped.")),
    "renumbered_class": Wording(_("Class “%(name)s” has the id %(id)s in this file and %(number)s in the dataset.")),
    "image_id_twice": Wording(_("Image id %(id)s stands for several images; its annotations are skipped.")),
    "bad_file_name": Wording(_("file_name must be a text of at most 1000 characters.")),
    "bad_annotation": Wording(_("An annotation must be an object.")),
    "unknown_category": Wording(_("No category has the id %(id)s.")),
    "unknown_image": Wording(_("No image has the id %(id)s.")),
}

#: No longer written; reports of earlier versions have them.
EARLIER = {
    "not_utf8": Wording(_("The file is not UTF-8 text.")),
    "annotation_id": Wording(_("An annotation id must be a whole number.")),
    "category_name": Wording(_("A category needs a name.")),
    "annotation_id_twice": Wording(_("Annotation id %(id)s appears twice.")),
    "unlike_category": Wording(_("Another file calls category %(id)s “%(name)s”.")),
    "unsafe_name": Wording(_("file_name must be a path inside the data set.")),
}

REPORT = EARLIER | FILES | IMAGES | MASKS | SHAPES | LABELS

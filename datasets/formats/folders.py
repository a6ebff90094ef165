"""Read images labelled by folder, one per class, beneath train/val/test folders or not."""

from __future__ import annotations

from aiplatform.lib.wording import message
from datasets.formats.listing import Listing, version_paths
from datasets.formats.neutral import CLASSES, ClassInfo, ImageItem, Parsed, split_of
from datasets.formats.problems import natural

#: Folder names that say "here are images", not "this is a class".
PLAIN_NAMES = {"images", "image", "imgs", "img", "jpegimages", "data", "photos", "pictures", "图像", "图片"}
#: And those that say "here are masks".
MASK_NAMES = {"mask", "masks", "segmentationclass", "segmentationobject", "掩码"}


def fits(listing: Listing) -> bool:
    """Return whether every image is in a class folder and there are at least two classes."""
    classes = class_names(listing)
    return (
        "" not in classes
        and len(classes) >= 2
        and not {name.casefold() for name in classes} <= PLAIN_NAMES | MASK_NAMES
    )


def class_names(listing: Listing) -> set[str]:
    """Names of the folders that may be classes; contains "" if an image is in none."""
    return {label for _split, label in _places(listing).values()}


def read(listing: Listing) -> Parsed:
    """Images labelled by their folder. Class ids count from 0 in natural order of the names."""
    parsed = Parsed(format="folders", task=CLASSES)
    places = _places(listing)
    labels = sorted({label for _split, label in places.values() if label}, key=natural)
    ids = {label: number for number, label in enumerate(labels)}
    parsed.classes = [ClassInfo(number, label) for label, number in ids.items()]
    names = version_paths(listing.images)
    for source in sorted(listing.images, key=natural):
        split, label = places[source]
        if not label:
            parsed.problems.add(source, "image_without_class", message("report.no_class_folder"))
            continue
        parsed.images.append(ImageItem(source, names[source], split=split, label=ids[label]))
    return parsed


def _places(listing: Listing) -> dict[str, tuple[str, str]]:
    """Image → (split, class) of `train/cat/1.png` or `cat/1.png`, below a folder like `images/` or not."""
    cut = 0
    while listing.images and (folder := listing.images[0][cut:].partition("/")[0]).casefold() in PLAIN_NAMES:
        if not all(path[cut:].startswith(folder + "/") for path in listing.images):
            break
        cut += len(folder) + 1
    return {path: _place(path[cut:]) for path in listing.images}


def _place(path: str) -> tuple[str, str]:
    folders = path.split("/")[:-1]
    split = split_of(folders[0]) if folders else ""
    if split:
        folders = folders[1:]
    return split, folders[0] if folders else ""

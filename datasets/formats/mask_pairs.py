"""Find mask images: by folder or affix, by the image of the same name, and by what they hold.

A mask that is taken for an image is used as background in training, so everything that looks like one is set aside,
whether it is read or not. A file that only its content suggests is a mask if its image is a photograph or in colour;
if both could be either, the folder is reported and a user decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from datasets.formats.nearness import all_nearest, nearest

MASKS, IMAGES = "masks", "images"  # what a user may choose for a folder
_LABELS = {
    "mask", "masks", "seg", "segs", "segmentation", "segmentations", "segmentationclass", "segmentationobject",
    "segmentationclassraw", "segmentationclassaug", "label", "labels", "labelids", "instanceids", "annotation",
    "annotations", "anno", "annot", "annots", "gt", "groundtruth", "truth", "trimap", "trimaps", "掩码", "标注", "标签",
}  # fmt: skip
_SURE = {"mask", "masks", "segmentationclass", "segmentationobject", "掩码"}
_LOSSLESS = {".png", ".bmp", ".gif", ".tif", ".tiff"}
_ENDING = re.compile(
    r"[ _.-](gtfine[ _-])?(mask|masks|seg|segmentation|label|labels|labelids|labeltrainids|instanceids|color|gt|l|"
    r"groundtruth|matte|annotation|manual)[ _.-]?\d{0,4}$"
)
_IMAGE_ENDING = re.compile(r"[ _.-](leftimg8bit|sat|image|img|rgb)$")  # of the image where its mask has another
_IMAGE_FOLDERS = {"images", "image", "imgs", "img", "jpegimages"}
_BEGINNING = re.compile(r"^(mask|masks|seg|segmentation|label|labels|gt|annotation)[ _.-]?(\d{1,4}[ _.-]|[ _.-])")
SAMPLE = 12  # pairs whose masks are looked into
MAX_VALUES = 100  # different values in a mask; photographs have more
MAX_UNNAMED_VALUES = 40  # where no name says that it is a mask


@dataclass(slots=True)
class MaskPairs:
    """What was found.

    Args:
        images: mask → the image it belongs to; "" for a mask in a folder of masks whose image is not there.
        unsure: folder that may hold masks → an example: a file of it and the image of the same name.
        detected: the same for folders that are taken for masks by their content alone.
        ambiguous: mask → the images of its name, of which none is nearer. It belongs to none of them.
    """

    images: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, tuple[str, str]] = field(default_factory=dict)
    detected: dict[str, tuple[str, str]] = field(default_factory=dict)
    ambiguous: dict[str, list[str]] = field(default_factory=dict)


def find(root: Path, images: Sequence[str], chosen: Mapping[str, str] | None = None) -> MaskPairs:
    """Pair masks with images.

    Args:
        chosen: folder → `MASKS` or `IMAGES`, where a user decided.
    """
    chosen = chosen or {}
    open_images = [path for path in images if chosen.get(str(PurePosixPath(path).parent)) != IMAGES]
    pairs = MaskPairs()
    pairs.images = _named(root, open_images, images, pairs.ambiguous)
    unpaired = [path for path in images if path not in pairs.images]
    _by_content(root, unpaired, chosen, pairs)
    _report_unsure([path for path in open_images if path not in pairs.images], unpaired, pairs)
    return pairs


def has_name_of(mask: str, image: str) -> bool:
    """Whether the names of a mask and its image are equal without affixes."""
    stem = PurePosixPath(image).stem.casefold()
    return bool({stem, _IMAGE_ENDING.sub("", stem)} & set(_bare(PurePosixPath(mask).stem.casefold())))


def _named(
    root: Path, open_images: Sequence[str], images: Sequence[str], ambiguous: dict[str, list[str]]
) -> dict[str, str]:
    """Mask → image by their names; several images that fit equally well are added to `ambiguous`."""
    candidates = _candidates(open_images)
    if not candidates:
        return {}
    by_stem: dict[str, list[str]] = defaultdict(list)
    by_home: dict[str, list[str]] = defaultdict(list)  # folder of a folder of images → its images
    for path in images:
        if path not in candidates:
            stem = PurePosixPath(path).stem.casefold()
            by_stem[stem].append(path)
            if (short := _IMAGE_ENDING.sub("", stem)) != stem:
                by_stem[short].append(path)
            by_home[_home(path)].append(path)
    pairs: dict[str, str] = {}
    tied: dict[str, list[str]] = {}
    for mask in candidates:
        stem = PurePosixPath(mask).stem.casefold()
        partners = next((by_stem[key] for key in _bare(stem) if key in by_stem), None)
        if partners:
            near = all_nearest(partners, str(PurePosixPath(mask).parent))
            pairs[mask] = near[0]
            if len(near) > 1:
                tied[mask] = near
        elif _home(mask) and PurePosixPath(mask).parent.name.casefold() in _SURE and len(by_home[_home(mask)]) == 1:
            pairs[mask] = by_home[_home(mask)][0]  # a folder per image, which has a folder of masks
    if not pairs or not _hold_few_values(root, list(pairs)):
        return {}
    ambiguous.update(tied)
    pairs |= dict.fromkeys(tied, "")
    lonely = [mask for mask in candidates if mask not in pairs and _SURE & set(_folder_words(mask))]
    return pairs | dict.fromkeys(lonely, "")


def _home(path: str) -> str:
    """The parent of the folder of an image or mask; "" at the top."""
    return str(PurePosixPath(path).parent.parent).removeprefix(".")


def _report_unsure(open_images: Sequence[str], images: Sequence[str], pairs: MaskPairs) -> None:
    """Report folders named like masks whose content differs from masks, next to images of the same names."""
    by_stem: dict[str, list[str]] = defaultdict(list)
    for path in images:
        if PurePosixPath(path).parent.name.casefold() in _IMAGE_FOLDERS:
            by_stem[PurePosixPath(path).stem.casefold()].append(path)
    for path in open_images:
        pure = PurePosixPath(path)
        partners = by_stem.get(pure.stem.casefold())
        if partners and pure.parent.name.casefold() in _SURE:
            pairs.unsure.setdefault(str(pure.parent), (path, nearest(partners, str(pure.parent))))


def _bare(stem: str) -> list[str]:
    """Names of the image that a mask may belong to."""
    return [stem, _ENDING.sub("", stem), _BEGINNING.sub("", stem)]


def _candidates(images: Sequence[str]) -> dict[str, None]:
    """Return images that may be masks, by their names, in order."""
    lossy = {str(PurePosixPath(path).with_suffix("")) for path in images if path.lower().endswith((".jpg", ".jpeg"))}
    by_folder: dict[str, bool] = {}
    candidates: dict[str, None] = {}
    for path in images:
        pure = PurePosixPath(path)
        if pure.suffix.lower() not in _LOSSLESS:
            continue
        folder = str(pure.parent)
        if folder not in by_folder:
            by_folder[folder] = bool(_LABELS & set(_folder_words(path)))
        stem = pure.stem.casefold()
        affix = _ENDING.search(stem) or _BEGINNING.match(stem)
        if by_folder[folder] or str(pure.with_suffix("")) in lossy or affix:
            candidates[path] = None
    return candidates


def _folder_words(path: str) -> list[str]:
    return re.split(r"[/ _.-]+", str(PurePosixPath(path).parent).casefold())


def _hold_few_values(root: Path, masks: list[str]) -> bool:
    """Whether half of a sample or more are images of few values, as masks are. Damaged files say nothing."""
    values = [look.values for mask in _sample(masks) if (look := _inspect(root / mask)).size != (0, 0)]
    return sum(count <= MAX_VALUES for count in values) * 2 >= max(1, len(values))


def _sample(paths: Sequence[str]) -> Sequence[str]:
    return paths[:: max(1, len(paths) // SAMPLE)][:SAMPLE]


def _by_content(root: Path, images: Sequence[str], chosen: Mapping[str, str], result: MaskPairs) -> None:
    """Find mask folders by content: named like the images of another folder and with few values."""
    folders: dict[str, dict[str, str]] = defaultdict(dict)  # folder → stem → path
    for path in images:
        pure = PurePosixPath(path)
        folders[str(pure.parent)].setdefault(pure.stem.casefold(), path)
    owners: dict[str, list[str]] = defaultdict(list)  # stem → folders that have it
    for folder, stems in folders.items():
        for stem in stems:
            owners[stem].append(folder)
    for folder, stems in folders.items():
        lossless = all(PurePosixPath(path).suffix.lower() in _LOSSLESS for path in stems.values())
        if chosen.get(folder) == IMAGES or not (lossless or chosen.get(folder) == MASKS):
            continue
        partner = _partner(folder, stems, owners, result, folders)
        if not partner:
            continue
        pairs = [(path, folders[partner][stem]) for stem, path in stems.items() if stem in folders[partner]]
        verdict = MASKS if chosen.get(folder) == MASKS else _verdict(root, pairs)
        if verdict == MASKS:
            result.images.update(pairs)
            if folder not in chosen:
                result.detected[folder] = pairs[0]
        elif verdict:
            result.unsure[folder] = pairs[0]


def _partner(
    folder: str,
    stems: Mapping[str, str],
    owners: Mapping[str, Sequence[str]],
    pairs: MaskPairs,
    folders: Mapping[str, Mapping[str, str]],
) -> str:
    """Return the other folder with at least four fifths of the names, the nearest by name of several; "" for none."""
    shared: dict[str, int] = defaultdict(int)
    for stem in list(stems)[:1000]:
        for other in owners[stem][:50]:
            if other != folder and next(iter(folders[other].values())) not in pairs.images:
                shared[other] += 1
    enough = [other for other, count in shared.items() if count * 5 >= 4 * min(len(stems), 1000)]
    return max(enough, key=lambda other: (_common_prefix_length(folder, other), other), default="")


def _common_prefix_length(first: str, second: str) -> int:
    """Return the length of the common prefix of two names."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _verdict(root: Path, pairs: Sequence[tuple[str, str]]) -> str:
    """`MASKS`, "unsure", or "" for images."""
    sure = unsure = 0
    sample = pairs[:: max(1, len(pairs) // SAMPLE)][:SAMPLE]
    varied = False
    for mask, image in sample:
        first, second = _inspect(root / mask), _inspect(root / image)
        if first.values > MAX_UNNAMED_VALUES or first.size != second.size or second.values <= first.values:
            continue
        varied = varied or first.values > 1
        plain = first.mode in {"P", "1", "L", "I", "I;16"}
        if second.values > MAX_VALUES or (plain and second.mode in {"RGB", "RGBA", "CMYK"}):
            sure += 1
        else:
            unsure += 1
    if not varied or (sure + unsure) * 2 <= len(sample):
        return ""
    return MASKS if sure > unsure else "unsure"


@dataclass(frozen=True, slots=True)
class _Inspected:
    """What an image holds: different values, at most one more than `MAX_VALUES`."""

    values: int
    mode: str = ""
    size: tuple[int, int] = (0, 0)


def _inspect(path: Path) -> _Inspected:
    try:
        with Image.open(path) as image:
            if image.mode.startswith("I"):  # 16 bits and more, whose colours the library does not count
                values = min(len(np.unique(np.asarray(image))), MAX_VALUES + 1)
            else:
                colours = image.getcolors(MAX_VALUES)
                values = len(colours) if colours else MAX_VALUES + 1
            return _Inspected(values, image.mode, image.size)
    except Exception:  # noqa: BLE001 - decoders raise whatever they meet in a broken file
        return _Inspected(MAX_VALUES + 1)

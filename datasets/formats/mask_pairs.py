"""Find the mask images beside pictures: by folder or ending, by the picture of the same name, and by what they hold.

A mask that is taken for a picture is learned as background, so everything that looks like one is set aside from
the pictures, whether it is read or not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from PIL import Image

from datasets.formats.nearness import nearest

_WORDS = {
    "mask", "masks", "seg", "segs", "segmentation", "segmentations", "segmentationclass", "segmentationobject",
    "segmentationclassraw", "segmentationclassaug", "label", "labels", "labelids", "instanceids", "annotation",
    "annotations", "anno", "gt", "groundtruth", "truth", "trimap", "trimaps", "掩码", "标注", "标签",
}  # fmt: skip
_SURE = {"mask", "masks", "segmentationclass", "segmentationobject", "掩码"}
_LOSSLESS = {".png", ".bmp", ".gif", ".tif", ".tiff"}
_ENDING = re.compile(
    r"[ _.-](gtfine[ _-])?(mask|masks|seg|segmentation|label|labels|labelids|labeltrainids|instanceids|color|gt|l|"
    r"groundtruth|matte|annotation|manual\d?)$"
)
SAMPLE = 12  # pairs whose masks are looked into
MOST_VALUES = 100  # different values in a mask; photographs have more


def find(root: Path, images: Sequence[str]) -> dict[str, str]:
    """Mask → the picture it belongs to; "" for a mask in a folder of masks whose picture is not there."""
    candidates = _candidates(images)
    if not candidates:
        return {}
    by_stem: dict[str, list[str]] = defaultdict(list)
    for path in images:
        if path not in candidates:
            by_stem[PurePosixPath(path).stem.casefold()].append(path)
    pairs: dict[str, str] = {}
    for mask in candidates:
        stem = PurePosixPath(mask).stem.casefold()
        partners = by_stem.get(stem) or by_stem.get(_ENDING.sub("", stem))
        if partners:
            pairs[mask] = nearest(partners, str(PurePosixPath(mask).parent))
    if not pairs or not _hold_few_values(root, list(pairs)):
        return {}
    lonely = [mask for mask in candidates if mask not in pairs and _SURE & set(_folder_words(mask))]
    return pairs | dict.fromkeys(lonely, "")


def _candidates(images: Sequence[str]) -> dict[str, None]:
    """Images that may be masks, by their names, in order."""
    lossy = {str(PurePosixPath(path).with_suffix("")) for path in images if path.lower().endswith((".jpg", ".jpeg"))}
    words: dict[str, bool] = {}
    found: dict[str, None] = {}
    for path in images:
        pure = PurePosixPath(path)
        if pure.suffix.lower() not in _LOSSLESS:
            continue
        folder = str(pure.parent)
        if folder not in words:
            words[folder] = bool(_WORDS & set(_folder_words(path)))
        if words[folder] or str(pure.with_suffix("")) in lossy or _ENDING.search(pure.stem.casefold()):
            found[path] = None
    return found


def _folder_words(path: str) -> list[str]:
    return re.split(r"[/ _.-]+", str(PurePosixPath(path).parent).casefold())


def _hold_few_values(root: Path, masks: list[str]) -> bool:
    """Whether most of a sample are images of few values, as masks are."""
    step = max(1, len(masks) // SAMPLE)
    sample = masks[::step][:SAMPLE]
    return sum(_is_flat(root / mask) for mask in sample) * 2 > len(sample)


def _is_flat(path: Path) -> bool:
    try:
        with Image.open(path, formats=("PNG", "BMP", "GIF", "TIFF")) as image:
            return image.getcolors(MOST_VALUES) is not None
    except Exception:  # noqa: BLE001 - decoders raise whatever they meet in a broken file
        return False

"""Split a version again: a preview, then the next version with the same images and annotations.

The work of making that version is an import whose source is the version itself: it waits for a CPU worker, shows how
far it is and goes on where a worker died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from datasets.formats.neutral import SPLITS
from datasets.models import Dataset, DatasetVersion, Import
from datasets.services import imports, resplitting
from datasets.services.splitting import GROUPS, Wish, groups_of

SEED_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Preview:
    """What a split would give.

    Args:
        images: split → images.
        classes: class id → split → images with the class.
        groups: bundles of images that stay together.
        moved: images that change their split.
    """

    images: dict[str, int]
    classes: dict[int, dict[str, int]]
    groups: int
    moved: int


def wish_of(**fields: Any) -> Wish:
    """Return a validated split request.

    Raises:
        Invalid: percents below 0 or not 100 together, a seed out of range, an unknown group.
    """
    wish = Wish(**fields)
    if min(wish.train, wish.val, wish.test) < 0 or wish.train + wish.val + wish.test != 100:
        raise Invalid(_("The shares of train, val and test must add up to 100 %."), field="train")
    if not 0 <= wish.seed <= SEED_MAX:
        raise Invalid(_("A seed must be an integer from 0 to %(max)d.") % {"max": SEED_MAX}, field="seed")
    if wish.group and wish.group not in GROUPS:
        raise Invalid(_("Images can be kept together by folder or by prefix."), field="group")
    return wish


def preview(version: DatasetVersion, wish: Wish) -> Preview:
    """Count what the split would give, per class and split. Nothing is changed.

    Raises:
        CannotSplit: fewer bundles than splits.
    """
    items = resplitting.items_of(version)
    dealt = resplitting.dealt_out(items, wish)
    before = dict(version.assets.values_list("path", "split"))
    images = dict.fromkeys(SPLITS, 0)
    classes = {item["id"]: dict.fromkeys(SPLITS, 0) for item in version.classes}
    for item in items:
        split = dealt[item.path]
        images[split] += 1
        for class_id in item.classes:
            classes.setdefault(class_id, dict.fromkeys(SPLITS, 0))[split] += 1
    moved = sum(before[path] != split for path, split in dealt.items())
    return Preview(images, classes, groups_of(items, wish), moved)


def start(*, version: DatasetVersion, wish: Wish, by: User, dataset: Dataset | None = None) -> Import:
    """Queue the next version of the dataset: this one's images and annotations, split as wished.

    Args:
        dataset: another one that gets the version.

    Raises:
        CannotSplit: fewer bundles than splits.
        NotNow: an import of the dataset is open.
    """
    resplitting.dealt_out(resplitting.items_of(version), wish)
    return imports.start_from(
        version=version, rewrite="", facts=wish.as_dict(), annotated=version.annotated, by=by, dataset=dataset
    )

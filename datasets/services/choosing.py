"""Versions of chosen images of another one, by the words that the gallery has in its address.

`split=train&class=cell&annotated=yes&q=smear`: the splits (none: without one), the classes that stand on them, by name
or id, what is drawn on them (yes, empty, no), and words of the path. A word that is given several times means any of
its values, several words mean all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any
from urllib.parse import parse_qsl

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import search
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from aiplatform.lib.wording import Message, message
from datasets.formats.neutral import NO_SPLIT
from datasets.models import Asset, Dataset, DatasetVersion, Import
from datasets.services import imports, resplitting, rewriting

NAME = "chosen"
MAX_LENGTH = 500  # characters
MAX_COMBINATIONS = 100  # combinations that are looked for
FILTERS = ("split", "class", "annotated", "q")
BESIDE = ("ordering", "page")  # of the gallery's address; they choose nothing
CONTENT = {"yes": Asset.Content.OBJECTS, "empty": Asset.Content.EMPTY, "no": Asset.Content.UNSEEN}
Query = Mapping[str, list[str]]


class NothingChosen(DomainError, code="nothing_chosen"):
    """No image of the version is meant."""


def parse(text: str) -> Query:
    """Parse the image query: each word with its values.

    Raises:
        Invalid: all that is no word, or too much.
    """
    refusals, values_by_word = Refusals(), dict[str, list[str]]()
    if len(text) > MAX_LENGTH:
        raise Invalid(_("At most %(most)s characters.") % {"most": MAX_LENGTH}, field="query")
    for word, value in parse_qsl(text.strip().removeprefix("?"), keep_blank_values=True):
        with refusals:
            if word not in FILTERS + BESIDE:
                error = _(
                    "Images can be selected by %(known)s, such as split=train&class=cell; “%(word)s” is not supported."
                )
                raise Invalid(error % {"known": ", ".join(FILTERS), "word": word[:40]}, field="query")
            if word == "annotated" and value and value not in CONTENT:
                raise Invalid(_("annotated must be one of %(known)s.") % {"known": ", ".join(CONTENT)}, field="query")
            if word == "q" and len(value) > search.MAX_QUERY_LENGTH:
                raise Invalid(_("At most %(most)s characters.") % {"most": search.MAX_QUERY_LENGTH}, field="query")
        if value and word in FILTERS:
            values_by_word.setdefault(word, []).append(value)
    refusals.end()
    if not values_by_word:
        raise Invalid(_("Specify the images, such as split=train&class=cell."), field="query")
    combinations = 1
    for values in values_by_word.values():
        combinations *= len(values)
    if combinations > MAX_COMBINATIONS:
        raise Invalid(_("At most %(most)s combinations are supported.") % {"most": MAX_COMBINATIONS}, field="query")
    return values_by_word


def paths(version: DatasetVersion, query: Query) -> set[str]:
    """Return the paths of the matching images.

    Raises:
        Invalid: a split or a class that the version does not have.
    """
    result = set[str]()
    for filters in _to_filters(version, query):
        result.update(Asset.objects.of_version(version.pk, **filters).values_list("path", flat=True))
    return result


def _to_filters(version: DatasetVersion, query: Query) -> list[dict[str, Any]]:
    """Return the arguments of `AssetQuerySet.of_version`, one set for each combination."""
    refusals = Refusals()
    splits: list[str | None] = []
    for name in query.get("split", ()):
        with refusals:
            splits.append(_split(version, name))
    numbers: list[int | None] = []
    for name in query.get("class", ()):
        with refusals:
            numbers.append(_class(version, name))
    refusals.end()
    contents: list[int | None] = [CONTENT[word] for word in query.get("annotated", ())]
    combined = product(splits or [None], numbers or [None], contents or [None], query.get("q", []) or [""])
    return [
        {"split": split, "class_id": number, "content": content, "text": text}
        for split, number, content, text in combined
    ]


def _split(version: DatasetVersion, name: str) -> str:
    split = "" if name == NO_SPLIT else name
    if split not in version.splits:
        facts = {
            "version": version,
            "split": name[:20],
            "known": ", ".join(name_ or NO_SPLIT for name_ in version.splits),
        }
        raise Invalid(_("%(version)s has no split “%(split)s”. Available splits: %(known)s.") % facts, field="query")
    return split


def _class(version: DatasetVersion, name: str) -> int:
    named = {str(number): number for number in version.class_names}
    named |= {label.strip().casefold(): number for number, label in version.class_names.items()}
    if (number := named.get(name.strip().casefold())) is None:
        names = ", ".join(list(version.class_names.values())[:20]) or _("none")
        facts = {"version": version, "name": name[:40], "known": names}
        raise Invalid(_("%(version)s has no class “%(name)s”. Available classes: %(known)s.") % facts, field="query")
    return number


def start(*, version: DatasetVersion, query: str, dataset: Dataset, by: User) -> Import:
    """Queue the next version of `dataset`: the matching images of `version`, with their annotations.

    Raises:
        Invalid: see `parse` and `paths`.
        NothingChosen: there are none.
        NotNow: an import of the dataset is open.
    """
    matching = [Asset.objects.of_version(version.pk, **filters) for filters in _to_filters(version, parse(query))]
    count = sum(rows.count() for rows in matching)
    if not count:
        raise NothingChosen(_("%(version)s has no image with %(query)s.") % {"version": version, "query": query})
    return imports.start_from(
        version=version, rewrite=NAME, facts={"query": query}, annotated=version.annotated, by=by, dataset=dataset,
        images=min(count, version.image_count),
    )  # fmt: skip


def _write_plan(row: Import) -> None:
    version = row.source_version
    if version is None:
        raise NothingChosen(_("The source version no longer exists."))
    chosen = paths(version, parse(row.split["query"]))
    images = (image for image in resplitting.stored_images(version) if image.path in chosen)
    facts = {"task": version.task, "classes": version.classes, "coco_head": resplitting.coco_head(version)}
    rewriting.write(row, version, images, **facts)


def _story(row: Import) -> Message:
    return message("version.chosen", of=str(row.source_version), query=str(row.split["query"]))


REWRITE = rewriting.Rewrite(NAME, _write_plan, _story)

"""How many there are: written the same on every page and in both languages, and one of a thing is one."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import polib
import pytest
from django.template import Context, Template
from django.utils import translation

from accounts.sign_in import lockout
from aiplatform.lib import messages
from aiplatform.lib.units import Count
from aiplatform.lib.wording import message
from annotation.models import LabelClass
from annotation.services import sets
from datasets.models import DatasetVersion, Import
from datasets.services import imports
from datasets.services.resplitting import CannotSplit, dealt_out
from datasets.services.splitting import Item, Wish
from tests.datasets.helpers import uploaded, zipped
from tests.datasets.pictures import picture
from tests.factories import annotation, work
from tests.factories import datasets as make
from workers.core.models import Device
from workers.scheduling import preview

#: What names a thing or a moment and is no count.
NO_COUNT = re.compile(r"<(script|style|time|code|dialog)\b.*?</\1>|<[^>]*\bmono\b[^>]*>[^<]*<|<[^>]*>", re.DOTALL)


@pytest.fixture(params=["en", "zh-hans"])
def language(request, alice) -> str:
    type(alice).objects.filter(pk=alice.pk).update(language=request.param)
    return str(request.param)


def words_of(html: str) -> str:
    return unescape(NO_COUNT.sub(" ", html[html.index("<main") : html.index("</main>")]))


@pytest.fixture
def large(alice) -> DatasetVersion:
    """A version that says it has 12,345 images and 54,321 annotations."""
    made = make.version(make.dataset(alice))
    figures = made.figures or {}
    figures["objects"] = {"train": {"1": 43210, "2": 11111}}
    figures["empty"] = {"train": 2222}
    DatasetVersion.objects.filter(pk=made.pk).update(
        image_count=12345, annotation_count=54321, splits={"train": 10000, "val": 2345}, figures=figures
    )
    return made


def test_pages_write_large_counts_the_same_in_both_languages(as_alice, alice, large, language):
    taken = imports.start(dataset=large.dataset, by=alice, upload_id=uploaded(alice, zipped({"a.png": picture()})).pk)
    imports.run(taken.pk)
    taken.refresh_from_db()
    big = {
        "task": "detection",
        "images": 45678,
        "annotations": 98765,
        "problem_total": 1234,
        "unannotated_images": 3456,
    }
    Import.objects.filter(pk=taken.pk).update(report=taken.report | big)
    project = annotation.annotation_set(alice)
    pages = ["/", "/datasets/", f"/datasets/{large.dataset_id}/", f"/datasets/{large.dataset_id}/imports/{taken.pk}/",
             f"/annotation/projects/{project.project_id}/datasets/{project.pk}/"]  # fmt: skip

    said = {path: words_of(as_alice.get(path).content.decode()) for path in pages}

    assert {path: re.findall(r"(?<![\d,.\-:])\d{4,}(?![\d:\-])", words) for path, words in said.items()} == {
        path: [] for path in pages
    }
    assert "12,345" in said["/datasets/"]
    for count in ("12,345", "54,321", "10,000", "43,210", "2,222"):
        assert count in said[f"/datasets/{large.dataset_id}/"], count
    for count in ("45,678", "98,765", "1,234", "3,456"):
        assert count in said[pages[3]], count


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_count_filter_groups_digits_and_still_chooses_a_plural(language):
    page = Template(
        "{% load i18n ui %}{{ n|count }} {% blocktranslate count total=n|count %}{{ total }} entry{% plural %}"
        "{{ total }} entries{% endblocktranslate %}"
    )

    with translation.override(language):
        shown = [page.render(Context({"n": n})) for n in (1, 12345, 7654.0)]

    units = {"en": ["entry", "entries", "entries"], "zh-hans": ["条"] * 3}[language]
    assert shown == [f"{n} {n} {unit}" for n, unit in zip(("1", "12,345", "7,654"), units, strict=True)]
    assert Template("{% load ui %}{{ nothing|count }}").render(Context({"nothing": None})) == "–"
    assert (Count(3), Count(1) == 1, f"{Count(1234)}", Count(2000) + 1) == (3, True, "1,234", 2001)


def test_sentences_about_one_thing_do_not_speak_of_several(alice, settings, db):
    work.node("n1")
    Device.objects.filter(kind="cpu").update(capacity=8)
    annotation.draw(annotation.annotation_set(alice).tasks.select_related("asset", "set").get(number=1), alice)
    settings.AXES_COOLOFF_TIME = timedelta(minutes=1)

    def refused(label: LabelClass) -> str:
        with pytest.raises(sets.ClassInUse) as caught:
            sets.remove_label(label)
        return caught.value.message

    with pytest.raises(CannotSplit) as one_group:
        dealt_out([Item("a/1.png", "x", ()), Item("a/2.png", "x", ())], Wish(80, 10, 10))
    said = [
        lockout.sentence(),
        preview._free({"gpus_per_node": 0}),
        refused(LabelClass.objects.filter(shapes__isnull=False).first()),
        one_group.value.message,
        str(message("node.cards_changed", before=1, now=2)),
        str(message("alarm.rule.job_waiting", subject="lab", count=1, value=40.0)),
    ]

    assert said[0].endswith("Try again in 1 minute.")
    assert said[1] == "1 CPU slot free"
    assert said[2].endswith("has 1 object.")
    assert "only 1 group of images" in said[3]
    assert said[4] == "Had 1 GPU, now has 2."
    assert said[5] == "A job in cluster lab has been queued for 40 min."


def test_texts_that_count_things_have_a_form_for_one():
    """A number right before the plural of a thing needs `ngettext`, unless another text says the one."""
    things = "images|objects|shapes|boxes|files|samples|annotations|problems|people|entries|minutes|cores"
    counted = re.compile(rf"^[^%]*%\((?:count|n|free|images|samples|minutes|total|number)\)[sd] (?:{things})\b")
    paths = [messages.LOCALE / "zh_Hans" / "LC_MESSAGES" / f"{domain}.po" for domain in ("django", "djangojs")]
    every = (entry for path in paths for entry in polib.pofile(str(path)))
    lone = [entry.msgid for entry in every if not entry.msgid_plural and counted.search(entry.msgid)]
    lone = [text for text in lone if not text.startswith("The last %(images)s images")]  # some dozens at least

    assert sorted(lone) == [
        "%(count)s images are named %(name)s: %(places)s. The reference is ambiguous, so none was used.",  # same
        "%(count)s images are named %(name)s; the one nearest to the file was used: %(image)s.",  # two at least
        "%(n)s images compared with %(before)s training images of %(data)s",  # a hundred at least, else "collecting"
        "%(n)s images compared with the first %(before)s images received",  # same
        "CPU, %(n)s cores",  # its one is “CPU, 1 core”
        "The archive contains %(count)s entries; the limit is %(limit)s.",  # more than that limit
        "The folder contains %(count)s images; a batch prediction processes at most %(most)s. Choose a part of it.",
        "The list contains %(count)s images; the maximum is %(most)s.",
    ]


@pytest.mark.parametrize("missing", [None, ""])
def test_count_that_nobody_knows_is_a_dash_and_breaks_no_sentence(missing):
    sentence = "{% blocktranslate count n=n|count %}{{ n }} box{% plural %}{{ n }} boxes{% endblocktranslate %}"
    template = "{% load i18n ui %}{{ n|count }}: " + sentence

    assert Template(template).render(Context({"n": missing})) == "–: – boxes"

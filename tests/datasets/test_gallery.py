"""The gallery shows every image exactly once, whatever the filter and the depth; its totals are the version's own."""

from __future__ import annotations

import json
from itertools import product
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasets.formats.neutral import box
from datasets.formats.writer import StoredImage
from datasets.models import Asset, AssetClass
from datasets.services import datasets, versions
from datasets.views import gallery
from tests.datasets.helpers import imported, zipped
from tests.datasets.pictures import coco, picture
from tests.factories import datasets as make
from tests.factories import work

pytestmark = pytest.mark.django_db

SPLITS, CLASSES, NAMES = ("train", "val", ""), (1, 2, 3), ("a/Cat {}.png", "b/dog {}.png")


def made(owner, images):
    """A version of (split, classes, name) per image, without files; class 3 is known and stands nowhere."""

    def rows():
        for n, (split, classes, name) in enumerate(images):
            shapes = [box(c, c, 2, 3, 4, id=n * 10 + c).as_dict() for c in sorted(classes)]
            yield StoredImage(name.format(n), "0" * 64, 40, 30, 100, n + 1, split, None, shapes)

    dataset = make.dataset(owner, f"set {owner.datasets.count()}")
    known = [{"id": n, "name": f"class {n}", "supercategory": ""} for n in CLASSES]
    return versions.publish(
        versions.allocate(dataset, by=owner),
        rows,
        task="detection",
        classes=known,
        place_images=lambda target: target.mkdir(),
    )


def naive(images, *, split="", class_id="", annotated="", words=""):
    """Paths of the images that fit, looked for one by one."""
    found = []
    for n, (its_split, classes, name) in enumerate(images):
        path = name.format(n)
        fits = (
            split in {"", its_split or "none"}
            and (not class_id or int(class_id) in classes)
            and (not annotated or (annotated == "yes") == bool(classes))
            and all(word.lower() in path.lower() for word in words.split())
        )
        if fits:
            found.append(path)
    return found


def walked(browser, url, query):
    """Paths of all pages from the first by "next", and of the same pages by "previous" from the last."""
    page = browser.get(url, query).context["page"]
    there = [asset.path for asset in page]
    while page.next_url:
        page = browser.get(url + page.next_url).context["page"]
        there += [asset.path for asset in page]
    back = [asset.path for asset in page]
    while page.previous_url:
        page = browser.get(url + page.previous_url).context["page"]
        back = [asset.path for asset in page] + back
    return there, back


images_of_all_kinds = st.lists(
    st.tuples(st.sampled_from(SPLITS), st.sets(st.sampled_from((1, 2))), st.sampled_from(NAMES)),
    min_size=1,
    max_size=14,
)
filters_of_all_kinds = st.fixed_dictionaries(
    {
        "split": st.sampled_from(("", "train", "val", "none")),
        "class_id": st.sampled_from(("", "1", "2", "3")),
        "annotated": st.sampled_from(("", "yes", "empty")),
        "words": st.sampled_from(("", "cat", "DOG 1", "png 1", "nowhere")),
    }
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(images=images_of_all_kinds, wanted=filters_of_all_kinds)
def test_gallery_shows_what_fits_once_and_in_order_there_and_back(as_alice, alice, monkeypatch, images, wanted):
    monkeypatch.setattr(gallery, "PAGE", 4)
    version = made(alice, images)
    known = {split or "none" for split, _classes, _name in images} | {""}
    effective = wanted | {"split": wanted["split"] if wanted["split"] in known else ""}  # others are no filter
    names = {"split": "split", "class_id": "class", "annotated": "annotated", "words": "q"}
    query = {names[name]: value for name, value in wanted.items()}

    there, back = walked(as_alice, f"/datasets/{version.dataset_id}/", query)

    assert there == back == naive(images, **effective)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(images=images_of_all_kinds, wanted=filters_of_all_kinds)
def test_asset_api_lists_what_fits_once_and_in_order(api, alice, images, wanted):
    version = made(alice, images)
    query = {
        "split": wanted["split"], "class": wanted["class_id"], "search": wanted["words"], "limit": 3,
        "annotated": {"yes": "true", "empty": "false"}.get(wanted["annotated"], ""),
    }  # fmt: skip
    where = f"/api/v1/datasets/{version.dataset_id}/versions/{version.pk}/assets/?{urlencode(query)}"

    found = []
    while where:
        answer = api.get(where).json()
        found += [asset["path"] for asset in answer["results"]]
        where = answer["next"]

    assert found == naive(images, **wanted)


def test_gallery_of_all_splits_shows_images_with_and_without_one(as_alice, alice):
    images = [("train", {1}, NAMES[0]), ("", {1}, NAMES[0]), ("val", set(), NAMES[0])]
    where = f"/datasets/{made(alice, images).dataset_id}/"

    everything = as_alice.get(where, {"split": ""})
    without = as_alice.get(where, {"split": "none"})

    assert len(everything.context["page"]) == everything.context["page"].total == 3
    assert [asset.path for asset in without.context["page"]] == ["a/Cat 1.png"]
    assert without.context["page"].total == 1
    assert "no split (1)" in everything.content.decode()


def test_gallery_of_other_versions_images_stays_empty(as_alice, alice):
    mine, other = (made(alice, [("train", {n}, NAMES[n - 1])] * 2) for n in (1, 2))

    pages = [
        as_alice.get(f"/datasets/{mine.dataset_id}/", query).context["page"]
        for query in ({"class": "2"}, {"q": "dog"}, {"annotated": "no"})
    ]

    assert [len(page) for page in pages] == [0, 0, 0]
    assert len(as_alice.get(f"/datasets/{other.dataset_id}/", {"class": "2"}).context["page"]) == 2


def test_gallery_costs_as_many_queries_with_every_filter(as_alice, alice, django_assert_max_num_queries):
    work.node()
    images = list(product(SPLITS, ({1}, {1, 2}, set()), NAMES)) * 5
    where = f"/datasets/{made(alice, images).dataset_id}/"
    as_alice.get(where)

    for query in ({}, {"split": "val"}, {"split": "none", "class": "1"}, {"annotated": "no"}, {"q": "cat 1"}):
        with django_assert_max_num_queries(14):
            as_alice.get(where, query)


def test_gallery_counts_nothing_where_the_version_knows_it(as_alice, alice):
    where = f"/datasets/{made(alice, [('train', {1}, NAMES[0])] * 70).dataset_id}/"

    with CaptureQueriesContext(connection) as asked:
        pages = [as_alice.get(where, query).context["page"] for query in ({}, {"split": "train"}, {"class": "1"})]

    assert [page.total for page in pages] == [70, 70, 70]
    assert not [entry for entry in asked if "COUNT(" in entry["sql"] and "datasets_asset" in entry["sql"]]


def test_version_figures_are_those_of_its_rows_after_import_annotation_and_deletion(alice, tmp_path):
    files = {"train/0.png": picture(colour=(1, 2, 3)), "train/1.png": picture(), "2.png": picture(colour=(9, 9, 9))}
    first = imported(make.dataset(alice), zipped(files), annotated=False).version
    notes = tmp_path / "notes.json"
    named = [{"id": 0, "file_name": "train/1.png", "width": 40, "height": 30}]
    boxes = [{"id": n, "image_id": 0, "category_id": 7, "bbox": [1, 1, 4, 4]} for n in (1, 2)]
    notes.write_text(json.dumps(coco(images=named, annotations=boxes)))
    second = versions.create_from_coco(dataset=first.dataset, parent=first, coco=notes, by=alice)

    for version, shapes, marks in ((first, 0, 0), (second, 2, 1)):
        rows = list(version.assets.values_list("split", "shapes"))
        assert version.image_count == len(rows) == sum(version.splits.values()) == 3
        assert version.splits == {"train": 2, "": 1}
        assert version.annotation_count == sum(len(drawn) for _split, drawn in rows) == shapes
        assert AssetClass.objects.filter(version=version).count() == marks

    versions.delete(second, by=alice)
    assert (Asset.objects.count(), AssetClass.objects.count()) == (3, 0)
    datasets.delete(first.dataset)
    datasets.purge(first.dataset_id)
    assert not Asset.objects.exists()

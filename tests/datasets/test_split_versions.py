"""A version split anew: the preview is what comes, all else stays, leaks are named and mended."""

from __future__ import annotations

import json

import pytest

from aiplatform.lib.errors import Invalid
from datasets.formats.neutral import box
from datasets.formats.writer import StoredImage
from datasets.models import DatasetVersion, Import
from datasets.services import figures as figures_service
from datasets.services import imports, resplitting, splits, versions
from datasets.services.splitting import Wish
from tests.datasets.helpers import checked, imported, zipped
from tests.datasets.pictures import picture
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


def leaking(owner, count=20):
    """Half of the images are train; each stands again in val, but the last one in test."""
    dataset = make.dataset(owner, "leaky")
    content = [make.picture(shade=n) for n in range(count // 2)]

    def rows():
        for n in range(count):
            split = "train" if n < count // 2 else "test" if n == count - 1 else "val"
            shapes = [box(1 + n % 2, 2, 3, 10, 8, id=n + 1, attributes={"doubtful": True}).as_dict()] if n % 5 else []
            yield StoredImage(f"{split}/{n}.png", f"{n % len(content):064x}", 40, 30, 100, n + 5, split, None, shapes)

    def place(target):
        for image in rows():
            (target / image.path).parent.mkdir(parents=True, exist_ok=True)
            (target / image.path).write_bytes(content[int(image.sha256, 16)])

    return versions.publish(
        versions.allocate(dataset, by=owner), rows, task="detection", classes=make.CLASSES, place_images=place
    )


def split(version, by, **asked):
    row = splits.start(version=version, wish=splits.wish_of(**asked), by=by)
    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("done", "")
    return row.version


def test_leaks_are_counted_per_pair_of_splits(alice):
    version = leaking(alice)

    assert version.figures["leaks"] == [
        {"of": "val", "also": "train", "images": 9, "total": 9},
        {"of": "test", "also": "train", "images": 1, "total": 1},
    ]


def test_split_version_keeps_all_but_the_splits_and_has_no_leaks(alice):
    version = leaking(alice)
    asked = {"train": 50, "val": 30, "test": 20, "seed": 3}
    expected = splits.preview(version, splits.wish_of(**asked))

    made = split(version, alice, **asked)

    assert (made.number, made.parent, made.figures["leaks"]) == (2, version, [])
    assert made.splits == {name: count for name, count in expected.images.items() if count}
    before, after = (json.loads((v.path / "annotations.json").read_text()) for v in (version, made))
    assert after["annotations"] == before["annotations"]
    assert [{**i, "split": ""} for i in after["images"]] == [{**i, "split": ""} for i in before["images"]]
    assert (made.path / "images/train/0.png").samefile(version.path / "images/train/0.png")
    for class_id, counts in expected.classes.items():
        for name, count in counts.items():
            assert made.assets.filter(split=name, class_rows__class_id=class_id).count() == count
            assert made.assets.of_version(made.pk, split=name, class_id=class_id).count() == count
    assert str(made.story) == "leaky v1 split 50/30/20, seed 3"
    assert version.splits == {"train": 10, "val": 9, "test": 1}


def test_split_goes_on_where_a_worker_died(alice, monkeypatch):
    version = leaking(alice)
    row = splits.start(version=version, wish=Wish(), by=alice)
    with monkeypatch.context() as patch:
        patch.setattr(versions.writer, "write", _die)
        with pytest.raises(KeyboardInterrupt):
            imports.run(row.pk)
    Import.objects.filter(pk=row.pk).update(holder="", renewed_at=None)

    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.version.image_count, row.version.number) == ("done", 20, 2)


def _die(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("asked", [{"train": 80, "val": 30}, {"train": 120, "val": -30}, {"seed": -1}, {"group": "x"}])
def test_split_refuses_shares_that_are_not_the_whole(asked):
    with pytest.raises(Invalid):
        splits.wish_of(**asked)


def test_split_refuses_fewer_groups_than_splits(alice):
    version = make.version(make.dataset(alice), images=4)  # all in one folder

    with pytest.raises(resplitting.CannotSplit, match="only 1 group "):
        splits.start(version=version, wish=Wish(group="folder"), by=alice)


def test_split_page_shows_the_counts_and_makes_the_version(as_alice, as_bob, alice):
    version = leaking(alice)
    where = f"/datasets/{version.dataset_id}/v1/split/"
    shares = {"train": 60, "val": 30, "test": 10, "seed": 1, "group": ""}

    shown = as_alice.get(where, shares)
    wrong = as_alice.post(where, shares | {"train": 70})
    made = as_alice.post(where, shares)

    assert shown.context["preview"].images == {"train": 12, "val": 6, "test": 2}
    assert (wrong.status_code, list(wrong.context["form"].errors)) == (422, ["train"])
    row = Import.objects.get(source_version=version)
    assert made.headers["Location"] == f"/datasets/{version.dataset_id}/imports/{row.pk}/"
    assert as_alice.get(made.headers["Location"]).status_code == 200
    assert as_bob.get(where).status_code == 404


def test_split_page_warns_of_splits_that_stay_empty(as_alice, alice):
    version = make.version(make.dataset(alice), images=3)
    where = f"/datasets/{version.dataset_id}/v1/split/"

    some = as_alice.get(where, {"train": 98, "val": 1, "test": 1, "seed": 1, "group": ""})
    wished = as_alice.get(where, {"train": 100, "val": 0, "test": 0, "seed": 1, "group": ""}).content.decode()

    assert some.context["empty"] == ["val", "test"]
    assert "val and test stay empty. Images of this version: 3." in some.content.decode()
    assert "empty" not in wished
    assert "groups of images" not in wished  # each image is a group of its own


def test_split_by_api_previews_and_makes(api, alice):
    version = leaking(alice)
    where = f"/api/v1/versions/{version.pk}/split/"

    dry = api.post(where, {"train": 60, "val": 30, "test": 10, "stratify": False, "dry_run": True})
    wrong = api.post(where, {"train": 60})
    made = api.post(where, {"train": 60, "val": 30, "test": 10})

    assert (dry.status_code, dry.json()["images"]) == (200, {"train": 12, "val": 6, "test": 2})
    assert (dry.json()["groups"], wrong.status_code) == (10, 400)
    assert (made.status_code, made.json()["state"]) == (202, "committing")
    assert api.get(f"/api/v1/versions/{version.pk}/").json()["leaks"][0]["images"] == 9


def test_import_splits_anew_where_asked(alice, as_alice):
    files = {f"train/{n}.png": picture(colour=(n, n, n)) for n in range(10)}
    dataset = make.dataset(alice)
    upload = checked(dataset, zipped(files), annotated=False)
    imports.cancel(upload)
    row = imports.start(
        dataset=dataset,
        by=alice,
        upload_id=_again(alice, files).pk,
        agreed=True,
        split=Wish(50, 30, 20).as_dict(),
    )

    imports.run(row.pk)

    row.refresh_from_db()
    assert row.report["splits"] == {"train": 5, "val": 3, "test": 2}
    assert row.version.splits == row.report["splits"]


def _again(owner, files):
    from tests.datasets.helpers import uploaded

    return uploaded(owner, zipped(files))


def test_version_of_an_older_platform_is_counted_when_somebody_asks(
    alice, as_alice, monkeypatch, sent, django_capture_on_commit_callbacks
):
    version = imported(make.dataset(alice), zipped({f"{n}.png": picture() for n in range(3)}), annotated=False).version
    known = version.figures
    type(version).objects.update(figures=None)
    version.refresh_from_db()
    with monkeypatch.context() as patch, django_capture_on_commit_callbacks(execute=True):
        patch.setattr(figures_service, "AT_ONCE", 2)
        waiting = as_alice.get(f"/datasets/{version.dataset_id}/")
    assert waiting.context["counting"]
    assert ("datasets.figures", {"version_id": version.pk}) in sent

    page = as_alice.get(f"/datasets/{version.dataset_id}/")

    version.refresh_from_db()
    assert version.figures == known
    assert page.context["twins"] == 2


def test_version_page_leads_on(as_alice, alice):
    version = leaking(alice)

    page = as_alice.get(f"/datasets/{version.dataset_id}/")

    assert [offer.name for offer in page.context["offers"]] == ["train", "annotate", "evaluate", "predict"]
    text = page.content.decode()
    assert f'class="btn btn-primary" href="/training/new/?version={version.pk}"' in text
    assert "9 of 9 val images are also in train." in text
    assert [(bar.name, bar.total, bar.by_split) for bar in page.context["class_bars"]] == [
        ("cell", 8, [4, 4, 0]),
        ("plate", 8, [4, 3, 1]),
    ]
    assert (page.context["empty"], page.context["unannotated"]) == (4, 0)


def test_gallery_sorts_by_name_and_by_objects(as_alice, alice):
    version = leaking(alice, 10)
    where = f"/datasets/{version.dataset_id}/"

    by_name, most = (
        [asset.path for asset in as_alice.get(where, {"ordering": order}).context["page"]]
        for order in ("name", "-objects")
    )

    assert by_name == sorted(by_name)
    assert sorted(most[-2:]) == ["train/0.png", "val/5.png"]
    assert [a.path for a in as_alice.get(where, {"annotated": "empty"}).context["page"]] == ["train/0.png", "val/5.png"]


def test_version_page_opens_where_the_files_of_the_version_cannot_be_read(as_alice, alice, tmp_path):
    version = make.version(make.dataset(alice))
    DatasetVersion.objects.update(root=str(tmp_path / "gone"), figures=None)

    page = as_alice.get(f"/datasets/{version.dataset_id}/")

    assert page.status_code == 200
    assert "being counted" not in page.content.decode()

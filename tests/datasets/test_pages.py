"""Pages and file downloads: who may see what, what a browser gets, how many queries it costs."""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from PIL import Image

from datasets.models import Asset, AssetClass, Dataset, DatasetVersion
from datasets.services import imports
from datasets.services.orders import DATASETS
from datasets.storage import dataset_paths
from tests.cases import case_table
from tests.datasets.helpers import imported, uploaded, zipped
from tests.datasets.pictures import coco, picture
from tests.factories import datasets as make
from tests.factories import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(alice):
    return make.version(make.dataset(alice), images=4)


@pytest.fixture
def pages(alice, version):
    row = imports.start(dataset=version.dataset, by=alice, upload_id=uploaded(alice, zipped({"a.png": picture()})).pk)
    imports.run(row.pk)
    asset = version.assets.first()
    base = f"/datasets/{version.dataset_id}/"
    return {
        "private": [
            base,
            f"{base}v1/",
            f"{base}edit/",
            f"{base}add/",
            f"{base}v1/download/",
            f"{base}imports/{row.pk}/",
            f"{base}imports/{row.pk}/problems.csv",
            f"/datasets/images/{asset.pk}/",
            f"/datasets/images/{asset.pk}/thumbnail/",
            f"/datasets/images/{asset.pk}/original/",
        ],
        "open": ["/datasets/", "/datasets/new/"],
    }


def test_dataset_pages_work_for_the_owner_and_nobody_else(as_alice, as_bob, as_anna, pages):
    every = pages["private"] + pages["open"]

    def status(client, page):
        answer = client.get(page)
        if answer.streaming:
            body(answer)
        return answer.status_code

    assert {page: status(as_alice, page) for page in every} == dict.fromkeys(every, 200)
    assert {page: as_bob.get(page).status_code for page in pages["private"]} == dict.fromkeys(pages["private"], 404)
    assert {as_anna.get(page).status_code for page in every} == {403}
    assert {Client().get(page).status_code for page in every} == {302}


def test_dataset_facts_call_its_owner_what_lists_call_them(as_alice, version):
    page = as_alice.get(f"/datasets/{version.dataset_id}/").content.decode()

    assert "<dt>Owner</dt>" in page
    assert "Creator" not in page


def test_dataset_pages_refuse_changes_of_a_strangers_dataset(as_bob, version):
    base = f"/datasets/{version.dataset_id}/"
    for act in ("delete/", "v1/delete/", "edit/", "add/"):
        assert as_bob.post(base + act, {"confirm": "cells"}).status_code == 404
    Dataset.objects.update(visibility="public")

    assert as_bob.get(base).status_code == 200
    for act in ("delete/", "v1/delete/", "edit/", "add/"):
        assert as_bob.post(base + act, {"confirm": "cells"}).status_code == 403


def test_dataset_create_page_requires_all_items_and_keeps_what_was_typed(as_alice):
    answer = as_alice.post(
        "/datasets/new/", {"name": "x" * 30, "annotated": "no", "visibility": "private", "source": "upload"}
    )

    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"name", "upload_id"}
    assert not Dataset.objects.exists()


def test_dataset_create_page_leads_to_the_import(as_alice, alice):
    upload = uploaded(alice, zipped({"a.png": picture()}))
    sent = {
        "name": "Cells",
        "intro": "Blood",
        "annotated": "no",
        "visibility": "private",
        "source": "upload",
        "upload_id": upload.pk,
    }

    answer = as_alice.post("/datasets/new/", sent)

    row = Dataset.objects.get().imports.get()
    assert answer.headers["Location"] == f"/datasets/{row.dataset_id}/imports/{row.pk}/"


def test_dataset_list_filters_sorts_and_pages_by_key(as_alice, alice, bob, django_assert_max_num_queries):
    for n in range(25):
        make.dataset(alice, f"set {n:02}")
    make.version(make.dataset(alice, "zebra"))
    make.dataset(bob, "hidden")

    with django_assert_max_num_queries(14):
        first = as_alice.get("/datasets/", {"ordering": "name"})
    names = [d.name for d in first.context["page"]]
    second = as_alice.get("/datasets/" + first.context["page"].next_url)
    back = as_alice.get("/datasets/" + second.context["page"].previous_url)

    assert names == [f"set {n:02}" for n in range(20)]
    assert [d.name for d in second.context["page"]] == [*(f"set {n:02}" for n in range(20, 25)), "zebra"]
    assert [d.name for d in back.context["page"]] == names
    assert first.context["page"].total == 26
    assert [d.name for d in as_alice.get("/datasets/", {"annotated": "yes"}).context["page"]] == ["zebra"]
    assert [d.name for d in as_alice.get("/datasets/", {"q": "13 set"}).context["page"]] == ["set 13"]
    assert as_alice.get("/datasets/", {"next": "bent~link", "ordering": "nonsense", "size": "9999"}).status_code == 200


def test_dataset_list_shows_the_cover_and_the_first_classes_of_the_newest_version(as_alice, as_bob, alice):
    shown = make.version(make.dataset(alice, "cells"))
    DatasetVersion.objects.filter(pk=shown.pk).update(
        classes=[
            {"id": n, "name": name, "supercategory": ""}
            for n, name in enumerate(("RBC", "WBC", "plate", "dust", "hair"))
        ]
    )
    make.dataset(alice, "still empty")
    plain = make.version(make.dataset(alice, "plain"), task="none")
    hidden = make.version(make.dataset(alice, "hidden"))
    Dataset.objects.filter(pk=shown.dataset_id).update(visibility="public")

    html = as_alice.get("/datasets/?ordering=name").content.decode()
    others = as_bob.get("/datasets/")

    cells = html[html.index(">cells<") - 600 : html.index(">hidden<")]
    covers = [version.assets.get(path="a/0.png").pk for version in (shown, hidden, plain)]
    address = f"/datasets/covers/?of={','.join(map(str, covers))}"
    assert f'<svg viewBox="0 0 56 42"><image href="{address}" width="56" height="126"/></svg>' in cells
    assert [name in cells for name in ("RBC", "WBC", "plate", "dust", "+2")] == [True, True, True, False, True]
    assert re.findall(r'viewBox="0 (\d+) 56 42"', html) == ["0", "42", "84"]  # none for the empty one
    assert "Not annotated" in html[html.index(">plain<") :]
    assert [row.name for row in others.context["page"]] == ["cells"]
    assert f'"/datasets/covers/?of={covers[0]}"' in others.content.decode()


def test_dataset_list_costs_the_same_however_many_versions_and_classes_there_are(
    as_alice, alice, django_assert_num_queries
):
    make.version(make.dataset(alice, "one"))
    as_alice.get("/datasets/")
    with CaptureQueriesContext(connection) as one:
        as_alice.get("/datasets/")
    for n in range(6):
        owned = make.dataset(alice, f"more {n}")
        make.version(owned, images=2)
        make.version(owned, images=1)

    with django_assert_num_queries(len(one)):
        as_alice.get("/datasets/")


@case_table("word", DATASETS.words, rollback=True)
def test_dataset_list_sorts_by_every_head_the_same_on_page_and_in_api(as_alice, api, alice, word):
    for name, images in (("b", 3), ("A", 1), ("c", 2)):
        make.version(make.dataset(alice, name), images=images)
    make.dataset(alice, "d")

    page = [row.pk for row in as_alice.get(f"/datasets/?ordering={word}").context["page"]]
    found = [row["id"] for row in api.get(f"/api/v1/datasets/?ordering={word}").json()["results"]]

    assert page == found
    if word.endswith(("name", "images")):
        names = [Dataset.objects.get(pk=pk).name for pk in page]
        rising = {"name": ["A", "b", "c", "d"], "images": ["d", "A", "c", "b"]}[word.removeprefix("-")]
        assert names == (rising[::-1] if word.startswith("-") else rising)


def test_dataset_head_has_one_primary_act_and_the_others_in_its_menu(as_alice, version):
    html = as_alice.get(f"/datasets/{version.dataset_id}/").content.decode()
    head = html[html.index('class="page-actions"') : html.index('<div class="dataset">')]
    menu = head[head.index("<details") : head.index("</details>")]
    beside = head.replace(menu, "")

    assert beside.count('class="btn btn-primary"') == beside.count('class="btn') == 1
    assert 'data-dialog-open="delete-dataset"' in menu
    assert [f"{part}/" in menu for part in ("edit", "add", "split", "share/dataset")] == [True] * 4


def test_dataset_gallery_costs_the_same_on_every_page(as_alice, version, django_assert_max_num_queries):
    work.node()
    first = version.assets.first().pk
    rows = [
        Asset(
            version=version, path=f"b/{n}.png", sha256="0" * 64, width=40, height=30, shapes=[[1, "bbox", [1, 1, 9, 9]]]
        )
        for n in range(3000)
    ]
    made = Asset.objects.bulk_create(rows)
    AssetClass.objects.bulk_create(AssetClass(asset=a, version=version, class_id=1) for a in made)
    base = f"/datasets/{version.dataset_id}/"

    with django_assert_max_num_queries(16):
        page = as_alice.get(base, {"next": f"{first + 2000}~{first + 2000}"}).context["page"]
    with django_assert_max_num_queries(16):
        filtered = as_alice.get(base, {"class": "1", "next": f"{first + 2000}~{first + 2000}"}).context["page"]

    assert (len(page), len(filtered)) == (60, 60)
    assert all(asset.pk > first + 2000 for asset in [*page, *filtered])


def test_dataset_gallery_draws_shapes_and_filters_by_class_and_split(as_alice, version):
    base = f"/datasets/{version.dataset_id}/"

    text = as_alice.get(base).content.decode()
    odd = as_alice.get(base, {"class": "2"}).context["page"]
    none = as_alice.get(base, {"split": "test"}).context["page"]

    assert '<path color="#4353d6" d="M2,3H12V11H2Z"/>' in text
    assert [asset.path for asset in odd] == ["a/1.png", "a/3.png"]
    assert len(none) == 4  # a split the version does not have is no filter


def test_D09_dataset_image_bytes_are_typed_by_content_and_locked_in(as_alice, alice):
    evil = picture(kind="JPEG") + b"<html><script>alert(1)</script></html>"
    asset = imported(make.dataset(alice), zipped({"a.html.jpg": evil}), annotated=False).version.assets.get()

    answer = as_alice.get(f"/datasets/images/{asset.pk}/original/")

    assert answer.headers["Content-Type"] == "image/jpeg"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer.content == evil


@pytest.mark.parametrize("name", ["a.svg", "a.html", "a.xml", "a.pdf", "a.png"])
def test_D10_dataset_import_takes_in_nothing_that_is_no_image(alice, name):
    row = imported(make.dataset(alice), zipped({name: "<svg onload='alert(1)'/>", "b.png": picture()}), annotated=False)

    assert [asset.path for asset in row.version.assets.all()] == ["b.png"]


def test_D10_dataset_image_that_became_something_else_is_a_download_only(as_alice, version):
    asset = version.assets.first()
    (version.images_path / asset.path).write_bytes(b"<svg onload='alert(1)'/>")

    answer = as_alice.get(f"/datasets/images/{asset.pk}/original/")

    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_thumbnail_is_small_upright_webp_made_once_and_cached(as_alice, alice):
    exif = Image.Exif()
    exif[0x0112] = 6
    big = picture(800, 400, "JPEG", exif=exif)
    asset = imported(make.dataset(alice), zipped({"a.jpg": big}), annotated=False).version.assets.get()
    where = f"/datasets/images/{asset.pk}/thumbnail/"

    answer = as_alice.get(where)
    again = as_alice.get(where, headers={"If-None-Match": answer.headers["ETag"]})

    with Image.open(io.BytesIO(answer.content)) as small:
        assert (small.format, small.size) == ("WEBP", (128, 256))
    assert dataset_paths.thumbnail_path(asset).read_bytes() == answer.content
    assert (again.status_code, again.content, {"Cookie", "Authorization"} - set(again.headers["Vary"].split(", "))) == (
        304,
        b"",
        set(),
    )


def test_thumbnail_of_a_small_image_is_the_image(as_alice, version):
    asset = version.assets.first()

    answer = as_alice.get(f"/datasets/images/{asset.pk}/thumbnail/")

    assert (answer.headers["Content-Type"], answer.content) == ("image/png", make.picture())


def body(answer) -> bytes:
    return b"".join(answer.streaming_content)


def test_dataset_version_tar_download_resumes_at_any_byte(as_alice, version):
    where = f"/datasets/{version.dataset_id}/v1/download/"
    whole = body(as_alice.get(where))

    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        names = tar.getnames()
        first = tar.extractfile("cells-v1/images/a/0.png").read()
    assert names == [f"cells-v1/{n}" for n in ("dataset.json", "manifest.jsonl", "annotations.json")] + [
        f"cells-v1/images/a/{n}.png" for n in range(4)
    ]
    assert first == make.picture()
    for begin in (0, 1, 511, 512, 700, 5000, len(whole) - 1024, len(whole) - 1):
        part = as_alice.get(where, headers={"Range": f"bytes={begin}-"})
        assert (part.status_code, body(part)) == (206, whole[begin:])
    middle = as_alice.get(where, headers={"Range": "bytes=300-1500"})
    assert (body(middle), middle.headers["Content-Range"]) == (whole[300:1501], f"bytes 300-1500/{len(whole)}")
    assert as_alice.get(where, headers={"Range": f"bytes={len(whole)}-"}).status_code == 416
    other = as_alice.get(where, headers={"Range": "bytes=9-", "If-Range": '"changed"'})
    assert (other.status_code, len(body(other))) == (200, len(whole))


def test_dataset_version_zip_download_goes_up_again_unchanged(as_alice, alice, version):
    data = body(as_alice.get(f"/datasets/{version.dataset_id}/v1/download/", {"as": "zip"}))
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None

    again = imported(make.dataset(alice, "again"), data).version

    kept = list(version.assets.values_list("path", "sha256", "split", "shapes"))
    assert [(p.removeprefix("a/"), h, s, d) for p, h, s, d in kept] == [
        (p.removeprefix("a/"), h, s, d) for p, h, s, d in again.assets.values_list("path", "sha256", "split", "shapes")
    ]


def test_dataset_delete_page_needs_the_name_typed(as_alice, version):
    base = f"/datasets/{version.dataset_id}/"

    as_alice.post(f"{base}delete/", {"confirm": "cell"})
    assert Dataset.objects.visible_to(version.dataset.owner).exists()

    as_alice.post(f"{base}delete/", {"confirm": "cells"})
    assert not Dataset.objects.visible_to(version.dataset.owner).exists()


def test_dataset_import_page_polls_and_then_offers_the_choices(as_alice, alice):
    dataset = make.dataset(alice)
    row = imports.start(dataset=dataset, by=alice, upload_id=uploaded(alice, zipped({"a.png": picture()})).pk)
    where = f"/datasets/{dataset.pk}/imports/{row.pk}/"
    assert "hx-get" in as_alice.get(where).content.decode()

    imports.run(row.pk)
    text = as_alice.get(where, headers={"HX-Request": "true"}).content.decode()
    assert ("hx-get" in text, "<html" in text, "commit" in text) == (False, False, True)

    as_alice.post(f"{where}commit/")
    imports.run(row.pk)
    done = as_alice.get(where, headers={"HX-Request": "true"})
    assert (done.status_code, done.headers["HX-Redirect"]) == (204, f"/datasets/{dataset.pk}/")


def test_dataset_admin_site_lists_open_for_operators(as_olga, version, olga):
    olga.is_staff = olga.is_superuser = True
    olga.save()

    for table in ("dataset", "datasetversion", "import", "upload"):
        assert as_olga.get(f"/admin/datasets/{table}/").status_code == 200


def test_page_of_an_image_names_its_objects_with_their_size(as_alice, alice):
    document = coco(1, categories=[{"id": 7, "name": "<cell>"}])
    row = imported(make.dataset(alice), zipped({"0.png": picture(), "annotations.json": json.dumps(document)}))
    asset = row.version.assets.get()

    page = as_alice.get(f"/datasets/images/{asset.pk}/").content.decode()

    assert "10 × 12 px" in page
    assert "&lt;cell&gt;</text>" in page
    assert "<cell>" not in page

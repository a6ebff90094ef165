"""The way of data in, as a person walks it: choose a file, watch it, read the report, agree, look at the images."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from datasets.models import Import, Upload
from datasets.services import imports
from tests import public_data
from tests.datasets.helpers import checked, imported, zipped, zipped_folder
from tests.datasets.pictures import coco, coco_folder, picture, put
from tests.datasets.read_folders import mask_png, two_objects
from tests.factories import datasets as make


def archive(tmp_path, data: bytes, name: str = "cells.zip") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def work() -> None:
    """What the worker would do now."""
    for pk in Import.objects.filter(state__in=Import.WORKING).values_list("pk", flat=True):
        imports.run(pk)


@pytest.fixture
def cells_zip(tmp_path) -> bytes:
    if cells := public_data.find("bccd"):
        return zipped_folder(cells)
    return zipped_folder(coco_folder(tmp_path / "made", coco()))


def test_dataset_pages_lead_from_a_zip_to_the_gallery(open_as, alice, accessible, fits, shot, tmp_path, cells_zip):
    page = open_as(alice)
    page.goto("/datasets/")
    accessible(page)
    shot(page, "datasets-empty")
    page.get_by_role("main").get_by_role("link", name="New dataset").first.click()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Choose a file, or drop one here.")).to_be_visible()
    expect(page.get_by_role("button", name="Choose files")).to_be_focused()
    accessible(page)
    shot(page, "datasets-create-without-file")
    page.set_input_files("[data-file]", archive(tmp_path, cells_zip))
    expect(page.get_by_text("The upload is complete.")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("cells")
    accessible(page)
    shot(page, "datasets-create")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page).to_have_url(re.compile(r"/imports/\d+/$"))
    shot(page, "datasets-import-working")
    accessible(page)
    work()
    expect(page.get_by_role("button", name=re.compile("Import .* images|import the rest"))).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, "datasets-import-report", full=True)
    page.get_by_role("button", name=re.compile("Import .* images|import the rest")).click()
    expect(page.get_by_text("You can leave this page")).to_be_visible()
    work()
    expect(page.locator(".gallery .tile").first).to_be_visible()
    assert page.locator(".shapes path").count() > 0
    page.wait_for_load_state("networkidle")
    accessible(page)
    fits(page)
    shot(page, "datasets-detail")
    page.locator(".tile").first.click()
    expect(page.get_by_role("link", name="Original")).to_be_visible()
    page.wait_for_load_state("networkidle")
    accessible(page)
    shot(page, "datasets-image")
    first = page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: url != first)
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(first)
    page.goto("/datasets/")
    accessible(page)
    shot(page, "datasets-list")


def test_dataset_upload_goes_on_after_the_tab_was_closed(open_as, alice, tmp_path, shot):
    import os

    page = open_as(alice)
    page.watch.allow("ERR_FAILED")
    file = archive(tmp_path, zipped({"a.png": picture(), "noise.bin": os.urandom(20 << 20)}))
    sent = []

    def cut(route):
        sent.append(route.request.headers.get("upload-offset"))
        if len(sent) > 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/uploads/tus/*", lambda route: cut(route) if route.request.method == "PATCH" else route.continue_())
    page.goto("/datasets/new/")
    page.set_input_files("[data-file]", file)
    expect(page.get_by_text("The connection was lost. Retrying in")).to_be_visible(timeout=60_000)
    shot(page, "datasets-upload-broken")
    page.unroute_all()
    page.goto("/datasets/new/")
    expect(page.get_by_text("Choose the same file again")).to_be_visible()
    shot(page, "datasets-upload-unfinished")

    page.set_input_files("[data-file]", file)

    expect(page.get_by_text("The upload is complete.")).to_be_visible(timeout=60_000)
    upload = Upload.objects.get()
    assert (upload.state, upload.offset, sent[:2]) == ("done", upload.length, ["0", str(16 << 20)])
    with open(file, "rb") as original:
        assert upload.file.read_bytes() == original.read()


def test_dataset_form_refuses_a_wrong_file_in_words_and_waits_for_a_file(open_as, alice, tmp_path):
    page = open_as(alice)
    page.goto("/datasets/new/")

    page.set_input_files("[data-file]", archive(tmp_path, b"x", "movie.mp4"))

    expect(page.get_by_text("movie.mp4 contains no images")).to_be_visible()
    assert not Upload.objects.exists()


def checked_files(page) -> dict[str, int]:
    """What the form just sent is read as: its files, after the worker went over them."""
    expect(page.get_by_text("The upload is complete.")).to_be_visible()
    page.get_by_label("Name").fill("Loose")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page).to_have_url(re.compile(r"/imports/\d+/$"))
    work()
    row = Import.objects.get()
    assert row.error == ""
    return row.report["files"] | {"splits": row.report["splits"], "format": row.report["format"]}


def test_dataset_form_takes_fifty_loose_pictures_dropped_on_it(open_as, alice, accessible, fits, shot):
    page = open_as(alice)
    page.goto("/datasets/new/")
    accessible(page)
    shot(page, "datasets-create-empty")
    long = "很" * 60  # no plain tar header holds this
    page.evaluate(
        """async ([long]) => {
          const canvas = document.createElement("canvas");
          canvas.width = canvas.height = 20;
          const dropped = new DataTransfer();
          for (let n = 0; n < 50; n += 1) {
            canvas.getContext("2d").fillStyle = `rgb(${n}, 90, 200)`;
            canvas.getContext("2d").fillRect(0, 0, 20, 20);
            const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
            const name = n === 7 ? `${long}.png` : n === 8 ? "Twin.png" : n === 9 ? "twin.PNG" : `${n}.png`;
            dropped.items.add(new File([blob], name, { type: "image/png", lastModified: 1700000000000 + n }));
          }
          const drop = new DragEvent("drop", { dataTransfer: dropped, bubbles: true });
          document.querySelector("[data-drop]").dispatchEvent(drop);
        }""",
        [long],
    )

    found = checked_files(page)

    assert (found["images"], found["total"], found["left_out"]) == (50, 50, 0)
    row = Import.objects.get()
    names = {path.name for path in (row.folder / "files").iterdir()}
    assert {f"{long}.png", "Twin.png", "twin (2).PNG"} <= names


def test_dataset_form_takes_a_folder_with_its_annotations(open_as, alice, tmp_path):
    page = open_as(alice)
    page.goto("/datasets/new/")
    folder = tmp_path / "cells"
    for n, split in enumerate(["train", "train", "val"]):
        put(
            folder,
            {f"images/{split}/{n}.png": picture(colour=(n, 1, 1)), f"labels/{split}/{n}.txt": "0 0.5 0.5 0.2 0.2"},
        )
    put(folder, {"data.yaml": "names: [cell]\n"})

    page.set_input_files("[data-folder]", str(folder))

    found = checked_files(page)
    assert (found["images"], found["labels"], found["format"]) == (3, 4, "yolo")
    assert found["splits"] == {"train": 2, "val": 1}
    expect(page.get_by_role("button", name="Import 3 images")).to_be_visible()


def test_dataset_import_page_asks_before_it_throws_data_away(open_as, alice, accessible, shot):
    dataset = make.dataset(alice)
    row = checked(dataset, zipped({"a.png": picture(), "b.mp4": "x", "c.png": picture()}), annotated=False)
    page = open_as(alice)
    page.goto(f"/datasets/{dataset.pk}/imports/{row.pk}/")

    page.get_by_role("button", name="Cancel import").click()

    expect(page.get_by_text("The upload is deleted: data.zip")).to_be_visible()
    accessible(page)
    shot(page, "datasets-import-cancel")
    page.get_by_role("button", name="Continue the import").click()
    row.refresh_from_db()
    assert row.state == "reported"
    page.get_by_role("button", name="Cancel import").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel import").click()
    expect(page).to_have_url(re.compile(rf"/datasets/{dataset.pk}/$"))
    row.refresh_from_db()
    assert (row.state, Upload.objects.count()) == ("cancelled", 0)


def test_dataset_import_page_names_the_values_of_masks(open_as, alice, accessible, fits, shot):
    files = {"images/a.jpg": picture(kind="JPEG"), "masks/a.png": mask_png(two_objects()), "b.mp4": "x"}
    row = checked(make.dataset(alice), zipped(files))
    page = open_as(alice, width=390, height=844, dark=True)

    page.watch.allow("422")
    page.goto(f"/datasets/{row.dataset_id}/imports/{row.pk}/")
    accessible(page)
    fits(page)
    page.get_by_label("Name of class 1").fill("cell")
    page.get_by_label("Name of class 2").fill("cell")
    page.get_by_role("button", name="Import 1 image").click()
    expect(page.get_by_role("alert")).to_contain_text("Two classes are named “cell”.")
    accessible(page)
    fits(page)
    shot(page, "datasets-import-names-small-dark", full=True)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_label("Name of class 2").fill("nucleus")
    shot(page, "datasets-import-names", full=True)
    page.get_by_role("button", name="Import 1 image").click()
    expect(page.get_by_text("You can leave this page")).to_be_visible()
    work()

    row.refresh_from_db()
    assert [item["name"] for item in row.version.classes] == ["cell", "nucleus"]


def test_dataset_import_page_shows_problems_in_a_small_dark_window(open_as, alice, accessible, fits, shot):
    dataset = make.dataset(alice)
    broken = {f"bad{n}.png": b"" for n in range(5)} | {f"{n}.png": picture(colour=(n * 20, 90, 90)) for n in range(9)}
    imported(dataset, zipped(broken), annotated=False)
    page = open_as(alice, width=390, height=844, dark=True)

    page.goto(f"/datasets/{dataset.pk}/")
    page.wait_for_load_state("networkidle")
    accessible(page)
    fits(page)
    shot(page, "datasets-detail-small-dark", full=True)
    page.goto("/datasets/")
    fits(page)
    shot(page, "datasets-list-small-dark")
    page.goto("/datasets/new/")
    accessible(page)
    fits(page)
    shot(page, "datasets-create-small-dark", full=True)


def test_dataset_form_names_data_on_the_server_by_its_path(
    open_as, alice, accessible, fits, shot, tmp_path, monkeypatch
):
    from aiplatform import env

    coco_folder(tmp_path / "cells", coco())
    monkeypatch.setattr(env, "SERVER_PATHS", [str(tmp_path)])
    page = open_as(alice)
    page.watch.allow("422")
    page.goto("/datasets/new/")
    page.get_by_label("Name").fill("Server cells")
    page.get_by_text("Other sources").click()
    page.get_by_label("Path on the server").fill("/etc/")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("This folder is outside of the folders that can be registered.")).to_be_visible()
    accessible(page)
    shot(page, "datasets-create-server")
    page.get_by_label("Path on the server").fill(f"{tmp_path}/cells/")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page).to_have_url(re.compile(r"/imports/\d+/$"))
    work()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("button", name=re.compile("Import .* images|import the rest"))).to_be_visible()
    fits(page)
    accessible(page)
    shot(page, "datasets-import-report-small", full=True)


def test_dataset_deletion_needs_the_name(open_as, alice, accessible, shot):
    version = make.version(make.dataset(alice))
    page = open_as(alice)
    page.goto(f"/datasets/{version.dataset_id}/")
    page.locator("summary", has=page.locator("use[href*='#more']")).click()
    page.locator(".menu-item", has_text="Delete dataset").click()
    button = page.locator("dialog[open]").get_by_role("button", name="Delete dataset")
    expect(button).to_be_disabled()
    accessible(page)
    page.get_by_label("Type cells to confirm").fill("cells")
    shot(page, "datasets-delete")
    button.click()

    expect(page.get_by_text("cells was deleted.")).to_be_visible()


def refused_with_a_file(open_as, alice, tmp_path):
    """The form of a dataset whose name is taken, sent with a file."""
    make.dataset(alice, "cells")
    page = open_as(alice)
    page.watch.allow("422")
    page.goto("/datasets/new/")
    page.get_by_label("Name").fill("cells")
    page.set_input_files("[data-file]", archive(tmp_path, zipped({"a.png": picture()}), "again.zip"))
    expect(page.get_by_text("The upload is complete.")).to_be_visible()
    page.get_by_role("button", name="Create", exact=True).click()
    return page


def test_dataset_form_refused_keeps_the_file_that_has_arrived(open_as, alice, tmp_path):
    page = refused_with_a_file(open_as, alice, tmp_path)

    expect(page.get_by_text("already")).to_be_visible()
    expect(page.locator("[data-upload] [data-name]")).to_have_text("again.zip")
    expect(page.locator("[data-drop]")).to_be_hidden()
    page.get_by_label("Name").fill("cells2")
    page.get_by_role("button", name="Create", exact=True).click()

    page.wait_for_url("**/imports/**")
    assert Upload.objects.count() == 1


def test_dataset_form_refused_lets_its_file_be_taken_back(open_as, alice, tmp_path):
    page = refused_with_a_file(open_as, alice, tmp_path)
    expect(page.locator("[data-upload] [data-name]")).to_have_text("again.zip")

    page.get_by_role("button", name="Remove").click()

    expect(page.locator("[data-drop]")).to_be_visible()
    assert page.locator("[name=upload_id]").input_value() == ""
    assert not Upload.objects.exists()

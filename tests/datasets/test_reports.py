"""What an import says about data as people have them: before anybody agrees, and afterwards."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import translation
from django.utils.timezone import now
from PIL import Image

from aiplatform.lib.wording import WORDINGS
from datasets.formats import writer
from datasets.models import Import, Upload
from datasets.services import imports, report_wording
from tests import public_data
from tests.datasets.helpers import checked, imported, uploaded, zipped, zipped_folder
from tests.datasets.pictures import coco, picture, put, voc_xml
from tests.factories import datasets as make
from training.catalog.task_kinds import TASKS
from training.presets import data as training_data

pytestmark = pytest.mark.django_db


@pytest.fixture
def cells(alice):
    return make.dataset(alice)


def shade(n: int, **more) -> bytes:
    return picture(colour=(n, 90, 160), **more)


def groups(row: Import) -> dict[str, int]:
    return {group["code"]: group["count"] for group in row.report["groups"]}


def frames(kind: str, count: int = 3) -> bytes:
    out = io.BytesIO()
    pages = [Image.new("RGB", (40, 30), (60 * n, 20, 200)) for n in range(count)]
    pages[0].save(out, kind, save_all=True, append_images=pages[1:])
    return out.getvalue()


def test_training_learns_nothing_from_images_nobody_annotated(cells):
    files = {f"{n}.jpg": shade(n, kind="JPEG") for n in range(4)}
    files |= {"0.xml": voc_xml("0.jpg", ("cell", 1, 1, 9, 9)), "1.xml": voc_xml("1.jpg")}

    row = imported(cells, zipped(files))

    version = training_data.read(row.version.path)
    assert [version.images[n].path for n in training_data.annotated_rows(version)] == ["0.jpg", "1.jpg"]
    assert (row.version.image_count, row.report["empty_images"], row.report["unannotated_images"]) == (4, 1, 2)


def test_dataset_download_of_partly_annotated_images_goes_up_again_as_it_was(cells, alice):
    first = imported(
        cells, zipped({"a.jpg": shade(1, kind="JPEG"), "b.jpg": shade(2, kind="JPEG"), "a.xml": voc_xml("a")})
    )
    again = imported(make.dataset(alice, "again"), zipped_folder(first.version.path))

    kept = json.loads((again.version.path / "annotations.json").read_text())
    assert [image["file_name"] for image in kept["images"]] == ["a.jpg"]
    assert again.version.image_count == 2


def test_dataset_version_gives_back_what_the_coco_file_said_beyond_boxes(cells):
    data = coco() | {"info": {"year": 2017, "description": "Cells"}, "licenses": [{"id": 1, "name": "CC"}]}
    data["images"][0] |= {"license": 1, "coco_url": "http://x/0.png"}
    data["annotations"][0] |= {"keypoints": [1, 2, 2], "num_keypoints": 1}
    data["categories"][0] |= {"keypoints": ["nose"], "skeleton": []}

    version = imported(cells, zipped({"a.json": json.dumps(data), "0.png": shade(1), "1.png": shade(2)})).version

    kept = json.loads((version.path / "annotations.json").read_text())
    assert (kept["info"]["year"], kept["info"]["description"], kept["licenses"]) == (2017, "Cells", data["licenses"])
    assert (kept["images"][0]["coco_url"], kept["images"][0]["license"]) == ("http://x/0.png", 1)
    assert (kept["annotations"][0]["keypoints"], kept["annotations"][0]["num_keypoints"]) == ([1, 2, 2], 1)
    assert kept["categories"][0] == {"keypoints": ["nose"], "skeleton": []} | version.classes[0]
    assert version.classes[0] == {"id": 7, "name": "cell", "supercategory": "blood"}
    assert writer.written_classes(version.path) == kept["categories"]
    assert TASKS.get("keypoints").can_learn(version)


def test_dataset_version_without_keypoints_says_nothing_of_them(cells, tmp_path):
    version = imported(cells, zipped({"a.json": json.dumps(coco()), "0.png": shade(1), "1.png": shade(2)})).version

    assert [entry["name"] for entry in writer.written_classes(version.path)] == [c["name"] for c in version.classes]
    assert not TASKS.get("keypoints").can_learn(version)
    assert writer.written_classes(tmp_path) == []  # classes of whole images have no such file


def test_dataset_report_has_one_line_for_many_duplicates_and_names_leaks(cells):
    files = {f"train/{n}.png": shade(n) for n in range(12)} | {f"val/{n}.png": shade(n) for n in range(10)}
    files |= {f"train/again{n}.png": shade(1) for n in range(30)} | {"val/own.png": shade(99)}

    row = checked(cells, zipped(files), annotated=False)

    assert groups(row) == {"same_content": 30, "leak": 10}
    assert all(len(group["examples"]) == 5 for group in row.report["groups"])
    assert row.report["leaks"] == [{"of": "val", "also": "train", "images": 10, "total": 11}]


def test_dataset_report_counts_the_boxes_of_an_image_that_cannot_be_read(cells):
    files = {
        "a.jpg": b"",
        "a.xml": voc_xml("a.jpg", ("cell", 1, 1, 9, 9), ("cell", 2, 2, 9, 9)),
        "b.jpg": shade(1, kind="JPEG"),
    }

    assert groups(checked(cells, zipped(files))) == {"bad_image": 1, "lost_shapes": 2}


def test_dataset_report_counts_labels_of_class_folders_as_annotations(cells):
    row = checked(cells, zipped({f"{label}/{n}.png": shade(n) for n, label in enumerate(["cat", "dog", "dog"])}))

    assert (row.report["format"], row.report["annotations"]) == ("folders", 3)


def test_dataset_report_stays_readable_after_the_import(as_alice, cells):
    row = imported(cells, zipped({"a.png": shade(1), "b.png": shade(1), "notes.docx": "x"}), annotated=False)
    where = f"/datasets/{cells.pk}/imports/{row.pk}/"

    page, problems = as_alice.get(where), as_alice.get(f"{where}problems.csv")
    version = as_alice.get(f"/datasets/{cells.pk}/v1/")

    text = page.content.decode()
    assert ("Imported as version 1" in text, "duplicate image" in text) == (True, True)
    told = b"".join(problems.streaming_content).decode()
    assert (told.count("same_content"), told.count(",document,")) == (1, 1)
    assert f'href="{where}"' in version.content.decode()


def test_dataset_api_keeps_the_report_and_says_each_group_in_a_line(api, cells):
    files = {f"{n}.png": shade(1) for n in range(9)} | {"a.mp4": "x"}
    row = imported(cells, zipped(files), annotated=False)

    told = api.get(f"/api/v1/datasets/{cells.pk}/imports/{row.pk}/").json()

    assert told["report"]["files"] == {"total": 10, "images": 9, "labels": 0, "left_out": 1, "litter": 0}
    assert [line[:45] for line in told["problems"]] == [
        "8 duplicate images, such as 1.png: The image ",
        "a.mp4: A video. Extract frames and upload tho",
    ]
    assert told["sentence"] == "Used: 9 images, 0 annotations, 0 classes. 9 problems."


def test_dataset_import_takes_annotations_that_are_there_unless_told_otherwise(as_alice, alice, cells):
    data = zipped({"a.json": json.dumps(coco()), "0.png": shade(1), "1.png": shade(2)})
    row = imports.start(dataset=cells, by=alice, upload_id=uploaded(alice, data).pk)
    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.report["format"], row.report["annotations"]) == ("coco", 2)

    imports.recheck(row, annotated=False)
    imports.run(row.pk)

    page = as_alice.get(f"/datasets/{cells.pk}/imports/{row.pk}/").content.decode()
    assert "The data has annotations (COCO). They are ignored" in page


@pytest.mark.parametrize(("kind", "name"), [("GIF", "a.gif"), ("TIFF", "a.tif"), ("PNG", "a.png"), ("WEBP", "a.webp")])
def test_dataset_import_takes_the_first_frame_of_what_moves_and_says_so(cells, kind, name):
    row = imported(cells, zipped({name: frames(kind), "b.png": shade(9)}), annotated=False)

    asset = row.version.assets.get(path="a.png")
    with Image.open(row.version.images_path / asset.path) as kept:
        assert (kept.format, kept.size, getattr(kept, "n_frames", 1)) == ("PNG", (40, 30), 1)
        assert kept.convert("RGB").getpixel((0, 0)) == pytest.approx((0, 20, 200), abs=12)
    assert groups(row)["first_frame"] == 1


def test_dataset_import_keeps_still_tiffs_as_png_with_their_annotations(cells):
    files = {"a.tif": shade(1, kind="TIFF"), "a.xml": voc_xml("a.tif", ("cell", 1, 2, 9, 9)), "a.png": shade(2)}

    row = imported(cells, zipped(files))

    assert sorted(row.version.assets.values_list("path", flat=True)) == ["a.png", "a.tif.png"]
    assert groups(row)["stored_as_png"] == 1
    assert row.version.assets.get(path="a.png").shapes or row.version.assets.get(path="a.tif.png").shapes


def test_dataset_import_refuses_what_cannot_be_used_where_it_lies(cells, alice, tmp_path, monkeypatch):
    from aiplatform import env

    monkeypatch.setattr(env, "SERVER_PATHS", [str(tmp_path)])
    put(tmp_path / "cells", {"a.tif": shade(1, kind="TIFF"), "b.png": shade(2)})
    for path in (tmp_path, tmp_path / "cells", *(tmp_path / "cells").iterdir()):
        path.chmod(0o755)
    row = imports.start(dataset=cells, by=alice, server_path=f"{tmp_path}/cells/")

    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.error, groups(row), row.report["images"]) == ("", {"bad_image": 1}, 1)


def test_dataset_import_opens_archives_inside_the_archive(cells):
    inner = zipped({"a.png": shade(1), "b.png": shade(2)})
    deep = zipped({"c.zip": zipped({"c.png": shade(3)})})

    row = imported(
        cells, zipped({"all.zip": inner, "more/deep.zip": deep, "broken.zip": b"PK\x03\x04xx"}), annotated=False
    )

    assert row.version.image_count == 3
    assert groups(row) == {"archive_refused": 1, "archive_inside": 1}


def test_dataset_import_counts_what_archives_inside_unpack_to_as_a_whole(cells, monkeypatch):
    from aiplatform import env

    monkeypatch.setattr(env, "MAX_UNPACKED_BYTES", 3 << 20)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bin", bytes(1 << 20))
    bombs = {f"{n}.zip": packed.getvalue() for n in range(6)}

    row = checked(cells, zipped(bombs | {"a.png": shade(1)}), annotated=False)

    assert (row.report["images"], groups(row)["archive_refused"]) == (1, 4)


def test_dataset_import_opens_archives_three_deep_and_no_deeper(cells):
    data = zipped({"e.png": shade(5)})
    for level in range(5):
        data = zipped({"next.zip": data, f"{level}.png": shade(level)})

    row = checked(cells, data, annotated=False)

    assert (row.report["images"], groups(row)) == (4, {"archive_inside": 1})


def test_dataset_import_takes_a_single_picture_and_says_what_to_do_with_others(alice, cells):
    def run(data: bytes, name: str) -> Import:
        row = imports.start(dataset=cells, by=alice, upload_id=uploaded(alice, data, name).pk)
        imports.run(row.pk)
        row.refresh_from_db()
        if row.state == "reported":
            imports.cancel(row)
        return row

    assert run(shade(1), "a.png").report["images"] == 1
    assert "Extract frames" in run(b"\0\0\0\x20movi", "a.mp4").error
    assert "Neither an archive nor an image. Upload images, a folder of" in run(b"hello", "a.txt").error
    assert (
        "No images found, only a video. Extract single frames as images" in run(zipped({"a.mp4": "x"}), "a.zip").error
    )


def test_dataset_import_nobody_agrees_to_is_given_up_with_its_bytes(cells):
    row = checked(cells, zipped({"a.png": shade(1)}), annotated=False)
    imports.sweep()
    row.refresh_from_db()
    assert (row.state, row.folder.exists()) == ("reported", True)

    Import.objects.filter(pk=row.pk).update(updated_at=now() - imports.REPORT_RETENTION * 2)
    imports.sweep()

    row.refresh_from_db()
    assert (row.state, row.folder.exists(), Upload.objects.count()) == ("cancelled", False, 0)


def test_dataset_import_of_nuts_as_labelme_is_the_same_truth(cells):
    nuts = public_data.need("nuts")
    files = {f"x/{path.name}": path.read_bytes() for path in (nuts / "labelme").iterdir()}
    files |= {f"x/{path.name}": path.read_bytes() for path in (nuts / "coco/images").iterdir()}

    version = imported(cells, zipped(files)).version

    assert (version.image_count, version.annotation_count, len(version.classes)) == (18, 165, 3)


def codes_of_reports() -> set[str]:
    """Every code with which a reader, a checker or a shape refuses, drops or notes something."""
    found: set[str] = set()
    for path in (Path(settings.BASE_DIR) / "datasets").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or "migrations" in path.parts:
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            at = {"Flaw": 0, "add": 1, "note": 1, "skip": 1, "report": 1, "refuse": 1, "drop": 1}.get(name)
            given = call.args[at] if at is not None and len(call.args) > max(at, 1) else None
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                found.add(given.value)
    return found


def test_report_has_words_for_every_code_that_is_told_in_both_languages():
    codes = codes_of_reports()

    assert len(codes) > 60
    assert sorted(codes - set(report_wording.MEANINGS)) == []
    with translation.override("zh-hans"):
        assert [code for code in codes if report_wording.meaning(code, 2).isascii()] == []


def test_dataset_report_is_told_in_the_readers_language_by_page_csv_and_api(as_alice, api, cells):
    row = checked(cells, zipped({"0.png": shade(1), "1.png": shade(1), "a.mp4": "x", "b.jpg": b""}), annotated=False)
    page = f"/datasets/{cells.pk}/imports/{row.pk}/"
    told: dict[str, tuple[str, ...]] = {}

    for language in ("en", "zh-hans"):
        for client in (as_alice, api):
            client.cookies["django_language"] = language
        answer = api.get(f"/api/v1{page}", headers={"accept-language": language}).json()
        examples = [example["message"] for group in answer["report"]["groups"] for example in group["examples"]]
        html = as_alice.get(page).content.decode()
        table = b"".join(as_alice.get(f"{page}problems.csv").streaming_content).decode("utf-8-sig")
        assert all(text in html and text in table for text in examples)
        assert {problem["message"] for problem in answer["report"]["problems"]} == set(examples)
        assert any("a.mp4" in line and "8" not in line for line in answer["problems"])
        told[language] = (*examples, answer["sentence"], *answer["problems"])

    assert "The image is identical to 0.png." in told["en"]
    assert "图像与 0.png 相同。" in told["zh-hans"]
    assert all(text.isascii() for text in told["en"])
    assert not any(text.isascii() for text in told["zh-hans"])
    assert {example["says"]["code"]: example["says"]["facts"] for group in answer["report"]["groups"]
            for example in group["examples"]} == {
        "report.same_content": {"other": "0.png"}, "report.video": {}, "report.file_empty": {},
    }  # fmt: skip


def test_dataset_report_keeps_codes_and_facts_of_registered_messages(cells):
    files = {
        "a.png": shade(1),
        "a.xml": voc_xml("a.png", ("cell", 1, 1, 1, 9)),
        "b.zip": b"PK\x03\x04xx",
        "c.docx": "x",
    }

    report = checked(cells, zipped(files)).report

    kept = [example["message"] for group in report["groups"] for example in group["examples"]]
    assert {message["code"] for message in kept} == {
        "report.flat_object", "archive.damaged", "report.archive_inside", "report.document",
    }  # fmt: skip
    assert all(WORDINGS.find(message["code"]) for message in kept)


def test_dataset_report_with_sentences_of_before_is_shown_as_it_was_written(as_alice, api, cells):
    row = imported(cells, zipped({"a.png": shade(1)}), annotated=False)
    prose = {"path": "b.jpg", "message": "The file is empty."}
    report = row.report | {
        "groups": [{"code": "bad_image", "level": "problem", "count": 1, "examples": [prose]}],
        "problems": [prose | {"code": "bad_image", "fatal": False}],
    }
    Import.objects.filter(pk=row.pk).update(report=report)
    (row.version.path / "problems.jsonl").unlink()
    (row.version.path / "problems.csv").write_text("path,code,level,count,message\nb.jpg,bad_image,problem,1,Empty.\n")
    page = f"/datasets/{cells.pk}/imports/{row.pk}/"

    answer = api.get(f"/api/v1{page}").json()

    assert answer["problems"] == ["b.jpg: The file is empty."]
    assert answer["report"]["groups"][0]["examples"] == [
        prose | {"says": {"code": "text", "facts": {"text": "The file is empty."}}}
    ]
    assert "The file is empty." in as_alice.get(page).content.decode()
    assert b"b.jpg,bad_image" in b"".join(as_alice.get(f"{page}problems.csv").streaming_content)

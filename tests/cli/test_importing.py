"""Data on its way into a dataset from a terminal: packed on the way, tried without a trace, finished or given up."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from aiplatform.client import packing, tus, waiting
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, OK, USAGE, ClientError
from aiplatform.client.packing import Sent
from datasets.files import homes
from datasets.models import Dataset, Import, Upload
from datasets.services import imports
from tests.cli.platform_double import Uploads
from tests.datasets.helpers import uploaded, zipped
from tests.datasets.pictures import coco, picture, put
from tests.datasets.read_folders import drawn, yolo_pairs
from tests.factories import work
from workers.core.runs import RunDir

pytestmark = pytest.mark.sockets("a platform's double")


@pytest.fixture
def send(alice, real_aip, monkeypatch):
    """`send("upload", "cells", …)` as Alice; uploads arrive at once, and a worker works while she waits."""

    def arrive(_client, source, **_options):
        sent = Sent(source) if isinstance(source, Path) else source
        return uploaded(alice, sent.read(0, sent.size), sent.name).pk

    def work(_seconds) -> None:
        for pk in Import.objects.filter(state__in=Import.WORKING).values_list("pk", flat=True):
            imports.run(pk)

    monkeypatch.setattr(tus, "upload", arrive)
    monkeypatch.setitem(waiting.until_over.__kwdefaults__, "pause", work)
    return lambda *words: real_aip(alice, *words)


@pytest.fixture
def archive(tmp_path) -> Path:
    def make(**changes) -> Path:
        file = tmp_path / "cells.zip"
        file.write_bytes(zipped({"a.json": json.dumps(coco(1, **changes)), "0.png": picture()}))
        return file

    return make


def test_upload_dry_run_tells_what_is_there_and_leaves_nothing_behind(send, archive, capsys):
    code = send("upload", "cells", archive(), "--dry-run")

    said = capsys.readouterr().err
    assert code == OK
    assert said.count("Used: 1 image, 1 annotation, 2 classes. 0 problems.") == 1
    assert not Dataset.objects.filter(deleting=False).exists()
    assert not Upload.objects.exists()


def test_upload_dry_run_into_a_dataset_keeps_the_dataset_and_blocks_nothing(send, archive, alice, tmp_path):
    assert send("upload", "cells", archive(), "--wait") == OK
    broken = tmp_path / "text.zip"
    broken.write_bytes(b"hello")

    assert send("upload", "cells", archive(), "--dry-run") == OK
    assert send("upload", "cells", broken, "--dry-run") == JOB_FAILED

    dataset = Dataset.objects.get()
    assert (dataset.deleting, dataset.versions.count()) == (False, 1)
    assert not dataset.imports.exclude(state__in=["done", "cancelled"]).exists()
    assert not Upload.objects.exists()


def test_upload_exits_with_an_error_where_no_annotation_can_be_used_unless_that_is_allowed(send, archive, capsys):
    notes = [{"id": 1, "image_id": 0, "category_id": 99, "bbox": [1, 1, 2, 2]}]

    code = send("upload", "cells", archive(annotations=notes), "--dry-run")

    said = capsys.readouterr().err
    assert code == JOB_FAILED
    assert (said.count("Skipped: 1 of 1 annotations."), said.count("No category has the id 99")) == (1, 1)
    assert said.count("--allow-unlabelled") == 1
    assert send("upload", "cells", archive(annotations=notes), "--wait") == JOB_FAILED
    assert send("datasets", "finish", "cells", "--wait") != OK
    assert send("datasets", "finish", "cells", "--wait", "--allow-unlabelled") == OK
    assert send("upload", "more", archive(annotations=notes), "--wait", "--allow-unlabelled") == OK


def test_upload_exits_with_an_error_while_it_is_undecided_what_are_masks(send, tmp_path, capsys):
    for name in "ab":
        for folder, colours in (
            ("one", ((255, 0, 0), (0, 255, 0), (0, 0, 255))),
            ("two", ((255, 255, 255), (0, 0, 0))),
        ):
            path = tmp_path / "data" / folder / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(drawn(*colours))

    code = send("upload", "cells", tmp_path / "data", "--wait", "--allow-unlabelled")

    assert (code, capsys.readouterr().err.count("--masks FOLDER=masks")) == (JOB_FAILED, 1)
    send("datasets", "cancel", "cells", "--yes")
    assert send("upload", "cells", tmp_path / "data", "--wait", "--masks", "two=images") == OK


def test_finish_and_cancel_end_an_open_import(send, archive, alice, capsys):
    send("datasets", "create", "cells")
    dataset = Dataset.objects.get()
    for number in (1, 2):
        row = imports.start(dataset=dataset, by=alice, upload_id=uploaded(alice, archive().read_bytes()).pk)
        imports.run(row.pk)
        if number == 1:
            assert send("datasets", "finish", "cells", "--wait") == OK
    assert send("upload", "cells", archive()) == 1
    assert "aip datasets finish cells" in capsys.readouterr().err
    assert send("datasets", "cancel", "cells") == USAGE
    assert send("datasets", "cancel", "cells", "--yes") == OK
    assert send("datasets", "finish", "cells") == NOT_FOUND
    assert send("datasets", "imports", "cells") == OK

    assert sorted(dataset.imports.values_list("state", flat=True)) == ["cancelled", "done"]
    assert "1 image, 1 annotation" in capsys.readouterr().out


def test_upload_takes_a_folder_and_loose_files(send, tmp_path):
    put(tmp_path / "cells", {f"images/train/{n}.png": picture(colour=(n, 1, 1)) for n in range(3)})
    put(tmp_path / "cells", {f"labels/train/{n}.txt": "0 0.5 0.5 0.2 0.2" for n in range(2)})
    loose = [tmp_path / "cells/images/train" / f"{n}.png" for n in range(3)]

    assert send("upload", "folder", tmp_path / "cells", "--wait") == OK
    assert send("upload", "loose", *loose, "--wait") == OK
    assert send("upload", "one", loose[0], "--wait") == OK

    made = {dataset.name: dataset.newest for dataset in Dataset.objects.all()}
    assert {name: version.image_count for name, version in made.items()} == {"folder": 3, "loose": 3, "one": 1}
    assert (made["folder"].annotation_count, made["folder"].splits) == (2, {"train": 3})


def test_packed_files_read_as_a_tar_at_any_place(tmp_path):
    put(tmp_path / "a", {"one.txt": "1" * 1000, "b/很.bin": bytes(range(256)) * 4, "empty": b""})
    packed = packing.packed([tmp_path / "a"])

    whole = packed.read(0, packed.size)

    assert packed.name == "a.tar"
    assert len(whole) == packed.size
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        assert {m.name: m.size for m in tar.getmembers()} == {"a/one.txt": 1000, "a/b/很.bin": 1024, "a/empty": 0}
        assert tar.extractfile("a/b/很.bin").read() == bytes(range(256)) * 4
    for begin in range(0, packed.size, 333):
        assert packed.read(begin, 700) == whole[begin : begin + 700]


def test_packed_upload_that_was_cut_goes_on_where_it_stopped(platform, home, tmp_path, monkeypatch):
    from aiplatform.client import config
    from aiplatform.client.http import Client

    monkeypatch.setattr(tus, "CHUNK", 1000)
    uploads = Uploads(platform)
    client = Client(config.Config(platform.url, "aip_alice"))
    put(tmp_path / "a", {f"{n}.bin": bytes([n]) * 900 for n in range(6)})
    uploads.cut_after = 3000
    with pytest.raises(ClientError):
        tus.upload(client, packing.packed([tmp_path / "a"]), quiet=True, pause=lambda _: None)
    uploads.cut_after = None

    number = tus.upload(client, packing.packed([tmp_path / "a"]), quiet=True)

    packed = packing.packed([tmp_path / "a"])
    assert uploads.data[number] == packed.read(0, packed.size)
    assert len(uploads.data) == 1


def test_packed_files_that_change_meanwhile_or_share_a_name_are_refused(tmp_path):
    put(tmp_path, {"a/x.bin": "12345", "b/x.bin": "678"})
    packed = packing.packed([tmp_path / "a"])
    (tmp_path / "a/x.bin").write_text("1")

    with pytest.raises(ClientError, match="changed during the upload"):
        packed.read(0, packed.size)
    with pytest.raises(ClientError, match="the same name"):
        packing.packed([tmp_path / "a/x.bin", tmp_path / "b/x.bin"])
    with pytest.raises(ClientError, match="not found"):
        packing.packed([tmp_path / "c"])


def test_datasets_are_created_of_files_in_the_home_and_of_a_job(send, alice, cluster):
    put(homes.home_of(alice) / "set", yolo_pairs(2))
    job = work.job(alice, cluster, name="augment", state="succeeded")
    put(RunDir.for_attempt(job.pk, 1).outputs / "made", yolo_pairs(3))

    assert send("datasets", "create", "mine", "--from-files", "set", "--wait") == OK
    assert send("datasets", "create", "theirs", "--from-job", str(job.pk), "--folder", "made", "--wait") == OK
    assert send("datasets", "create", "mine", "--from-files", "set") != OK

    assert {row.name: row.newest.annotation_count for row in Dataset.objects.all()} == {"mine": 2, "theirs": 3}

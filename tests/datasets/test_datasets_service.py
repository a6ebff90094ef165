"""Rules of datasets: names, visibility, deletion, data on the server."""

from __future__ import annotations

import os

import pytest

from aiplatform import env
from aiplatform.lib.errors import Invalid, StillInUse
from datasets.models import Dataset, DatasetVersion
from datasets.services import datasets, imports, server_paths, uploads, usage
from tests.datasets.helpers import imported, uploaded, zipped
from tests.datasets.pictures import picture, put, voc_xml
from tests.factories import datasets as make

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def create(owner, **fields):
    return datasets.create(owner=owner, **({"name": "cells", "intro": "Blood cells"} | fields))


@pytest.mark.parametrize(
    ("fields", "blamed"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 26}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"intro": "two\nlines"}, "intro"),
        ({"intro": "x" * 51}, "intro"),
    ],
)
def test_D5_dataset_names_and_introductions_have_limits(alice, fields, blamed):
    with pytest.raises(Invalid) as refusal:
        create(alice, **fields)

    assert refusal.value.blamed == blamed


def test_D5_dataset_name_is_unique_among_own_and_public_ones(alice, bob):
    create(alice)
    create(bob, name="open", visibility="public")

    create(bob, name="CELLS")
    for taken in ("Cells", "open"):
        with pytest.raises(datasets.NameTaken):
            create(alice, name=taken)


def test_D8_dataset_visibility_is_locked_once_data_came_in(alice):
    dataset = create(alice)
    datasets.edit(dataset, visibility="public")
    datasets.edit(dataset, visibility="private")
    imported(dataset, zipped({"a.png": picture()}), annotated=False)

    with pytest.raises(datasets.VisibilityLocked):
        datasets.edit(dataset, visibility="public")

    datasets.edit(dataset, intro="Other words", visibility="private")
    assert Dataset.objects.get().intro == "Other words"


def test_D19_dataset_in_use_is_not_deleted_and_its_users_are_named(alice):
    version = make.version(create(alice))

    with (
        usage.ASKERS.temporarily(lambda v: ["annotation project Blood"]),
        pytest.raises(StillInUse, match="annotation project Blood"),
    ):
        datasets.delete(version.dataset)

    assert version.path.exists()


def test_dataset_deletion_hides_at_once_frees_the_name_and_removes_files(alice):
    version = make.version(create(alice))
    folder = version.path

    datasets.delete(version.dataset)
    assert not Dataset.objects.visible_to(alice).exists()
    assert not DatasetVersion.objects.visible_to(alice).exists()
    create(alice)
    datasets.sweep_deleted()

    assert (folder.exists(), Dataset.objects.count()) == (False, 1)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """/a is allowed, /ab beside it is not."""
    root = put(
        tmp_path / "a",
        {
            "cells/img/x.png": picture(),
            "cells/img/y.png": picture(colour=(1, 1, 1)),
            "cells/x.xml": voc_xml("x.png", ("c", 1, 1, 9, 9)),
        },
    )
    put(tmp_path / "ab", {"x.png": picture()})
    (root / "way-out").symlink_to(tmp_path / "ab")
    monkeypatch.setattr(env, "SERVER_PATHS", [str(root)])
    return root


@pytest.mark.parametrize(
    "path", ["{0}/../ab/", "{0}//cells/", "{0}b/", "/etc/", "/proc/self/", "{0}/way-out/", "{0}/cells/../../ab/"]
)
def test_E01_server_paths_outside_the_roots_are_refused_and_shown_to_operators(alice, olga, shelf, path):
    with pytest.raises(server_paths.PathRefused) as to_alice:
        server_paths.require(path.format(shelf), by=alice)
    with pytest.raises(server_paths.PathRefused) as to_olga:
        server_paths.require(path.format(shelf), by=olga)

    assert (str(shelf) in to_alice.value.message, str(shelf) in to_olga.value.message) == (False, True)


@pytest.mark.parametrize("path", ["cells/", "{0}/cells", "{0}/nothing/", "{0}/cells/x.xml/", "{0}/a\0b/"])
def test_E01_server_paths_that_are_odd_are_refused_in_words(alice, shelf, path):
    with pytest.raises(server_paths.PathMissing):
        server_paths.require(path.format(shelf), by=alice)


def register(alice, path):
    dataset = create(alice, source="server", server_path=f"{path}/", annotated=True)
    row = dataset.imports.get()
    imports.run(row.pk)
    row.refresh_from_db()
    imports.commit(row, by=alice)
    imports.run(row.pk)
    row.refresh_from_db()
    return row


def test_E05_server_paths_are_read_in_place_and_stay_when_the_dataset_goes(alice, shelf):
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in shelf.rglob("*")}
    row = register(alice, shelf / "cells")
    version = row.version

    assert (row.state, version.image_count, version.images_root) == ("done", 2, str(shelf / "cells" / "img"))
    assert {a.path for a in version.assets.all()} == {"x.png", "y.png"}
    assert (version.path / "images" / "x.png").read_bytes() == picture()
    datasets.delete(version.dataset)
    datasets.sweep_deleted()
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in shelf.rglob("*")} == before


def test_E03_server_paths_not_readable_by_everybody_are_for_operators_only(alice, olga, shelf):
    (shelf / "cells").chmod(0o750)

    with pytest.raises(server_paths.PathRefused, match=r"Not all users of the server can read this folder."):
        server_paths.require(f"{shelf}/cells/img/", by=alice)

    assert server_paths.require(f"{shelf}/cells/img/", by=olga) == shelf / "cells" / "img"


def test_E03_server_paths_name_one_private_file_among_others(alice, shelf):
    (shelf / "cells" / "img" / "y.png").chmod(0o640)
    dataset = create(alice, source="server", server_path=f"{shelf}/cells/", annotated=True)
    row = dataset.imports.get()

    imports.run(row.pk)

    row.refresh_from_db()
    assert row.state == "failed"
    assert "img/y.png" in row.error


def test_E02_server_paths_link_put_in_later_is_not_followed(alice, shelf):
    from aiplatform.lib.files import OutsideRoot
    from datasets.storage import dataset_paths

    asset = register(alice, shelf / "cells").version.assets.get(path="x.png")
    (shelf / "cells/img/x.png").unlink()
    (shelf / "cells/img/x.png").symlink_to("/etc/passwd")

    with pytest.raises(OutsideRoot):
        dataset_paths.open_image(asset)


def test_E04_server_paths_leave_out_pipes_and_devices_without_waiting(alice, shelf):
    os.mkfifo(shelf / "cells/img/pipe.png")
    (shelf / "cells/img/zero.png").symlink_to("/dev/zero")

    assert register(alice, shelf / "cells").version.image_count == 2


def test_D14_uploads_are_refused_by_full_disk_and_quota_before_bytes_flow(alice, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(env, "MIN_FREE_BYTES", 1 << 60)
        with pytest.raises(uploads.DiskFull):
            uploads.create(owner=alice, length=1, metadata={})
    monkeypatch.setattr(env, "STORAGE_QUOTA_BYTES", 1000)
    uploads.create(owner=alice, length=600, metadata={})
    with pytest.raises(uploads.TooLarge, match="400"):
        uploads.create(owner=alice, length=401, metadata={})


def test_D13_uploads_nobody_continues_are_removed(alice, bob):
    from datetime import timedelta

    from django.utils.timezone import now

    from datasets.models import Upload

    old, fresh = uploaded(alice, b"1"), uploaded(bob, b"2")
    Upload.objects.filter(pk=old.pk).update(expires_at=now() - timedelta(seconds=1))

    assert uploads.sweep_expired() == 1
    assert (old.folder.exists(), fresh.folder.exists()) == (False, True)

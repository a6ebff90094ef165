"""A home on a disk without room: a sentence, nothing half-written, and on it goes when there is room."""

from __future__ import annotations

import pytest

from datasets.files import changes, homes
from datasets.files.models import HomeChange
from datasets.models import Upload
from tests.files.helpers import arrived
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.django_db


@pytest.fixture
def disk(settings, tmp_path):
    """Homes on a disk of 2 MiB; what arrives lies elsewhere."""
    settings.DATA_ROOT = tmp_path
    with small_disk(tmp_path / "home") as folder:
        yield folder


def test_upload_is_not_half_brought_into_a_full_home_and_can_be_brought_later(disk, files, alice):
    home = homes.home_of(alice)
    (home / "old").write_bytes(b"old")
    upload = arrived(alice, b"x" * (3 << 20))
    small = arrived(alice, b"y" * (1 << 20))
    ballast = fill(disk)

    refused = [
        files.post("put", path="new", upload=upload),
        files.post("put", path="old", upload=upload, replace=True),
    ]
    ballast.unlink()
    placed = files.post("put", path="new", upload=small)

    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(507, "disk_full")] * 2
    assert "free disk space" in refused[0].json()["detail"]
    assert Upload.objects.filter(pk=upload).exists()
    assert placed.status_code == 201
    assert (home / "new").stat().st_size == 1 << 20
    assert sorted(path.name for path in home.iterdir()) == ["new", "old"]
    assert (home / "old").read_bytes() == b"old"
    assert list((disk / ".incoming").iterdir()) == []


def test_full_home_can_be_tidied_up(disk, files, alice):
    """What frees a disk must not need any."""
    home = homes.home_of(alice)
    (home / "large").write_bytes(b"x" * (1 << 20))
    changes.sweep()
    fill(disk)

    deleted = files.post("remove", path="large")
    made = files.post("folder", path="again")

    assert (deleted.status_code, made.status_code) == (204, 201)
    assert files.names() == ["again"]
    assert not HomeChange.objects.exists()

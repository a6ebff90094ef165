"""Boxes and saved images on a disk without room."""

from __future__ import annotations

import os

import pytest

from aiplatform.lib import files
from tests.images.wheels import PIP, TIERS
from tests.small_disk import fill, small_disk
from workers.core.models import Job
from workers.images.models import Image, State
from workers.images.services import images, saving
from workers.images.store import layers, paths

pytestmark = [pytest.mark.django_db, pytest.mark.skipif(TIERS[-1] < 2, reason="no bubblewrap")]
FULL = "The disk of the platform is full, so this was not saved."


@pytest.fixture
def stopped(run, image, in_tier):
    """A job of Alice's that is over, with 3 MiB of its own in its box."""
    in_tier(TIERS[-1])
    _said, job = run(image, "head -c 3000000 /dev/urandom > $VIRTUAL_ENV/mine")
    Job.objects.filter(pk=job.pk).update(state="stopped")
    job.refresh_from_db()
    return job


@pytest.mark.parametrize("known", [True, False])
def test_image_that_finds_no_room_says_so_and_is_saved_again_when_there_is(stopped, alice, monkeypatch, known):
    """Also where the room goes only while it is written."""
    if not known:
        monkeypatch.setattr(files, "free_bytes", lambda _folder: 1 << 40)
    wanted = saving.request(job=stopped, by=alice, name="kept")
    with small_disk(paths.packed(0).parent) as disk:
        ballast = fill(disk)
        saving.run(wanted.pk)
        wanted.refresh_from_db()
        left = sorted(path.name for path in disk.iterdir())
        told = str(wanted.message)
        ballast.unlink()

    images.make(wanted, by=alice)
    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert told.startswith(FULL)
    assert left == ["ballast"]
    assert (wanted.status, str(wanted.message)) == (State.READY, "")


def test_layer_that_finds_no_room_is_not_half_unpacked(stopped, alice):
    wanted = saving.request(job=stopped, by=alice, name="kept")
    saving.run(wanted.pk)
    saved = Image.objects.get(pk=wanted.pk)
    paths.remove(paths.layer(saved.sha256))

    with small_disk(paths.layer("x").parent, "1m") as disk:
        with pytest.raises(layers.BrokenLayer, match=r"The disk of the platform is full, so this was not saved."):
            layers.here(saved)
        assert list(disk.iterdir()) == []

    assert [folder.name for folder in layers.here(saved)] == [saved.sha256]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk")
def test_box_on_a_full_disk_fails_the_install_and_keeps_what_was_there(run, again, image, wheels, in_tier):
    in_tier(TIERS[-1])
    install = f"{PIP} install --no-index --find-links {wheels}"
    """What pip makes of an upgrade that it could not finish is pip's; the box is whole."""
    with small_disk(paths.local() / "jobs", "4m"):
        said, job = run(
            image,
            f"{install} bell; cp /dev/zero $VIRTUAL_ENV/big 2>/dev/null || echo full; "
            f"{install} ring==2.0 2>&1 | grep -c 'No space left'; bell; rm -f $VIRTUAL_ENV/big",
        )
        later = again(job, "bell; echo goes on > $VIRTUAL_ENV/new; cat $VIRTUAL_ENV/new")

    assert said.split() == ["full", "1", "bell", "1.0"]
    assert later.split() == ["bell", "1.0", "goes", "on"]

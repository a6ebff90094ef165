"""Saving that takes long, is disturbed, or waits for a machine that does not come back."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils.timezone import now

from aiplatform.lib.claims import Claims, new_holder
from tests.factories import work
from workers.core.models import Job, Node
from workers.core.runs import RunDir
from workers.images.models import Image, ImageUse, State
from workers.images.services import images, saving
from workers.images.store import archive, boxes, paths, unpacking
from workers.supervisor import hold, records

pytestmark = pytest.mark.django_db


@pytest.fixture
def boxed(alice, cluster, image, engine, settings):
    """A job whose box lies on this machine, with one file in it."""
    settings.NODE = "node1"
    job = work.job(alice, cluster, state="stopped", name="lab")
    ImageUse.objects.create(job=job, image=image, engine=engine, name="mine", boxed=True, node="node1")
    upper = paths.box(job.pk) / "upper"
    upper.mkdir(parents=True)
    (upper / "new.py").write_text("x" * 5000)
    return job


@pytest.fixture
def wanted(boxed):
    return saving.request(job=boxed, by=boxed.owner, name="kept")


def test_sign_of_life_is_given_with_each_piece_of_a_large_file(tmp_path):
    upper = tmp_path / "upper"
    upper.mkdir()
    with (upper / "weights").open("wb") as file:
        file.truncate(64 << 20)
    packed, unpacked = [], []

    figures = archive.pack(upper, tmp_path / "1.tar.zst", alive=lambda: packed.append(1))
    unpacking.unpack(
        tmp_path / "1.tar.zst", tmp_path / "layer", sha256=figures.sha256, most_bytes=figures.bytes,
        most_files=figures.files, alive=lambda: unpacked.append(1),
    )  # fmt: skip

    assert len(packed) > 64
    assert len(unpacked) > 64


def test_saver_that_is_slow_is_not_followed_by_a_second_one(wanted, monkeypatch):
    """Its claim ran out long ago, and it still has the box to itself."""
    monkeypatch.setattr(saving, "CLAIMS", Claims(ttl=timedelta(0), epoch="tries"))
    pack, tries = archive.pack, []

    def slow(*given, **more):
        for _again in range(5):
            saving.run(wanted.pk)
        tries.append(Image.objects.get(pk=wanted.pk).tries)
        return pack(*given, **more)

    monkeypatch.setattr(archive, "pack", slow)
    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert (wanted.status, str(wanted.message)) == (State.READY, "")
    assert (tries, wanted.tries) == ([1], 1)


def test_layer_that_moved_while_it_was_packed_is_not_kept(wanted, running):
    running(goes_on=2)

    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert (wanted.status, str(wanted.message)) == (
        State.FAILED, ("The processes continued while they were being saved, so no image was created. Stop the "
                       "job, then save it again."),
    )  # fmt: skip
    assert list(paths.packed(wanted.pk).parent.iterdir()) == []


def test_layer_that_moved_once_is_packed_again(wanted, running):
    packed = running(goes_on=1)

    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert (wanted.status, str(wanted.message), len(packed)) == (State.READY, "", 2)


def test_job_that_begins_while_its_box_is_packed_is_held_the_second_time(wanted, running, monkeypatch):
    run = RunDir.for_attempt(wanted.job_id, 1).path
    packed = running(goes_on=0)
    keeper = records.read(run / records.SUPERVISOR)
    (run / records.SUPERVISOR).unlink()
    pack = archive.pack

    def begins(*given, **more):
        records.write(run / records.SUPERVISOR, keeper)
        return pack(*given, **more)

    monkeypatch.setattr(archive, "pack", begins)
    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert (wanted.status, len(packed)) == (State.READY, 2)


@pytest.fixture
def running(boxed, monkeypatch):
    """`running(goes_on=1)`: the job runs, and its processes go on so many times while they are packed.

    Its supervisor is this process, and obeys at once.
    """
    Job.objects.filter(pk=boxed.pk).update(state="running", attempt_number=1)
    run = RunDir.for_attempt(boxed.pk, 1).path
    run.mkdir(parents=True)
    own = {"pid": os.getpid(), "start_ticks": records.start_ticks(os.getpid()), "boot_id": records.boot_id()}
    records.write(run / records.SUPERVISOR, own)
    pack, ask = archive.pack, hold.request
    packed: list[Path] = []

    def asked(folder, word):
        ask(folder, word)
        records.write(run / hold.HELD, {"word": word})

    def one(*, goes_on: int) -> list[Path]:
        def packing(upper, target, **more):
            packed.append(target)
            if len(packed) <= goes_on:
                records.remove(str(run / hold.HELD))
            return pack(upper, target, **more)

        monkeypatch.setattr(archive, "pack", packing)
        return packed

    monkeypatch.setattr(hold, "request", asked)
    return one


@pytest.mark.parametrize(
    "gone", [{"state": "removed"}, {"state": "lost", "heartbeat_at": now() - timedelta(hours=2)}, None]
)
def test_image_of_a_machine_that_is_gone_says_so_and_is_saved_again_or_deleted(
    wanted, boxed, alice, gone, settings, sent, django_capture_on_commit_callbacks
):
    _moved_to("far", wanted, gone)

    saving.resend()
    wanted.refresh_from_db()

    assert (wanted.status, str(wanted.message)) == (
        State.FAILED, ("Node far stores the packages and does not respond. Save again when the node is back, or "
"delete the image."),
    )  # fmt: skip
    ImageUse.objects.update(node="node1")
    with django_capture_on_commit_callbacks(execute=True):
        images.make(wanted, by=alice)
    assert ("images.save", {"image_id": wanted.pk}) in sent
    saving.run(wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.status, wanted.tries, str(wanted.message)) == (State.READY, 1, "")


@pytest.mark.parametrize("state", ["live", "lost"])
def test_image_waits_for_a_machine_that_may_come_back(wanted, state, sent, django_capture_on_commit_callbacks):
    silent = {"heartbeat_at": now() - timedelta(minutes=11)} if state == "lost" else {}
    _moved_to("far", wanted, {"state": state, **silent})

    with django_capture_on_commit_callbacks(execute=True):
        saving.resend()
    wanted.refresh_from_db()

    assert wanted.status == State.SAVING
    assert ("images.save", {"image_id": wanted.pk}) in sent


def test_failed_image_is_saved_again_by_page_and_api(wanted, alice, bob, as_alice, as_bob, api):
    wanted.state, wanted.visibility = State.FAILED, "public"
    wanted.save()

    shown = as_alice.get(f"/images/{wanted.pk}/").content.decode()
    as_alice.post(f"/images/{wanted.pk}/build/")
    wanted.refresh_from_db()
    by_page = wanted.status
    Image.objects.filter(pk=wanted.pk).update(state=State.FAILED)
    by_api = api.post(f"/api/v1/images/{wanted.pk}/build/").json()
    twice = api.post(f"/api/v1/images/{wanted.pk}/build/")

    assert "Save again" in shown
    assert (by_page, by_api["state"]) == (State.SAVING, "saving")
    assert (twice.status_code, twice.json()["code"]) == (409, "cannot_save")
    assert "Save again" not in as_bob.get(f"/images/{wanted.pk}/").content.decode()
    assert as_bob.post(f"/images/{wanted.pk}/build/").status_code == 404


def test_files_of_savers_that_died_and_of_deleted_images_are_swept(wanted, image):
    ready = Image.objects.create(kind="saved", name="ready", engine=image.engine, parent=image, state=State.READY)
    folder = paths.packed(0).parent
    folder.mkdir(parents=True)
    kept = [
        f"{ready.pk}.tar.zst",
        f".{wanted.pk}.tar.zst.a1",
        f"{wanted.pk}.tar.zst",
        "notes.txt",
        ".987654.tar.zst.new",
    ]
    doomed = [f".{ready.pk}.tar.zst.a1", ".987654.tar.zst.b2", "987654.tar.zst"]
    for name in (*kept, *doomed):
        (folder / name).write_text("x")
        if not name.endswith("new"):
            os.utime(folder / name, (1e9, 1e9))

    saving.sweep_files()

    assert sorted(path.name for path in folder.iterdir()) == sorted(kept)


def test_packages_that_are_forgotten_meanwhile_end_the_wait(wanted, boxed):
    Image.objects.filter(pk=wanted.pk).update(holder=new_holder(), renewed_at=now())
    ImageUse.objects.filter(pk=boxed.pk).update(node="")

    saving.resend()
    wanted.refresh_from_db()
    assert wanted.status == State.SAVING  # its saver lives

    Image.objects.filter(pk=wanted.pk).update(renewed_at=now() - timedelta(hours=1))
    saving.resend()
    wanted.refresh_from_db()
    assert wanted.status == State.FAILED


def test_box_is_locked_while_it_is_saved(wanted, boxed):
    with boxes.alone(paths.box(boxed.pk)) as free:
        assert free
        saving.run(wanted.pk)

    wanted.refresh_from_db()
    assert (wanted.status, wanted.tries) == (State.SAVING, 0)


def _moved_to(node: str, wanted: Image, state: dict[str, object] | None) -> None:
    ImageUse.objects.update(node=node)
    Image.objects.filter(pk=wanted.pk).update(created_at=now() - timedelta(hours=1))
    if state is not None:
        work.node(node)
        Node.objects.filter(name=node).update(**state)

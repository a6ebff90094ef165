"""Saving what was installed in a job: while it runs, over a killed saver, and on top of what was saved before."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.utils.timezone import now

from aiplatform.lib.claims import new_holder
from tests.factories import work
from tests.images.wheels import PIP, TIERS, layered_tiers
from tests.running import wait_for
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import launch
from workers.images.models import Image, ImageUse, State
from workers.images.services import images, saving
from workers.images.store import archive, layers, paths
from workers.supervisor import hold, processes, records

pytestmark = pytest.mark.django_db
BEST = TIERS[-1]
needs_layers = pytest.mark.skipif(BEST < 2, reason="no bubblewrap")


def save(job: Job, name: str, **more: object) -> Image:
    image = saving.request(job=job, by=job.owner, name=name, **more)
    assert image.status == State.SAVING
    saving.run(image.pk)
    image.refresh_from_db()
    return image


@pytest.mark.parametrize("tier", layered_tiers(weaker=pytest.mark.proof))
def test_three_saved_layers_start_as_one(run, image, wheels, in_tier, tier):
    """Each adds, changes and removes something of those below it."""
    in_tier(tier)
    install = f"{PIP} install --no-index --find-links {wheels}"
    lower = image
    steps = (f"{install} bell", f"{install} ring==2.0", f"{PIP} uninstall -y bell; touch $VIRTUAL_ENV/third")
    for number, step in enumerate(steps, 1):
        _said, job = run(lower, step)
        Job.objects.filter(pk=job.pk).update(state="stopped")
        lower = save(job, f"layer{number}")
        assert lower.status == State.READY, str(lower.message)
        work.Device.objects.update(used=0)

    look = "ring; ls $VIRTUAL_ENV/third; python -c 'import bell' 2>&1 | tail -1; id -u"
    boxed, _job = run(lower, look)
    work.Device.objects.update(used=0)
    read, _job = run(lower, look, own=False)

    assert [image.name for image in layers.chain(lower)] == ["layer1", "layer2", "layer3"]
    assert boxed.splitlines()[0] == "ring 2.0"
    assert boxed.splitlines()[1].endswith("/third")
    assert boxed.splitlines()[2] == "ModuleNotFoundError: No module named 'bell'"
    assert read == boxed
    assert (lower.parent.name, lower.files > 0, len(lower.sha256)) == ("layer2", True, 64)


@needs_layers
def test_processes_stand_still_while_they_are_saved_and_go_on(boxed, image, in_tier, monkeypatch):
    in_tier(BEST)
    script = "cd $VIRTUAL_ENV; i=0; while :; do i=$((i+1)); echo $i > a; echo $i > b; done"
    job, attempt = boxed(image, script)
    launch.start(attempt.pk)
    Job.objects.filter(pk=job.pk).update(state="running")
    upper = paths.box(job.pk) / "upper"
    wait_for((upper / "b").exists)
    seen = []

    def look(*given, **more):
        values = [((upper / "a").read_text(), (upper / "b").read_text())]
        time.sleep(0.2)  # pause: its processes stand still
        values.append(((upper / "a").read_text(), (upper / "b").read_text()))
        seen.append(values)
        return archive_pack(*given, **more)

    archive_pack = archive.pack
    monkeypatch.setattr(archive, "pack", look)
    saved = save(job, "running")
    still = (upper / "b").read_text()

    assert saved.status == State.READY, str(saved.message)
    assert seen[0][0] == seen[0][1]
    wait_for(lambda: (upper / "b").read_text() not in ("", still))
    assert "pausing" not in str(records.read(RunDir.for_attempt(job.pk, 1).path / records.STATUS))
    _end(job)


@needs_layers
def test_processes_go_on_when_the_saver_is_killed(boxed, image, in_tier):
    in_tier(BEST)
    job, attempt = boxed(image, "while :; do date +%s%N > $AIP_OUTPUT_DIR/beat; done")
    launch.start(attempt.pk)
    run = RunDir.for_attempt(job.pk, 1)
    wait_for((run.outputs / "beat").exists)
    code = "import sys, time; from workers.supervisor import hold; hold.request(sys.argv[1], 'w'); time.sleep(600)"
    saver = subprocess.Popen([sys.executable, "-c", code, str(run.path)], cwd=os.getcwd())
    wait_for(lambda: hold.is_held(run.path, "w"))
    stands = (run.outputs / "beat").read_text()
    time.sleep(0.1)  # pause: its processes stand still
    assert (run.outputs / "beat").read_text() == stands

    saver.kill()
    saver.wait()

    wait_for(lambda: (run.outputs / "beat").read_text() not in ("", stands))
    _end(job)


@needs_layers
def test_held_job_still_hears_a_stop(boxed, image, in_tier):
    in_tier(BEST)
    job, attempt = boxed(image, "touch $AIP_OUTPUT_DIR/in; sleep 600")
    launch.start(attempt.pk)
    run = RunDir.for_attempt(job.pk, 1)
    wait_for((run.outputs / "in").exists)
    hold.request(run.path, "w")
    wait_for(lambda: hold.is_held(run.path, "w"))

    records.write_request(run.path, "stop")

    assert wait_for(lambda: records.read(run.path / records.EXIT))["killed"] is False


@needs_layers
def test_saver_that_was_killed_is_followed_and_leaves_no_garbage(
    run, image, in_tier, sent, django_capture_on_commit_callbacks
):
    in_tier(BEST)
    _said, job = run(image, "touch $VIRTUAL_ENV/mine")
    Job.objects.filter(pk=job.pk).update(state="stopped")
    wanted = saving.request(job=job, by=job.owner, name="kept")
    packed = paths.packed(wanted.pk)
    packed.parent.mkdir(parents=True)
    (packed.parent / f".{packed.name}.abc").write_text("half")
    dead = new_holder().rsplit(":", 2)[0] + ":1:x"  # a process that began at another time
    Image.objects.filter(pk=wanted.pk).update(holder=dead, renewed_at=now() - timedelta(hours=1), tries=1)

    with django_capture_on_commit_callbacks(execute=True):
        saving.resend()
    assert ("images.save", {"image_id": wanted.pk}) in sent
    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert (wanted.status, wanted.tries, str(wanted.message)) == (State.READY, 2, "")
    assert [path.name for path in packed.parent.iterdir()] == [packed.name]


@needs_layers
def test_saver_gives_up_after_three_tries(run, image, in_tier):
    in_tier(BEST)
    _said, job = run(image, "true")
    wanted = saving.request(job=job, by=job.owner, name="kept")
    Image.objects.filter(pk=wanted.pk).update(tries=3)

    saving.run(wanted.pk)
    wanted.refresh_from_db()

    assert (wanted.status, str(wanted.message)) == (
        State.FAILED, "Saving was interrupted 3 times. Save it again.",
    )  # fmt: skip
    assert not paths.packed(wanted.pk).exists()


@needs_layers
def test_tampered_layer_ends_the_job_with_the_reason(run, boxed, image, in_tier):
    in_tier(BEST)
    _said, job = run(image, "touch $VIRTUAL_ENV/mine")
    saved = save(job, "kept")
    paths.remove(paths.layer(saved.sha256))
    paths.packed(saved.pk).write_bytes(b"something else")
    work.Device.objects.update(used=0)
    _other, attempt = boxed(saved, "true")

    launch.start(attempt.pk)
    attempt.refresh_from_db()

    assert str(attempt.message) == (
        "The saved image kept cannot be unpacked: The checksum differs from the one recorded when the image was saved."
    )


@needs_layers
def test_layers_without_an_image_are_swept(run, image, in_tier, monkeypatch):
    in_tier(BEST)
    _said, job = run(image, "touch $VIRTUAL_ENV/mine")
    saved = save(job, "kept")
    folder = paths.layer(saved.sha256)
    monkeypatch.setattr(images, "MIN_AGE_S", 0.0)
    images.clean_layers()
    assert folder.is_dir()

    images.delete(image=saved, by=job.owner)
    images.clean_layers()

    assert not folder.exists()
    assert not paths.packed(saved.pk).exists()


def test_job_without_a_box_cannot_be_saved_and_says_why(alice, cluster, image, root):
    plain = work.job(alice, cluster, state="running")
    fresh = work.job(alice, cluster)
    ImageUse.objects.create(job=fresh, image=image, name="mine", boxed=True)

    assert saving.why_not(plain, alice) == "This job has no installed packages to save."
    assert saving.why_not(fresh, alice).startswith("The job has not started yet")
    with pytest.raises(saving.CannotSave, match=r"This job has no installed packages to save."):
        saving.request(job=plain, by=alice, name="kept")


def _end(job: Job) -> None:
    keeper = records.read(RunDir.for_attempt(job.pk, 1).path / records.SUPERVISOR)
    records.write_request(RunDir.for_attempt(job.pk, 1).path, "kill")
    wait_for(lambda: not records.is_alive(keeper))
    assert processes.alive([keeper["child"]["pid"]]) == []

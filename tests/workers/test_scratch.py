"""The scratch disk: where decoded images and temporary files lie, what goes when, and a word when it spins."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from aiplatform import env
from aiplatform.cli import doctor
from tests.factories import work
from workers.core import scratch
from workers.core.clock import now
from workers.core.models import Attempt, Node
from workers.core.runs import RunDir
from workers.execution.agent import registration
from workers.resources.nodes.telemetry import rotation


@pytest.mark.parametrize(("text", "spins"), [("1\n", True), ("0\n", False)])
def test_spins_asks_the_disk_of_a_partition(tmp_path, monkeypatch, text, spins):
    monkeypatch.setattr(os, "major", lambda _number: 8)  # whatever this machine has below tmp_path
    monkeypatch.setattr(os, "minor", lambda _number: 1)
    disk, numbers = tmp_path / "sys/devices/sda", tmp_path / "sys/dev/block"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/rotational").write_text(text)
    (disk / "sda1").mkdir()
    numbers.mkdir(parents=True)
    (numbers / "8:1").symlink_to(disk / "sda1")

    assert rotation.spins(tmp_path / "not yet there", tmp_path / "sys") is spins


def test_spins_is_unknown_where_a_mount_names_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "major", lambda _number: 0)
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 0:41 / / rw - overlay overlay rw\n23 22 0:42 / /srv rw - nfs4 host:/srv rw\n")

    assert rotation.spins(tmp_path, tmp_path / "sys", mounts) is None


def test_cache_and_temporary_files_lie_on_the_scratch_disk(tmp_path, monkeypatch):
    run = RunDir.for_attempt(7, 2)
    assert scratch.job_tmp(run, 0) == run.path / "tmp"

    monkeypatch.setattr(env, "SCRATCH_ROOT", str(tmp_path / "fast"))
    folder = scratch.job_tmp(run, 1)
    scratch.make(folder)
    scratch.make(folder)

    assert folder == tmp_path / "fast/tmp/7/2/1"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "fast/tmp").stat().st_mode & 0o777 == 0o711
    assert scratch.image_cache(3, "9") == tmp_path / "fast/cache/3/9"


@pytest.mark.django_db
def test_sweep_removes_what_attempts_left_and_keeps_what_runs(tmp_path, monkeypatch, alice, cluster):
    monkeypatch.setattr(env, "SCRATCH_ROOT", str(tmp_path))
    job = work.job(alice, cluster)
    ended = now() - scratch.RETENTION - timedelta(minutes=1)
    Attempt.objects.create(job=job, number=1, ended_at=ended)
    Attempt.objects.create(job=job, number=2)
    folders = [scratch.job_tmp(RunDir.for_attempt(job.pk, number), 0) for number in (1, 2)]
    gone = scratch.job_tmp(RunDir.for_attempt(job.pk + 1, 1), 0)
    for folder in (*folders, gone):
        scratch.make(folder)

    assert scratch.sweep() == 2
    assert [folder.is_dir() for folder in (*folders, gone)] == [False, True, False]
    assert not gone.parent.parent.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spins", "words"),
    [(True, "a hard disk"), (False, ": a solid-state disk."), (None, "is unknown")],
)
def test_machine_page_and_doctor_say_what_disk_it_is(spins, words, as_alice, monkeypatch, tmp_path):
    monkeypatch.setattr(env, "SCRATCH_ROOT", str(tmp_path))
    monkeypatch.setattr(rotation, "spins", lambda _folder: spins)
    node = registration.register("gpu-01", [])

    page = as_alice.get(f"/cluster/nodes/{node.pk}/").content.decode()
    (finding,) = doctor._scratch()

    assert Node.objects.get(pk=node.pk).facts["scratch"] == {"path": str(tmp_path), "spins": spins}
    assert words in page
    assert words in finding.text
    assert finding.level == (doctor.WARN if spins else doctor.OK)

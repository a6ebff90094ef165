"""Fault 48: a backup is one moment of the database and its files; what was under way is never run twice."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings as site
from django.db import connection, connections

from aiplatform import env
from aiplatform.cli.backups import backup, database, folder_copies, messages, restore, settling
from tests.factories import training, work
from workers.core.models import Device, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.jobs import actions, backup_reconciliation

MADE = datetime(2026, 3, 1, 4, 30, tzinfo=UTC)


# --- files


def test_copy_tree_keeps_times_rights_and_links_and_shares_what_is_same(tmp_path):
    source = tmp_path / "data"
    (source / "jobs" / "1").mkdir(parents=True)
    (source / "jobs" / "1" / "secret").write_text("x")
    (source / "jobs" / "1" / "secret").chmod(0o600)
    (source / "jobs" / "1" / "data").symlink_to(source / "datasets")
    (source / "log").mkdir()
    os.mkfifo(source / "pipe")
    (source / "jobs").chmod(0o500)
    leave_out = lambda relative: relative == "log"  # noqa: E731 - a name for one line

    first = folder_copies.copy_tree(source, tmp_path / "a", leave_out=leave_out, moved=(str(source), "/elsewhere"))
    (source / "new").write_text("fresh")
    second = folder_copies.copy_tree(source, tmp_path / "b", leave_out=leave_out, earlier=tmp_path / "a")

    kept = tmp_path / "a" / "jobs" / "1"
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["jobs"]
    assert oct((kept / "secret").stat().st_mode)[-3:] == "600"
    assert oct((tmp_path / "a" / "jobs").stat().st_mode)[-3:] == "500"
    assert (kept / "secret").stat().st_mtime_ns == (source / "jobs" / "1" / "secret").stat().st_mtime_ns
    assert (kept / "data").readlink() == Path("/elsewhere/datasets")
    assert (first.files, first.linked, second.files, second.linked) == (1, 0, 2, 1)
    assert (tmp_path / "b" / "jobs" / "1" / "secret").samefile(kept / "secret")


def test_copy_tree_copies_changes_anew_and_leaves_the_older_copy_alone(tmp_path):
    source = tmp_path / "data"
    source.mkdir()
    (source / "log.txt").write_text("one\n")
    folder_copies.copy_tree(source, tmp_path / "a")
    with (source / "log.txt").open("a") as log:
        log.write("two\n")

    copied = folder_copies.copy_tree(source, tmp_path / "b", earlier=tmp_path / "a")

    assert copied.linked == 0
    assert [(tmp_path / name / "log.txt").read_text() for name in "ab"] == ["one\n", "one\ntwo\n"]


def test_copy_tree_keeps_holes_and_passes_over_what_no_path_names(tmp_path):
    source = tmp_path / "source"
    (source / "outputs").mkdir(parents=True)
    (source / "outputs" / "kept").write_text("kept")
    with (source / "outputs" / "holes").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 40)
        file.write(b"middle")
        file.truncate(2 << 40)
    place = os.open(source / "outputs", os.O_RDONLY)
    for _level in range(30):
        os.mkdir("d" * 200, dir_fd=place)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)

    copied = folder_copies.copy_tree(source, tmp_path / "copy")

    holes = tmp_path / "copy" / "outputs" / "holes"
    with holes.open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(1 << 40)
        assert file.read(6) == b"middle"
    assert holes.stat().st_size == 2 << 40
    assert holes.stat().st_blocks * 512 < 1 << 20
    assert (tmp_path / "copy" / "outputs" / "kept").read_text() == "kept"
    assert (copied.files, copied.too_deep) == (2, 1)


def test_copy_tree_passes_over_files_that_vanish_meanwhile(tmp_path, monkeypatch):
    source = tmp_path / "data"
    source.mkdir()
    for name in ("a", "b", "c"):
        (source / name).write_text(name)
    real = folder_copies.shutil.copyfile

    def gone(path, target, **more):
        Path(path).unlink(missing_ok=True) if Path(path).name == "b" else None
        return real(path, target, **more)

    monkeypatch.setattr(folder_copies.shutil, "copyfile", gone)
    copied = folder_copies.copy_tree(source, tmp_path / "kept")

    assert copied.files == 2
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["a", "c"]


# --- the database


@pytest.fixture
def another_database(tmp_path):
    """An empty database beside the tests' own, as a Django connection."""
    name = f"aip_restore_{uuid.uuid4().hex[:12]}"
    values = dict(connection.settings_dict)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
        values["NAME"] = name
    else:
        values["NAME"] = str(tmp_path / "restored.sqlite3")
    made = connections.create_connection("default")  # the tests allow no other alias
    made.settings_dict = values
    yield made
    made.close()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_f48_database_backup_is_one_moment_while_others_write(another_database, tmp_path, alice, cluster):
    first = work.job(alice, cluster, name="kept")
    over, written, failed = threading.Event(), threading.Event(), []

    def writes() -> None:  # pairs in one transaction: half a pair would show
        from django.db import transaction

        try:
            while not over.is_set():
                with transaction.atomic():
                    work.node(f"a{uuid.uuid4().hex[:8]}", cores=1)
                written.set()
        except Exception as exc:
            failed.append(exc)
        finally:
            connection.close()

    writer = threading.Thread(target=writes)
    writer.start()
    try:
        assert written.wait(60)
        database.dump(connection, tmp_path / "kept.dump")
    finally:
        over.set()
        writer.join(60)
    work.job(alice, cluster, name="later")

    assert database.is_empty(another_database)
    database.put_back(another_database, tmp_path / "kept.dump")

    assert not failed
    with another_database.cursor() as cursor:
        cursor.execute("SELECT id, name FROM workers_job")
        assert cursor.fetchall() == [(first.pk, "kept")]
        cursor.execute("SELECT (SELECT count(*) FROM workers_node), (SELECT count(*) FROM workers_device)")
        nodes, devices = cursor.fetchone()
        assert nodes == devices > 0
    assert not database.is_empty(another_database)


def test_database_backup_that_is_damaged_is_not_put_back(another_database, tmp_path, db):
    if connection.vendor != "sqlite":
        pytest.skip("pg_restore judges its own files")
    damaged = tmp_path / "kept"
    with sqlite3.connect(damaged) as made:
        made.execute("CREATE TABLE t (x)")
        made.executemany("INSERT INTO t VALUES (?)", [("y" * 900,) for _ in range(50)])
    made.close()
    content = bytearray(damaged.read_bytes())
    content[5000:9000] = b"\xff" * 4000
    damaged.write_bytes(content)

    with pytest.raises((messages.Refused, sqlite3.DatabaseError)):
        database.put_back(another_database, damaged)


# --- what was under way


@pytest.mark.postgres
@pytest.mark.django_db
def test_f48_backup_reconciliation_marks_unfinished_jobs_lost_and_restorable(alice, cluster):
    node = work.node(site.NODE, gpus=1)
    type(node).objects.filter(pk=node.pk).update(machine="the old one")
    running = work.job(alice, cluster, state="running", gpus_per_node=1)
    work.hold(running, node.devices.get(kind="gpu"))
    (RunDir.for_attempt(running.pk, 1).checkpoints / "step-000010").mkdir(parents=True)
    (RunDir.for_attempt(running.pk, 1).checkpoints / "step-000010" / "meta.json").write_text("{}")
    waiting, stopping = work.job(alice, cluster), work.job(alice, cluster, state="stopping")
    ended = work.job(alice, cluster, state="succeeded")

    settled = backup_reconciliation.settle(made_at=MADE, keep_queue=False)

    assert settled == backup_reconciliation.Settled((running.pk, waiting.pk, stopping.pk), 0)
    states = dict(Job.objects.values_list("pk", "state"))
    assert states == {running.pk: "lost", waiting.pk: "lost", stopping.pk: "stopped", ended.pk: "succeeded"}
    running.refresh_from_db()
    assert str(running.message) == (
        "The platform was restored from a backup of 2026-03-01 04:30 UTC; later events of the job are unknown."
    )
    assert not Device.objects.filter(used__gt=0).exists()
    node.refresh_from_db()
    assert node.machine == ""  # whatever machine this is now, the name is its own
    actions.restore(running, by=alice)
    running.refresh_from_db()
    assert (running.state, Path(running.resume_from).name) == (JobState.QUEUED, "step-000010")


@pytest.mark.django_db
def test_backup_reconciliation_may_keep_the_queue_where_nothing_ran_since(alice, cluster):
    waiting, running = work.job(alice, cluster), work.job(alice, cluster, state="running")

    settled = backup_reconciliation.settle(made_at=MADE, keep_queue=True)

    assert settled == backup_reconciliation.Settled((running.pk,), 1)
    waiting.refresh_from_db()
    assert waiting.state == "queued"


@pytest.mark.django_db
def test_settling_sets_aside_files_newer_than_the_database(alice, cluster, settings):
    job = work.job(alice, cluster, state="succeeded")
    root = Path(settings.DATA_ROOT)
    for name in (f"jobs/{job.pk}/1", f"jobs/{job.pk}/2", "jobs/999/1", "datasets/7/v1", "models/3/v2", "imports/4",
                 "thumbnails/8", "exports/annotation-5", "uploads/0af1", "datasets/7/.v2.building"):  # fmt: skip
        (root / name).mkdir(parents=True)

    aside = settling.set_aside(root)

    assert aside == [f"jobs/{job.pk}/2", "jobs/999/1", "datasets/7/v1", "models/3/v2", "thumbnails/8", "imports/4",
                     "exports/annotation-5"]  # fmt: skip
    assert (root / f"jobs/{job.pk}/1").is_dir()
    assert (root / settling.ASIDE / "jobs" / "999" / "1").is_dir()


# --- the commands


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A data root with one file, and a folder for backups."""
    root = tmp_path / "data"
    (root / "run").mkdir(parents=True)
    (root / "run" / "secret_key").write_text("k")
    (root / "datasets").mkdir()
    (root / "datasets" / "a").write_text("bytes")
    monkeypatch.setattr(env, "DATA_ROOT", root)
    monkeypatch.setattr(env, "RUN_DIR", root / "run")
    monkeypatch.setattr(env, "SECRET_KEY", "")
    monkeypatch.setattr(database, "dump", lambda connection, target: target.write_text("rows"))
    return root, tmp_path / "kept"


@pytest.mark.django_db
def test_backup_has_its_name_only_when_it_is_whole(here, monkeypatch, capsys):
    root, kept = here
    (kept / ".2020.part").mkdir(parents=True)

    assert backup.main([str(kept), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    made = Path(told["backup"])
    assert sorted(path.name for path in made.iterdir()) == ["data", "database", "manifest.json", "secret_key"]
    assert sorted(path.name for path in (made / "data").iterdir()) == ["datasets"]
    assert oct(made.stat().st_mode)[-3:] == "700"
    assert restore.read(made)["root"] == str(root)

    monkeypatch.setattr(folder_copies, "copy_tree", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "No space left")))
    assert backup.main([str(kept)]) == 1
    assert "No space left" in capsys.readouterr().out
    assert [path.name for path in kept.iterdir()] == [made.name]


@pytest.mark.django_db
def test_backup_keeps_only_the_newest_where_requested(here, capsys):
    _root, kept = here
    for _ in range(3):
        assert backup.main([str(kept), "--keep", "2"]) == 0

    assert len(backup.list_complete(kept)) == 2
    assert (backup.list_complete(kept)[0] / "data" / "datasets" / "a").read_text() == "bytes"


@pytest.mark.django_db
def test_backup_inside_the_data_root_is_refused(here, capsys):
    root, _kept = here

    assert backup.main([str(root / "backups")]) == 1
    assert "must not contain each other" in capsys.readouterr().out


@pytest.mark.django_db
def test_restore_refuses_existing_damaged_and_foreign_data(here, tmp_path, capsys):
    root, kept = here
    assert backup.main([str(kept)]) == 0
    made = backup.list_complete(kept)[0]

    assert restore.main([str(made)]) == 1
    assert f"{root} is not empty" in capsys.readouterr().out
    assert restore.main([str(tmp_path)]) == 1
    assert "is not a complete backup" in capsys.readouterr().out
    (made / "database").write_text("other rows")
    assert restore.main([str(made)]) == 1
    assert "the checksum does not match" in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
def test_f48_backup_and_restore_bring_everything_back_on_another_machine(alice, cluster, tmp_path, monkeypatch, capsys):
    if connection.vendor != "sqlite":
        pytest.skip("the commands themselves are the same; the database is asked above")
    old, new = tmp_path / "old", tmp_path / "new"
    monkeypatch.setattr(env, "DATA_ROOT", old)
    monkeypatch.setattr(env, "RUN_DIR", old / "run")
    data = training.version(alice)
    type(data).objects.filter(pk=data.pk).update(root=str(old / "datasets" / str(data.dataset_id) / "v1"))
    running, waiting = work.job(alice, cluster, state="running"), work.job(alice, cluster)
    log = old / "jobs" / str(running.pk) / "1" / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("step 1\n")
    (log.parent / "inputs").symlink_to(old / "datasets")
    (old / "jobs" / str(waiting.pk) / "1").mkdir(parents=True)  # it began after the database was kept
    assert backup.main([str(tmp_path / "kept")]) == 0
    assert "AIP_SECRET_KEY is not included" in capsys.readouterr().out  # the tests give one

    variables = {"PATH": os.environ["PATH"], "AIP_DATA_ROOT": str(new), "AIP_BOOTSTRAP": "0", "AIP_NODE": "another"}
    done = subprocess.run(
        [
            sys.executable, str(env.BASE_DIR / "manage.py"), "restore",
            str(backup.list_complete(tmp_path / "kept")[0]), "--json",
        ],
        capture_output=True, text=True, check=False, timeout=120, env=variables,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["lost"], told["waiting"]) == ([running.pk, waiting.pk], 0)
    assert told["set_aside"] == [f"jobs/{waiting.pk}/1"]
    assert (new / "jobs" / str(running.pk) / "1" / "log.txt").read_text() == "step 1\n"
    assert (new / "jobs" / str(running.pk) / "1" / "inputs").readlink() == new / "datasets"
    assert not (new / messages.UNFINISHED).exists()
    with sqlite3.connect(new / "aiplatform.sqlite3") as rows:
        assert dict(rows.execute("SELECT id, state FROM workers_job")) == {running.pk: "lost", waiting.pk: "lost"}
        assert rows.execute("SELECT state, ended_at IS NULL FROM workers_attempt").fetchall() == [("lost", 0)]
        moved = rows.execute("SELECT root FROM datasets_datasetversion").fetchone()[0]
        assert moved == str(new / "datasets" / str(data.dataset_id) / "v1")
    rows.close()


def test_platform_does_not_start_on_half_a_restore(tmp_path):
    (tmp_path / messages.UNFINISHED).touch()
    done = subprocess.run(
        [sys.executable, str(env.BASE_DIR / "manage.py"), "up"], capture_output=True, text=True, check=False,
        timeout=60, env={"PATH": os.environ["PATH"], "AIP_DATA_ROOT": str(tmp_path), "AIP_BOOTSTRAP": "0"},
    )  # fmt: skip

    assert done.returncode == 1
    assert "A restore into" in done.stdout

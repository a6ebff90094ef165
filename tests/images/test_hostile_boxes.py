"""What jobs leave in boxes and engines neither breaks the platform nor runs as the platform."""

import json
import os
import sys
from pathlib import Path

import pytest

from aiplatform.lib import trees
from tests.factories import work
from workers.images.models import Image, ImageUse, State
from workers.images.store import archive, boxes, paths


def test_names_of_any_bytes_can_be_stored_and_sent(tmp_path):
    hidden = os.fsencode(tmp_path) + b"/caf\xe9/.git"
    os.makedirs(hidden)

    figures = archive.measure(tmp_path)

    assert len(figures.left_out) == 1
    json.dumps(figures.left_out, ensure_ascii=False).encode()


def test_folders_deeper_than_any_path_are_removed(tmp_path):
    box = tmp_path / "12"
    box.mkdir()
    here = os.open(box, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    paths.remove(box)
    paths.remove(box)  # gone is gone

    assert list(tmp_path.iterdir()) == []


def test_removal_that_was_killed_is_finished(tmp_path, monkeypatch):
    (tmp_path / f".12.99{paths.DELETED}" / "inner").mkdir(parents=True)
    (tmp_path / "13").mkdir()
    (tmp_path / "14" / "a" / "b" / "c").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(trees.os, "rmdir", _killed)
        with pytest.raises(SystemExit):
            paths.remove(tmp_path / "14")
    assert len(list(tmp_path.iterdir())) == 3

    paths.finish_removals(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["13"]


def _killed(*_given, **_more):
    """What the process gets to do after it took inner folders out."""
    raise SystemExit


@pytest.mark.django_db
def test_python_that_a_package_put_into_an_engine_is_not_run_by_the_platform(tmp_path, settings, alice, cluster):
    settings.DATA_ROOT = tmp_path
    engine, ran = tmp_path / "engine", tmp_path / "ran"
    (engine / "bin").mkdir(parents=True)
    (engine / "lib/python3.11/site-packages").mkdir(parents=True)
    (engine / "bin/python").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (engine / "bin/python").chmod(0o755)

    box = boxes.make_thin(work.job(alice, cluster), engine, 0)

    python = (box / boxes.VENV / "bin/python").resolve()
    assert python == (Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}").resolve()
    assert not ran.exists()


@pytest.mark.django_db
def test_box_that_is_being_saved_is_not_forgotten(alice, cluster):
    job = work.job(alice, cluster, state="succeeded")
    use = ImageUse.objects.create(job=job, name="x", boxed=True, node="here")
    Image.objects.create(kind=Image.Kind.SAVED, owner=alice, name="mine", state=State.SAVING, job=job)

    with pytest.raises(boxes.NoBox, match="being saved"):
        boxes.forget(job, by=alice)

    use.refresh_from_db()
    assert use.node == "here"

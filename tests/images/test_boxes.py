"""What people install in a job's box: in real sandboxes, with pip, as the job's own user."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest

from aiplatform import env
from tests.factories import work
from tests.images.wheels import PIP, TIERS, layered_tiers, wheel
from tests.running import wait_for
from workers.core.kinds import Launch, NotYet
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import launch, tickets
from workers.images import tasks
from workers.images.models import ImageUse
from workers.images.services import saving
from workers.images.services.launch import with_image
from workers.images.store import boxes, paths
from workers.supervisor import records, sandbox, tiers

pytestmark = pytest.mark.django_db
BEST = TIERS[-1]
LAYERED = layered_tiers(weaker=pytest.mark.proof)
CHANGES = f"""
test "$(ring)" = "ring 1.0"
{PIP} install --no-index --find-links $WHEELS bell
{PIP} install --no-index --find-links $WHEELS ring==2.0
test "$(ring)" = "ring 2.0"
test ! -e "$VIRTUAL_ENV"/lib/python3*/site-packages/ring/only_1_0.py
{PIP} uninstall -y ring
if python -c 'import ring' 2>/dev/null; then exit 3; fi
bell
id -u
python -c 'import importlib.util, sys; print(sys.prefix == sys.argv[1], bool(importlib.util.find_spec("torch")))' \\
    "$VIRTUAL_ENV"
"""


@pytest.mark.parametrize("tier", LAYERED)
def test_box_takes_what_pip_installs_upgrades_and_removes(run, image, wheels, engine, alice, in_tier, tier):
    in_tier(tier)
    before = sorted(path.name for path in paths.engine(engine.digest).glob("lib/python3*/site-packages/*"))

    said, job = run(image, f"WHEELS={wheels}\n{CHANGES}")

    uid = env.JOB_UIDS + alice.pk if tier == sandbox.OWN_UID else os.geteuid()
    assert said.split() == ["bell", "1.0", str(uid), "True", "True"]
    upper = paths.box(job.pk) / boxes.UPPER
    assert next(upper.glob("lib/python3*/site-packages/bell")).stat().st_uid == uid
    assert sorted(path.name for path in paths.engine(engine.digest).glob("lib/python3*/site-packages/*")) == before
    assert ImageUse.objects.get(job=job).node == "node1"


@pytest.mark.parametrize("tier", LAYERED)
def test_box_stays_when_its_supervisor_and_all_below_it_are_killed(boxed, again, image, wheels, in_tier, tier):
    in_tier(tier)
    install = f"{PIP} install --no-index --find-links {wheels} bell; touch $AIP_OUTPUT_DIR/in; sleep 600"
    job, attempt = boxed(image, install)
    launch.start(attempt.pk)
    run = RunDir.for_attempt(job.pk, 1).path
    wait_for((run / "outputs/in").exists)
    keeper = records.read(run / records.SUPERVISOR)
    os.kill(keeper["pid"], signal.SIGKILL)
    wait_for(lambda: not records.is_alive(keeper) and records.start_ticks(keeper["child"]["pid"]) is None)

    said = again(job, "bell")

    assert said.split() == ["bell", "1.0"]


def test_box_of_another_machine_is_refused_with_what_to_do(boxed, image, in_tier):
    in_tier(BEST)
    job, attempt = boxed(image, "true")
    ImageUse.objects.filter(job=job).update(node="node9")

    launch.start(attempt.pk)
    attempt.refresh_from_db()

    assert str(attempt.message).startswith("Node node9 stores its packages, but the job was placed on node1.")


def test_box_that_is_gone_is_not_made_anew_in_silence(boxed, image, in_tier):
    in_tier(BEST)
    job, attempt = boxed(image, "true")
    ImageUse.objects.filter(job=job).update(node="node1")

    launch.start(attempt.pk)
    attempt.refresh_from_db()

    assert str(attempt.message).startswith("The packages do not exist on node node1 any more; backups do not include")
    assert not paths.box(job.pk).exists()


@pytest.fixture
def of_root(monkeypatch):
    """`of_root(1)`: jobs start in this tier of a platform that is root, and so under users of their own."""
    if os.geteuid() != 0:
        pytest.skip("only root has users to give boxes to")
    monkeypatch.setattr(tiers, "python_folders", list)  # ours may lie in root's home
    monkeypatch.setattr(tickets, "sys", SimpleNamespace(executable="/usr/bin/python3"))
    return lambda tier: monkeypatch.setattr(tickets, "tier", lambda: (tier, ""))


@pytest.mark.parametrize("tier", [pytest.param(0, marks=pytest.mark.proof), 1])
def test_box_without_layers_belongs_to_the_user_of_its_job(run, image, of_root, alice, tier):
    of_root(tier)

    said, job = run(image, "cd $VIRTUAL_ENV/lib/python3*/site-packages; touch mine.py; rm $VIRTUAL_ENV/bin/pip3; id -u")

    uid = env.JOB_UIDS + alice.pk
    assert said.split() == [str(uid)]
    assert next(paths.box(job.pk).glob("venv/lib/python3*/site-packages/mine.py")).stat().st_uid == uid


def test_box_whose_user_cannot_come_in_is_refused_before_it_starts(boxed, kind, image, of_root, root):
    """Below tier 2 such a job would be root without capabilities, who may not write to its user's box."""
    of_root(1)
    closed = root / "closed"
    (closed / "data").mkdir(parents=True)
    closed.chmod(0o700)
    _job, attempt = boxed(image, "true")
    kind.prepare = lambda job, attempt, run: with_image(Launch(argv=["true"], read_only=[closed / "data"]), job)

    launch.start(attempt.pk)
    attempt.refresh_from_db()

    assert str(attempt.message).startswith(f"The job user cannot access folder {closed} on this node")


@pytest.mark.parametrize("tier", [pytest.param(0, marks=pytest.mark.proof), 1])
def test_box_without_layers_is_an_environment_beside_the_engine(run, image, wheels, in_tier, monkeypatch, tier):
    """Where there is no bubblewrap: newer versions shadow, and what the engine has stays."""
    in_tier(tier)
    install = f"{PIP} install --no-index --find-links {wheels} bell ring==2.0"

    said, job = run(image, f"ring; {install}; bell; hash -r; ring; python -c 'import numpy'")

    assert said.split() == ["ring", "1.0", "bell", "1.0", "ring", "2.0"]
    assert "plain folder" in saving.why_not(job, job.owner)


def test_pip_in_a_box_finds_the_packages_of_a_closed_network(run, image, root, in_tier, monkeypatch):
    in_tier(BEST)
    wheel(root / "index", "bell", "1.0").chmod(0o644)
    (root / "index").chmod(0o755)
    monkeypatch.setattr(env, "ENGINE_INDEX", str(root / "index"))

    said, _job = run(image, f"{PIP} install bell; bell")

    assert said.split() == ["bell", "1.0"]


@pytest.mark.skipif(BEST < 2, reason="no bubblewrap")
def test_image_without_a_box_is_for_reading(run, image, in_tier):
    in_tier(BEST)

    said, job = run(image, "ring; touch $VIRTUAL_ENV/mine 2>&1 || true", own=False)

    assert said.splitlines()[0] == "ring 1.0"
    assert "Read-only file system" in said
    assert not paths.box(job.pk).exists()


@pytest.mark.parametrize("tier", sorted({TIERS[0], BEST}))
def test_forgotten_box_does_not_come_back_though_its_folder_was_not_deleted_yet(
    run, again, image, wheels, alice, in_tier, tier
):
    in_tier(tier)
    _said, job = run(image, f"{PIP} install --no-index --find-links {wheels} bell")
    Job.objects.filter(pk=job.pk).update(state="stopped")
    job.refresh_from_db()
    boxes.forget(job, by=alice)
    assert paths.box(job.pk).is_dir()

    said = again(job, "python -c 'import bell' 2>&1 || true")

    assert "No module" in said
    assert ImageUse.objects.get(job=job).node == "node1"
    assert "No module" in again(job, "python -c 'import bell' 2>&1 || true; touch $VIRTUAL_ENV/mine")
    assert "mine" in again(job, "ls $VIRTUAL_ENV")


def test_forgotten_box_that_is_being_deleted_is_waited_for(boxed, image, in_tier, run):
    in_tier(BEST)
    _said, job = run(image, "true")
    ImageUse.objects.filter(job=job).update(node="")

    with boxes.alone(paths.box(job.pk)):
        assert not boxes.clear(job.pk)
        with pytest.raises(NotYet):
            with_image(Launch(argv=["true"]), job)

    assert boxes.clear(job.pk)


def test_forgotten_box_begins_from_the_image_again(run, again, image, wheels, alice, in_tier):
    in_tier(BEST)
    _said, job = run(image, f"{PIP} install --no-index --find-links {wheels} bell")
    assert (paths.box(job.pk)).is_dir()
    with pytest.raises(boxes.NoBox, match="Stop the job first:"):
        boxes.forget(job, by=alice)
    Job.objects.filter(pk=job.pk).update(state="stopped")
    job.refresh_from_db()

    boxes.forget(job, by=alice)
    boxes.clean(job.pk)

    assert not paths.box(job.pk).exists()
    assert "No module" in again(job, "python -c 'import bell' 2>&1 || true")


def test_box_without_a_row_is_swept(run, image, in_tier, monkeypatch):
    in_tier(BEST)
    monkeypatch.setattr(boxes, "YOUNG_S", -60.0)
    _said, job = run(image, "true")
    assert boxes.strays() == []
    ImageUse.objects.filter(job=job).delete()

    tasks.tidy()

    assert not paths.box(job.pk).exists()


def test_young_box_without_a_row_may_be_in_the_making(alice, cluster, root):
    paths.open_folder(paths.box(7))

    assert boxes.strays() == []


def test_box_that_somebody_reads_is_deleted_later(root):
    box = paths.open_folder(paths.box(7))

    with boxes.alone(box):
        boxes.clean(7)
        assert box.is_dir()
    boxes.clean(7)

    assert not box.exists()


def test_box_without_layers_is_made_whole_and_runs_no_program_of_the_engine(engine, alice, cluster, root):
    python = paths.engine(engine.digest) / "bin/python"
    python.unlink()
    python.write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    python.chmod(0o755)
    job = work.job(alice, cluster)

    venv = boxes.make_thin(job, paths.engine(engine.digest), 0) / boxes.VENV
    next(venv.glob("lib/python3*/site-packages")).joinpath(boxes.MARKER_FILE).unlink()  # as if it were killed half-way
    boxes.make_thin(job, paths.engine(engine.digest), 0)

    assert not (root / "ran").exists()
    assert next(venv.glob("lib/python3*/site-packages")).joinpath(boxes.MARKER_FILE).exists()

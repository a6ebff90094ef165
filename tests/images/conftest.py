from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from django.utils.timezone import now

from tests.fakes.kinds import RememberingKind
from tests.images.wheels import wheel
from tests.running import printed, wait_for
from tests.workers.launched import node, placed
from workers.core import kinds
from workers.core.kinds import Launch
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.runs import RunDir
from workers.execution import job_users, launch, tickets
from workers.images.models import Engine, Image, State
from workers.images.services import uses
from workers.images.services.launch import layers_work, with_image
from workers.images.store import engines, paths
from workers.scheduling import placing
from workers.supervisor import records, sandbox, tiers

__all__ = ["node", "placed"]


@pytest.fixture
def kind():
    """The kind `command`, played by a fake."""
    fake = RememberingKind()
    with kinds.KINDS.temporarily(fake):
        yield fake


@pytest.fixture
def root(settings):
    """A data folder beneath folders that everybody may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="aip-images-"))
    settings.DATA_ROOT = folder
    job_users.can_chown.cache_clear()
    layers_work.cache_clear()
    yield folder
    job_users.can_chown.cache_clear()
    _end_jobs_in(folder)
    for path, names, _files in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), 0o700)
    shutil.rmtree(folder)


def _end_jobs_in(folder: Path) -> None:
    """Supervisors whose jobs a test leaves running would look for requests in a folder that is gone, for ever."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if b"/supervisor/" in command and os.fsencode(folder) in command:
                    os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture
def wheels(root):
    """A folder of two versions of `ring` and one `bell`; everybody may read it."""
    for name, version in (("ring", "1.0"), ("ring", "2.0"), ("bell", "1.0")):
        wheel(root / "wheels", name, version)
    for path in (root / "wheels").iterdir():
        path.chmod(0o644)
    (root / "wheels").chmod(0o755)
    return root / "wheels"


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """An environment with ring 1.0 in it, built once: Python and pip take half a second for it."""
    folder = tmp_path_factory.mktemp("built") / "engine"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "aiplatform.pth").write_text("".join(f"{path}\n" for path in engines.platform_folders()))
    ring = wheel(folder.parent, "ring", "1.0")
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(ring)]
    subprocess.run(pip, check=True, env={"PATH": os.environ["PATH"]})
    return folder


@pytest.fixture
def engine(root, wheels, built, db):
    """An engine that is ready, with ring 1.0 in it; pip and all else it sees in the platform's own packages."""
    row = engines._engine("ring==1.0", with_platform=True)
    folder = paths.engine(row.digest)
    paths.open_folder(folder.parent)
    shutil.copytree(built, folder, symlinks=True)
    for script in (folder / "bin").iterdir():
        if not script.is_symlink():  # its first line names the Python of its own folder
            script.write_bytes(script.read_bytes().replace(os.fsencode(built), os.fsencode(folder)))
    folder.chmod(0o755)
    Engine.objects.filter(pk=row.pk).update(state=State.READY, facts={"python": "3.11"}, size_bytes=1)
    return Engine.objects.get(pk=row.pk)


@pytest.fixture
def image(engine, alice):
    return Image.objects.create(kind="engine", name="mine", owner=alice, engine=engine)


@pytest.fixture
def in_tier(monkeypatch):
    """`in_tier(2)`: jobs start in this tier; 2 as an ordinary user's platform has it, where jobs are nobody else."""

    def chosen(tier: int) -> None:
        bwrap = tiers.best_tier()[1] if tier >= sandbox.BUBBLEWRAP else ""
        monkeypatch.setattr(tickets, "tier", lambda: (tier, bwrap))
        if tier < sandbox.OWN_UID:
            monkeypatch.setattr(job_users, "uid_of", lambda owner: 0)

    return chosen


@pytest.fixture
def boxed(placed, kind):
    """`boxed(image, "pip list")`: a job of Alice's in a box over an image, placed on this machine; returns it."""

    def one(image, script: str, *, own=True):
        job, attempt = placed(["unused"])
        uses.attach(job, image, boxed=own)
        kind.prepare = lambda job, attempt, run: with_image(
            Launch(argv=["/bin/sh", "-ec", script], read_only=[paths.engine("x").parent.parent / "wheels"]), job
        )
        return job, attempt

    return one


@pytest.fixture
def run(boxed):
    """`run(image, script)`: what a boxed job said, after it ended well, and the job."""

    def one(image, script: str, *, own=True) -> tuple[str, Job]:
        job, attempt = boxed(image, script, own=own)
        return _said(attempt), job

    return one


@pytest.fixture
def again(kind):
    """`again(job, script)`: what the job's next attempt says, on the same machine."""

    def one(job: Job, script: str) -> str:
        Allocation.objects.filter(attempt__job=job).update(released_at=now())
        Device.objects.update(used=0)
        job.attempts.update(ended_at=now())
        Job.objects.filter(pk=job.pk).update(state="queued")
        card = Device.objects.get(kind="gpu", index=1)
        kind.prepare = lambda job, attempt, run: with_image(Launch(argv=["/bin/sh", "-ec", script]), job)
        return _said(placing.place(job.pk, [(card.node_id, [(card.pk, 8)])]))

    return one


def _said(attempt: Attempt) -> str:
    launch.start(attempt.pk)
    attempt.refresh_from_db()
    assert not attempt.message, str(attempt.message)
    path = RunDir.for_attempt(attempt.job_id, attempt.number)
    record = wait_for(lambda: records.read(path.path / records.EXIT), 90, "no exit record")
    assert record["code"] == 0, path.log.read_text()
    return printed(path.log)

"""Boxes: the writable layer of a job over its image, which stays on its machine until it is forgotten."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files, trees, wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from workers.core import queues
from workers.core.models import Job
from workers.core.states import JobState
from workers.execution import job_users
from workers.images.models import Image, ImageUse, State
from workers.images.store import archive, system
from workers.images.store import paths as places

UPPER, WORK, VENV = "upper", "work", "venv"
MARKER_FILE = "aiplatform.pth"  # written last: a box that has it is whole
LINE = "import site; site.addsitedir({!r})\n"
PIP = "#!{}\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"
YOUNG_S = 3600.0  # a box may be made before its row says where


class NoBox(DomainError, code="no_box"): ...


def make(job: Job, uid: int, *, marked: bool = True) -> Path:
    """The job's box on this machine, with an upper layer that belongs to its user.

    Args:
        marked: it is laid over others, which takes a file system with extended attributes.

    Raises:
        NoBox: the disk cannot hold one.
    """
    box = _folder(job, uid)
    if marked and not places.takes_marks(box):
        raise NoBox(wording.message("image.no_box_here", node=settings.NODE, path=str(places.local())))
    for name in (UPPER, WORK):
        inner = box / name
        inner.mkdir(exist_ok=True)
        inner.chmod(0o755)
        if uid and inner.stat().st_uid != uid:
            os.chown(inner, uid, uid)
    return box


def make_thin(job: Job, engine: Path, uid: int) -> Path:
    """A box without layers: an environment of its own that sees the engine's packages, pip too, after its own.

    The engine's programs were made by packages that somebody named, so none of them runs here.
    """
    box = _folder(job, uid)
    venv = box / VENV
    packages = venv / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    if not (packages / MARKER_FILE).exists():
        _build_thin(venv, packages, engine)
    if uid and venv.stat().st_uid != uid:
        with trees.opened(venv) as opened:
            trees.change_owner(opened, uid)
    return box


def _build_thin(venv: Path, packages: Path, engine: Path) -> None:
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    places.remove(venv)  # a new one is the platform's until it is given away
    subprocess.run(  # noqa: S603 - the platform's own base
        [str(python), "-I", "-m", "venv", "--without-pip", str(venv)],
        check=True, capture_output=True, timeout=50, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    for name in ("pip", "pip3"):
        (venv / "bin" / name).write_text(PIP.format(venv / "bin/python"))
        (venv / "bin" / name).chmod(0o755)
    site_packages = next(engine.glob("lib/python3*/site-packages"))
    files.write_atomically(packages / MARKER_FILE, LINE.format(str(site_packages)).encode())
    (packages / MARKER_FILE).chmod(0o644)


def _folder(job: Job, uid: int) -> Path:
    box = places.open_folder(places.box(job.pk).parent) / str(job.pk)
    box.mkdir(exist_ok=True)
    job_users.enclose(box, uid)
    return box


@contextmanager
def alone(box: Path) -> Iterator[bool]:
    """Lock the box; yield whether no other process reads or removes it."""
    with (box / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def measure(use: ImageUse) -> archive.Figures | None:
    """Measure a box of this node and save its size. None where there is nothing to save."""
    upper = places.box(use.pk) / UPPER
    if use.node != settings.NODE or not upper.is_dir():
        return None
    try:
        figures = archive.measure(upper)
    except (OSError, archive.Unpackable):  # programs change it meanwhile
        return None
    ImageUse.objects.filter(pk=use.pk).update(size_bytes=figures.bytes, measured_at=timezone.now())
    return figures


@dataclass(frozen=True)
class Measured:
    """Size of a box, and what of it is never saved; `is_known` is false until another node has measured it."""

    is_known: bool = False
    bytes: int = 0
    files: int = 0
    left_out: tuple[str, ...] = ()
    system: tuple[str, ...] = ()  # packages of the distribution, which are not saved; known on the box's machine alone


def measured(use: ImageUse) -> Measured:
    """What saving a box would take; a box on another node is shown as last measured there."""
    if figures := measure(use):
        own = tuple(system.installed(places.box(use.pk)))
        return Measured(
            is_known=True, bytes=figures.bytes, files=figures.files, left_out=tuple(figures.left_out), system=own
        )
    if use.node and use.node != settings.NODE:
        enqueue("images.measure", queue=queues.work(use.node), job_id=use.pk)
    return Measured(is_known=use.measured_at is not None, bytes=use.size_bytes)


@transaction.atomic
def forget(job: Job, *, by: User) -> None:
    """Delete what was installed in a job's box; its next start begins from the image again.

    Raises:
        NoBox: it has none, it runs, or it is being saved.
    """
    job = Job.objects.select_for_update().get(pk=job.pk)  # it is not placed meanwhile
    use = ImageUse.objects.filter(job=job, boxed=True).exclude(node="").first()
    if use is None:
        raise NoBox(_("This job has no installed packages."))
    if not can_forget(job):
        raise NoBox(_("Stop the job first: its packages are in use."))
    if Image.objects.filter(job=job, state=State.SAVING).exists():
        raise NoBox(_("The packages are being saved as an image. Wait until that is done."))
    discard(use)


def can_forget(job: Job) -> bool:
    """Whether nothing of the job runs: it is over, or waits, perhaps for the node with its box."""
    return job.is_final or job.state == JobState.QUEUED


def discard(use: ImageUse) -> None:
    """Let the machine delete the box of a job that is over."""
    node = use.node
    ImageUse.objects.filter(pk=use.pk).update(node="", size_bytes=0, measured_at=None)
    enqueue("images.clean", queue=queues.work(node), job_id=use.pk)


def clean(job_id: int) -> None:
    """Delete the folder of a box without a row or reader; safe to send twice, and repeated by a sweep."""
    if not ImageUse.objects.filter(pk=job_id, node=settings.NODE).exists():
        clear(job_id)


def clear(job_id: int) -> bool:
    """Delete the local folder of a box without a row; return whether nothing of it is left."""
    box = places.box(job_id)
    if not box.is_dir():
        return True
    with suppress(FileNotFoundError), alone(box) as free:
        if free and not ImageUse.objects.filter(pk=job_id, node=settings.NODE).exists():  # no start took it over
            places.remove(box)
    return not box.exists()


def machines(jobs: QuerySet[Job]) -> dict[int, str]:
    """The node with the box of each of these jobs that has one; it can start only there."""
    uses = ImageUse.objects.filter(boxed=True, job__in=jobs).exclude(node="")
    return dict(uses.values_list("pk", "node"))


def count_by_node() -> list[tuple[str, str, int]]:
    """Number of boxes on each node, by the state of their jobs."""
    rows = ImageUse.objects.filter(boxed=True).exclude(node="").values_list("node", "job__state")
    return [(node, state, count) for node, state, count in rows.annotate(count=Count("pk")).order_by()]


def strays() -> list[int]:
    """Boxes on this node without a row; young ones may be under construction."""
    folder, old = places.box(0).parent, time.time() - YOUNG_S
    paths = [path for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []
    numbers = {int(path.name) for path in paths if path.stat().st_mtime < old}
    with_row = ImageUse.objects.filter(node=settings.NODE, pk__in=numbers).values_list("pk", flat=True)
    return sorted(numbers - set(with_row))

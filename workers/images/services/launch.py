"""What a job that runs in an image is started with."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core.kinds import Launch, NotYet
from workers.core.models import Job
from workers.execution import job_users, tickets
from workers.images.containers import launch as containers
from workers.images.containers import packages as kept
from workers.images.models import Engine, Image, ImageUse, State
from workers.images.services import uses
from workers.images.store import boxes, compatibility, engines, layers, paths, system
from workers.supervisor import sandbox

TIMEOUT_S = 1800.0  # for the engine of a job that holds its place already


class CannotUse(DomainError, code="cannot_use_image"):
    """A job cannot run in its image on this machine."""


def with_image(launch: Launch, job: Job) -> Launch:
    """The launch of a job in its image, unchanged where it has none; safe to call again.

    Raises:
        NotYet: its engine is being built, or its box is being saved; it is asked for again.
        DomainError: it cannot run here; says what to do.
    """
    use = uses.find(job)
    if use is None:
        return launch
    if use.image is None:
        raise uses.ImageGone(wording.message("image.gone", name=use.name))
    if use.image.kind == Image.Kind.CONTAINER:
        return _contained(containers.with_container(launch, use, use.image), job, use, use.image)
    folder = _engine_here(use, use.image)
    launch = dataclasses.replace(launch, read_only=[*launch.read_only, *_wheels()], notes=list(launch.notes))
    level, bwrap = tickets.tier()
    if level >= sandbox.CONTAINER:
        raise CannotUse(wording.message("image.in_container", node=settings.NODE))
    _check_place(use)
    if why := compatibility.why_not_here(use.image, settings.NODE, cards=bool(job.gpus_per_node)):
        raise CannotUse(why)
    if level < sandbox.BUBBLEWRAP or not layers_work(bwrap):
        return _thin(launch, use, folder)
    uid = job_users.uid_of(job.owner_id)
    overlay: dict[str, Any] = {
        "target": str(folder),
        "layers": [str(folder), *map(str, layers.here(use.image, on_line=launch.notes.append))],
        # one folder for all jobs: what is mounted there is seen by the processes of one alone
        "mapped": str(paths.open_folder(paths.local() / "mounts")) if uid and level >= sandbox.OWN_UID else "",
    }
    if use.boxed:
        box = _settled(use, boxes.UPPER, lambda: boxes.make(job, uid))
        overlay |= {"upper": str(box / boxes.UPPER), "work": str(box / boxes.WORK)}
        if job.root_inside:
            overlay["system"] = system.folders(box, uid, launch.env.get("HOME", str(folder)))
    return dataclasses.replace(launch, overlay=overlay, env=_environment(folder) | launch.env)


def _contained(launch: Launch, job: Job, use: ImageUse, image: Image) -> Launch:
    """A container that finds what was saved in its image, and the box of its job where it has one."""
    variables = _index() | kept.variables(image, boxed=use.boxed)
    launch = dataclasses.replace(launch, env=variables | launch.env, read_only=[*launch.read_only, *_wheels()])
    if not use.boxed:
        return launch
    _check_place(use)
    uid = job_users.uid_of(job.owner_id)
    box = _settled(use, boxes.UPPER, lambda: boxes.make(job, uid, marked=False))
    mounted = {"packages": kept.mount(image, str(box / boxes.UPPER))}
    return dataclasses.replace(launch, container=launch.container | mounted)


def further(launch: Launch, job: Job) -> Launch:
    """The launch of a job's further rank: its layers are unpacked on each node's own disk.

    Raises:
        DomainError: it cannot run here; says what to do.
    """
    use = uses.find(job)
    if not launch.overlay or use is None or use.image is None:
        return launch
    folders = layers.here(use.image)
    if folders and not layers_work(tickets.tier()[1]):
        raise CannotUse(wording.message("image.no_layers", node=settings.NODE))
    target = str(launch.overlay["target"])
    mapped = str(paths.open_folder(paths.local() / "mounts")) if launch.overlay["mapped"] else ""
    overlay = launch.overlay | {"layers": [target, *map(str, folders)], "mapped": mapped}
    return dataclasses.replace(launch, overlay=overlay)


def home(job: Job) -> Path | None:
    """The folder of the environment that a job runs in, None for the platform's own."""
    use = uses.find(job)
    if use is None or use.engine is None:
        return None
    thin = paths.box(job.pk) / boxes.VENV
    return thin if thin.is_dir() else paths.engine(use.engine.digest)


def python(job: Job) -> str:
    """The Python that a job's programs run under, after `with_image`."""
    folder = home(job)
    return str(folder / "bin/python") if folder else sys.executable


def program(job: Job, name: str) -> str:
    """The path of a program that the job's image brings along, after `with_image`."""
    folder = home(job)
    own = folder / "bin" / name if folder else None
    if own and own.exists():
        return str(own)
    use = uses.find(job)
    return str(paths.engine(use.engine.digest) / "bin" / name) if use and use.engine else name


def _engine_here(use: ImageUse, image: Image) -> Path:
    """The folder of the engine, built if need be; it is the same one for as long as there is a box over it."""
    engine = use.engine or engines.current(image)
    folder = paths.engine(engine.digest)
    if engine.state != State.READY or not folder.is_dir():
        _wait(use, image, engine)
    if not os.access(folder / "bin/python", os.X_OK):
        missing = os.path.realpath(folder / "bin/python")
        raise CannotUse(wording.message("image.no_python", node=settings.NODE, name=use.name, path=missing))
    if use.engine is None:
        ImageUse.objects.filter(pk=use.pk, engine=None).update(engine=engine)
        use.engine = engine
    return folder


def _wait(use: ImageUse, image: Image, engine: Engine) -> None:
    """Wait for a build that goes on, or begin one; a build that failed ends the job with its reason."""
    attempt = use.job.attempts.order_by("-number").first()
    since = (timezone.now() - attempt.assigned_at).total_seconds() if attempt else 0.0
    if engine.state == State.FAILED and (engine.job is None or engine.job.is_final):
        raise CannotUse(wording.message("image.not_built", name=use.name, why=engine.message))
    if since > TIMEOUT_S:
        raise CannotUse(wording.message("image.build_too_long", name=use.name, seconds=round(since)))
    engines.ensure(image, by=use.job.owner, cluster=use.job.cluster)
    raise NotYet(wording.message("image.being_built", name=use.name))


def _check_place(use: ImageUse) -> None:
    """Refuse a machine that the box does not lie on.

    Raises:
        CannotUse: it lies elsewhere, or is gone.
    """
    if use.boxed and use.node and use.node != settings.NODE:
        raise CannotUse(wording.message("image.elsewhere", node=use.node, other=settings.NODE))
    if use.boxed and use.node and not paths.box(use.pk).is_dir():
        raise CannotUse(wording.message("image.box_lost", node=use.node))


def _settled(use: ImageUse, inner: str, make: Callable[[], Path]) -> Path:
    """The box of a job that starts here, made if need be, with its place noted.

    A folder that lies here though the row knows of none was forgotten: the job begins from its image again.

    Raises:
        NotYet: it is being saved, or deleted.
    """
    use.refresh_from_db(fields=["node"])
    if not use.node and not boxes.clear(use.pk):
        raise NotYet(wording.message("image.box_in_use"))
    box = make()
    with suppress(FileNotFoundError), boxes.alone(box) as free:  # whoever deletes holds it, and looks for the row then
        if free and (box / inner).is_dir():
            ImageUse.objects.filter(pk=use.pk, node="").update(node=settings.NODE)
            return box
    raise NotYet(wording.message("image.box_in_use"))


def _thin(launch: Launch, use: ImageUse, folder: Path) -> Launch:
    """Without layers an engine is read-only, and a box is a separate environment on top of it."""
    if layers.chain(use.image) if use.image else False:
        raise CannotUse(wording.message("image.no_layers", node=settings.NODE))
    if not use.boxed:
        return dataclasses.replace(launch, read_only=[*launch.read_only, folder], env=_environment(folder) | launch.env)
    uid = job_users.uid_of(use.job.owner_id)
    venv = _settled(use, boxes.VENV, lambda: boxes.make_thin(use.job, folder, uid)) / boxes.VENV
    variables = _environment(venv)
    variables["PATH"] = os.pathsep.join([str(venv / "bin"), _environment(folder)["PATH"]])
    return dataclasses.replace(
        launch,
        read_only=[*launch.read_only, folder],
        read_write=[*launch.read_write, venv],
        own_folders=[*launch.own_folders, venv],
        env=variables | launch.env,
    )


def _wheels() -> list[Path]:
    """The folder of packages where the index is one, which pip reads in jobs too."""
    return [Path(env.ENGINE_INDEX)] if env.ENGINE_INDEX.startswith("/") and Path(env.ENGINE_INDEX).is_dir() else []


def _environment(folder: Path) -> dict[str, str]:
    """Variables that let programs run in this environment."""
    variables = {
        "PATH": os.pathsep.join([str(folder / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]),
        "VIRTUAL_ENV": str(folder),
        "PYTHONNOUSERSITE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return variables | _index()


def _index() -> dict[str, str]:
    """What tells pip where the operator's packages come from."""
    index = env.ENGINE_INDEX
    if not index:
        return {}
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": index} if index.startswith("/") else {"PIP_INDEX_URL": index}


@cache
def layers_work(bwrap: str) -> bool:
    """Whether this bubblewrap and this kernel lay folders over one another here; found out by trying, once."""
    base = paths.open_folder(paths.local())
    with tempfile.TemporaryDirectory(dir=base, prefix=".try-") as folder:
        for name in ("a", "b", "upper", "work"):
            Path(folder, name).mkdir()
        flags = ["--ro-bind", "/", "/", "--overlay-src", f"{folder}/a", "--overlay-src", f"{folder}/b"]
        flags += ["--overlay", f"{folder}/upper", f"{folder}/work", "/mnt"]
        try:
            argv = [bwrap, *flags, "true"]
            done = subprocess.run(argv, capture_output=True, timeout=20, check=False)  # noqa: S603 - our own program
        except (OSError, subprocess.SubprocessError):
            return False
        finally:
            for inner in Path(folder, "work").iterdir():
                inner.chmod(0o700)
    return done.returncode == 0

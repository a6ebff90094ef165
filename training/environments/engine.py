"""What an environment runs in: an image with JupyterLab, or the operator's own jupyter-lab."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid
from training.programs.start import CannotRun
from workers.core.kinds import Launch
from workers.core.models import Job
from workers.execution import tickets
from workers.images.models import Image
from workers.images.services import launch as launching
from workers.images.services import uses
from workers.images.store import boxes, catalog
from workers.supervisor import sandbox

BUILT_IN = "jupyter"
PROGRAM = "jupyter-lab"
_BEGIN = (
    'command -v "$0" >/dev/null || { echo "This container image has no python3 on its PATH, which JupyterLab needs. '
    'Choose an image with python3 and JupyterLab."; exit 1; }; exec "$0" "$@"'
)


def check(user: User, image: Image | None) -> None:
    """Refuse an image that this person cannot use.

    Raises:
        Invalid: with what to do.
    """
    if image is None and uses.only_containers():
        raise Invalid(
            _(
                "All nodes run jobs in containers (isolation tier 4), where the built-in JupyterLab is not "
                "available. Choose a container image with JupyterLab on its PATH."
            ),
            field="image",
        )
    uses.check(user, image)
    if image is not None and image.built_in not in ("", BUILT_IN):
        raise Invalid(_("This image does not contain JupyterLab. Choose another one."), field="image")


def attach(job: Job, image: Image | None) -> None:
    """Let the job run in an image; None is the built-in engine, or the operator's program.

    On one machine it has a box of its own, which lies on that machine's disk.
    """
    chosen = image or (None if env.JUPYTER else catalog.builtin(BUILT_IN))
    uses.attach(job, chosen, boxed=job.nodes == 1)


def image_of(job: Job) -> Image | None:
    """Return the image chosen for a job; None for the built-in one."""
    image = uses.image_of(job)
    return None if image is None or image.built_in == BUILT_IN else image


def launched(launch: Launch, job: Job) -> Launch:
    """What is started, with everything that the image adds.

    Raises:
        NotYet: the image is being built.
        DomainError: it cannot run here; says what to do.
    """
    if uses.find(job):
        return launching.with_image(launch, job)
    if tickets.tier()[0] >= sandbox.CONTAINER:
        raise CannotRun(wording.message("environment.needs_image", node=settings.NODE))
    if not env.JUPYTER or not Path(env.JUPYTER).is_file():
        raise Invalid(_("JupyterLab is not installed on this node."))
    folder = Path(env.JUPYTER).resolve().parents[1]  # what it was installed in
    path = os.pathsep.join([str(Path(env.JUPYTER).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return replace(launch, env={"PATH": path} | launch.env, read_only=[*launch.read_only, folder])


def further(launch: Launch, job: Job) -> Launch:
    """What another machine of an environment starts.

    Raises:
        DomainError: it cannot run there; says what to do.
    """
    return launching.further(launch, job)


def programs(job: Job) -> tuple[str, str]:
    """The interpreter of the image and its jupyter-lab, after `launched`."""
    if is_contained(job):
        return sys.executable, PROGRAM
    if uses.find(job):
        return launching.python(job), launching.program(job, PROGRAM)
    return sys.executable, env.JUPYTER


def in_container(argv: list[str]) -> list[str]:
    """The command line of a job in a container image, which says what to do where that has no Python."""
    return ["/bin/sh", "-c", _BEGIN, *argv]


def is_contained(job: Job) -> bool:
    """Whether it runs in a container image."""
    use = uses.find(job)
    return bool(use and use.image and use.image.kind == Image.Kind.CONTAINER)


def words(job: Job) -> tuple[str, bool]:
    """What the job runs in, as pages name it, and whether packages that people install in it can be saved."""
    use = getattr(job, "image_use", None)
    return (use.name, use.boxed and bool(use.node)) if use else (PROGRAM, False)


def forget(job: Job, *, by: User) -> None:
    """Remove what was installed in it, if anything was."""
    use = uses.find(job)
    if use and use.boxed and use.node:
        boxes.forget(job, by=by)

"""The job kind that builds an engine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform import env
from aiplatform.lib import files, wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import write_json
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.images import builder
from workers.images.models import Engine, Image, State
from workers.images.store import engines, packages, paths

MAX_BYTES = 64_000  # bytes of the facts that a build leaves


class EngineKind(JobKind):
    """A build: a Python environment at its final place, made by `builder` inside the job."""

    name = engines.KIND
    label = gettext_lazy("Image build")
    plural = gettext_lazy("Image builds")
    icon = "images"
    order = 90
    step = False
    offered = False  # people ask for an image, and the build comes along
    builds_image = True
    idle_guard = False
    evictable = False
    can = Capabilities(pause=True, finish=False, restore=True)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Make the empty folder; what an earlier attempt left of it goes.

        Raises:
            NothingToBuild: it is built already, or another job builds it.
        """
        self.check_restore(job)
        engine = Engine.objects.get(pk=job.spec["engine"])
        Engine.objects.filter(pk=engine.pk).exclude(state=State.READY).update(state=State.BUILDING, job=job)
        target = paths.engine(engine.digest)
        paths.remove(target)
        paths.open_folder(target.parent)
        target.mkdir(exist_ok=True)
        target.chmod(0o755)
        own, plan = run.path / "builder.py", run.path / "plan.json"
        files.write_atomically(own, Path(builder.__file__).read_bytes())
        write_json(plan, engines.plan(engine))
        for path in (own, plan):
            path.chmod(0o644)
        wheels = [Path(env.ENGINE_INDEX)] if env.ENGINE_INDEX.startswith("/") else []
        return Launch(
            argv=[sys.executable, "-I", str(own), str(plan)],
            env=packages.variables(),
            read_only=[*wheels, *packages.files()],
            read_write=[target],
            own_folders=[target],
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        """Take over the folder of a successful build; otherwise save why it failed."""
        engine = Engine.objects.filter(pk=job.spec["engine"]).first()
        if engine is None or engine.state != State.BUILDING:
            return
        if attempt.state != JobState.SUCCEEDED:
            engines.failed(engine, job, wording.message("image.build_failed", job=job.pk))
            return
        facts = _facts(RunDir.for_attempt(job.pk, attempt.number))
        if facts is None:
            engines.failed(engine, job, wording.message("image.build_incomplete", job=job.pk))
        else:
            engines.seal(engine, job, facts)

    def check_restore(self, job: Job) -> None:
        """Refuse to build an image that is built already, or deleted."""
        engine = Engine.objects.filter(pk=job.spec["engine"]).first()
        if engine is None or engine.state == State.READY:
            raise NothingToBuild(_("This image was already built or deleted."))
        if engine.job is not None and engine.job_id != job.pk and not engine.job.is_final:
            raise NothingToBuild(_("Another job is already building this image."))

    def facts(self, job: Job) -> list[Fact]:
        engine = Engine.objects.filter(pk=job.spec["engine"]).first()
        if engine is None:
            return []
        shown = [Fact("Python", engine.python)]
        return shown + ([Fact(_("Packages"), engine.requirements, code=True)] if engine.requirements else [])


class NothingToBuild(DomainError, code="nothing_to_build"): ...


def _facts(run: RunDir) -> dict[str, object] | None:
    """The builder's result; a build runs users' programs, so it is validated."""
    try:
        with open(files.open_beneath(run.path, "outputs/engine.json"), "rb") as file:  # noqa: PTH123 - a descriptor
            facts = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError, DomainError):
        return None
    return facts if isinstance(facts, dict) else None


def page_of(image: Image) -> str:
    """Path of the page of an image."""
    return reverse("images:detail", args=[image.pk])

"""Looks at a training by jobs of the same program: what it would see before, into the layers of what it learned, and
where the time of its steps goes.

A look is a training job of its own with a mark in `extra`; it leaves pictures and facts in its outputs, and no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.base import File
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files
from aiplatform.lib.errors import Invalid
from training.presets.catalog import PRESETS
from training.runs import checkpoints, custom_networks, drafts, extra_options, jobs
from training.runs.drafts import MAX_NAME, TrainingRequest
from training.runs.models import TrainingJob
from training.runs.querysets import LOOKS
from workers.core.models import Job
from workers.core.runs import RunDir

BATCH, LAYERS, PROFILE = LOOKS  # in TrainingJob.extra
MODES: Mapping[str, str] = {BATCH: "batch", LAYERS: "layers", PROFILE: "profile"}  # and in AIP_SHOW
USUAL_STEPS, MAX_STEPS = 10, 100  # of a profile
IMAGE = "look"  # name of an image somebody gave, beside the attempts of its job
MAX_IMAGE_BYTES = 20 << 20


def mode_of(training: TrainingJob) -> str:
    """What is shown instead of trained: "batch", "layers", "profile"; "" for a training."""
    return next((word for key, word in MODES.items() if training.extra.get(key)), "")


def image_of(job: Job) -> Path:
    """Return the path of the image that was given for a layer inspection."""
    return settings.DATA_ROOT / "jobs" / str(job.pk) / IMAGE


def preview(*, user: User, request: TrainingRequest) -> TrainingJob:
    """Queue a look at what the requested training would see; refuses what `jobs.submit` refuses."""
    name = f"{request.name[: MAX_NAME - 8]}_preview" if request.name else ""
    switches = f"{request.extra or drafts.standing_extra()} {extra_options.SHOW_BATCH}".strip()
    return jobs.submit(user=user, request=replace(request, name=name, extra=switches))


def layers(training: TrainingJob, *, by: User, checkpoint: str = "", image: File[Any] | None = None) -> TrainingJob:
    """Queue an inspection of the layers of a training, on CPUs.

    Args:
        checkpoint: a name from `checkpoints.valid`; "" takes the newest.
        image: what the model is given; None takes some of the images it is scored on.

    Raises:
        Invalid: own code, whose layers nobody knows, or an image that is too large.
        NoCheckpoint: there is nothing to look into.
        DomainError: the data is gone, or the queue refuses.
    """
    preset = PRESETS.get(training.preset)
    if preset is None or not preset.looks or mode_of(training):
        message = _("Layers are available only for presets with a neural network.")
        raise Invalid(message, field="checkpoint")
    if custom_networks.is_own(training.params) and training.job.owner_id != by.pk:
        message = _("The owner wrote this network. Clone the training to run it as yours, and inspect the clone.")
        raise Invalid(message, field="checkpoint")
    if image is not None and image.size > MAX_IMAGE_BYTES:
        limit = MAX_IMAGE_BYTES >> 20
        raise Invalid(
            _("The image is larger than %(limit)s MiB. Choose a smaller one.") % {"limit": limit}, field="image"
        )
    folder = checkpoints.folder_of(training, checkpoint)
    request = TrainingRequest(
        name=f"{training.job.name[: MAX_NAME - 7]}_layers",
        preset=training.preset,
        params=training.params | dict.fromkeys(training.params.keys() & {"weights", "teacher"}, ""),
        version=training.version,
        gpus_per_node=0,
        parent=training,
    )
    with transaction.atomic():
        inspection = jobs.submit(user=by, request=request)
        inspection.extra = {LAYERS: True}
        inspection.save(update_fields=["extra"])
        Job.objects.filter(pk=inspection.job_id).update(resume_from=str(folder))
        if image is not None:
            _store_image(image, image_of(inspection.job))
    inspection.job.refresh_from_db()
    return inspection


def profile(training: TrainingJob, *, by: User, steps: int = USUAL_STEPS) -> TrainingJob:
    """Queue a profile of some steps of a training: the same program with the same parameters and devices.

    The training itself, which may be at work, is not disturbed. The steps are taken from the beginning, with the
    weights that a training begins with.

    Args:
        steps: so many steps are profiled, after some that are not.

    Raises:
        Invalid: own code, whose steps nobody knows, or too many steps.
        DomainError: the data is gone, or the queue refuses.
    """
    preset = PRESETS.get(training.preset)
    if not training.preset:
        message = _(
            "Custom code profiles itself: `from aip import profile`, and `for batch in profile(loader):` as its loop."
        )
        raise Invalid(message, field="steps")
    if preset is None or not preset.looks or mode_of(training):
        raise Invalid(_("Steps can be profiled only for presets with a neural network."), field="steps")
    if custom_networks.is_own(training.params) and training.job.owner_id != by.pk:
        message = _("The owner wrote this network. Clone the training to run it as yours, and profile the clone.")
        raise Invalid(message, field="steps")
    if not 1 <= steps <= MAX_STEPS:
        raise Invalid(_("Profile 1 to %(most)s steps.") % {"most": MAX_STEPS}, field="steps")
    job = training.job
    request = TrainingRequest(
        name=f"{job.name[: MAX_NAME - 8]}_profile",
        preset=training.preset,
        params=training.params | dict.fromkeys(training.params.keys() & {"weights", "teacher"}, ""),
        version=training.version,
        cluster=job.cluster,
        gpus_per_node=job.gpus_per_node,
        device_kind=job.device_kind,
        device_model=job.device_model,
        cpus=job.cpus,
        share=job.share,
        memory_mib=job.memory_mib,
        max_disk_bytes=job.max_disk_bytes,
        parent=training,
    )
    with transaction.atomic():
        profiling = jobs.submit(user=by, request=request)
        profiling.extra = {PROFILE: steps}
        profiling.save(update_fields=["extra"])
    return profiling


def latest_layers(training: TrainingJob, user: User) -> TrainingJob | None:
    """The newest look into the layers of a training that this person may see."""
    return _latest(training, user, "layers")


def latest_profile(training: TrainingJob, user: User) -> TrainingJob | None:
    """The newest profile of a training that this person may see; of a profile itself."""
    return training if mode_of(training) == "profile" else _latest(training, user, "profile")


def _latest(training: TrainingJob, user: User, mode: str) -> TrainingJob | None:
    previews: QuerySet[TrainingJob] = TrainingJob.objects.visible_to(user).filter(parent=training)
    return next(
        (preview for preview in previews.select_related("job").order_by("-pk")[:50] if mode_of(preview) == mode), None
    )


def handed_over(training: TrainingJob, run: RunDir) -> dict[str, str]:
    """Return variables that tell the program what to show; a given image is added to its inputs."""
    mode = mode_of(training)
    if not mode:
        return {}
    if mode == "profile":
        return {"AIP_SHOW": mode, "AIP_SHOW_STEPS": str(int(training.extra[PROFILE]))}
    image = image_of(training.job)
    if not image.is_file():
        return {"AIP_SHOW": mode}
    run.inputs.mkdir(parents=True, exist_ok=True)
    files.link_or_copy(image, run.inputs / IMAGE)
    return {"AIP_SHOW": mode, "AIP_SHOW_IMAGE": str(run.inputs / IMAGE)}


def _store_image(image: File[Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.atomic_writer(path) as target:
        for chunk in image.chunks():
            target.write(chunk)

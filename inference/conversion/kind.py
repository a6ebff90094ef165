"""The job kind `conversion`: what the queue calls to prepare, check and end one."""

from __future__ import annotations

import json
import sys

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.files import write_json
from datasets.models import DatasetVersion
from inference.conversion import conversions
from inference.conversion.models import Conversion
from inference.registry import retention, training_data
from inference.registry.models import ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs.resource_request import cluster_for

PARAMS = ("targets", "calibrate_on", "looks", "method", "max_loss")


class ConversionKind(JobKind):
    """`python -m inference.conversion.converter` of a version, on a dataset version."""

    name = conversions.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Conversion")
    plural = gettext_lazy("Conversions")
    hint = gettext_lazy("Smaller and faster variants of a model")
    icon = "convert"
    order = 66
    list_page = "inference:conversion-list"
    step = False
    view_action = Action.MODELS_VIEW
    submit_action = Action.MODELS_MANAGE
    can = Capabilities(pause=True, suspend=True, finish=False, restore=True)
    about_restore = gettext_lazy("Continues after the finished variants.")
    related = ("conversion",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        conversion = Conversion.objects.select_related("version__model", "data__dataset").get(job=job)
        version, data = conversion.version, conversion.data
        if version is None or data is None:
            raise Vanished(wording.message("conversion.gone"))
        copy_code(run, "kit", "evaluation/evaluator", "conversion/converter")
        trained = training_data.for_model(version, owner=job.owner)
        params = {name: conversion.params[name] for name in PARAMS}
        write_json(run.params, {**params, "split": conversion.split, "learned": trained and trained.for_run()})
        datasets = [{"name": data.dataset.name, "role": "eval", "dir": str(data.path)}]
        return Launch(
            argv=[sys.executable, "-m", "inference.conversion.converter"],
            env={
                "AIP_MODEL_DIR": str(version.path),
                "AIP_DATASET_DIR": str(data.path),
                "AIP_DATASETS": json.dumps(datasets),
            },
            read_only=[version.path, *data.folders, *([trained.version.path] if trained else [])],
            own_network=True,
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        conversions.publish(job, attempt)

    def check_restore(self, job: Job) -> None:
        conversion = Conversion.objects.get(job=job)
        model = ModelVersion.objects.usable_by(job.owner).filter(pk=conversion.version_id or 0)
        data = DatasetVersion.objects.usable_by(job.owner).filter(pk=conversion.data_id or 0)
        if not model.exists() or not data.exists():
            raise Vanished(_("You can no longer access the model or the dataset of this conversion."))
        cluster_for(job.owner, job.cluster)

    def url(self, job: Job) -> str:
        return reverse("inference:conversion-detail", args=[job.conversion.pk])

    def facts(self, job: Job) -> list[Fact]:
        conversion = Conversion.objects.filter(job=job).first()
        if conversion is None:
            return []
        return [
            Fact(gettext_lazy("Model"), conversion.model_label),
            Fact(gettext_lazy("Dataset"), conversion.data_label),
        ]

    def count(self, user: User) -> int:
        return Conversion.objects.visible_to(user).count()


HOLDER = retention.Holder(
    "conversion",
    gettext_lazy("conversion %(name)s of %(owner)s"),
    lambda version: retention.unfinished(Conversion.objects.filter(version=version)),
)

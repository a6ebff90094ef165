"""The job kind `conversion`: what the queue calls to prepare, check and end one."""

from __future__ import annotations

from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from inference.conversion import conversions
from inference.conversion.models import Conversion
from inference.evaluation.jobs.kind import ModelJobKind
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobPhase

PARAMS = ("targets", "calibrate_on", "looks", "method", "max_loss")


class ConversionKind(ModelJobKind):
    """`python -m inference.conversion.converter` of a version, on a dataset version."""

    name = conversions.KIND
    rows = Conversion
    packages = ("evaluation/evaluator", "conversion/converter")
    label = gettext_lazy("Conversion")
    plural = gettext_lazy("Conversions")
    hint = gettext_lazy("Smaller and faster variants of a model")
    icon = "convert"
    order = 66
    phases = (JobPhase.LOADING, JobPhase.CONVERTING, JobPhase.MEASURING)
    section = "models"
    view_action = Action.MODELS_VIEW
    submit_action = Action.MODELS_MANAGE
    can = Capabilities(pause=True, suspend=True, finish=False, restore=True)
    about_restore = gettext_lazy("Continues after the finished variants.")
    holder_text = gettext_lazy("conversion %(name)s of %(owner)s")

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        conversion = self.row(job)
        if conversion.data is None:
            self.refuse_launch()
        return self.launch(conversion, run, {name: conversion.params[name] for name in PARAMS})

    def ended(self, job: Job, attempt: Attempt) -> None:
        conversions.publish(job, attempt)

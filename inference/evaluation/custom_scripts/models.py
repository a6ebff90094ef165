"""The table of custom scripts of evaluations."""

from __future__ import annotations

from django.db import models

from inference.evaluation.querysets import ScriptQuerySet
from training.programs.models import CodeSnapshot


class Script(models.Model):
    """The code that judges in place of ours. Its parameters are those of the evaluation, its image that of the job."""

    evaluation = models.OneToOneField("inference.Evaluation", models.CASCADE, primary_key=True, related_name="script")
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, related_name="+")
    start_file = models.CharField(max_length=255)
    arguments = models.CharField(max_length=2000, blank=True)  # words after the start file
    output_path = models.CharField(max_length=255, blank=True)  # in the code; becomes outputs/
    figures = models.JSONField(default=list)  # [[name, number or [[name, number], …]], …] in the order of its file
    problems = models.JSONField(default=list)  # messages: why its newest attempt left no figures

    objects = ScriptQuerySet.as_manager()

    def __str__(self) -> str:
        return self.start_file

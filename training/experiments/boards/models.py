"""Tables of boards: whose event files a TensorBoard shows."""

from __future__ import annotations

from django.db import models

from training.experiments.boards.querysets import BoardQuerySet
from workers.core.models import Job


class Board(models.Model):
    """A TensorBoard as a job, under the job's own number, and the job whose outputs it reads."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="board")
    source = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="boards")
    source_name = models.CharField(max_length=100)  # also after the source is gone

    objects = BoardQuerySet.as_manager()

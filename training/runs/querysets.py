"""Querysets of trainings: which rows a user may see."""

from __future__ import annotations

from typing import Self

from django.db.models import Count, Prefetch

from accounts.access.querysets import OwnedQuerySet
from training.programs.querysets import ProgramQuerySet

LOOKS = ["show_batch", "show_layers", "show_profile"]  # marks in `extra`
#: Columns of trainings, and of their jobs, that a table shows.
SHOWN = ("description", "preset", "version_id", "version_label", "metrics")
SHOWN_OF_JOB = (
    "name", "state", "owner__username", "owner__nickname", "cluster__name", "message", "wait_code", "wait_args",
    "position", "progress", "phase", "phase_done", "phase_total", "eta_s", "nodes", "gpus_per_node", "share",
    "attempt_number", "created_at",
)  # fmt: skip


class TrainingJobQuerySet(ProgramQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "job__image_use", "version__dataset")
        return rows.select_related("set_use__version").prefetch_related("inputs", "job__attempts")

    def for_table(self) -> Self:
        """What a table of trainings shows; its other columns are read when they are needed."""
        attempts = self.model._meta.apps.get_model("workers", "Attempt")._default_manager
        ran = Prefetch("job__attempts", attempts.only("job", "started_at", "ended_at"))
        rows = self.select_related("job__owner", "job__cluster").prefetch_related(ran)
        return rows.only(*SHOWN, *(f"job__{name}" for name in SHOWN_OF_JOB))

    def without_looks(self) -> Self:
        """Trainings alone: not the short jobs that show a batch, layers or a profile (previews.py)."""
        return self.exclude(extra__has_any_keys=LOOKS)


class ParameterSetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("training.parameterset", "pk")

    def for_list(self) -> Self:
        """With their owners and the number of trainings begun from them."""
        return self.select_related("owner").annotate(uses=Count("versions__uses"))

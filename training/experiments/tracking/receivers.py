"""What goes with the row of a run: the folders of its curves and files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from aiplatform.lib.files import remove_tree
from training.experiments.models import Run
from training.experiments.tracking import artifacts
from training.experiments.tracking.models import LoggedModel
from workers.jobs.output import point_files


@receiver(post_delete, sender=Run)
def forget_run(instance: Run, **_about: Any) -> None:
    """Remove the files of a run after its row was deleted."""
    if instance.job_id is None:
        _forget(point_files.folder(f"run-{instance.pk}", 1).parent)
        _forget(artifacts.own_folder(instance.uid))


@receiver(post_delete, sender=LoggedModel)
def forget_model(instance: LoggedModel, **_about: Any) -> None:
    """Remove the files of a model; those below the outputs of a job stay there."""
    _forget(artifacts.own_folder(instance.uid))


def _forget(folder: Path) -> None:
    assert folder.parent.parent == Path(settings.DATA_ROOT)
    transaction.on_commit(partial(remove_tree, folder))

"""Commands of the palette on datasets."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.palette import ObjectCommand, Target
from aiplatform.lib.search import filter_by_text
from datasets.models import DatasetVersion
from training.catalog.task_kinds import preset_for

MAX_VERSIONS = 50  # newest matching versions, among which the newest of each dataset is looked up


def trainable(user: User, text: str, limit: int) -> Iterator[Target]:
    """Yield the newest version of each matching dataset that a preset can be trained on."""
    versions = DatasetVersion.objects.usable_by(user).filter(state=DatasetVersion.State.READY, annotated=True)
    newest: dict[int, DatasetVersion] = {}
    for version in (
        filter_by_text(versions, text, "dataset__name").select_related("dataset").order_by("-pk")[:MAX_VERSIONS]
    ):
        if preset_for(version):
            newest.setdefault(version.dataset_id, version)
    for version in list(newest.values())[:limit]:
        yield Target(version.dataset.name, f"{reverse('training:job-submit')}?version={version.pk}")


NEW_TRAINING = ObjectCommand(
    "training.on", _("New training on %(name)s"), "training", Action.TRAINING_SUBMIT, find=trainable, is_next_step=True
)

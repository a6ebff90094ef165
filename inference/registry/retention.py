"""What needs a version's files, and so keeps it from being deleted.

Only what belongs to the model's owner holds it, and evaluations that run: nobody keeps another's model alive
(decisions/0007). What learned from a version has files of its own, so it holds nothing once it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import StillInUse
from aiplatform.lib.registry import Registry
from inference.registry import pretrained_weights
from inference.registry.models import ModelVersion
from training.runs.models import TrainingJob
from training.runs.pretrained_weights import NAMES


@dataclass(frozen=True)
class Holder:
    """Rows of one kind that need the files of a version.

    Attributes:
        text: names one of them; a lazy translation with %(name)s and %(owner)s.
        rows: (name, owner) of those that need the files of a version.
    """

    name: str
    text: Any
    rows: Callable[[ModelVersion], Iterable[tuple[object, object]]]


HOLDERS: Registry[Holder] = Registry("holder of model versions")


def unfinished(rows: Any) -> list[tuple[object, object]]:
    """Return (name, owner) of rows whose job has not ended.

    Args:
        rows: a `JobRowQuerySet`.
    """
    return [(row, row.job.owner) for row in rows.unfinished().select_related("job__owner")]


def users_of(version: ModelVersion, *, except_for: tuple[object, object] | None = None) -> list[str]:
    """Return texts that name the services, jobs and trainings that need the files of a version, with their owners.

    Args:
        except_for: name and owner of one of them that does not count.
    """
    users = [
        holder.text % {"name": name, "owner": owner}
        for holder in HOLDERS
        for name, owner in holder.rows(version)
        if (name, owner) != except_for
    ]
    owner = version.model.owner
    return users + [
        _("training job %(name)s of %(owner)s") % {"name": training.job.name, "owner": owner}
        for training in _dependent_trainings(version)
    ]


def _dependent_trainings(version: ModelVersion) -> list[TrainingJob]:
    """Return unfinished trainings of the model's owner that start from the version, or are distilled from it."""
    full_name = pretrained_weights.full_name(version)
    unfinished = TrainingJob.objects.unfinished().filter(job__owner=version.model.owner_id).select_related("job")
    return [training for training in unfinished if full_name in {training.params.get(name) for name in NAMES}]


def check_unused(version: ModelVersion) -> None:
    """Refuse while something needs the files.

    Raises:
        StillInUse: names everything that does.
    """
    if users := users_of(version):
        raise StillInUse(_("%(version)s is still used by %(users)s.") % {"version": version, "users": ", ".join(users)})


def check_no_alias(version: ModelVersion) -> None:
    """Raise an error for a version that has an alias.

    Raises:
        StillInUse.
    """
    if names := ", ".join(alias.name for alias in version.aliases.all()):
        message = _("%(version)s is %(names)s. Move or remove the alias first.")
        raise StillInUse(message % {"version": version, "names": names})

"""What needs a version's files, and so keeps it from being deleted.

Only what belongs to the model's owner holds it, and evaluations that run: nobody keeps another's model alive
(decisions/0007). What learned from a version has files of its own, so it holds nothing once it has ended.
"""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from aiplatform.lib.errors import StillInUse
from inference.batch.models import Prediction
from inference.conversion.models import Conversion
from inference.registry import pretrained_weights
from inference.registry.models import ModelVersion
from inference.serving.models import Service
from inference.serving.traffic.models import ServiceTrial
from inference.video.models import VideoAnalysis
from training.models import TrainingJob
from training.starting_weights import NAMES


def users_of(version: ModelVersion) -> list[str]:
    """Services, evaluations and trainings that need the version's files, in words with their owners."""
    owner = version.model.owner
    users = [
        _("service %(name)s of %(owner)s") % {"name": service.name, "owner": owner}
        for service in Service.objects.filter(Q(model_version=version) | Q(next_version=version), owner=owner)
    ]
    users += [
        _("service %(name)s of %(owner)s") % {"name": trial.service.name, "owner": owner}
        for trial in ServiceTrial.objects.filter(version=version, outcome="", service__owner=owner).select_related(
            "service"
        )
    ]
    running = version.evaluations.unfinished().select_related("job__owner")
    users += [
        _("evaluation %(name)s of %(owner)s") % {"name": evaluation, "owner": evaluation.job.owner}
        for evaluation in running
    ]
    converting = Conversion.objects.unfinished().filter(version=version).select_related("job__owner")
    users += [
        _("conversion %(name)s of %(owner)s") % {"name": conversion, "owner": conversion.job.owner}
        for conversion in converting
    ]
    watching = VideoAnalysis.objects.unfinished().filter(version=version).select_related("job__owner")
    users += [
        _("video analysis %(name)s of %(owner)s") % {"name": analysis, "owner": analysis.job.owner}
        for analysis in watching
    ]
    answering = Prediction.objects.unfinished().filter(version=version).select_related("job__owner")
    users += [
        _("prediction %(name)s of %(owner)s") % {"name": prediction, "owner": prediction.job.owner}
        for prediction in answering
    ]
    users += [
        _("training %(name)s of %(owner)s") % {"name": training.job.name, "owner": owner}
        for training in _learning_from(version)
    ]
    return users


def _learning_from(version: ModelVersion) -> list[TrainingJob]:
    """Unfinished trainings of the model's owner that begin with the version, or learn after it."""
    words = pretrained_weights.full_name(version)
    unfinished = TrainingJob.objects.unfinished().filter(job__owner=version.model.owner_id).select_related("job")
    return [training for training in unfinished if words in {training.params.get(name) for name in NAMES}]


def check_unused(version: ModelVersion) -> None:
    """Refuse while something needs the files.

    Raises:
        StillInUse: names everything that does.
    """
    if users := users_of(version):
        raise StillInUse(_("%(version)s is still used by %(users)s.") % {"version": version, "users": ", ".join(users)})


def check_no_alias(version: ModelVersion) -> None:
    """Refuse to take away what an alias stands for.

    Raises:
        StillInUse.
    """
    if names := ", ".join(alias.name for alias in version.aliases.all()):
        said = _("%(version)s is %(names)s. Move or remove the alias first.")
        raise StillInUse(said % {"version": version, "names": names})

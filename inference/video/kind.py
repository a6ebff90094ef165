"""The job kind `video`: what the queue calls to prepare, follow, check and end one."""

from __future__ import annotations

import sys

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib import wording
from aiplatform.lib.files import write_json
from inference.kind import DEVICE_KINDS, Vanished, copy_code
from inference.models import ModelVersion
from inference.video import analyses, events
from inference.video.tables import VideoAnalysis
from workers.jobs.resource_request import cluster_for
from workers.kinds import Capabilities, Fact, JobKind, Launch
from workers.models import Attempt, Job
from workers.runs import RunDir


class VideoKind(JobKind):
    """`python -m inference.watcher` with a version, of a video."""

    name = analyses.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Video analysis")
    plural = gettext_lazy("Videos")
    hint = gettext_lazy("Follow and count what moves")
    icon = "video"
    order = 68
    list_page = "inference:video-list"
    step = False
    view_action = Action.EVALUATIONS_VIEW
    submit_action = Action.EVALUATIONS_SUBMIT
    can = Capabilities(pause=True, suspend=True, finish=True, restore=True)
    about_restore = gettext_lazy("Goes on after the last segment of the film that is done.")
    related = ("video",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        analysis = VideoAnalysis.objects.select_related("version__model", "video").get(job=job)
        version, video = analysis.version, analysis.video
        if version is None or video is None:
            raise Vanished(wording.message("video.gone"))
        copy_code(run, "server", "task_kinds", "evaluator", "watcher")
        write_json(run.params, analysis.params)
        return Launch(
            argv=[sys.executable, "-m", "inference.watcher"],
            env={"AIP_MODEL_DIR": str(version.path), "AIP_VIDEO": str(video.path)},
            read_only=[version.path, video.path],
            own_network=True,
        )

    def reported(self, job: Job) -> None:
        events.read_new(job)

    def ended(self, job: Job, attempt: Attempt) -> None:
        analyses.publish(job, attempt)

    def check_restore(self, job: Job) -> None:
        analysis = VideoAnalysis.objects.select_related("video").get(job=job)
        version = ModelVersion.objects.usable_by(job.owner).filter(pk=analysis.version_id or 0)
        if not version.exists() or analysis.video is None:
            raise Vanished(_("The model or the video of this analysis is no longer there for you."))
        cluster_for(job.owner, job.cluster)

    def url(self, job: Job) -> str:
        return reverse("inference:video-detail", args=[job.video.pk])

    def facts(self, job: Job) -> list[Fact]:
        analysis = VideoAnalysis.objects.filter(job=job).first()
        if analysis is None:
            return []
        return [
            Fact(gettext_lazy("Model"), analysis.model_label),
            Fact(gettext_lazy("Video"), analysis.source_label),
        ]

    def count(self, user: User) -> int:
        return VideoAnalysis.objects.visible_to(user).count()

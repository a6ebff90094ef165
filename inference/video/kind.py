"""The job kind `video`: what the queue calls to prepare, follow, check and end one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import addresses, wording
from aiplatform.lib.files import write_json
from inference.registry import retention
from inference.registry.models import ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from inference.serving import endpoints
from inference.video import analyses, events, streams
from inference.video.models import VideoAnalysis
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.execution import handing_over
from workers.jobs.resource_request import cluster_for

LIVE = Capabilities(pause=False, suspend=True, finish=True, restore=True)  # a camera does not wait


def _copy_addresses(run: RunDir) -> None:
    """Put what tells the wide net from our own into the run, so that programs judge by the platform's lines."""
    target = run.code / Path(*addresses.__name__.split(".")).with_suffix(".py")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(addresses.__file__, target)
    for above in (target.parent, target.parent.parent):
        (above / "__init__.py").touch()


class VideoKind(JobKind):
    """`python -m inference.video.watcher` with a version, of a video."""

    name = analyses.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Video analysis")
    plural = gettext_lazy("Video analytics")
    hint = gettext_lazy("Track and count objects")
    icon = "video"
    order = 68
    list_page = "inference:video-list"
    step = False
    view_action = Action.EVALUATIONS_VIEW
    submit_action = Action.EVALUATIONS_SUBMIT
    can = Capabilities(pause=True, suspend=True, finish=True, restore=True)
    about_restore = gettext_lazy("Continues after the last finished segment of the video.")
    related = ("video",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        analysis = VideoAnalysis.objects.select_related("version__model", "video").get(job=job)
        version, video = analysis.version, analysis.video
        if version is None or (video is None and not analysis.is_stream):
            raise Vanished(wording.message("video.gone"))
        copy_code(run, "kit", "video/watcher")
        _copy_addresses(run)
        write_json(run.params, analysis.params)
        argv, env = [sys.executable, "-m", "inference.video.watcher"], {"AIP_MODEL_DIR": str(version.path)}
        if video is not None:
            env |= {"AIP_VIDEO": str(video.path)}
            return Launch(argv=argv, env=env, read_only=[version.path, video.path], own_network=True)
        url = handing_over.opened(job, run)["secrets"]["url"]
        env |= {
            "AIP_STREAM": url,
            "AIP_STREAM_ALLOWED": json.dumps(settings.STREAM_ALLOWED),
            "AIP_SERVICE_KEY": endpoints.key_for(job.pk, attempt.number),
        }
        return Launch(argv=argv, env=env, read_only=[version.path], ports=1, secrets=streams.secrets_of(url))

    def sealed(self, job: Job) -> Mapping[str, str]:
        secrets = VideoAnalysis.objects.filter(job=job).values_list("secrets", flat=True).first()
        return {"secrets": secrets} if secrets else {}

    def capabilities(self, job: Job) -> Capabilities:
        return LIVE if job.spec.get("video") is None else self.can

    def reported(self, job: Job) -> None:
        events.read_new(job)

    def ended(self, job: Job, attempt: Attempt) -> None:
        analyses.publish(job, attempt)

    def check_restore(self, job: Job) -> None:
        analysis = VideoAnalysis.objects.select_related("video").get(job=job)
        version = ModelVersion.objects.usable_by(job.owner).filter(pk=analysis.version_id or 0)
        if not version.exists() or (analysis.video is None and not analysis.is_stream):
            raise Vanished(_("You can no longer access the model or the video of this analysis."))
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


HOLDER = retention.Holder(
    "video analysis",
    gettext_lazy("video analysis %(name)s of %(owner)s"),
    lambda version: retention.unfinished(VideoAnalysis.objects.filter(version=version)),
)

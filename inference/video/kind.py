"""The job kind `video`: what the queue calls to prepare, follow, check and end one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy

from aiplatform.lib import addresses
from aiplatform.lib.class_colors import rgb_of
from aiplatform.lib.files import write_json
from inference.evaluation.jobs.kind import ModelJobKind
from inference.registry import class_colors
from inference.registry.models import ModelVersion
from inference.registry.run_code import copy_code
from inference.serving import endpoints
from inference.video import analyses, events, streams
from inference.video.models import VideoAnalysis
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobPhase
from workers.execution import handing_over

LIVE = Capabilities(pause=False, suspend=True, finish=True, restore=True)  # a camera does not wait


def _copy_addresses(run: RunDir) -> None:
    """Put what tells the wide net from our own into the run, so that programs judge by the platform's lines."""
    target = run.code / Path(*addresses.__name__.split(".")).with_suffix(".py")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(addresses.__file__, target)
    for above in (target.parent, target.parent.parent):
        (above / "__init__.py").touch()


def _colors(version: ModelVersion) -> dict[str, tuple[int, int, int]]:
    """Return red, green and blue of each class, as the program draws them."""
    return {str(number): rgb_of(color) for number, color in class_colors.for_model(version).items()}


class VideoKind(ModelJobKind):
    """`python -m inference.video.watcher` with a version, of a video."""

    name = analyses.KIND
    rows = VideoAnalysis
    packages = ("video/watcher",)
    source = (gettext_lazy("Video"), "source_label")
    label = gettext_lazy("Video analysis")
    plural = gettext_lazy("Video analytics")
    hint = gettext_lazy("Track and count objects")
    icon = "video"
    order = 74
    phases = (JobPhase.LOADING, JobPhase.PREDICTING)
    section = "endpoints"
    about_restore = gettext_lazy("Continues after the last finished segment of the video.")
    holder_text = gettext_lazy("video analysis %(name)s of %(owner)s")

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        analysis = self.row(job)
        version, video = analysis.version, analysis.video
        if version is None or not self.has_source(analysis):
            self.refuse_launch()
        copy_code(run, "kit", *self.packages)
        _copy_addresses(run)
        write_json(run.params, analysis.params | {"colors": _colors(version)})
        argv, env = self.argv, {"AIP_MODEL_DIR": str(version.path)}
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

    def has_source(self, row: Any) -> bool:
        return row.video is not None or row.is_stream

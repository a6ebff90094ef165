"""Analyses of videos: queue, publish what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Unpack
from urllib.parse import urlsplit

from django.db import transaction
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import outbox
from aiplatform.lib import sealed, titles
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from aiplatform.lib.numbers import finite
from inference.evaluation import thresholds
from inference.evaluation.jobs.submission import MAX_NAME, finish_checks
from inference.kit.task_kinds import TASKS
from inference.registry.models import ModelVersion
from inference.video import events, files, results, streams, zones
from inference.video.models import VideoAnalysis, VideoFile
from inference.video.watcher import pyav
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.jobs.resource_request import Resources

KIND = "video"
INTERVAL_S, STILL_S = 10.0, 60.0
MAX_RATE = 240.0
WATCHING = tuple(name for name, task in TASKS.items() if task.answer.detect)  # tasks whose models find objects


class CannotWatch(DomainError, code="cannot_watch", field="model_version"):
    """This version cannot watch a video."""


class NoDecoder(DomainError, code="no_decoder"):
    """Nothing is installed that reads videos."""


def submit(
    *,
    user: User,
    model_version: ModelVersion,
    video: VideoFile | None = None,
    url: str = "",
    places: Any = None,
    classes: Sequence[str] = (),
    min_score: float | None = None,
    max_rate: float | None = None,
    film: bool = True,
    interval_s: float = INTERVAL_S,
    still_s: float = STILL_S,
    webhook_url: str = "",
    name: str = "",
    **resources: Unpack[Resources],
) -> VideoAnalysis:
    """Queue an analysis.

    Args:
        video: what is watched, or
        url: the address of a stream, which is watched until a user ends it.
        places: lines and zones, see `zones.checked`.
        classes: names of those to follow; none: all.
        min_score: score from which something is followed; None: see `thresholds.for_version`, else the model's own.
        max_rate: pictures a second that are looked at, at most; None: all of them.
        film: whether an annotated film is made.
        interval_s: how much time the figures of a row are put together.
        still_s: how long a stream may show the same frame, or black, before that is reported; 0: no limit.
        webhook_url: gets each event.
        name: empty makes one of the video.
        resources: what it asks of the machines; without a cluster the person's current one.

    Raises:
        NoDecoder: nothing is installed that reads videos.
        CannotWatch: it is no detector.
        Invalid: a value is out of range.
        StreamRefused: of the stream.
        ForbiddenAddress: of the webhook.
        NotAMember: the person does not belong to the cluster.
    """
    label = video.name if video else streams.masked(url)
    name = name or titles.derive_name(f"{_stem(label)} {model_version.model.name}", room=MAX_NAME)
    refusals = Refusals()
    with refusals:
        check_decoder()
    with refusals:
        check_model(model_version)
    with refusals:
        if video:
            files.check_exists(video)
        else:
            streams.check(url)
    params: dict[str, Any] = {"film": bool(film)}
    with refusals:
        params |= zones.checked(places or {})
    with refusals:
        params |= _checked_classes(model_version, classes)
    if min_score is None:
        best = thresholds.for_version(model_version, by=user)
        min_score = max(0.01, best.score) if best else None
    params |= _checked_numbers(refusals, min_score=min_score, max_rate=max_rate, interval_s=interval_s, still_s=still_s)
    with refusals:
        if webhook_url:
            outbox.check_address(webhook_url)
    resources = finish_checks(refusals, user=user, kind=KIND, name=name, resources=resources)
    spec = {"model_version": model_version.pk, "video": video.pk if video else None, "params": params}
    with transaction.atomic():
        job = submission.submit(owner=user, kind=KIND, name=name, spec=spec, **resources)
        return VideoAnalysis.objects.create(
            job=job,
            version=model_version,
            model_label=str(model_version)[:120],
            video=video,
            is_stream=video is None,
            source_label=label,
            secrets="" if video else sealed.seal({"url": url}),
            params=params,
            webhook_url=webhook_url,
            webhook_secret=get_random_string(40) if webhook_url else "",
        )


def _stem(label: str) -> str:
    """Return the distinctive part of a source's name."""
    return PurePosixPath(urlsplit(label).path).stem or urlsplit(label).hostname or "stream"


def check(*, model_version: ModelVersion | None = None, video: VideoFile | None = None, url: str = "") -> None:
    """Refuse early what `submit` refuses of model and source."""
    refusals = Refusals()
    with refusals:
        if model_version is not None:
            check_model(model_version)
    with refusals:
        if video is not None:
            files.check_exists(video)
    with refusals:
        if url:
            streams.check(url)
    refusals.end()


def check_decoder() -> None:
    """Refuse where videos cannot be read.

    Raises:
        NoDecoder: names the fix for an operator.
    """
    if pyav.is_missing():
        message = _("Reading videos requires PyAV, which is not installed. An operator can install it with: %(how)s")
        raise NoDecoder(message % {"how": pyav.HOW})


def check_model(version: ModelVersion) -> None:
    """Refuse a version that finds no objects.

    Raises:
        CannotWatch.
    """
    if version.task not in WATCHING:
        raise CannotWatch(_("Video analytics requires a detection model; %(model)s is not one.") % {"model": version})
    if not version.can_serve:
        raise CannotWatch(_("%(model)s has no ONNX file and cannot run here.") % {"model": version})


def _checked_classes(version: ModelVersion, names: Sequence[str]) -> dict[str, Any]:
    ids_by_name = {str(entry["name"]): int(entry["id"]) for entry in version.classes}
    for name in names:
        if name not in ids_by_name:
            facts = {"name": name[:100], "known": ", ".join(list(ids_by_name)[:20])}
            raise Invalid(
                _("This model has no class “%(name)s”. Available classes: %(known)s.") % facts, field="classes"
            )
    return {
        "classes": [ids_by_name[name] for name in dict.fromkeys(names)],
        "class_names": {str(number): name for name, number in ids_by_name.items()},
    }


def _checked_numbers(refusals: Refusals, **numbers: float | None) -> dict[str, float | None]:
    bounds = {
        "min_score": (0.01, 1.0),
        "max_rate": (0.01, MAX_RATE),
        "interval_s": (1.0, 86_400.0),
        "still_s": (0.0, 86_400.0),
    }
    for name, (low, high) in bounds.items():
        value = numbers[name]
        with refusals:
            if value is not None and (finite(value) is None or not low <= value <= high):
                message = _("Enter a number from %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"}
                raise Invalid(message, field=name)
    return dict(numbers)


def publish(job: Job, attempt: Attempt) -> None:
    """Store the results of an attempt, and its last events; may be called again."""
    analysis = VideoAnalysis.objects.filter(job=job).first()
    if analysis is None or attempt.number < analysis.published_attempt:
        return
    events.read_new(job, attempt)
    outcome = results.read(RunDir.for_attempt(job.pk, attempt.number).outputs)
    if outcome:
        summary = {
            name: outcome[name] for name in ("objects", "events", "lines", "zones", "pictures", "at", "complete")
        }
        VideoAnalysis.objects.filter(pk=analysis.pk).update(published_attempt=attempt.number, summary=summary)


def again(*, before: VideoAnalysis, by: User, places: Any) -> VideoAnalysis:
    """Watch the source of an analysis once more, with other lines and zones and on as much as it had.

    Raises:
        CannotWatch: model or video were deleted.
        DomainError: see `submit`.
    """
    version = ModelVersion.objects.usable_by(by).filter(pk=before.version_id or 0).first()
    video = VideoFile.objects.usable_by(by).filter(pk=before.video_id or 0).first()
    if version is None or (video is None and not before.is_stream):
        raise CannotWatch(_("You can no longer access the model or the video of this analysis."))
    params, job = before.params, before.job
    names = params.get("class_names", {})
    return submit(
        user=by,
        model_version=version,
        video=video,
        url=url_of(before) if before.is_stream else "",
        places=places,
        classes=[names[str(kind)] for kind in params.get("classes", []) if str(kind) in names],
        webhook_url=before.webhook_url,
        cpus=float(job.cpus),
        gpus_per_node=job.gpus_per_node,
        still_s=params.get("still_s", STILL_S),
        **{name: params[name] for name in ("min_score", "max_rate", "film", "interval_s")},
    )


def url_of(analysis: VideoAnalysis) -> str:
    """The whole address of a stream.

    Raises:
        StreamRefused: it was sealed under another secret key of the platform.
    """
    try:
        return sealed.unseal(analysis.secrets)["url"]
    except (sealed.Unsealable, KeyError):
        raise streams.StreamRefused(
            _("The address of this stream can no longer be decrypted. Enter it again.")
        ) from None

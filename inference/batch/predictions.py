"""Predictions: queue, publish what became of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from datasets.models import DatasetVersion
from inference.batch import results, sources
from inference.batch.models import Prediction
from inference.evaluation import thresholds
from inference.evaluation.jobs.submission import MAX_NAME, check_split, check_unseen, finish_checks
from inference.kit.samples.ground_truth import UNSEEN
from inference.registry.models import ModelVersion
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.jobs.resource_request import Resources

KIND = "prediction"
BATCH = 8
#: Numbers that a user may set: lowest, highest. None leaves it to the model.
BOUNDS = {"score_threshold": (0.0, 1.0), "max_detections": (1, 10_000), "batch": (1, 256)}
INTEGER_FIELDS = ("max_detections", "batch")


class CannotPredict(DomainError, code="cannot_predict", field="model_version"):
    """Model and pictures do not fit each other."""


def submit(
    *,
    user: User,
    model_version: ModelVersion,
    version: DatasetVersion | None = None,
    server_path: str = "",
    split: str = "",
    listed: Sequence[str] | None = None,
    score_threshold: float | None = None,
    max_detections: int | None = None,
    batch: int = BATCH,
    name: str = "",
    **resources: Unpack[Resources],
) -> Prediction:
    """Queue a prediction of the pictures of a dataset version, or of a folder on the server.

    Args:
        split: of the version; empty takes all pictures, `ground_truth.UNSEEN` those that the model did not learn from.
        listed: names of pictures in the version or the folder; None takes all.
        score_threshold: lowest score of an answer; None: the best of its newest evaluation, else the model's own.
        max_detections: most answers for a picture; None: the model's own.
        batch: pictures in one run of the model.
        name: empty makes one of model and pictures.
        resources: requested resources; several nodes share the chunks. Without a cluster the user's current one.

    Raises:
        CannotPredict: the model's answers cannot be understood.
        Invalid: a value is out of range, or there are no pictures.
        ListRefused: of the list.
        PathRefused, PathMissing: of the folder.
        NotAMember: the user is not a member of the cluster.
    """
    refusals, root = Refusals(), None
    with refusals:
        check_model(model_version)
    with refusals:
        check_source(model_version, version, server_path, split, listed, user=user)
        if server_path:
            root = sources.folder(server_path, by=user)
    label = str(version) if version else str(root or server_path)
    name = name or titles.derive_name(f"{model_version} on {_short_label(label)}", room=MAX_NAME)
    names: list[str] | None = None
    with refusals:
        names = _names(version, root, listed, by=user)
    params: dict[str, Any] = {}
    if score_threshold is None:
        score_threshold = thresholds.default_score(model_version, by=user)
    with refusals:
        params = checked_numbers(score_threshold=score_threshold, max_detections=max_detections, batch=batch)
    resources = finish_checks(refusals, user=user, kind=KIND, name=name, resources=resources)
    spec = {"model_version": model_version.pk, "version": version.pk if version else None, "params": params}
    with transaction.atomic():
        job = submission.submit(owner=user, kind=KIND, name=name, spec=spec, **resources)
        prediction = Prediction.objects.create(
            job=job,
            version=model_version,
            model_label=str(model_version)[:120],
            task=model_version.task,
            classes=_classes(model_version),
            data=version,
            folder=str(root or ""),
            source_label=label[:300],
            split=split,
            is_listed=names is not None,
            total=len(names) if names is not None else _count(version, split),
            params=params,
        )
        if names is not None:
            sources.write_listing(prediction.listing, names)
    return prediction


def _names(
    version: DatasetVersion | None, root: Path | None, listed: Sequence[str] | None, *, by: User
) -> list[str] | None:
    """The pictures to write down; None where the version itself says which they are."""
    chosen = None if listed is None else sources.check_names(listed)
    if root is not None:
        return sources.pictures_of(root, by=by) if chosen is None else sources.listed_in_folder(root, chosen, by=by)
    if version is None or chosen is None:
        return None
    return sources.listed_in_version(version, chosen)


def _short_label(label: str) -> str:
    """Return the part of a source's name that distinguishes it from others."""
    return PurePosixPath(label).name if label.startswith("/") else label


def _count(version: DatasetVersion | None, split: str) -> int | None:
    if version is None or split == UNSEEN:
        return None
    return int(version.splits.get(split, 0)) if split else version.image_count


def _classes(version: ModelVersion) -> list[dict[str, Any]]:
    """Return the classes in the model's own description, with the names of their keypoints."""
    try:
        classes = json.loads((version.path / "model.json").read_bytes())["classes"]
    except (OSError, ValueError, KeyError, TypeError):
        return list(version.classes)
    return classes if is_sound(classes) else list(version.classes)


def check(
    *,
    user: User | None = None,
    model_version: ModelVersion | None = None,
    version: DatasetVersion | None = None,
    split: str = "",
) -> None:
    """Check model, version and split before `submit`."""
    refusals = Refusals()
    with refusals:
        if model_version is not None:
            check_model(model_version)
    with refusals:
        if version is not None:
            check_split(version, split)
    refusals.end()


def check_model(version: ModelVersion) -> None:
    """Check that the predictions of a version can be interpreted.

    Raises:
        CannotPredict.
    """
    if not version.can_be_evaluated:
        message = _("%(model)s has no model.json, so its outputs cannot be interpreted.")
        raise CannotPredict(message % {"model": version})


def check_source(
    model: ModelVersion,
    version: DatasetVersion | None,
    server_path: str,
    split: str,
    listed: Sequence[str] | None,
    *,
    user: User,
) -> None:
    """Check that there is exactly one valid source.

    Raises:
        Invalid.
    """
    if (version is None) == (not server_path):
        raise Invalid(_("Choose a dataset, or enter the path of a folder on the server: exactly one."), field="version")
    if version is None:
        if split:
            raise Invalid(_("A folder has no splits. Clear the split."), field="split")
        return
    if not version.is_ready:
        raise Invalid(_("%(version)s is not ready yet.") % {"version": version}, field="version")
    if split and listed is not None:
        raise Invalid(_("Choose a split, or provide a list: exactly one."), field="split")
    check_split(version, split)
    check_unseen(model, split, user)


def checked_numbers(**numbers: float | None) -> dict[str, float | None]:
    """Return the numbers of a prediction, counts as integers.

    Raises:
        Invalid: one for each that is out of range.
    """
    refusals, checked = Refusals(), dict[str, float | None]()
    for name, (low, high) in BOUNDS.items():
        value = numbers[name]
        with refusals:
            if value is None:
                checked[name] = BATCH if name == "batch" else None
                continue
            number = finite(value)
            if number is None or not low <= number <= high:
                message = _("Enter a number from %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"}
                raise Invalid(message, field=name)
            checked[name] = int(number) if name in INTEGER_FIELDS else number
    refusals.end()
    return checked


def publish(job: Job, attempt: Attempt) -> None:
    """Store the summary of an attempt; idempotent."""
    prediction = Prediction.objects.filter(job=job).first()
    if prediction is None or attempt.number < prediction.published_attempt:
        return
    document = results.read(RunDir.for_attempt(job.pk, attempt.number).outputs)
    if document:
        summary = {name: value for name, value in document.items() if name != "left_out"}  # names stay with the files
        Prediction.objects.filter(pk=prediction.pk).update(
            published_attempt=attempt.number, summary=summary, total=document["total"]
        )


def using(version: DatasetVersion) -> list[str]:
    """List predictions that still need a dataset version."""
    running = Prediction.objects.unfinished().filter(data=version).select_related("job")
    return [_("batch prediction %(name)s") % {"name": prediction.job.name} for prediction in running]

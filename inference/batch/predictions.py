"""Predictions: queue, publish what became of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Unpack

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
from inference.evaluation import evaluations, thresholds
from inference.kit.samples.ground_truth import UNSEEN
from inference.registry import training_data
from inference.registry.models import ModelVersion
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs import actions, submission
from workers.jobs.resource_request import Resources

KIND = "prediction"
BATCH = 8
#: Numbers a person may set: lowest, highest. None leaves it to the model.
BOUNDS = {"score_threshold": (0.0, 1.0), "max_detections": (1, 10_000), "batch": (1, 256)}
WHOLE = ("max_detections", "batch")


class CannotPredict(DomainError):
    """Model and pictures do not fit each other."""

    code: ClassVar[str] = "cannot_predict"
    field: ClassVar[str] = "model_version"


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
        resources: what it asks of the machines; several share the chunks. Without a cluster the person's current one.

    Raises:
        CannotPredict: the model's answers cannot be understood.
        Invalid: a value is out of range, or there are no pictures.
        ListRefused: of the list.
        PathRefused, PathMissing: of the folder.
        NotAMember: the person does not belong to the cluster.
    """
    found, root = Refusals(), None
    with found:
        check_model(model_version)
    with found:
        check_source(model_version, version, server_path, split, listed, user=user)
        if server_path:
            root = sources.folder(server_path, by=user)
    label = str(version) if version else str(root or server_path)
    name = name or titles.derive_name(f"{model_version} on {_short(label)}", room=evaluations.MAX_NAME)
    names: list[str] | None = None
    with found:
        names = _names(version, root, listed, by=user)
    params: dict[str, Any] = {}
    if score_threshold is None:
        score_threshold = thresholds.to_begin_with(model_version, by=user)
    with found:
        params = checked_numbers(score_threshold=score_threshold, max_detections=max_detections, batch=batch)
    with found:
        evaluations.check_name(name)
    with found:
        resources = evaluations.complete(user, resources)
        if found:  # what the machines cannot give is said as well
            submission.check(user, KIND, **resources)
    found.end()
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
            sources.keep(prediction.listing, names)
    return prediction


def _names(
    version: DatasetVersion | None, root: Path | None, listed: Sequence[str] | None, *, by: User
) -> list[str] | None:
    """The pictures to write down; None where the version itself says which they are."""
    chosen = None if listed is None else sources.checked(listed)
    if root is not None:
        return sources.pictures_of(root, by=by) if chosen is None else sources.listed_in_folder(root, chosen, by=by)
    if version is None or chosen is None:
        return None
    return sources.listed_in_version(version, chosen)


def _short(label: str) -> str:
    """The part of a source's name that tells it from others."""
    return PurePosixPath(label).name if label.startswith("/") else label


def _count(version: DatasetVersion | None, split: str) -> int | None:
    if version is None or split == UNSEEN:
        return None
    return int(version.splits.get(split, 0)) if split else version.image_count


def _classes(version: ModelVersion) -> list[dict[str, Any]]:
    """The classes as the model's own description has them, with the names of their points."""
    try:
        found = json.loads((version.path / "model.json").read_bytes())["classes"]
    except (OSError, ValueError, KeyError, TypeError):
        return list(version.classes)
    return found if is_sound(found) else list(version.classes)


def check(
    *,
    user: User | None = None,
    model_version: ModelVersion | None = None,
    version: DatasetVersion | None = None,
    split: str = "",
) -> None:
    """Refuse at once what `submit` refuses of model, version and split."""
    found = Refusals()
    with found:
        if model_version is not None:
            check_model(model_version)
    with found:
        if version is not None:
            check_split(version, split)
    found.end()


def check_model(version: ModelVersion) -> None:
    """Refuse a version whose answers mean nothing here.

    Raises:
        CannotPredict.
    """
    if not version.can_be_evaluated:
        said = _("%(model)s came without model.json, so its answers cannot be understood.")
        raise CannotPredict(said % {"model": version})


def check_source(
    model: ModelVersion,
    version: DatasetVersion | None,
    server_path: str,
    split: str,
    listed: Sequence[str] | None,
    *,
    user: User,
) -> None:
    """Refuse what is no source, or two of them.

    Raises:
        Invalid.
    """
    if (version is None) == (not server_path):
        raise Invalid(_("Choose a dataset, or give the path of a folder on the server: one of them."), field="version")
    if version is None:
        if split:
            raise Invalid(_("A folder has no splits. Leave the split out."), field="split")
        return
    if not version.is_ready:
        raise Invalid(_("%(version)s is not ready yet.") % {"version": version}, field="version")
    if split and listed is not None:
        raise Invalid(_("Choose a split, or give a list: one of them."), field="split")
    check_split(version, split)
    if split == UNSEEN and training_data.of(model, owner=user) is None:
        said = _("It is not known which images %(model)s learned from. Choose another split.")
        raise Invalid(said % {"model": model}, field="split")


def check_split(version: DatasetVersion, split: str) -> None:
    """Refuse a split that the version does not have.

    Raises:
        Invalid: tells those that it has.
    """
    if split not in ("", UNSEEN) and not version.splits.get(split):
        known = ", ".join(sorted(name for name, count in version.splits.items() if name and count))
        facts = {"version": version, "split": split, "known": known or _("none")}
        raise Invalid(_("%(version)s has no split “%(split)s”. It has: %(known)s.") % facts, field="split")


def checked_numbers(**given: float | None) -> dict[str, float | None]:
    """The numbers of a prediction, whole where they are counts.

    Raises:
        Invalid: one for each that is out of range.
    """
    found, checked = Refusals(), dict[str, float | None]()
    for name, (low, high) in BOUNDS.items():
        value = given[name]
        with found:
            if value is None:
                checked[name] = BATCH if name == "batch" else None
                continue
            number = finite(value)
            if number is None or not low <= number <= high:
                said = _("Give a number from %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"}
                raise Invalid(said, field=name)
            checked[name] = int(number) if name in WHOLE else number
    found.end()
    return checked


def stop(*, prediction: Prediction, by: User) -> None:
    """Request a stop of the prediction's job; chunks that are whole stay."""
    actions.stop(prediction.job, by=by)


def publish(job: Job, attempt: Attempt) -> None:
    """Keep the figures of an attempt; may be called again."""
    prediction = Prediction.objects.filter(job=job).first()
    if prediction is None or attempt.number < prediction.published_attempt:
        return
    found = results.read(RunDir.of(job.pk, attempt.number).outputs)
    if found:
        kept = {name: value for name, value in found.items() if name != "left_out"}  # names stay with the files
        Prediction.objects.filter(pk=prediction.pk).update(
            published_attempt=attempt.number, summary=kept, total=found["total"]
        )


def using(version: DatasetVersion) -> list[str]:
    """List predictions that still need a dataset version."""
    running = Prediction.objects.unfinished().filter(data=version).select_related("job")
    return [_("prediction %(name)s") % {"name": prediction.job.name} for prediction in running]

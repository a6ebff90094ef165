"""Conversions: queue, publish what became of the variants, keep one as a version."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files, titles
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from aiplatform.lib.numbers import finite
from datasets.models import DatasetVersion
from inference.conversion import engines, intervals, results
from inference.conversion.converter import variant_catalog
from inference.conversion.models import Conversion, ConvertedVariant
from inference.evaluation import evaluations
from inference.evaluation.jobs.outputs import folder_of
from inference.evaluation.jobs.submission import MAX_NAME, check_unseen, finish_checks
from inference.kit.model_io.engine import RUNTIME
from inference.kit.prediction import selftest
from inference.kit.task_kinds import TASKS
from inference.registry import inspections, training_data
from inference.registry import registration as registry
from inference.registry.file_copies import copy_rest
from inference.registry.models import ModelVersion
from inference.registry.registration import Origin
from inference.registry.selftest import self_tests
from inference.registry.training_data import AUTO
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.jobs.resource_request import Resources

log = logging.getLogger(__name__)
KIND = "conversion"
MIN_CALIBRATION_IMAGES, MAX_CALIBRATION_IMAGES, LOOKS = 8, 5000, 300
MAX_LOSS = 0.01
# Which variants become versions by themselves.
KEEP_FASTEST, KEEP_ALL, KEEP_NONE = "fastest", "all", "none"
KEEP_CHOICES = (KEEP_FASTEST, KEEP_ALL, KEEP_NONE)
SOURCE_MEASUREMENTS = ("verify", "speed")  # of model.json: what was measured of the source, not of the variant
WEIGHTS = (".onnx", ".safetensors")
UNFIT = (ModelVersion.Source.CONVERTED, ModelVersion.Source.COMPOSED)  # what they were made of is converted


class CannotConvert(DomainError, code="cannot_convert", field="model_version"):
    """This version cannot be converted, or not by this user."""


class NotKept(DomainError, code="variant_not_kept"):
    """A variant cannot become a version."""


class _Made(Exception):
    """Another worker kept the variant meanwhile."""


def submit(
    *,
    user: User,
    model_version: ModelVersion,
    version: DatasetVersion,
    split: str = AUTO,
    targets: Sequence[str] = variant_catalog.DEFAULT_TARGETS,
    calibrate_on: str = AUTO,
    looks: int = LOOKS,
    method: str = variant_catalog.MINMAX,
    max_loss: float = MAX_LOSS,
    keep: str = KEEP_FASTEST,
    name: str = "",
    **resources: Unpack[Resources],
) -> Conversion:
    """Queue a conversion.

    Args:
        version: annotated images: some calibrate ranges, others measure the loss of a variant.
        split: on which variants are judged, as `evaluations.submit` takes it.
        targets: names of variants, see `variant_catalog.TARGETS`.
        calibrate_on: the split for calibration; "" takes all without those of evaluation, `AUTO` the training split.
        looks: the number of model inputs, about images, for calibration.
        max_loss: by how much the task's main figure may be lower than that of the source, 0..1.
        keep: which of the accepted variants become versions: the fastest, all, or none.
        name: empty makes one of the model.
        resources: requested resources; without a cluster the user's current one.

    Raises:
        CannotConvert: it has no description, it is a conversion itself, or the user may not change its model.
        CannotEvaluate: the data is not annotated, or for another task.
        Invalid: a value is out of range.
        NotAMember: the user is not a member of the cluster.
    """
    if split == AUTO:
        split = training_data.best_split(model_version, version, user=user)
    if calibrate_on == AUTO:
        calibrate_on = "train" if version.splits.get("train") and split != "train" else ""
    name = name or titles.derive_name(f"{model_version} conversion", room=MAX_NAME)
    params = {
        "targets": list(dict.fromkeys(targets)), "calibrate_on": calibrate_on, "looks": looks, "method": method,
        "max_loss": max_loss, "keep": keep,
    }  # fmt: skip
    refusals = Refusals()
    with refusals:
        check_model(model_version, user)
    with refusals:
        evaluations.check_fit(model_version, version, split)
    with refusals:
        check_unseen(model_version, split, user)
    with refusals:
        _check_params(params, version)
    with refusals:
        engines.check(targets, cards=resources.get("gpus_per_node", 0), kind=resources.get("device_kind", "gpu"))
    resources = finish_checks(refusals, user=user, kind=KIND, name=name, resources=resources)
    spec = {"model_version": model_version.pk, "version": version.pk, "split": split, "params": params}
    with transaction.atomic():
        job = submission.submit(owner=user, kind=KIND, name=name, spec=spec, **resources)
        return Conversion.objects.create(
            job=job,
            version=model_version,
            model_label=str(model_version)[:120],
            data=version,
            data_label=str(version)[:80],
            split=split,
            params=params,
        )


def check(*, user: User, model_version: ModelVersion | None = None, version: DatasetVersion | None = None) -> None:
    """Check model and data before `submit`."""
    refusals = Refusals()
    with refusals:
        if model_version is not None:
            check_model(model_version, user)
    with refusals:
        evaluations.check(model_version=model_version, version=version)
    refusals.end()


def check_model(version: ModelVersion, user: User) -> None:
    """Check that a version can be converted, and that the user may promote its variants.

    Raises:
        CannotConvert.
    """
    if not version.can_be_evaluated:
        message = _(
            "%(model)s has no model.json, so the loss of a conversion cannot be measured. Describe the model first."
        )
        raise CannotConvert(message % {"model": version})
    if version.source == ModelVersion.Source.CONVERTED:
        message = _("%(model)s is itself a conversion. Convert its source version.")
        raise CannotConvert(message % {"model": version})
    if version.source == ModelVersion.Source.COMPOSED:
        message = _("%(model)s is combined from other versions. Convert those, and combine the results.")
        raise CannotConvert(message % {"model": version})
    if not ModelVersion.objects.editable_by(user).filter(pk=version.pk).exists():
        message = _(
            "A conversion adds versions to %(model)s, which you cannot edit. Ask its owner to share it with "
            "manage access."
        )
        raise CannotConvert(message % {"model": version.model})


def _check_params(params: Mapping[str, Any], version: DatasetVersion) -> None:
    refusals = Refusals()
    with refusals:
        if not params["targets"]:
            raise Invalid(_("Choose at least one variant."), field="targets")
    for name in params["targets"]:
        with refusals:
            if name not in variant_catalog.TARGETS:
                facts = {"name": name, "known": ", ".join(variant_catalog.TARGETS)}
                raise Invalid(_("Unknown variant “%(name)s”. Available variants: %(known)s.") % facts, field="targets")
    for name, choices in (("method", variant_catalog.METHODS), ("keep", KEEP_CHOICES)):
        with refusals:
            if params[name] not in choices:
                message = _("%(name)s must be one of %(known)s.")
                raise Invalid(message % {"name": name, "known": ", ".join(choices)}, field=name)
    with refusals:
        split = params["calibrate_on"]
        if split and not version.splits.get(split):
            message = _("%(version)s has no split “%(split)s” for calibration.")
            raise Invalid(message % {"version": version, "split": split}, field="calibrate_on")
    with refusals:
        if not MIN_CALIBRATION_IMAGES <= params["looks"] <= MAX_CALIBRATION_IMAGES:
            message = _("Calibrate on %(low)s to %(high)s images.") % {
                "low": MIN_CALIBRATION_IMAGES,
                "high": MAX_CALIBRATION_IMAGES,
            }
            raise Invalid(message, field="looks")
    with refusals:
        if finite(params["max_loss"]) is None or not 0 <= params["max_loss"] <= 1:
            raise Invalid(_("The maximum loss must be a number from 0 to 1."), field="max_loss")
    refusals.end()


def publish(job: Job, attempt: Attempt) -> None:
    """Store the results of the variants of an attempt, and promote those that were requested; idempotent."""
    conversion = Conversion.objects.filter(job=job).select_related("version__model", "job__owner").first()
    if conversion is None or attempt.number < conversion.published_attempt:
        return
    outputs = RunDir.for_attempt(job.pk, attempt.number).outputs
    document = results.read(outputs)
    if not document.get("complete"):
        return
    task = conversion.version.task if conversion.version else ""
    loss_intervals = intervals.loss_intervals(outputs, document, task, seed=conversion.pk) if task in TASKS else {}
    with transaction.atomic():
        Conversion.objects.filter(pk=conversion.pk).update(
            published_attempt=attempt.number, fastest=document["fastest"]
        )
        for row in document["rows"]:
            if row["target"] != variant_catalog.SOURCE:
                ConvertedVariant.objects.update_or_create(
                    conversion=conversion,
                    target=row["target"],
                    defaults={
                        "state": row["state"],
                        "figures": _figures(row) | _ends(loss_intervals.get(row["target"])),
                    },
                )
    conversion.refresh_from_db()
    if conversion.version is not None:
        _keep_samples(conversion, variant_catalog.SOURCE, conversion.version)
    for variant in _variants_to_promote(conversion):
        try:
            promote(variant=variant)
        except DomainError as exc:
            log.warning("job=%s its variant %s was not kept: %s", job.pk, variant.target, exc)


def _ends(interval: tuple[float, float] | None) -> dict[str, float]:
    return {} if interval is None else {"loss_low": interval[0], "loss_high": interval[1]}


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    speed = row["speed"] or {}
    return {name: row[name] for name in results.FIGURES} | {name: speed.get(name) for name in results.SPEEDS}


def _variants_to_promote(conversion: Conversion) -> list[ConvertedVariant]:
    """The variants that become versions by themselves."""
    good = conversion.variants.filter(state=variant_catalog.ACCEPTED, made=None)
    keep = conversion.params.get("keep")
    if keep == KEEP_FASTEST:
        good = good.filter(target=conversion.fastest)
    return list(good) if keep != KEEP_NONE else []


def promote(*, variant: ConvertedVariant, by: User | None = None) -> ModelVersion:
    """Promote a variant to a version of the model it was made of; returns the version if it was promoted before.

    Args:
        by: who wants it; None: whose job it is.

    Raises:
        NotKept: the variant was refused, its source or files were deleted, or the user may not change the source.
        DomainError: the registry refuses the files.
    """
    conversion, owner = variant.conversion, by or variant.conversion.job.owner
    if variant.made is not None:
        return variant.made
    if variant.state != variant_catalog.ACCEPTED:
        raise NotKept(_("%(variant)s was not accepted and does not become a version.") % {"variant": variant})
    source = conversion.version
    if source is None:
        raise NotKept(_("The source version was deleted."))
    model = type(source.model).objects.editable_by(owner).filter(pk=source.model_id).first()
    if model is None:
        raise NotKept(_("You cannot edit %(model)s, so no version can be added to it.") % {"model": source.model})
    facts = _facts(variant)

    def made(version: ModelVersion) -> None:
        if not ConvertedVariant.objects.filter(pk=variant.pk, made=None).update(made=version):
            raise _Made

    origin = Origin(
        ModelVersion.Source.CONVERTED,
        job=conversion.job,
        attempt=conversion.published_attempt,
        label=source.code_label,
        parent=source,
        facts={"conversion": facts},
    )
    try:
        version = registry.register(
            user=owner,
            bring=partial(_write_folder, variant, facts),
            origin=origin,
            model=model,
            read=engines.survey_with_engine,
            made=made,
        )
        _keep_samples(conversion, variant.target, version)
        return version
    except _Made:
        variant.refresh_from_db()
        if variant.made is None:
            raise NotKept(_("The promoted version was deleted.")) from None
        return variant.made


def _keep_samples(conversion: Conversion, target: str, version: ModelVersion) -> None:
    """Keep what a variant answered to a few pictures, for the self-test of devices."""
    name = f"targets/{target}/{selftest.FILE}"
    self_tests.store(version, folder_of(conversion), name, data=conversion.data, job=conversion.job)


def _facts(variant: ConvertedVariant) -> dict[str, Any]:
    """Return the facts about the conversion that the version stores."""
    conversion, document = variant.conversion, results.load(variant.conversion)
    params = conversion.params
    facts: dict[str, Any] = {
        "target": variant.target,
        "conversion": conversion.pk,
        "of": conversion.model_label,
        "sha256": conversion.version.sha256 if conversion.version else "",
        "judged_on": f"{conversion.data_label} {conversion.split}".strip(),
        "metric": document.get("metric", ""),
        "tools": document.get("tools", {}),
    }
    facts |= {name: variant.figures.get(name) for name in ("value", "loss", "agreement")}
    built = [row["engine"] for row in document["rows"] if row["target"] == variant.target and "engine" in row]
    if built:
        facts["engine"] = built[0]
    if variant_catalog.TARGETS[variant.target].calibrated:
        facts |= {
            "method": params["method"],
            "looks": variant.figures.get("looks"),
            "calibrated_on": conversion.data_label,
        }
    return facts


def _write_folder(variant: ConvertedVariant, facts: Mapping[str, Any], into: Path) -> None:
    """Write the files of a variant into a folder: its own network, and the description of its source."""
    source = variant.conversion.version
    if source is None:
        raise NotKept(_("The source version was deleted."))
    into.mkdir()
    gone = _("The files of this variant no longer exist. Run the conversion again.")
    row = next((row for row in results.load(variant.conversion)["rows"] if row["target"] == variant.target), None)
    if row is None:
        raise NotKept(gone)
    outputs = folder_of(variant.conversion)
    try:
        inside = files.open_beneath(outputs, f"targets/{variant.target}/model.onnx")
        with os.fdopen(inside, "rb") as source_file:
            copy_rest(source_file, into / "model.onnx", max_bytes=inspections.MAX_BYTES)
        engines.copy_engine(row, outputs, into, max_bytes=inspections.MAX_BYTES)
    except (OSError, files.OutsideRoot):
        raise NotKept(gone) from None
    for entry in source.files:
        name = entry["name"]
        if not name.endswith(WEIGHTS):
            (into / name).write_bytes((source.path / name).read_bytes())
    described = json.loads((into / "model.json").read_text())
    description = {name: value for name, value in described.items() if name not in SOURCE_MEASUREMENTS}
    description.pop(RUNTIME, None)
    description |= {"metrics": row["summary"], "conversion": dict(facts)}
    if runtime := variant_catalog.TARGETS[variant.target].runtime:
        description[RUNTIME] = runtime
    (into / "model.json").write_text(json.dumps(description, ensure_ascii=False, indent=1))


def using(version: DatasetVersion) -> list[str]:
    """List conversions that still need a dataset version."""
    running = Conversion.objects.unfinished().filter(data=version).select_related("job")
    return [_("conversion %(name)s") % {"name": conversion.job.name} for conversion in running]

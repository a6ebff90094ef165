"""Steps on versions in the registry: aliases and stages, and conversion to what runs faster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import DatasetVersion
from inference.conversion import conversions, engines
from inference.conversion.converter import variant_catalog
from inference.conversion.labels import KEEP_LABELS, METHOD_LABELS
from inference.conversion.models import Conversion, ConvertedVariant
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind, completed
from inference.pipelines.models import StepRun, reference
from inference.pipelines.steps import rows
from inference.pipelines.steps.training import figures
from inference.registry import aliases, stages
from inference.registry.models import ModelVersion, Stage
from inference.registry.training_data import AUTO
from workers.jobs.resource_request import Resources

SHOWN = ("value", "loss", "loss_low", "loss_high", "agreement", "size_bytes", "p50_ms", "p95_ms", "images_per_s")
MAX_METRICS = 5  # that the history of a model shows


class RegisterStep(StepKind):
    """An alias or a stage for a version."""

    name = "register"
    label = gettext_lazy("Register")
    description = gettext_lazy(
        "Assigns an alias such as champion, or another stage, to a model version, with a reason."
    )
    group = "ship"
    icon = "models"
    acts = True
    needs = Action.MODELS_MANAGE
    inputs = (
        Port("model", gettext_lazy("Model"), "model"),
        Port("figures", gettext_lazy("Metrics"), "figures", optional=True, many=True),
    )
    outputs = (Port("model", gettext_lazy("Model"), "model"),)
    params = (
        Param("alias", gettext_lazy("Alias"), default="", help=gettext_lazy(
            "Such as champion or production; it is moved from the version that has it.")),
        Param("stage", gettext_lazy("Stage"), form="choice", default="", choices=(
            ("", gettext_lazy("Unchanged")), *Stage.choices)),
        Param("reason", gettext_lazy("Reason"), default="", help=gettext_lazy(
            "Shown in the history of the model. Leave empty for the run and its metrics.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            if params.get("alias"):
                aliases.check_name(params["alias"])
        with refusals:
            if "alias" in params and "stage" in params and not params["alias"] and not params["stage"]:
                raise Invalid(_("Choose what the version gets: an alias, a stage, or both."), field="alias")
        with refusals:
            if params.get("alias") and params.get("stage") == Stage.ARCHIVED:
                raise Invalid(_("An archived version cannot have an alias. Choose one of them."), field="stage")
        with refusals:
            if len(params.get("reason") or "") > stages.MAX_REASON_LENGTH:
                message = _("Enter at most %(most)s characters.") % {"most": stages.MAX_REASON_LENGTH}
                raise Invalid(message, field="reason")
        refusals.end()

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        version = rows.model_version(call.only("model"), call.user)
        if not ModelVersion.objects.editable_by(call.user).filter(pk=version.pk).exists():
            raise StepFailed(wording.message("pipeline.model_not_yours", model=version.model.name))
        facts = _facts(call)
        stage, reason = call.params["stage"], call.params["reason"].strip() or " · ".join(facts.values())
        if stage and version.stage != stage:
            version = stages.move(version=version, to=stage, by=call.user, reason=reason[: stages.MAX_REASON_LENGTH])
        if call.params["alias"]:
            aliases.assign(version=version, name=call.params["alias"], by=call.user, why=reason, **facts)
        return Begun(done=Done({"model": reference("model", version)}))


def _facts(call: Call) -> dict[str, str]:
    """Return the facts for the history of the model: name of the run, and some of its metrics."""
    values: dict[str, Any] = {}
    for item in call.inputs.get("figures", ()):
        values |= item.get("values", {})
    shown = [f"{name} = {value:.4g}" for name, value in list(values.items())[:MAX_METRICS]]
    facts = {"run": str(call.run)}
    return facts | {"value": ", ".join(shown)} if shown else facts


class ConvertStep(StepKind):
    """Faster variants of a version, evaluated on data; the best of them is passed on."""

    name = "convert"
    label = gettext_lazy("Convert")
    description = gettext_lazy(
        "Converts a model, for example to INT8 or TensorRT, and evaluates each variant. The fastest variant "
        "within the allowed loss is used; without one, the step fails."
    )
    group = "ship"
    icon = "convert"
    computes = True
    needs = Action.MODELS_MANAGE
    inputs = (
        Port("model", gettext_lazy("Model"), "model"),
        Port("data", gettext_lazy("Calibration and evaluation data"), "dataset", optional=True),
    )
    outputs = (Port("model", gettext_lazy("Model"), "model"), Port("figures", gettext_lazy("Metrics"), "figures"))
    params = (
        Param("targets", gettext_lazy("Variants"), default=", ".join(variant_catalog.DEFAULT_TARGETS),
              help=gettext_lazy(
                  "Separated by commas: fp32, fp16, int8, int8_dynamic, openvino, int8_openvino, tensorrt, "
                  "tensorrt_fp16."
              )),
        Param("max_loss", gettext_lazy("Maximum loss"), form="number", default=conversions.MAX_LOSS, low=0, high=1,
              help=gettext_lazy("Allowed decrease of the main metric compared with the original model, 0 to 1.")),
        Param("keep", gettext_lazy("Promoted variants"), form="choice", default=conversions.KEEP_ALL,
              choices=tuple((name, KEEP_LABELS[name]) for name in (conversions.KEEP_FASTEST, conversions.KEEP_ALL))),
        Param("split", gettext_lazy("Evaluation split"), default=AUTO, help=gettext_lazy(
            "auto: the most informative split. test, val, train; unseen: images it was not trained on; all.")),
        Param("calibrate_on", gettext_lazy("Calibration split"), default=AUTO, help=gettext_lazy(
            "auto: the training split. test, val, train; all.")),
        Param("looks", gettext_lazy("Images for calibration"), form="whole", default=conversions.LOOKS,
              low=conversions.MIN_CALIBRATION_IMAGES, high=conversions.MAX_CALIBRATION_IMAGES),
        Param("method", gettext_lazy("Calibration"), form="choice", default=variant_catalog.MINMAX,
              choices=tuple(METHOD_LABELS.items())),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1,
              help=gettext_lazy("TensorRT requires one.")),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        names, refusals = _names(params.get("targets") or ""), Refusals()
        for name in names:
            with refusals:
                if name not in variant_catalog.TARGETS:
                    facts = {"name": name[:40], "known": ", ".join(variant_catalog.TARGETS)}
                    raise Invalid(
                        _("Unknown variant “%(name)s”. Available variants: %(known)s.") % facts, field="targets"
                    )
        with refusals:
            if "targets" in params and not refusals:
                engines.check(names, cards=params.get("gpus") or 0, kind="gpu")
        refusals.end()

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """Without data of its own, that which the model was trained on decides too."""
        if call.only("data"):
            return {}
        return {"data": _data(call, rows.model_version(call.only("model"), call.user)).manifest_sha256}

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        params = call.params
        model = rows.model_version(call.only("model"), call.user)
        resources: Resources = {"gpus_per_node": params["gpus"]}
        if params["cpus"] is not None:
            resources["cpus"] = params["cpus"]
        conversion = conversions.submit(
            user=call.user,
            model_version=model,
            version=_data(call, model),
            split="" if params["split"] == "all" else params["split"],
            targets=_names(params["targets"]),
            calibrate_on="" if params["calibrate_on"] == "all" else params["calibrate_on"],
            looks=params["looks"],
            method=params["method"],
            max_loss=params["max_loss"],
            keep=params["keep"],
            name=call.name,
            **resources,
        )
        return Begun(job=conversion.job, stored={"conversion": conversion.pk})

    def poll(self, row: StepRun) -> Done | None:
        conversion = Conversion.objects.filter(job=completed(row)).first()
        variants = list(conversion.variants.select_related("made__model")) if conversion else []
        good = [variant for variant in variants if variant.state == variant_catalog.ACCEPTED]
        if not good:
            raise StepFailed(wording.message("pipeline.convert_none", text=_format_losses(variants)))
        made = [variant for variant in good if variant.made is not None]
        if not made:
            code = "convert_not_kept" if conversion and conversion.fastest else "convert_none_faster"
            raise StepFailed(wording.message(f"pipeline.{code}", text=_format_losses(good)))
        best = min(made, key=lambda variant: (_p50(variant), variant.pk))
        numbers = {name: value for name in SHOWN if (value := best.figures.get(name)) is not None}
        numbers |= {f"{variant.target}.{name}": variant.figures[name] for variant in variants
                    for name in ("loss", "p50_ms") if variant.figures.get(name) is not None}  # fmt: skip
        message = wording.message("pipeline.converted", text=best.target)
        return Done({"model": reference("model", best.made), "figures": figures(numbers, row)}, message=message)


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(part for part in re.split(r"[\s,;]+", text) if part))


def _data(call: Call, model: ModelVersion) -> DatasetVersion:
    """Return the connected dataset version, else the training data of the model."""
    if data_ref := call.only("data"):
        return rows.dataset_version(data_ref, call.user)
    usable = DatasetVersion.objects.usable_by(call.user).select_related("dataset")
    version: DatasetVersion | None = usable.filter(pk=model.dataset_version_id or 0).first()
    if version is None:
        raise StepFailed(wording.message("pipeline.convert_no_data", model=str(model)))
    return version


def _p50(variant: ConvertedVariant) -> float:
    value = variant.figures.get("p50_ms")
    return float("inf") if value is None else float(value)


def _format_losses(variants: list[ConvertedVariant]) -> str:
    """Return variants with their loss in metrics: int8: -0.03."""
    texts = []
    for variant in variants:
        loss = variant.figures.get("loss")
        texts.append(variant.target if loss is None else f"{variant.target}: {-loss:+.4g}")
    return ", ".join(texts) or "–"

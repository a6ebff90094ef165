"""Form of a new evaluation."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.row_choices import RowChoice, offer
from datasets.models import DatasetVersion
from inference.evaluation.custom_scripts.forms import CALLED, ScriptFields
from inference.evaluation.jobs.forms import ModelJobForm, name_field
from inference.evaluation.models import SPLIT_LABELS, EvaluationSet
from inference.kit.task_kinds import TASKS
from inference.registry import training_data
from inference.registry.formats.folder import WEIGHTS
from inference.registry.models import ModelVersion

SPLITS = [(training_data.AUTO, _("Automatic")), *SPLIT_LABELS.items()]


class DataChoice(RowChoice):
    """A choice of a dataset version; what only an own script can use says so."""

    columns = ("dataset__name", "number", "annotated")

    def text_of(self, name: str, number: int, annotated: bool) -> str:
        return f"{name} v{number}" if annotated else f"{name} v{number} · {gettext('not annotated')}"


class EvaluationForm(ScriptFields, ModelJobForm):
    """Model, data and resources of an evaluation, and an own script where one judges in place of ours."""

    version = DataChoice(label=_("Dataset"), queryset=DatasetVersion.objects.none(), empty_label=_("Choose a dataset"))
    parameter_set = forms.ModelChoiceField(
        label=_("Parameter set"), queryset=EvaluationSet.objects.none(), required=False, empty_label=_("None")
    )
    split = forms.ChoiceField(
        label=_("Split"),
        choices=SPLITS,
        required=False,
        initial=training_data.AUTO,
        help_text=_("Automatic: test, otherwise val, otherwise the images that the model was not trained on."),
    )
    name = name_field(_("Leave empty to combine model and dataset."))
    gpus_per_node = forms.IntegerField(
        label=_("GPUs"), min_value=0, max_value=128, initial=0, help_text=_("0 uses the CPU.")
    )
    score_threshold = forms.FloatField(
        label=_("Minimum confidence"), min_value=0.0001, max_value=1, initial=0.01, required=False
    )
    iou_threshold = forms.FloatField(
        label=_("IoU threshold of NMS"), min_value=0.05, max_value=1, initial=0.5, required=False
    )
    max_detections = forms.IntegerField(
        label=_("Boxes per image"), min_value=1, max_value=1000, initial=100, required=False
    )
    batch = forms.IntegerField(label=_("Images per batch"), min_value=1, max_value=256, initial=8, required=False)

    altered_images = forms.IntegerField(
        label=_("Images evaluated in altered copies"),
        min_value=0,
        max_value=5000,
        initial=0,
        required=False,
        help_text=_(
            "Measures the loss of accuracy on blurred, noisy, compressed and overexposed images. Each image "
            "takes as long as 12 more, or 15 with rotation. 0: none."
        ),
    )

    MAIN = ("model_version", "version", "split", "name")
    ADVANCED = ("score_threshold", "iou_threshold", "max_detections", "batch", "altered_images")
    more_title = _("Parameters")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, **CALLED}
        code = self.initial.get("snapshot")  # a row, or its number as it was sent
        if getattr(code, "owner_id", user.pk) != user.pk:  # it is `saved_code`: users cannot choose code of others
            self.initial = {name: value for name, value in self.initial.items() if name != "snapshot"}
        self.offer_snapshots()
        self.fields["image"].offer(user)  # type: ignore[attr-defined]  # declared above
        models = ModelVersion.objects.usable_by(user).filter(task__in=[*TASKS, WEIGHTS])
        offer(models.select_related("model"), self.fields["model_version"])
        versions = DatasetVersion.objects.usable_by(user).order_by("-annotated", "-pk")
        offer(versions.for_choice(), self.fields["version"])
        offer(EvaluationSet.objects.usable_by(user).only("name"), self.fields["parameter_set"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self.check_script(data)
        return data

    def submission(self) -> dict[str, Any]:
        """Arguments of `evaluations.submit`, after `take_code`."""
        fields = {name: self.cleaned_data[name] for name in self.MAIN}
        fields["params"] = {name: self.cleaned_data[name] for name in self.ADVANCED}
        return fields | self.script() | self.resources()

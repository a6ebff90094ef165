"""Forms of predictions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.errors import DomainError
from aiplatform.lib.row_choices import offer
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion
from datasets.services import server_paths
from datasets.services.datasets import NAME_MAX
from inference.batch import predictions, sources
from inference.evaluation.jobs.forms import ModelJobForm, name_field
from inference.evaluation.models import SPLIT_LABELS
from inference.kit.task_kinds import TASKS
from inference.registry.models import ModelVersion

SPLITS = [("", _("All images")), *((name, word) for name, word in SPLIT_LABELS.items() if name)]


class PredictionForm(ModelJobForm):
    """Model, pictures, limits of the answers, and resources."""

    version = DatasetVersionChoice(
        label=_("Dataset"), queryset=DatasetVersion.objects.none(), required=False, empty_label=_("None: use a folder")
    )
    server_path = forms.CharField(
        label=_("Or a folder on the server"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off"}),
        help_text=_(
            "An absolute path; all images in this folder and its subfolders are processed, links are not followed."
        ),
    )
    split = forms.ChoiceField(label=_("Split"), choices=SPLITS, required=False)
    listed = forms.FileField(
        label=_("Only listed images"),
        required=False,
        help_text=_("A .txt file with one name per line, or a .csv file with names in the first column."),
    )
    score_threshold = forms.FloatField(
        label=_("Minimum confidence"),
        required=False,
        min_value=0,
        max_value=1,
        help_text=_(
            "Predictions below are ignored. Default: the best threshold of the newest evaluation, otherwise "
            "that of the model."
        ),
    )
    max_detections = forms.IntegerField(
        label=_("Maximum predictions per image"),
        required=False,
        min_value=1,
        max_value=10_000,
        help_text=_("Leave empty to use the value of the model."),
    )
    batch = forms.IntegerField(
        label=_("Images per batch"), required=False, min_value=1, max_value=256, initial=predictions.BATCH
    )
    name = name_field(_("Leave empty to combine model and images."))
    nodes = forms.IntegerField(
        label=_("Nodes"),
        min_value=1,
        max_value=64,
        initial=1,
        required=False,
        help_text=_("Several nodes share the images."),
    )

    MAIN = ("model_version", "version", "server_path", "split")
    ADVANCED = ("listed", "score_threshold", "max_detections", "batch", "name")
    more_title = _("Advanced")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        models = ModelVersion.objects.usable_by(user).filter(task__in=TASKS).in_use()
        offer(models.select_related("model"), self.fields["model_version"])
        offer(DatasetVersion.objects.usable_by(user).for_choice(), versions := self.fields["version"])
        if not server_paths.roots():  # the operator allowed none
            del self.fields["server_path"]
            versions.required, versions.empty_label = True, _("Choose a dataset")  # type: ignore[attr-defined]  # as above

    def clean_listed(self) -> list[str] | None:
        file = self.cleaned_data["listed"]
        if file is None:
            return None
        try:
            return sources.parse_list(file.read(sources.MAX_LIST_BYTES + 1), file.name or "")
        except DomainError as exc:
            raise forms.ValidationError(exc.message) from None

    def clean_batch(self) -> int:
        return self.cleaned_data["batch"] or predictions.BATCH

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `predictions.submit`."""
        names = [name for name in (*self.MAIN, *self.ADVANCED) if name in self.fields]
        return {name: self.cleaned_data[name] for name in names} | self.resources()


class DraftForm(forms.Form):
    """What becomes of the answers."""

    name = forms.CharField(
        label=_("Name of the new dataset"),
        max_length=NAME_MAX,
        required=False,
        help_text=_("Leave empty for the next version of the predicted dataset."),
    )
    min_score = forms.FloatField(
        label=_("Minimum confidence"),
        min_value=0,
        max_value=1,
        initial=0,
        required=False,
        help_text=_("0 includes all predictions."),
    )

    def __init__(self, *args: Any, may_extend: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_extend:
            self.fields["name"].required = True
            self.fields["name"].help_text = ""

    def clean_min_score(self) -> float:
        return self.cleaned_data["min_score"] or 0.0

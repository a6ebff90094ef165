"""The form of a conversion."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.row_choices import offer
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion
from inference.conversion import conversions
from inference.conversion.converter import variant_catalog
from inference.conversion.labels import KEEP_LABELS, METHOD_LABELS, target_words
from inference.evaluation.forms import SPLITS
from inference.evaluation.jobs.forms import ModelJobForm, name_field
from inference.kit.task_kinds import TASKS
from inference.registry import training_data
from inference.registry.models import ModelVersion


class ConversionForm(ModelJobForm):
    """Model, variants, data and resources of a conversion."""

    targets = forms.MultipleChoiceField(
        label=_("Variants"),
        choices=target_words,
        widget=forms.CheckboxSelectMultiple,
        initial=variant_catalog.DEFAULT_TARGETS,
        required=False,  # some are ticked from the start; none at all is refused by the service
    )
    version = DatasetVersionChoice(
        label=_("Dataset"),
        queryset=DatasetVersion.objects.none(),
        empty_label=_("Choose a dataset"),
        help_text=_("Annotated images for calibration and for measuring the loss of accuracy."),
    )
    max_loss = forms.FloatField(
        label=_("Maximum loss"),
        min_value=0,
        max_value=1,
        initial=conversions.MAX_LOSS,
        help_text=_("Allowed decrease of the key metric. 0.01 is one percentage point."),
    )
    keep = forms.ChoiceField(
        label=_("Promote"),
        choices=[(name, KEEP_LABELS[name]) for name in conversions.KEEP_CHOICES],
        initial=conversions.KEEP_FASTEST,
        help_text=_("The other variants can be promoted on the page of the conversion as long as their files exist."),
    )
    split = forms.ChoiceField(
        label=_("Evaluated on"),
        choices=SPLITS,
        required=False,
        initial=training_data.AUTO,
        help_text=_("Automatic: test, otherwise val, otherwise the images that the model was not trained on."),
    )
    looks = forms.IntegerField(
        label=_("Images for calibration"),
        min_value=conversions.MIN_CALIBRATION_IMAGES,
        max_value=conversions.MAX_CALIBRATION_IMAGES,
        initial=conversions.LOOKS,
        help_text=_("From the training split if available, otherwise from images not used for evaluation."),
    )
    method = forms.ChoiceField(
        label=_("Calibration method"),
        choices=[(name, METHOD_LABELS[name]) for name in variant_catalog.METHODS],
        initial=variant_catalog.MINMAX,
    )
    name = name_field(_("Leave empty to derive it from the model."))

    MAIN = ("model_version", "version", "targets", "max_loss")
    ADVANCED = ("keep", "split", "looks", "method", "name")
    more_title = _("Versions, calibration and name")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        models = ModelVersion.objects.editable_by(user).filter(task__in=TASKS).in_use()
        offer(models.exclude(source__in=conversions.UNFIT).select_related("model"), self.fields["model_version"])
        versions = DatasetVersion.objects.usable_by(user).filter(annotated=True)
        offer(versions.for_choice(), self.fields["version"])

    def submission(self) -> dict[str, Any]:
        """Arguments of `conversions.submit`."""
        return {name: self.cleaned_data[name] for name in (*self.MAIN, *self.ADVANCED)} | self.resources()

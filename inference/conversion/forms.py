"""The form of a conversion."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.titles import TITLE
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion
from inference.conversion import conversions
from inference.conversion.converter import variant_catalog
from inference.conversion.labels import KEEP_LABELS, METHOD_LABELS, target_words
from inference.evaluation import evaluations
from inference.evaluation.forms import SPLITS
from inference.kit.task_kinds import TASKS
from inference.registry import training_data
from inference.registry.fields import ModelVersionChoice
from inference.registry.models import ModelVersion
from workers.jobs.forms.resource_request import ResourceForm


class ConversionForm(ResourceForm):
    """Model, variants, data and resources of a conversion."""

    device_kinds = ("gpu", "cpu")

    model_version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model")
    )
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
        help_text=_(
            "Annotated images: some are used for calibration, others to measure the accuracy loss of each variant."
        ),
    )
    max_loss = forms.FloatField(
        label=_("Maximum loss"),
        min_value=0,
        max_value=1,
        initial=conversions.MAX_LOSS,
        help_text=_("Allowed decrease of the main metric, such as AP50 or accuracy. 0.01 is one percentage point."),
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
        min_value=conversions.LEAST_LOOKS,
        max_value=conversions.MOST_LOOKS,
        initial=conversions.LOOKS,
        help_text=_("From the training split if available, otherwise from images not used for evaluation."),
    )
    method = forms.ChoiceField(
        label=_("Calibration method"),
        choices=[(name, METHOD_LABELS[name]) for name in variant_catalog.METHODS],
        initial=variant_catalog.MINMAX,
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=_("Leave empty to derive it from the model."),
    )
    gpus_per_node = forms.IntegerField(
        label=_("GPUs"), min_value=0, max_value=1, initial=0, help_text=_("0 uses the CPU.")
    )
    cpus = forms.FloatField(
        label=_("CPU cores"), min_value=0.1, max_value=256, initial=evaluations.DEFAULT_CPUS, required=False
    )

    ADVANCED = ("split", "looks", "method", "name")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        models, versions = self.fields["model_version"], self.fields["version"]
        own = ModelVersion.objects.editable_by(user).filter(task__in=TASKS).in_use()
        models.queryset = (  # type: ignore[attr-defined]  # a choice among rows, declared above
            own.exclude(source__in=conversions.UNFIT).select_related("model")
        )
        versions.queryset = (  # type: ignore[attr-defined]  # a choice among rows, declared above
            DatasetVersion.objects.usable_by(user).filter(annotated=True).for_choice()
        )

    def submission(self) -> dict[str, Any]:
        """Arguments of `conversions.submit`."""
        names = ("model_version", "targets", "version", "max_loss", "keep", *self.ADVANCED)
        return {name: self.cleaned_data[name] for name in names} | self.resources()

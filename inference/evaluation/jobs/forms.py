"""Form of a new job on a model version."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE
from inference.evaluation.jobs.submission import DEFAULT_CPUS, MAX_NAME
from inference.registry.fields import ModelVersionChoice
from inference.registry.models import ModelVersion
from workers.jobs.forms.resource_request import ResourceForm


def name_field(help_text: Any) -> forms.CharField:
    """The name of the job."""
    return forms.CharField(
        label=_("Name"), max_length=MAX_NAME, required=False, validators=[TITLE], help_text=help_text
    )


class ModelJobForm(ResourceForm):
    """Model, name and resources.

    Attributes:
        MAIN: fields of the open part.
        ADVANCED: fields of the folded part, whose heading is `more_title`.
    """

    device_kinds = ("gpu", "cpu")
    model_version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model")
    )
    gpus_per_node = forms.IntegerField(
        label=_("GPUs"), min_value=0, max_value=1, initial=0, help_text=_("0 uses the CPU.")
    )
    cpus = forms.FloatField(label=_("CPU cores"), min_value=0.1, max_value=256, initial=DEFAULT_CPUS, required=False)

    MAIN: ClassVar[tuple[str, ...]]
    ADVANCED: ClassVar[tuple[str, ...]]
    more_title: ClassVar[Any]

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[name] for name in self.MAIN if name in self.fields]

    @property
    def advanced(self) -> list[forms.BoundField]:
        return [self[name] for name in self.ADVANCED]

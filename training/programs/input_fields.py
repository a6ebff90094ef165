"""The fields of a form by which somebody gives a job its environment variables, secrets and data."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from datasets.models import DatasetVersion
from training.catalog.version_fields import VersionChoices


class InputFields(forms.Form):
    """Variables, secrets and dataset versions; requires `self.user`."""

    user: User
    any_data = False  # whether there is a version to choose
    variables = forms.CharField(
        label=gettext_lazy("Environment variables"),
        max_length=200_000,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
        help_text=gettext_lazy("One NAME=value per line."),
    )
    secrets = forms.CharField(
        label=gettext_lazy("Secrets"),
        max_length=200_000,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono", "autocomplete": "off"}),
        help_text=gettext_lazy(
            "Environment variables, one NAME=value per line. They are stored encrypted, never shown and masked "
            "in the log. NAME alone uses your stored secret of that name."
        ),
    )
    datasets = VersionChoices(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Datasets"),
        required=False,
        help_text=gettext_lazy(
            "The folder of the first dataset is in AIP_DATASET_DIR; all datasets are in AIP_DATASETS."
        ),
    )

    def offer_versions(self) -> None:
        """Let the form name the versions that this person may use."""
        usable = DatasetVersion.objects.usable_by(self.user).for_choice()
        usable = usable.order_by("dataset__name", "-number")
        self.fields["datasets"].queryset = usable  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.any_data = usable.exists()

    def clean_variables(self) -> dict[str, str]:
        return read_variables(self.cleaned_data["variables"])

    def clean_secrets(self) -> dict[str, str]:
        return read_variables(self.cleaned_data["secrets"], stored=True)


def read_variables(text: str, *, stored: bool = False) -> dict[str, str]:
    """Parse lines `NAME=value`, with values unchanged after "="; empty lines and comments are skipped.

    Args:
        stored: a line may be `NAME` alone, and its value is empty.

    Raises:
        ValidationError: a line without "=", or a name given twice.
    """
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not name or not (equals or stored):
            raise forms.ValidationError(_("Line %(number)s: write it as NAME=value.") % {"number": number})
        if name in variables:
            raise forms.ValidationError(_("Duplicate parameter %(name)s.") % {"name": name})
        variables[name] = value
    return variables


def lines_of(value: Any) -> str:
    """What a form shows of variables that a request gives, also where they are none."""
    return written_variables(value) if isinstance(value, dict) else str(value)


def written_variables(variables: dict[str, str]) -> str:
    """The lines that `read_variables` reads into `variables`."""
    return "\n".join(f"{name}={value}" for name, value in variables.items())

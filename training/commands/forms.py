"""The form of a new command."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from training.code_fields import CodeFields
from training.commands import script
from training.forms import VersionLabels
from workers.jobs.forms.resource_request import ResourceForm


class VersionChoices(VersionLabels, forms.ModelMultipleChoiceField):
    """A choice of several versions."""


class CommandForm(CodeFields, ResourceForm):
    """A command in three blocks: what, on which data, where."""

    command = forms.CharField(
        label=gettext_lazy("Command"),
        max_length=script.MOST,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono", "autocapitalize": "off"}),
        help_text=gettext_lazy(
            "A line or a script for bash; it ends at the first line that fails. A script may name another "
            "interpreter in its first line."
        ),
    )
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=gettext_lazy("Empty: made of the command."),
    )
    output_path = forms.CharField(
        label=gettext_lazy("Output path"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("The folder your code writes to, for instance runs. Left empty: AIP_OUTPUT_DIR."),
    )
    variables = forms.CharField(
        label=gettext_lazy("Environment variables"),
        max_length=200_000,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
        help_text=gettext_lazy("One NAME=value a line."),
    )
    secrets = forms.CharField(
        label=gettext_lazy("Secrets"),
        max_length=200_000,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono", "autocomplete": "off"}),
        help_text=gettext_lazy(
            "Variables too, one NAME=value a line. They are kept encrypted, shown to nobody and starred out in the log."
        ),
    )
    datasets = VersionChoices(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Datasets"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("The first one's folder is in AIP_DATASET_DIR, all of them are in AIP_DATASETS."),
    )
    writes_checkpoints = forms.BooleanField(
        label=gettext_lazy("It writes checkpoints to AIP_CHECKPOINT_DIR and goes on from AIP_RESUME_FROM"),
        required=False,
    )
    nodes = forms.IntegerField(label=gettext_lazy("Machines"), min_value=1, max_value=64, initial=1)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, "code_upload": "code_archive"}
        self.offer_snapshots()
        usable = DatasetVersion.objects.usable_by(user).select_related("dataset").order_by("dataset__name", "-number")
        self.fields["datasets"].queryset = usable  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.any_data = usable.exists()

    @property
    def setting_is_wrong(self) -> bool:
        """Whether one of the folded fields of the first block has an error or something in it."""
        names = ("output_path", "variables", "secrets", "writes_checkpoints")
        return any(self.errors.get(name) or self[name].value() for name in names)

    def clean_variables(self) -> dict[str, str]:
        return read_variables(self.cleaned_data["variables"])

    def clean_secrets(self) -> dict[str, str]:
        return read_variables(self.cleaned_data["secrets"])

    def request_fields(self) -> dict[str, Any]:
        """What `CommandRequest` takes, after `take_code`."""
        data = self.cleaned_data
        names = ("command", "name", "output_path", "variables", "secrets", "writes_checkpoints")
        own = {name: data[name] for name in names}
        return own | {"code": data["snapshot"], "datasets": list(data["datasets"])} | self.resources()


def read_variables(text: str) -> dict[str, str]:
    """Lines `NAME=value` as texts, just as they stand after the "="; empty lines and comments are passed over.

    Raises:
        ValidationError: a line without "=", or a name given twice.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise forms.ValidationError(_("Line %(number)s: write it as NAME=value.") % {"number": number})
        if name in found:
            raise forms.ValidationError(_("%(name)s is given twice.") % {"name": name})
        found[name] = value
    return found


def written_variables(variables: dict[str, str]) -> str:
    """The lines that `read_variables` reads into `variables`."""
    return "\n".join(f"{name}={value}" for name, value in variables.items())

"""Forms of templates: what one says, and what is asked when it is used."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.lib.errors import DomainError
from aiplatform.lib.titles import TITLE
from training.job_templates import parameters as places
from training.job_templates.models import JobTemplate, TemplateVersion
from training.job_templates.services import Content
from training.programs import request_text

_EXAMPLE = "command: python train.py --epochs {{ epochs }}\ncpus: 4\ngpus_per_node: 1\n"
_CODE = {"spellcheck": "false", "class": "mono", "autocapitalize": "off"}


class TemplateForm(forms.Form):
    """Name, who sees it, its request as text, and its parameters as lines."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100, validators=[TITLE])
    description = forms.CharField(
        label=gettext_lazy("Description"), max_length=500, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    visibility = forms.ChoiceField(
        label=gettext_lazy("Visible to"), choices=JobTemplate.Visibility, initial=JobTemplate.Visibility.PRIVATE
    )
    text = forms.CharField(
        label=gettext_lazy("Request"),
        max_length=request_text.MAX_LENGTH,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 14, "placeholder": _EXAMPLE, **_CODE}),
        help_text=gettext_lazy("YAML or JSON. Write {{ name }} for a parameter."),
    )
    parameters = forms.CharField(
        label=gettext_lazy("Parameters"),
        max_length=20_000,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "placeholder": "epochs = 10  # length of the training", **_CODE}),
        help_text=gettext_lazy("One per line: name = default  # description. Without a default, a value is required."),
    )

    #: What a service blames that is no field here.
    called = {"kind": "text"}
    kind: str  # of the jobs that are made

    def clean_text(self) -> dict[str, Any]:
        return _right(request_text.read, self.cleaned_data["text"])

    def clean_parameters(self) -> list[places.Parameter]:
        return _right(places.read, self.cleaned_data["parameters"])

    def values(self) -> dict[str, Any]:
        """Arguments of `services.create` and `change`."""
        data = self.cleaned_data
        arguments = {name: data[name] for name in ("name", "description", "visibility")}
        return arguments | {"content": Content(request=data["text"], parameters=data["parameters"])}


class UseForm(forms.Form):
    """The parameters of a template, and the name of the job that it makes."""

    def __init__(self, data: Any = None, *, version: TemplateVersion, secrets: frozenset[str]) -> None:
        super().__init__(data)
        self.parameters = version.parameters
        for parameter in version.parameters:
            self.fields[parameter["name"]] = _field_of(parameter, secret=parameter["name"] in secrets)
        self.fields["job_name"] = forms.CharField(
            label=_("Job name"),
            max_length=100,
            required=False,
            validators=[TITLE],
            help_text=_("Leave empty to use the value of the template."),
        )
        self.called = {"name": "job_name"}

    def values(self) -> dict[str, Any]:
        """Return the entered values of the parameters; an empty field means its default."""
        return {parameter["name"]: self.cleaned_data.get(parameter["name"]) for parameter in self.parameters}

    def instead(self) -> dict[str, Any]:
        """Fields in place of those of the request."""
        name = self.cleaned_data.get("job_name")
        return {"name": name} if name else {}


def _field_of(parameter: places.Parameter, *, secret: bool) -> forms.Field:
    default, help_text = parameter["default"], parameter["about"]
    common: dict[str, Any] = {"label": parameter["name"], "help_text": help_text, "required": default is None}
    if isinstance(default, bool):
        choices = [("true", _("yes")), ("false", _("no"))]
        return forms.ChoiceField(**common, choices=choices, initial="true" if default else "false")
    if isinstance(default, int):
        return forms.IntegerField(**common, initial=default)
    if isinstance(default, float):
        return forms.FloatField(**common, initial=default)
    widget = forms.PasswordInput(attrs={"autocomplete": "off"}) if secret else forms.TextInput()
    return forms.CharField(**common, initial=default, widget=widget, strip=False, max_length=places.MAX_LENGTH)


def _right(read: Any, text: str) -> Any:
    try:
        return read(text)
    except DomainError as exc:
        raise forms.ValidationError([refusal.message for refusal in exc.every]) from None

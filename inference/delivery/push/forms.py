"""Forms of push targets and of pushes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.titles import TITLE
from inference.delivery.push.models import Push, PushTarget, UsableBy
from inference.delivery.push.protocol import PushProtocol
from inference.delivery.push.targets import LONGEST_ADDRESS, LONGEST_CA, LONGEST_OPTION, LONGEST_SECRET
from inference.registry.models import ModelVersion

OPTION = "option_"


class Unseen(forms.Textarea):
    """Lines that are never shown again, not even where the form is refused."""

    def format_value(self, value: Any) -> str:
        return ""


class PushTargetForm(forms.Form):
    """A target of one kind. Options of the kind become separate fields."""

    name = forms.CharField(label=_("Name"), max_length=100, validators=[TITLE])
    address = forms.CharField(
        label=_("Address"),
        max_length=LONGEST_ADDRESS,
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "autocapitalize": "off"}),
    )

    def __init__(self, *args: Any, protocol: PushProtocol, target: PushTarget | None = None, **more: Any) -> None:
        if target is not None:
            shown = {f"{OPTION}{name}": value for name, value in target.options.items()}
            more["initial"] = shown | {
                "name": target.name, "address": target.address, "ca": target.ca, "visibility": target.visibility,
            }  # fmt: skip
        super().__init__(*args, **more)
        self.protocol = protocol
        self.fields["address"].help_text = protocol.address_help
        for option in protocol.options:
            self.fields[f"{OPTION}{option.name}"] = _field_of(option)
        self.fields["secret"] = _secret(protocol, is_kept=target is not None and bool(target.secret))
        if protocol.has_ca:
            self.fields["ca"] = forms.CharField(
                label=_("Certificate authority"),
                max_length=LONGEST_CA,
                required=False,
                widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
                help_text=_("For servers with an internal certificate authority: its certificate, in PEM."),
            )
        self.fields["visibility"] = forms.ChoiceField(
            label=_("Visible to"), choices=UsableBy.choices, initial=UsableBy.PRIVATE
        )

    @property
    def service_params(self) -> dict[str, Any]:
        """Return the arguments of the service for a valid form."""
        values = dict(self.cleaned_data)
        options = {option.name: values.pop(f"{OPTION}{option.name}") for option in self.protocol.options}
        return values | {"options": options}


def _field_of(option: Any) -> forms.Field:
    if option.yes_no:
        return forms.BooleanField(
            label=option.label, required=False, initial=option.default, help_text=option.help_text
        )
    return forms.CharField(
        label=option.label,
        required=option.required,
        max_length=LONGEST_OPTION,
        initial=option.default,
        help_text=option.help_text,
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "autocapitalize": "off"}),
    )


def _secret(protocol: PushProtocol, *, is_kept: bool) -> forms.Field:
    lines = getattr(protocol, "secret_has_lines", False)
    attrs = {"autocomplete": "new-password", "spellcheck": "false", "class": "mono"}
    kept_help = _("Stored encrypted. Leave empty to keep the current value; a new address requires it again.")
    return forms.CharField(
        label=protocol.secret_label,
        max_length=LONGEST_SECRET,
        required=protocol.secret_required and not is_kept,
        strip=False,
        widget=Unseen(attrs=attrs | {"rows": 4}) if lines else forms.PasswordInput(attrs=attrs),
        help_text=kept_help if is_kept else _("Stored encrypted and never shown again."),
    )


class PushForm(forms.Form):
    """Where a version goes, and what of it."""

    target = forms.ModelChoiceField(
        label=_("Target"), queryset=PushTarget.objects.none(), empty_label=_("Choose a target")
    )
    content = forms.ChoiceField(label=_("Contents"), choices=Push.Content.choices)

    def __init__(self, *args: Any, user: User, version: ModelVersion, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["target"].queryset = PushTarget.objects.usable_by(user).order_by("name")  # type: ignore[attr-defined]  # a choice among rows, declared above
        if not version.can_be_evaluated:
            self.fields["content"].choices = [c for c in Push.Content.choices if c[0] == Push.Content.FILES]  # type: ignore[attr-defined]  # declared above

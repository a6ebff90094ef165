"""Forms of the alarm pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import EmailValidator
from django.utils.translation import gettext_lazy as _

from workers.core.models import AlarmAddress, AlarmRule
from workers.resources.monitoring.rules import RULES

SILENCES = [("1", _("1 hour")), ("4", _("4 hours")), ("24", _("1 day")), ("168", _("1 week"))]


class RuleForm(forms.ModelForm):
    """What an operator sets of a rule. A rule without a unit has no threshold."""

    class Meta:
        model = AlarmRule
        fields = ["enabled", "severity", "threshold", "for_s", "send"]
        labels = {"for_s": _("Minimum duration"), "enabled": _("This rule is enabled")}
        help_texts = {
            "for_s": _("Raised after the condition held for this long without interruption."),
            "send": _("Otherwise it is only shown here."),
        }

    def __init__(self, data: Any = None, *, rule: AlarmRule) -> None:
        super().__init__(data, instance=rule)
        self.fields["threshold"].label = _("Threshold")
        if not RULES[rule.key].unit_of(rule.threshold):
            del self.fields["threshold"]


class AddressForm(forms.ModelForm):
    """Address that alarms are sent to."""

    class Meta:
        model = AlarmAddress
        fields = ["channel", "target", "least", "enabled"]
        labels = {"target": _("E-mail address or webhook"), "enabled": _("Send to this address")}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("channel") == AlarmAddress.Channel.MAIL and data.get("target"):
            try:
                EmailValidator()(data["target"])
            except forms.ValidationError as exc:
                self.add_error("target", exc)
        return data

    def _post_clean(self) -> None:
        """The service writes; nothing is put on the instance here."""


class SilenceForm(forms.Form):
    """How long an alarm is silenced."""

    hours = forms.ChoiceField(label=_("Silence for"), choices=SILENCES)

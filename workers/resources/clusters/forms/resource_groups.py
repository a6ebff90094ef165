"""Forms of resource groups."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from workers.core.models import Node, ResourceGroup
from workers.resources.clusters.resource_groups import Hours, kind_choices

WEEKDAYS = [(0, _("Mon")), (1, _("Tue")), (2, _("Wed")), (3, _("Thu")), (4, _("Fri")), (5, _("Sat")), (6, _("Sun"))]
SPARE = 2
"""Empty windows the form offers beyond those there are."""


class ResourceGroupForm(forms.Form):
    """Name, machines and kinds of a resource group."""

    name = forms.CharField(label=_("Name"), max_length=50)
    nodes: Any = forms.ModelMultipleChoiceField(None, label=_("Nodes"), widget=forms.CheckboxSelectMultiple)
    kinds = forms.MultipleChoiceField(
        label=_("Reserved for"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Only these start there during its hours."),
    )

    def __init__(self, data: Any = None, *, user: User, group: ResourceGroup | None = None) -> None:
        initial = {"name": group.name, "nodes": group.nodes.all(), "kinds": group.kinds} if group else None
        super().__init__(data, initial=initial)
        present = Node.objects.visible_to(user).exclude(state=Node.State.REMOVED)
        self.fields["nodes"].queryset = present  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.fields["kinds"].choices = kind_choices()  # type: ignore[attr-defined]  # a field of choices, declared above


class WindowForm(forms.Form):
    """One window. A row without times is left out."""

    weekdays = forms.TypedMultipleChoiceField(
        label=_("Start day"), coerce=int, choices=WEEKDAYS, required=False, widget=forms.CheckboxSelectMultiple
    )
    begins = forms.TimeField(label=_("Start time"), required=False, widget=forms.TimeInput({"type": "time"}, "%H:%M"))
    ends = forms.TimeField(label=_("Ends at"), required=False, widget=forms.TimeInput({"type": "time"}, "%H:%M"))

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        times = (data.get("begins"), data.get("ends"))
        if any(times) or data.get("weekdays"):
            for name in ("begins", "ends", "weekdays"):
                if data.get(name) in (None, []) and name not in self.errors:
                    self.add_error(name, _("A window needs weekdays, a start and an end."))
        return data

    def hours(self) -> Hours | None:
        """The window, None for an empty row."""
        data = self.cleaned_data
        if data.get("begins") is None:
            return None
        return Hours(frozenset(data["weekdays"]), data["begins"], data["ends"])


WindowFormSet = forms.formset_factory(WindowForm, extra=0, max_num=10, validate_max=True)


def windows_form(data: Any = None, *, group: ResourceGroup | None = None) -> Any:
    """The windows of a group, and some empty rows."""
    shown: list[dict[str, Any]] = []
    if group:
        shown = [{"weekdays": w.weekdays, "begins": w.begins, "ends": w.ends} for w in group.windows.all()]
    return WindowFormSet(data, initial=shown + [{}] * min(SPARE, 10 - len(shown)), prefix="windows")

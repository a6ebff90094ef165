"""Forms with which roles and groups are made and changed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.access.permissions import (
    ACTION_LABELS,
    AI_PLATFORM,
    ANNOTATION_PLATFORM,
    EVERYONE,
    Action,
    grouped_actions,
)
from accounts.forms.people import ChosenForm
from accounts.models import Role, User, UserGroup

OWN_CHOICE = "own"
#: The two permission sets of the platform, and the fine actions for those who want them.
SETS = {
    "ai": (_("AI platform: all features including annotation, without user management"), AI_PLATFORM),
    "annotation": (_("Annotation platform: annotate images only"), ANNOTATION_PLATFORM),
}


def set_of(actions: frozenset[Action]) -> str:
    """Return the permission set that equals these actions; "own" where none does."""
    return next((key for key, (_words, held) in SETS.items() if held == actions), OWN_CHOICE)


class RoleForm(forms.Form):
    """A custom role: its name and a permission set, or fine actions; offers what the maker may do."""

    name = forms.CharField(label=_("Name"), max_length=50)
    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    set = forms.ChoiceField(label=_("Permissions"), widget=forms.RadioSelect, initial="ai")
    actions = forms.MultipleChoiceField(
        label=pgettext_lazy("rights", "Access"), widget=forms.CheckboxSelectMultiple, required=False
    )

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = by.actions() | EVERYONE
        sets = [(key, label) for key, (label, held) in SETS.items() if held <= own]
        self.fields["set"].choices = [*sets, (OWN_CHOICE, _("Custom"))]  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["actions"].choices = [  # type: ignore[attr-defined]  # a field of choices, declared above
            (label, [(action.value, ACTION_LABELS[action]) for action in actions])
            for label, actions in grouped_actions(own - EVERYONE)
        ]

    def clean(self) -> dict[str, Any]:
        """Set `actions` to what the role will allow, whichever way it was chosen."""
        cleaned = super().clean() or {}
        chosen = cleaned.pop("set", OWN_CHOICE)
        if chosen in SETS:
            cleaned["actions"] = sorted(action.value for action in SETS[chosen][1])
        elif not cleaned.get("actions") and "actions" not in self.errors:
            self.add_error("actions", _("Choose at least one."))
        return cleaned


class GroupForm(ChosenForm):
    """A group without its members."""

    name = forms.CharField(label=_("Name"), max_length=50)
    description = forms.CharField(label=_("Description"), max_length=200)

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose("roles", _("Roles"), Role.objects.visible_to(by), required=True)


class RoleGroupsForm(ChosenForm):
    """The groups that give a role."""

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose("groups", _("Groups"), UserGroup.objects.visible_to(by))

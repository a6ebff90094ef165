"""Forms with which administrators make and change accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.access import clusters
from accounts.forms.picking import PeopleField
from accounts.models import Role, User, UserGroup
from accounts.services import cluster_membership

USERNAME = User._meta.get_field("username").validators


class ChosenForm(forms.Form):
    """A form that chooses among roles, groups and clusters; lists what the administrator may see."""

    def choose(self, name: str, label: Any, rows: Any, *, required: bool = False, help_text: Any = "") -> None:
        self.fields[name] = forms.ModelMultipleChoiceField(
            rows, label=label, required=required, help_text=help_text, widget=forms.CheckboxSelectMultiple
        )

    def choose_clusters(self, choices: Sequence[tuple[int, str]]) -> None:
        if choices:
            self.fields["clusters"] = forms.TypedMultipleChoiceField(
                label=_("Clusters"),
                choices=choices,
                coerce=int,
                required=False,
                widget=forms.CheckboxSelectMultiple,
                help_text=_("Jobs run in a cluster; a user without a cluster cannot start jobs."),
            )


class PeopleFileForm(ChosenForm):
    """A table of accounts."""

    file = forms.FileField(
        label=_("Table"),
        help_text=_(
            "CSV with the columns username, nickname, email, phone, roles, groups, clusters; only username is "
            "required. At most 1,000 rows and 1 MiB."
        ),
        widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}),
    )

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = _("For rows without roles.")
        self.choose("roles", _("Roles"), Role.objects.visible_to(by), help_text=names)
        self.choose("groups", _("Groups"), UserGroup.objects.visible_to(by), help_text=names)
        self.choose_clusters(cluster_membership.choices(by))


class AccountDeletionForm(forms.Form):
    """Who gets the things of an account that is deleted."""

    required_where_shown = ("taker",)
    then = forms.ChoiceField(
        label=_("Their owner"),
        choices=[("give", _("Transfer ownership")), ("keep", _("Keep under the deleted name"))],
        widget=forms.RadioSelect,
        initial="give",
    )
    taker = PeopleField(label=_("New owner"), required=False, max_count=1)
    confirm = forms.CharField(
        label=_("Type the username to confirm"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, person: User, by: User, owns: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        if not owns:
            del self.fields["then"], self.fields["taker"]
            return
        others = User.objects.visible_to(by).filter(is_active=True).exclude(pk=person.pk)
        self.fields["taker"].among = others  # type: ignore[attr-defined]  # a field of people, declared above

    def clean_taker(self) -> User | None:
        named: list[User] = self.cleaned_data["taker"]
        return named[0] if named else None

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.person.username:
            raise forms.ValidationError(_("The username does not match."))
        return typed

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("then") == "give" and not cleaned.get("taker") and "taker" not in self.errors:
            self.add_error("taker", _("Choose the new owner."))
        return cleaned


class PersonFactsForm(forms.Form):
    """Facts of an account that an administrator may correct."""

    nickname = forms.CharField(label=_("Display name"), max_length=50, required=False)
    email = forms.EmailField(label=_("E-mail"), required=False)
    phone = forms.CharField(label=_("Phone"), max_length=30, required=False)


class RightsForm(ChosenForm):
    """Roles, groups and clusters of one person."""

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose("roles", _("Roles"), Role.objects.visible_to(by))
        self.choose("groups", _("Groups"), UserGroup.objects.visible_to(by))
        self.choose_clusters(clusters.choices())


class PeopleForm(forms.Form):
    """People to be added to a group or given a role."""

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["people"] = PeopleField(among=User.objects.visible_to(by).filter(is_active=True), label=_("Users"))

"""The table of new users: one row per user, rows without a value are ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import USER, Action
from accounts.forms.own import MAX_PASSWORD
from accounts.forms.people import USERNAME
from accounts.models import Role, User, UserGroup
from accounts.services import ceiling, cluster_membership, finding, passwords, people
from aiplatform.lib.pages import errors_shown_on

SHOWN_ROWS = 5  # of an empty table; all there are without scripts
MAX_ROWS = 50  # accounts of one request, which hashes their passwords
OPTIONAL = ("group", "email", "phone", "password")
"""Columns that are hidden until a user shows them or they have a value."""
FIELDS = ("username", "nickname", "role", "cluster", *OPTIONAL)
TEXTS = ("username", "nickname", "email", "phone", "password")
PASTED = "name:"  # before a name that a paste brought and that the page does not know


@dataclass(frozen=True)
class Choices:
    """What the user who creates the accounts can grant: (id, label) by column, and ids by lower-case name.

    `without_jobs` names roles that start no jobs: a cluster has no effect for them.
    """

    columns: dict[str, list[tuple[str, str]]]
    ids: dict[str, dict[str, str]]
    initial: dict[str, str]
    without_jobs: Sequence[str] = ()

    @classmethod
    def for_user(cls, by: User) -> Choices:
        """Leave out what the services would refuse to `by`."""
        roles = {name: role for name, role in finding.roles_by_name(by).items() if ceiling.covers(by, role.allows())}
        groups = [
            group
            for group in UserGroup.objects.visible_to(by).prefetch_related("roles").order_by("name")
            if ceiling.covers(by, ceiling.of_groups([group]))
        ]
        listed = sorted(set(roles.values()), key=lambda role: (not role.preset, role.pk))
        joined = cluster_membership.choices(by)
        role_ids = {name: str(role.pk) for name, role in roles.items()}
        columns = {
            "role": [(str(role.pk), role.label) for role in listed],
            "cluster": [(str(pk), name) for pk, name in joined],
            "group": [(str(group.pk), group.name) for group in groups],
        }
        ids = {name: {label.lower(): pk for pk, label in pairs} for name, pairs in columns.items()}
        ids["role"] |= {name.lower(): pk for name, pk in role_ids.items()}
        initial = {"role": _usual_role(listed), "cluster": columns["cluster"][0][0] if len(joined) == 1 else ""}
        return cls(columns, ids, initial, [str(role.pk) for role in listed if Action.JOBS_VIEW not in role.allows()])


def _usual_role(roles: Iterable[Role]) -> str:
    return next((str(role.pk) for role in roles if role.preset and role.name == USER), "")


class NamedSelect(forms.Select):
    """A selection that also shows a pasted name that is no choice."""

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> Any:
        pasted = [(text, text.removeprefix(PASTED)) for text in value if text.startswith(PASTED)]
        choices = self.choices
        self.choices = [*choices, *pasted]
        try:
            return super().optgroups(name, value, attrs)
        finally:
            self.choices = choices


class NamedChoice(forms.ChoiceField):
    """A choice by id, or by the name that a paste brought."""

    widget = NamedSelect

    def __init__(self, *, ids: dict[str, str], unknown: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ids, self.unknown = ids, unknown

    def to_python(self, value: Any) -> str:
        text = super().to_python(value)
        if not text.startswith(PASTED):
            return text
        name = text.removeprefix(PASTED).strip()
        if name.lower() not in self.ids:
            raise ValidationError(self.unknown % {"name": name[:50]})
        return self.ids[name.lower()]


UNKNOWN = {
    "role": gettext_lazy("No role is named “%(name)s”."),
    "cluster": gettext_lazy("No cluster is named “%(name)s”."),
    "group": gettext_lazy("No group is named “%(name)s”."),
}


class NewUserForm(forms.Form):
    """One row. Its name, where it has none, is the username; its password, where it has none, is generated."""

    called = {"roles": "role", "groups": "group", "clusters": "cluster"}  # fields of the services
    username = forms.CharField(label=gettext_lazy("Username"), max_length=50, validators=USERNAME)
    nickname = forms.CharField(label=gettext_lazy("Display name"), max_length=50, required=False)
    email = forms.EmailField(label=gettext_lazy("E-mail"), required=False, widget=forms.TextInput)
    phone = forms.CharField(label=gettext_lazy("Phone"), max_length=30, required=False)
    password = forms.CharField(
        label=gettext_lazy("Initial password"), max_length=MAX_PASSWORD, strip=False, required=False
    )

    def __init__(self, *args: Any, choices: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        labels = {"role": gettext_lazy("Role"), "cluster": gettext_lazy("Cluster"), "group": gettext_lazy("Group")}
        for name, label in labels.items():
            if pairs := choices.columns[name]:
                self.fields[name] = NamedChoice(
                    label=label,
                    choices=[("", "–"), *pairs],
                    ids=choices.ids[name],
                    unknown=UNKNOWN[name],
                    required=name == "role",
                    initial=choices.initial.get(name, ""),
                )
        self.order_fields(FIELDS)
        index = (self.prefix or "").partition("-")[2]
        number = int(index) + 1 if index.isdecimal() else ""
        for name, field in self.fields.items():
            attrs = {"class": "input", "autocomplete": "off", "data-column": name}
            attrs |= {"aria-label": f"{field.label} {number}", "data-label": str(field.label)}
            if name in TEXTS:
                attrs |= {"spellcheck": "false", "autocapitalize": "none"}
            field.widget.attrs.update(attrs)
        if role := self.fields.get("role"):
            role.widget.attrs["data-without-jobs"] = " ".join(choices.without_jobs)

    def has_changed(self) -> bool:
        """Whether the row is one: a chosen role alone is none."""
        return any(self[name].value() for name in TEXTS)

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        with errors_shown_on(self):
            people.check_free(username=username)
        return username

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("password"):
            person = User(**{name: cleaned.get(name, "") for name in ("username", "nickname", "email")})
            with errors_shown_on(self):
                passwords.check(cleaned["password"], person)
        return cleaned


class NewUsersFormSet(forms.BaseFormSet):
    """The table. `columns` are its optional columns that show."""

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        choices: Choices,
        shown: Collection[str] = (),
        initial: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(data, prefix="u", initial=initial, form_kwargs={"choices": choices})
        self.choices, self.shown = choices, shown

    def initial_form_count(self) -> int:
        """Every row may be empty, also one with values of a former request."""
        return 0

    @cached_property
    def rows(self) -> Sequence[forms.BaseForm]:
        """The rows of users."""
        return [form for form in self.forms if form.has_changed()]

    @property
    def head(self) -> list[dict[str, Any]]:
        """The columns: {name, label, required, optional, shown}."""
        return [
            {
                "name": name,
                "label": field.label,
                "required": field.required,
                "optional": name in OPTIONAL,
                "shown": name not in OPTIONAL or name in self.shown or any(self._has(form, name) for form in self),
            }
            for name, field in self.empty_form.fields.items()
        ]

    def _has(self, form: forms.BaseForm, name: str) -> bool:
        return bool(form[name].value()) or (form.is_bound and name in form.errors)

    def clean(self) -> None:
        """Refuse an empty table, too many rows, and a username that is in two rows."""
        if not self.rows:
            self.forms[0].add_error("username", _("Enter at least one user."))
        if len(self.rows) > MAX_ROWS:
            raise ValidationError(_("Create at most %(max)s users at once.") % {"max": MAX_ROWS})
        first: dict[str, int] = {}
        for number, form in enumerate(self.forms, 1):
            name = form.cleaned_data.get("username", "").lower() if form in self.rows else ""
            if name and first.setdefault(name, number) != number:
                form.add_error("username", _("Row %(row)s has the same username.") % {"row": first[name]})


TABLE = cast(
    "type[NewUsersFormSet]",
    forms.formset_factory(
        NewUserForm, formset=NewUsersFormSet, extra=SHOWN_ROWS, max_num=MAX_ROWS, absolute_max=4 * MAX_ROWS
    ),
)

"""Pages of roles, for administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts.access.permissions import ACTION_LABELS, EVERYONE, Action, grouped_actions
from accounts.forms.people import PeopleForm
from accounts.forms.rights import RoleForm, RoleGroupsForm, set_of
from accounts.http import SignedInRequest
from accounts.models import Role, User, UserGroup
from accounts.presentation.orders import ROLES
from accounts.services import ceiling, roles
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from aiplatform.objects.filters import ObjectFilters
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, MainColumn, Table


def _role(request: SignedInRequest, pk: int) -> Role:
    return get_object_or_404(Role.objects.visible_to(request.user), pk=pk)


class RoleFilters(ObjectFilters):
    orders = ROLES


class RolePages(ObjectPages[Role]):
    """The list of roles, preset ones first, the form of a custom one, and the action that deletes one."""

    model, filters = Role, RoleFilters
    namespace, basename, path = "accounts", "role", "people/roles/"
    url_names = {"list": "roles", "detail": "role"}
    view_permission = change_permission = Action.PEOPLE_MANAGE
    table = Table(
        MainColumn(gettext_lazy("Name"), "row.label", sort="name"),
        Column(gettext_lazy("Description"), "row.about"),
        Column(gettext_lazy("Type"), template="accounts/_role_type.html", sort="kind"),
        Column(gettext_lazy("Users"), "row.people_count|count", sort="people", kind="num"),
        Column(gettext_lazy("Groups"), "row.group_count|count", sort="groups", kind="num"),
        Column(gettext_lazy("Actions"), template="accounts/_role_buttons.html", kind="actions"),
    )
    region, title = "roles", gettext_lazy("Roles")
    new_title, save_label = gettext_lazy("New role"), gettext_lazy("Create role")
    parents = (("accounts:people", gettext_lazy("Users")),)
    lead = gettext_lazy("A role is a set of permissions.")
    delete_shows_refusals = False
    table_template, form_template = "accounts/_role_table.html", "accounts/role_new.html"

    def rows(self, request: SignedInRequest, which: str = "visible_to") -> Any:
        counted = {"people_count": Count("users", distinct=True), "group_count": Count("user_groups", distinct=True)}
        return super().rows(request, which).annotate(**counted)

    def form(self, request: SignedInRequest, row: Role | None = None) -> RoleForm:
        return RoleForm(request.POST or None, by=request.user)

    def service_check(self, request: SignedInRequest, row: Role | None) -> Any:
        return roles.check_role_name

    def create(self, request: SignedInRequest, form: Any) -> Role:
        role = roles.create(**form.cleaned_data, by=request.user)
        messages.success(request, _("Role %(name)s created. Assign users and groups here.") % {"name": role.name})
        return role

    def remove(self, request: SignedInRequest, row: Role) -> None:
        roles.delete(role=row, by=request.user)
        messages.success(request, _("Role %(name)s deleted.") % {"name": row.name})


def _page(request: SignedInRequest, role: Role, *, status: int = 200, **forms: Any) -> HttpResponse:
    held = role.allows()
    initial = {
        "name": role.name,
        "description": role.description,
        "set": set_of(held | EVERYONE),
        "actions": [action.value for action in held],
    }
    context = {
        "role": role,
        "form": forms.get("form") or RoleForm(initial=initial, by=request.user),
        "allowed": [(label, [ACTION_LABELS[action] for action in own]) for label, own in grouped_actions(held)],
        "holders": role.users.filter(deleted_at=None).order_by("username")[:500],
        "giving": forms.get("giving") or PeopleForm(by=request.user),
        "groups": forms.get("groups") or RoleGroupsForm(initial={"groups": role.user_groups.all()}, by=request.user),
        "any_group": UserGroup.objects.visible_to(request.user).exists(),
        "reachable": ceiling.covers(request.user, held),
    }
    return render(request, "accounts/role_detail.html", context, status=status)


@needs(Action.PEOPLE_MANAGE)
def role_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """See a role and who has it; change it if it is custom."""
    role = _role(request, pk)
    form = RoleForm(request.POST, by=request.user) if request.method == "POST" else None
    if form is not None and form.is_valid():
        with errors_shown_on(form):
            roles.update(role=role, **form.cleaned_data, by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:role", role.pk)
    elif form is not None:
        check_valid_fields(form, roles.check_role_name, role=role)
    return _page(request, _role(request, pk), form=form, status=200 if form is None else 422)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def role_give(request: SignedInRequest, pk: int) -> HttpResponse:
    """Give a role to people, next to what else they have."""
    role, form = _role(request, pk), PeopleForm(request.POST, by=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            roles.assign(role=role, people=form.cleaned_data["people"], by=request.user)
            messages.success(request, _("Added."))
            return redirect("accounts:role", role.pk)
    return _page(request, role, giving=form, status=422)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def role_take(request: SignedInRequest, pk: int, person: int) -> HttpResponse:
    """Take a role from one person."""
    role = _role(request, pk)
    who = get_object_or_404(User.objects.visible_to(request.user), pk=person)
    roles.revoke(role=role, person=who, by=request.user)
    messages.success(request, _("%(name)s no longer has this role.") % {"name": who})
    return redirect("accounts:role", role.pk)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def role_groups(request: SignedInRequest, pk: int) -> HttpResponse:
    """Choose the groups that give a role."""
    role, form = _role(request, pk), RoleGroupsForm(request.POST, by=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            roles.set_holders(role=role, users=role.users.all(), groups=form.cleaned_data["groups"], by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:role", role.pk)
    return _page(request, role, groups=form, status=422)

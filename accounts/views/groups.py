"""Pages of groups, for administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.forms.people import PeopleForm
from accounts.forms.rights import GroupForm
from accounts.http import SignedInRequest
from accounts.models import User, UserGroup
from accounts.presentation.orders import GROUPS
from accounts.services import roles
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from aiplatform.objects.filters import ObjectFilters, Words
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, MainColumn, Table


def _group(request: SignedInRequest, pk: int) -> UserGroup:
    return get_object_or_404(UserGroup.objects.visible_to(request.user), pk=pk)


class GroupFilters(ObjectFilters):
    search = Words("name", "description", label=gettext_lazy("Name or description"))
    orders = GROUPS


class GroupPages(ObjectPages[UserGroup]):
    """The list of groups, the form of a new one, and the action that deletes one; members keep their own roles."""

    model, filters = UserGroup, GroupFilters
    namespace, basename, path = "accounts", "group", "people/groups/"
    url_names = {"list": "groups", "detail": "group"}
    view_permission = change_permission = Action.PEOPLE_MANAGE
    table = Table(
        MainColumn(gettext_lazy("Name"), "row.name", sort="name"),
        Column(gettext_lazy("Description"), "row.description"),
        Column(
            gettext_lazy("Roles"),
            '{% for role in row.roles.all %}<span class="tag">{{ role.label }}</span> {% endfor %}',
        ),
        Column(gettext_lazy("Users"), "row.member_count|count", sort="people", kind="num"),
        Column(gettext_lazy("Created"), "row.created_at|ago", sort="made", kind="time"),
        Column(gettext_lazy("Actions"), template="accounts/_group_buttons.html", kind="actions"),
    )
    region, art, title = "groups", "people", gettext_lazy("Groups")
    parents = (("accounts:people", gettext_lazy("Users")),)
    lead = gettext_lazy("A group grants its roles to all members.")
    filter_label, no_match_text = gettext_lazy("Filter groups"), gettext_lazy("No group matches.")
    empty_text = gettext_lazy("No groups yet. A group grants the same roles to several users at once.")
    new_title, save_label = gettext_lazy("New group"), gettext_lazy("Create group")
    delete_shows_refusals = False
    table_template = "accounts/_group_table.html"

    def rows(self, request: SignedInRequest, which: str = "visible_to") -> Any:
        return super().rows(request, which).prefetch_related("roles").annotate(member_count=Count("users"))

    def form(self, request: SignedInRequest, row: UserGroup | None = None) -> GroupForm:
        return GroupForm(request.POST or None, by=request.user)

    def service_check(self, request: SignedInRequest, row: UserGroup | None) -> Any:
        return roles.check_group_name

    def create(self, request: SignedInRequest, form: Any) -> UserGroup:
        group = roles.create_group(**form.cleaned_data, by=request.user)
        messages.success(request, _("Group %(name)s created. Add members here.") % {"name": group.name})
        return group

    def remove(self, request: SignedInRequest, row: UserGroup) -> None:
        roles.delete_group(group=row, by=request.user)
        messages.success(request, _("Group %(name)s deleted.") % {"name": row.name})


def _page(request: SignedInRequest, group: UserGroup, *, status: int = 200, **forms: Any) -> HttpResponse:
    initial = {"name": group.name, "description": group.description, "roles": group.roles.all()}
    context = {
        "group": group,
        "form": forms.get("form") or GroupForm(initial=initial, by=request.user),
        "joining": forms.get("joining") or PeopleForm(by=request.user),
        "members": group.users.order_by("username"),
    }
    return render(request, "accounts/group_detail.html", context, status=status)


@needs(Action.PEOPLE_MANAGE)
def group_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """A group: its information, its roles, its people."""
    group = _group(request, pk)
    form = GroupForm(request.POST, by=request.user) if request.method == "POST" else None
    if form is not None and form.is_valid():
        with errors_shown_on(form):
            roles.update_group(group=group, **form.cleaned_data, members=group.users.all(), by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:group", group.pk)
    elif form is not None:
        check_valid_fields(form, roles.check_group_name, group=group)
    return _page(request, _group(request, pk), form=form, status=200 if form is None else 422)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def group_join(request: SignedInRequest, pk: int) -> HttpResponse:
    """Add people to a group."""
    group, form = _group(request, pk), PeopleForm(request.POST, by=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            roles.add_members(group=group, people=form.cleaned_data["people"], by=request.user)
            messages.success(request, _("Added."))
            return redirect("accounts:group", group.pk)
    return _page(request, group, joining=form, status=422)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def group_leave(request: SignedInRequest, pk: int, person: int) -> HttpResponse:
    """Take one person out of a group."""
    group = _group(request, pk)
    who = get_object_or_404(User.objects.visible_to(request.user), pk=person)
    roles.remove_member(group=group, person=who, by=request.user)
    messages.success(request, _("%(name)s was removed from this group.") % {"name": who})
    return redirect("accounts:group", group.pk)

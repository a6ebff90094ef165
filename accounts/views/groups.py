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
from accounts.forms.rights import GroupFactsForm, GroupForm, GroupRolesForm
from accounts.forms.wizard import Step, Wizard, part
from accounts.http import SignedInRequest
from accounts.models import User, UserGroup
from accounts.presentation.orders import GROUPS
from accounts.services import roles
from accounts.views.people import counts
from aiplatform.lib import search
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, is_name_confirmed, needs


def _group(request: SignedInRequest, pk: int) -> UserGroup:
    return get_object_or_404(UserGroup.objects.visible_to(request.user), pk=pk)


@needs(Action.PEOPLE_MANAGE)
def group_list(request: SignedInRequest) -> HttpResponse:
    """List groups with their roles and number of members, by name. htmx gets the table alone."""
    rows = UserGroup.objects.visible_to(request.user).prefetch_related("roles").annotate(member_count=Count("users"))
    matches = search.filter_by_text(rows, request.GET.get("q", "")[: search.MAX_QUERY_LENGTH], "name", "description")
    context = {"page": GROUPS.page(request, matches)}
    if request.htmx:
        return render(request, "accounts/_group_table.html", context)
    return render(request, "accounts/group_list.html", context | {"counts": counts(request.user)})


@needs(Action.PEOPLE_MANAGE)
def group_new(request: SignedInRequest) -> HttpResponse:
    """Information → roles → confirm."""
    data = request.POST if request.method == "POST" else None
    wizard = Wizard(
        [
            Step("facts", gettext_lazy("Details"), [part(GroupFactsForm, "f")]),
            Step("roles", gettext_lazy("Roles"), [part(GroupRolesForm, "r", by=request.user)]),
            Step("confirm", gettext_lazy("Confirm"), []),
        ],
        data,
    )
    if wizard.walk():
        with errors_shown_on(wizard.bound(0)[0]):
            group = roles.create_group(**wizard.cleaned(0)[0], **wizard.cleaned(1)[0], by=request.user)
            messages.success(request, _("Group %(name)s created. Add members here.") % {"name": group.name})
            return redirect("accounts:group", group.pk)
        wizard.refuse(0)
    context: dict[str, object] = {"wizard": wizard}
    if wizard.is_last:
        context |= {"facts": wizard.bound(0)[0], "rights": wizard.bound(1)[0]}
    return render(request, "accounts/group_new.html", context, status=wizard.status)


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


@require_POST
@needs(Action.PEOPLE_MANAGE)
def group_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a group; its members keep their own roles."""
    group = _group(request, pk)
    if not is_name_confirmed(request, group.name):
        return redirect("accounts:group", group.pk)
    roles.delete_group(group=group, by=request.user)
    messages.success(request, _("Group %(name)s deleted.") % {"name": group.name})
    return redirect("accounts:groups")

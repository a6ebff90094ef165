"""Groups and roles as administrators see them."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.forms import GroupForm, RoleForm
from accounts.http import SignedInRequest
from accounts.models import Role, UserGroup
from accounts.permissions import ACTION_WORDS, Action
from accounts.services import roles
from accounts.views.people import counts
from aiplatform.lib.pages import needs, refusals_shown_on


@needs(Action.PEOPLE_MANAGE)
def role_list(request: SignedInRequest) -> HttpResponse:
    """Preset roles first, then custom ones."""
    rows = Role.objects.visible_to(request.user).annotate(
        people=Count("users", distinct=True), groups=Count("user_groups", distinct=True)
    )
    return render(request, "accounts/role_list.html", {"roles": rows, "counts": counts(request.user)})


@needs(Action.PEOPLE_MANAGE)
def role_new(request: SignedInRequest) -> HttpResponse:
    """Make a custom role."""
    form = RoleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            role = roles.create(**form.cleaned_data, by=request.user)
            messages.success(request, _("Role %(name)s made.") % {"name": role.name})
            return redirect("accounts:roles")
    return render(request, "accounts/role_form.html", {"form": form}, status=422 if form.errors else 200)


@needs(Action.PEOPLE_MANAGE)
def role_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """See a role; change it if it is custom."""
    role = get_object_or_404(Role.objects.visible_to(request.user), pk=pk)
    given = {"name": role.name, "description": role.description, "actions": role.actions}
    form = RoleForm(request.POST or None, initial=given)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            roles.update(role=role, **form.cleaned_data, by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:roles")
    context = {
        "role": role,
        "form": form,
        "allowed": [words for action, words in ACTION_WORDS.items() if action.value in role.actions],
    }
    return render(request, "accounts/role_form.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def role_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a custom role."""
    role = get_object_or_404(Role.objects.visible_to(request.user), pk=pk)
    roles.delete(role=role, by=request.user)
    messages.success(request, _("Role %(name)s deleted.") % {"name": role.name})
    return redirect("accounts:roles")


@needs(Action.PEOPLE_MANAGE)
def group_list(request: SignedInRequest) -> HttpResponse:
    """Groups with their roles and how many people they hold."""
    rows = UserGroup.objects.visible_to(request.user).prefetch_related("roles").annotate(people=Count("users"))
    return render(request, "accounts/group_list.html", {"groups": rows, "counts": counts(request.user)})


@needs(Action.PEOPLE_MANAGE)
def group_new(request: SignedInRequest) -> HttpResponse:
    """Make a group."""
    form = GroupForm(request.POST or None, by=request.user)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            group = roles.create_group(**form.cleaned_data, by=request.user)
            messages.success(request, _("Group %(name)s made.") % {"name": group.name})
            return redirect("accounts:groups")
    return render(request, "accounts/group_form.html", {"form": form}, status=422 if form.errors else 200)


@needs(Action.PEOPLE_MANAGE)
def group_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """A group, its roles and its members."""
    group = get_object_or_404(UserGroup.objects.visible_to(request.user), pk=pk)
    given = {
        "name": group.name,
        "description": group.description,
        "roles": group.roles.all(),
        "members": group.users.all(),
    }
    form = GroupForm(request.POST or None, initial=given, by=request.user)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            roles.update_group(group=group, **form.cleaned_data, by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:groups")
    return render(
        request, "accounts/group_form.html", {"form": form, "group": group}, status=422 if form.errors else 200
    )


@require_POST
@needs(Action.PEOPLE_MANAGE)
def group_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a group; its members keep their own roles."""
    group = get_object_or_404(UserGroup.objects.visible_to(request.user), pk=pk)
    roles.delete_group(group=group, by=request.user)
    messages.success(request, _("Group %(name)s deleted.") % {"name": group.name})
    return redirect("accounts:groups")

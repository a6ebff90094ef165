"""Who belongs to a cluster: people and groups, added and taken out at any time."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from workers.core.models import VirtualCluster
from workers.resources.clusters import members
from workers.resources.clusters.forms.clusters import GroupForm, MembersForm
from workers.resources.clusters.views.clusters import administered, frame


@require_GET
@needs(Action.CLUSTER_ADMINISTER)
def show(request: SignedInRequest, pk: int) -> HttpResponse:
    """People and groups of a cluster."""
    return _page(request, administered(request, pk))


def _page(request: SignedInRequest, cluster: VirtualCluster, *, status: int = 200, **forms: Form) -> HttpResponse:
    """The page, with a form that was refused in place of a fresh one; its dialog is open then."""
    people = cluster.memberships.select_related("user").prefetch_related("user__roles", "user__user_groups__roles")
    linked = [link.group for link in cluster.group_links.select_related("group").order_by("group__name")]
    rows = list(people.order_by("user__username"))
    for row in rows:
        row.starts_no_jobs = Action.JOBS_VIEW not in row.user.granted()  # type: ignore[attr-defined]  # as below
        row.through = [group for group in row.user.user_groups.all() if group in linked]  # type: ignore[attr-defined]  # for the template alone
    context = frame(request, cluster, "members") | {
        "members": rows,
        "groups": linked,
        "form": forms.get("people") or MembersForm(),
        "group_form": forms.get("group") or GroupForm(cluster=cluster),
    }
    return render(request, "workers/cluster_members.html", context, status=status)


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def add(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let people in."""
    return _let_in(request, administered(request, pk), MembersForm(request.POST), members.add, "people")


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def add_group(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let a group in."""
    cluster = administered(request, pk)
    return _let_in(request, cluster, GroupForm(request.POST, cluster=cluster), members.add_group, "group")


def _let_in(
    request: SignedInRequest, cluster: VirtualCluster, form: Form, act: Callable[..., int], field: str
) -> HttpResponse:
    if not form.is_valid():
        return _page(request, cluster, status=422, **{field: form})
    added = act(cluster, form.cleaned_data[field], by=request.user)
    messages.info(request, ngettext("%(n)s user added.", "%(n)s users added.", added) % {"n": added})
    return redirect("workers:cluster-members", cluster.pk)


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def remove(request: SignedInRequest, pk: int, person: int) -> HttpResponse:
    """Remove a member."""
    cluster = administered(request, pk)
    member = get_object_or_404(cluster.memberships.select_related("user"), user_id=person).user
    with errors_as_messages(request):
        if not members.remove(cluster, member, by=request.user):
            messages.info(request, _("%(person)s remains a member through a group.") % {"person": member})
    return redirect("workers:cluster-members", pk)


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def remove_group(request: SignedInRequest, pk: int, group: int) -> HttpResponse:
    """Take a group out."""
    cluster = administered(request, pk)
    link = get_object_or_404(cluster.group_links.select_related("group"), group_id=group)
    with errors_as_messages(request):
        members.remove_group(cluster, link.group, by=request.user)
    return redirect("workers:cluster-members", pk)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def set_administrator(request: SignedInRequest, pk: int, person: int) -> HttpResponse:
    """Make a member the cluster's administrator, or no longer."""
    cluster = administered(request, pk)
    membership = get_object_or_404(cluster.memberships.select_related("user"), user_id=person)
    on = request.POST.get("on") == "1"
    members.set_administrator(cluster, membership.user, on=on, by=request.user)
    text = (
        _("%(person)s is an administrator of %(name)s now.")
        if on
        else _("%(person)s does not administer %(name)s any more.")
    )
    messages.info(request, text % {"person": membership.user, "name": cluster.name})
    return redirect("workers:cluster-members", pk)

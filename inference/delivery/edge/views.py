"""Pages of groups of devices outside of the cluster."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, is_name_confirmed, needs
from inference.delivery.edge import agent_download, fleet, logs, packages
from inference.delivery.edge.forms import EdgeDeviceForm, EdgeGroupForm, EdgeReleaseForm
from inference.delivery.edge.labels import FACTS, OUTCOMES, SAMPLES, WAITING, WELL, WRONG, said_of
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from inference.delivery.edge.orders import EDGE_GROUPS

MOST_SHOWN = 500  # devices on the page of a group; the API has all


@needs(Action.SERVICES_VIEW)
def group_list(request: SignedInRequest) -> HttpResponse:
    """Groups this person may see; `?q=`, `?ordering=`. htmx gets the table alone."""
    rows = EdgeGroup.objects.visible_to(request.user).for_list().named_like(request.GET.get("q", ""))
    page = EDGE_GROUPS.page(request, rows)
    groups = [(group, _counts(group)) for group in page]
    template = "inference/_edge_table.html" if request.htmx else "inference/edge_list.html"
    return render(request, template, {"page": page, "groups": groups})


@needs(Action.SERVICES_MANAGE)
def group_new(request: SignedInRequest) -> HttpResponse:
    """The form of a group."""
    form = EdgeGroupForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            group = fleet.create(user=request.user, **form.cleaned_data)
            return redirect("inference:edge-group", group.pk)
    return render(request, "inference/edge_new.html", {"form": form}, status=422 if form.errors else 200)


@needs(Action.SERVICES_VIEW)
def group_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """A group: its devices, its release, and the acts on both. htmx gets the table of devices alone."""
    group: EdgeGroup = get_object_or_404(EdgeGroup.objects.visible_to(request.user).for_list(), pk=pk)
    if request.htmx:
        return render(request, "inference/_edge_devices.html", _shown(request, group))
    return _page(request, group)


def _page(request: SignedInRequest, group: EdgeGroup, status: int = 200, **more: Any) -> HttpResponse:
    forms = {"device_form": EdgeDeviceForm(), "release_form": EdgeReleaseForm(user=request.user, initial=_next(group))}
    return render(request, "inference/edge_group.html", _shown(request, group) | forms | more, status=status)


def _next(group: EdgeGroup) -> dict[str, Any]:
    """What the form of a release begins with: the same version, one stage further."""
    if group.wanted is None or group.share == 100:
        return {}
    further = group.share if group.halted else min(share for share in fleet.SHARES if share > group.share)
    return {"version": group.wanted.version_id, "share": further, "soak_minutes": group.soak_minutes or None}


def _shown(request: SignedInRequest, group: EdgeGroup) -> dict[str, Any]:
    devices, reached = list(group.devices.all()[:MOST_SHOWN]), fleet.reached_in(group)
    labels = packages.labels([device.package for device in devices])
    for device in devices:
        device.group = group
        device.look, device.words = OUTCOMES.get(device.outcome, OUTCOMES[""])
        device.differs_words = said_of(device.differs)
        device.runs = labels.get(device.package, device.package[:12])
        device.reached = device.pk in reached
        if device.look == WELL and device.reached and group.wanted and device.package != group.wanted.sha256:
            device.look, device.words = WAITING, _("Has not asked since the release")
    own = EdgeGroup.objects.editable_by(request.user).filter(pk=group.pk).exists()
    return {
        "group": group,
        "devices": devices,
        "counts": _counts(group),
        "may_control": own and request.user.can(Action.SERVICES_MANAGE),
        "samples_waiting": group.samples.filter(dataset=None).count() if own else 0,
        "site": request.build_absolute_uri("/").rstrip("/"),
        "agent": agent_download.NAME,
    }


def _counts(group: EdgeGroup) -> dict[str, int]:
    wanted = group.wanted.sha256 if group.wanted else None
    rows = list(group.devices.order_by().values_list("outcome", "package"))
    looks = [OUTCOMES.get(outcome, OUTCOMES[""])[0] for outcome, _package in rows]
    return {
        "devices": len(rows),
        "updated": sum(package == wanted for _outcome, package in rows) if wanted else 0,
        "well": looks.count(WELL),
        "wrong": looks.count(WRONG),
    }


def _own(request: SignedInRequest, pk: int) -> EdgeGroup:
    group: EdgeGroup = get_object_or_404(EdgeGroup.objects.editable_by(request.user).for_list(), pk=pk)
    return group


@require_POST
@needs(Action.SERVICES_MANAGE)
def group_release(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let a share of the devices run a version."""
    group, form = _own(request, pk), EdgeReleaseForm(request.POST, user=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            fleet.release(group=group, by=request.user, **form.cleaned_data)
            return redirect("inference:edge-group", pk)
    return _page(request, group, status=422, release_form=form)


@require_POST
@needs(Action.SERVICES_MANAGE)
def group_roll_back(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let all devices run what the group ran before."""
    group = _own(request, pk)
    with errors_as_messages(request):
        fleet.roll_back(group=group, by=request.user)
    return redirect("inference:edge-group", pk)


@require_POST
@needs(Action.SERVICES_MANAGE)
def group_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove a group; its name must have been typed."""
    group = _own(request, pk)
    if not is_name_confirmed(request, group.name):
        return redirect("inference:edge-group", pk)
    fleet.delete(group=group, by=request.user)
    return redirect("inference:edge-list")


@require_POST
@needs(Action.SERVICES_MANAGE)
def device_add(request: SignedInRequest, pk: int) -> HttpResponse:
    """Add a device; the page after it shows the command with its code, once."""
    group, form = _own(request, pk), EdgeDeviceForm(request.POST)
    if form.is_valid():
        with errors_shown_on(form):
            made, code = fleet.add_device(group=group, by=request.user, **form.cleaned_data)
            answer = _page(request, _own(request, pk), added=made, code=code)
            answer["Cache-Control"] = "no-store"
            return answer
    return _page(request, group, status=422, device_form=form)


@needs(Action.SERVICES_VIEW)
def device_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """A device: what it is, what it runs, what it said."""
    rows = EdgeDevice.objects.visible_to(request.user).select_related("group__wanted", "group__before")
    device: EdgeDevice = get_object_or_404(rows, pk=pk)
    group = device.group
    told = list(device.reports.all()[:50])
    labels = packages.labels([device.package, *(row.package for row in told)])
    reports = [
        {"at": row.at, "words": OUTCOMES.get(row.outcome, OUTCOMES[""])[1], "detail": row.detail,
         "differs": said_of(row.differs), "package": labels.get(row.package, row.package[:12])}
        for row in told
    ]  # fmt: skip
    lines, left_out = logs.of(device)
    context = {
        "device": device,
        "lines": lines,
        "left_out": left_out,
        "group": group,
        "words": OUTCOMES.get(device.outcome, OUTCOMES[""])[1],
        "differs": said_of(device.differs),
        "runs": labels.get(device.package, device.package[:12]),
        "wanted": fleet.wanted_by(device),
        "samples_words": SAMPLES.get(device.samples, ""),
        "reports": reports,
        "facts": [(FACTS.get(name, name), value) for name, value in (device.hardware | device.counters).items()],
        "may_control": EdgeDevice.objects.editable_by(request.user).filter(pk=pk).exists()
        and request.user.can(Action.SERVICES_MANAGE),
    }
    return render(request, "inference/edge_device.html", context)


@require_POST
@needs(Action.SERVICES_MANAGE)
def device_revoke(request: SignedInRequest, pk: int) -> HttpResponse:
    """End the token of a device."""
    device = get_object_or_404(EdgeDevice.objects.editable_by(request.user).select_related("group"), pk=pk)
    fleet.revoke(device=device, by=request.user)
    return redirect("inference:edge-device", pk)


@require_POST
@needs(Action.SERVICES_MANAGE)
def device_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget a device."""
    device = get_object_or_404(EdgeDevice.objects.editable_by(request.user).select_related("group"), pk=pk)
    group = device.group_id
    fleet.remove(device=device, by=request.user)
    return redirect("inference:edge-group", group)

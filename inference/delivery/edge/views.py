"""Pages of groups of devices outside of the cluster."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import errors_shown_on
from aiplatform.objects.pages import ObjectPages, action
from aiplatform.objects.tables import Column, MainColumn, Table
from inference.delivery.edge import agent_download, fleet, logs, packages
from inference.delivery.edge.filters import EdgeGroupFilters
from inference.delivery.edge.forms import EdgeDeviceForm, EdgeGroupForm, EdgeReleaseForm
from inference.delivery.edge.labels import FACTS, OUTCOMES, SAMPLES, TONES, WAITING, WELL, WRONG, describe_difference
from inference.delivery.edge.models import EdgeDevice, EdgeGroup

MAX_SHOWN = 500  # devices on the page of a group; the API has all


class EdgeGroupPages(ObjectPages[EdgeGroup]):
    """Pages of groups of edge devices: devices, releases and their rollback."""

    model, form_class, filters = EdgeGroup, EdgeGroupForm, EdgeGroupFilters
    namespace, basename, path = "inference", "edge", "edge/"
    url_names = {"detail": "edge-group"}
    view_permission, change_permission = Action.SERVICES_VIEW, Action.SERVICES_MANAGE
    table = Table(
        MainColumn(_("Name"), "row.name", sort="name"),
        Column(_("Model"), 'row.wanted.model_label|default:"–"'),
        Column(_("Release"), template="inference/_edge_release.html"),
        Column(_("Devices"), "row.counts.devices|count", kind="num"),
        Column(_("Up to date"), "row.counts.updated|count", kind="num"),
        Column(_("With problems"), "row.counts.wrong|count", kind="num"),
        Column(_("Owner"), "row.owner", sort="owner"),
    )
    region, art = "edge-groups", "smartphone"
    title = _("Edge groups")
    lead = _("Devices outside of the cluster that download their model and work without a network.")
    filter_label, no_match_text = _("Filter groups"), _("No group matches.")
    empty_text = _("No devices yet. Create a group, add devices, and release a model.")
    new_title, save_label = pgettext_lazy("edge", "New group"), pgettext_lazy("edge", "Create group")
    form_lead = _("All devices of a group run the same model.")
    delete_title = _("Delete this group")
    delete_goes = _("The group and its list of devices are deleted.")
    delete_stays = _("Devices keep their current model.")
    detail_template, live_template = "inference/edge_group.html", "inference/_edge_devices.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for group in rows:
            group.counts = _counts(group)
        return {}

    def create(self, request: SignedInRequest, form: EdgeGroupForm) -> EdgeGroup:
        return fleet.create(user=request.user, **form.cleaned_data)

    def remove(self, request: SignedInRequest, row: EdgeGroup) -> None:
        fleet.delete(group=row, by=request.user)

    def details(self, request: SignedInRequest, row: EdgeGroup, is_own: bool) -> dict[str, Any]:
        return {
            "group": row,
            "devices": _devices(row),
            "counts": _counts(row),
            "samples_waiting": row.samples.filter(dataset=None).count() if is_own else 0,
            "site": request.build_absolute_uri("/").rstrip("/"),
            "agent": agent_download.NAME,
            "device_form": EdgeDeviceForm(),
            "release_form": EdgeReleaseForm(user=request.user, initial=_next(row)),
        }

    @action()
    def release(self, request: SignedInRequest, row: EdgeGroup) -> HttpResponse | None:
        """Release a version to a share of the devices."""
        form = EdgeReleaseForm(request.POST, user=request.user)
        if form.is_valid():
            with errors_shown_on(form):
                fleet.release(group=row, by=request.user, **form.cleaned_data)
                return None
        return self.render_detail(request, row, 422, release_form=form)

    @action()
    def roll_back(self, request: SignedInRequest, row: EdgeGroup) -> None:
        """Return all devices to the version before."""
        fleet.roll_back(group=row, by=request.user)

    @action(path="<int:pk>/devices/")
    def device_add(self, request: SignedInRequest, row: EdgeGroup) -> HttpResponse:
        """Add a device; the response shows the command with its code, once."""
        form = EdgeDeviceForm(request.POST)
        if form.is_valid():
            with errors_shown_on(form):
                device, code = fleet.add_device(group=row, by=request.user, **form.cleaned_data)
                response = self.render_detail(request, self.row(request, row.pk), added=device, code=code)
                response["Cache-Control"] = "no-store"
                return response
        return self.render_detail(request, row, 422, device_form=form)


def _next(group: EdgeGroup) -> dict[str, Any]:
    """What the form of a release begins with: the same version, one stage further."""
    if group.wanted is None or group.share == 100:
        return {}
    further = group.share if group.halted else min(share for share in fleet.SHARES if share > group.share)
    return {"version": group.wanted.version_id, "share": further, "soak_minutes": group.soak_minutes or None}


def _devices(group: EdgeGroup) -> list[EdgeDevice]:
    devices, reached = list(group.devices.all()[:MAX_SHOWN]), fleet.reached_in(group)
    labels = packages.labels([device.package for device in devices])
    for device in devices:
        device.group = group
        device.look, device.words = OUTCOMES.get(device.outcome, OUTCOMES[""])
        device.differs_words = describe_difference(device.differs)
        device.runs = labels.get(device.package, device.package[:12])
        device.reached = device.pk in reached
        if device.look == WELL and device.reached and group.wanted and device.package != group.wanted.sha256:
            device.look, device.words = WAITING, gettext("Not contacted since the release")
        device.tone = TONES[device.look]
    return devices


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


class EdgeDevicePages(ObjectPages[EdgeDevice]):
    """The page of a device: what it is, what it runs, what it reported."""

    model = EdgeDevice
    namespace, basename, path = "inference", "edge-device", "edge/devices/"
    url_names, url_paths = {"delete": "edge-device-remove"}, {"delete": "<int:pk>/remove/"}
    view_permission, change_permission = Action.SERVICES_VIEW, Action.SERVICES_MANAGE
    confirms_name, detail_template = False, "inference/edge_device.html"

    def details(self, request: SignedInRequest, row: EdgeDevice, is_own: bool) -> dict[str, Any]:
        newest = list(row.reports.all()[:50])
        labels = packages.labels([row.package, *(report.package for report in newest)])
        reports = [
            {"at": report.at, "words": OUTCOMES.get(report.outcome, OUTCOMES[""])[1], "detail": report.detail,
             "differs": describe_difference(report.differs),
             "package": labels.get(report.package, report.package[:12])}
            for report in newest
        ]  # fmt: skip
        lines, left_out = logs.for_device(row)
        look, text = OUTCOMES.get(row.outcome, OUTCOMES[""])
        return {
            "device": row,
            "lines": lines,
            "left_out": left_out,
            "group": row.group,
            "words": text,
            "look": look,
            "tone": TONES[look],
            "differs": describe_difference(row.differs),
            "runs": labels.get(row.package, row.package[:12]),
            "wanted": fleet.wanted_by(row),
            "samples_words": SAMPLES.get(row.samples, ""),
            "reports": reports,
            "facts": [(FACTS.get(name, name), value) for name, value in (row.hardware | row.counters).items()],
        }

    def remove(self, request: SignedInRequest, row: EdgeDevice) -> HttpResponse:
        fleet.remove(device=row, by=request.user)
        return redirect("inference:edge-group", row.group_id)

    @action()
    def revoke(self, request: SignedInRequest, row: EdgeDevice) -> None:
        """Revoke the token of a device."""
        fleet.revoke(device=row, by=request.user)

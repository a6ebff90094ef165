"""The step that releases a model to a group of edge devices."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from typing import Any

from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from inference.delivery.edge import fleet, packages, rollout
from inference.delivery.edge.models import EdgeGroup
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed
from inference.pipelines.models import StepRun
from inference.pipelines.steps import long_running, references, rows
from inference.pipelines.steps.training import figures


class EdgeStep(long_running.LastingStep):
    """A release that goes from a few devices of a group to all of them."""

    name = "edge"
    label = gettext_lazy("Release to devices")
    description = gettext_lazy(
        "Releases a model to a group of edge devices, in stages. Completes when nine of ten run it without "
        "errors; fails if too many devices fail."
    )
    group = "ship"
    icon = "rocket"
    needs = Action.SERVICES_MANAGE
    inputs = (Port("model", gettext_lazy("Model"), "model"),)
    outputs = (Port("figures", gettext_lazy("Metrics"), "figures"),)
    params = (
        Param("group", gettext_lazy("Device group"), required=True, help=gettext_lazy(
            "The name. For an object of another user: OWNER/NAME.")),
        Param("share", gettext_lazy("First share of devices"), form="choice", default="10",
              choices=tuple((str(share), f"{share} %") for share in fleet.SHARES)),
        Param("soak_minutes", gettext_lazy("Minutes per stage"), form="whole", default=60, low=0, high=fleet.MAX_SOAK,
              help=gettext_lazy(
                  "Time that devices must run without failures before the rollout continues; 0: a user "
                  "continues it."
              )),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("group"):
            references.find_required(EdgeGroup.objects.editable_by(user), params["group"], user, field="group")

    def start(self, call: Call) -> Begun:
        group = references.find_required(
            EdgeGroup.objects.editable_by(call.user), call.params["group"], call.user, field="group"
        )
        version = rows.model_version(call.only("model"), call.user)
        options = {"share": int(call.params["share"]), "soak_minutes": call.params["soak_minutes"]}
        return Begun(stored={"group": group.pk, "version": version.pk, **options}, look_again=long_running.FIRST_LOOK)

    def aside(self, row: StepRun) -> Mapping[str, Any] | None:
        """Make the package: it may be large."""
        if "packed" in row.kept:
            return None
        packages.for_version(rows.model_version({"id": row.kept["version"]}, row.run.owner), by=row.run.owner)
        return {"packed": True}

    def go_on(self, row: StepRun) -> Done | None:
        group = _group(row)
        if group is None:
            raise StepFailed(wording.message("pipeline.group_gone"))
        if "package" not in row.kept:
            if "packed" in row.kept:
                _release(row, group)
            else:
                long_running.queue_aside(row)
            return None
        if group.wanted is None or group.wanted.sha256 != row.kept["package"]:
            raise StepFailed(wording.message("pipeline.release_changed", name=group.name))
        numbers = _counted(group)
        if group.halted:
            raise StepFailed(wording.message("pipeline.release_halted", name=group.name, failed=numbers["failed"]))
        if group.share < 100 or numbers["running"] < ceil(rollout.RUNNING * numbers["devices"]):
            return None
        return Done({"figures": figures(numbers, row)})

    def stop(self, row: StepRun) -> None:
        """Let the devices have what they had."""
        group = _group(row)
        if group is None or group.halted or group.wanted is None or group.wanted.sha256 != row.kept.get("package"):
            return
        with suppress(DomainError):  # there may be nothing to go back to
            fleet.roll_back(group=group, by=row.run.owner)


def _group(row: StepRun) -> EdgeGroup | None:
    """Return the group, if the owner of the run may change it."""
    editable = EdgeGroup.objects.editable_by(row.run.owner).select_related("wanted")
    edge_group: EdgeGroup | None = editable.filter(pk=row.kept["group"]).first()
    return edge_group


def _release(row: StepRun, group: EdgeGroup) -> None:
    """Release the model, unless a release to as many devices is running: a share never shrinks."""
    owner = row.run.owner
    version = rows.model_version({"id": row.kept["version"]}, owner)
    options = {name: row.kept[name] for name in ("share", "soak_minutes")}
    on_its_way = group.wanted is not None and group.wanted.version_id == version.pk and not group.halted
    if group.wanted is not None and on_its_way and group.share >= options["share"]:
        long_running.store(row, package=group.wanted.sha256)
        return
    released = fleet.release(group=group, version=version, by=owner, **options)
    assert released.wanted is not None  # it was just set
    long_running.store(row, package=released.wanted.sha256)


def _counted(group: EdgeGroup) -> dict[str, int]:
    """How many devices there are, run the newest release well, and failed with it."""
    assert group.wanted is not None  # the caller looked
    sha256 = group.wanted.sha256
    running = group.devices.filter(package=sha256).exclude(runs_well_since=None).exclude(failed=sha256)
    return {
        "devices": group.devices.count(),
        "running": running.count(),
        "failed": group.devices.filter(failed=sha256).count(),
    }

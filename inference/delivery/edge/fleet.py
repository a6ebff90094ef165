"""Groups of devices: creation, releases, and the requests and reports of their devices."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from datetime import timedelta
from math import ceil
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from accounts.services.tokens import digest
from aiplatform.lib.errors import DomainError, Invalid, NameTaken
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from aiplatform.lib.titles import TITLE
from inference.delivery.edge import keys, labels, logs, packages, sampling, speeds
from inference.delivery.edge.labels import FAILURES, OUTCOMES, SAMPLES
from inference.delivery.edge.models import EdgeDevice, EdgeGroup, EdgePackage, EdgeReport
from inference.delivery.edge.packages import CannotRelease
from inference.registry.models import ModelVersion
from inference.serving.traffic import proportions

CODE_LIVES = timedelta(days=1)
SHARES = (1, 10, 50, 100)  # percent, in which a release goes on
MAX_SOAK = 10_080  # minutes: a week
HALTED_AT = 0.2  # share of the devices that it reached, from which failures stop a release
MAX_DEVICES = 10_000
FEW_PICTURES, MAX_ERROR_SHARE = 20, 0.1  # of so many pictures, the share that a model may fail with
MAX_REPORTS = 200  # of a device
SAME_WORD_S = 3600  # a device gets the same bytes, and "not modified", for this long
MAX_LENGTH = 300


class NotKnown(DomainError, code="device_not_known", status=401):
    """The code or the token of a device is not known, or no longer."""


def create(*, user: User, name: str, days_offline: int = 7) -> EdgeGroup:
    """Make an empty group.

    Raises:
        Invalid: odd characters, or the days are none of 1 to 365.
        NameTaken: the person has a group of this name.
    """
    _check_title(name)
    if not 1 <= days_offline <= 365:
        raise Invalid(_("Devices may be offline for 1 to 365 days."), field="days_offline")
    try:
        with transaction.atomic():
            group: EdgeGroup = EdgeGroup.objects.create(owner=user, name=name, days_offline=days_offline)
    except IntegrityError:
        raise NameTaken(_("You already have a group named “%(name)s”.") % {"name": name}) from None
    audit.record(user, "edge_group_made", group)
    return group


def delete(*, group: EdgeGroup, by: User) -> None:
    """Remove a group with its devices; they keep running what they have, and hear that they are not known."""
    audit.record(by, "edge_group_deleted", group)
    group.delete()
    packages.tidy()


def add_device(*, group: EdgeGroup, name: str, by: User) -> tuple[EdgeDevice, str]:
    """Add a device; the second value is its one-time code, to be shown once.

    A device of this name that has no token (its code is spent or too old, or it was revoked) gets a new code.

    Raises:
        Invalid, NameTaken.
    """
    _check_title(name)
    if (existing := group.devices.filter(name=name, token_digest="").first()) is not None:
        return _renew_code(existing, by)
    if group.devices.count() >= MAX_DEVICES:
        raise Invalid(_("A group can have at most %(most)s devices.") % {"most": f"{MAX_DEVICES:,}"}, field="name")
    code = _code()
    fields = {"uid": secrets.token_hex(16), "place": secrets.randbelow(2**31), "code_digest": digest(code)}
    try:
        with transaction.atomic():
            device: EdgeDevice = EdgeDevice.objects.create(
                group=group, name=name, code_expires_at=now() + CODE_LIVES, **fields
            )
    except IntegrityError:
        raise NameTaken(_("The group already has a device named “%(name)s”.") % {"name": name}) from None
    audit.record(by, "edge_device_added", group, device=name)
    return device, code


def _code() -> str:
    """A new one-time code; never with a dash in front, which a command line would take for an option."""
    return secrets.token_hex(16)


def _renew_code(device: EdgeDevice, by: User) -> tuple[EdgeDevice, str]:
    """Give a device without a token a new code, which makes its old secret invalid."""
    code = _code()
    fields = {"uid": secrets.token_hex(16), "code_digest": digest(code), "code_expires_at": now() + CODE_LIVES}
    if not EdgeDevice.objects.filter(pk=device.pk, token_digest="").update(**fields):
        raise NameTaken(_("The group already has a device named “%(name)s”.") % {"name": device.name})
    audit.record(by, "edge_device_added", device.group, device=device.name)
    device.refresh_from_db()
    return device, code


def revoke(*, device: EdgeDevice, by: User) -> None:
    """End the token of a device; it keeps the model it has and gets no other."""
    audit.record(by, "edge_device_revoked", device.group, device=device.name)
    EdgeDevice.objects.filter(pk=device.pk).update(token_digest="", code_digest="")


def remove(*, device: EdgeDevice, by: User) -> None:
    """Remove a device."""
    audit.record(by, "edge_device_removed", device.group, device=device.name)
    device.delete()


def release(
    *, group: EdgeGroup, version: ModelVersion, share: int, by: User, soak_minutes: int | None = None
) -> EdgeGroup:
    """Release a version to a share of a group in percent; the other devices keep what the group ran before.

    The same version with a larger share continues a release, another version starts a new one.

    Args:
        soak_minutes: how long the devices that it reached must run it well until it goes on to the next share by
            itself (`rollout.py`); 0 or None: a user continues it.

    Raises:
        CannotRelease: the version is no package that runs.
        Invalid: the share is none of SHARES, or the minutes are more than a week.
    """
    if soak_minutes is not None and not 0 <= soak_minutes <= MAX_SOAK:
        raise Invalid(_("A release stage must take 0 to 10,080 minutes."), field="soak_minutes")
    if share not in SHARES:
        message = _("A release must reach %(shares)s percent of the devices.")
        raise Invalid(message % {"shares": ", ".join(map(str, SHARES))}, field="share")
    package = packages.for_version(version, by=by)
    with transaction.atomic():
        locked = EdgeGroup.objects.select_for_update().get(pk=group.pk)
        same = locked.wanted is not None and locked.wanted.version_id == version.pk
        if same and locked.share < share and not locked.halted:  # it goes on with the bytes that it began with
            package = locked.wanted
        if locked.wanted_id != package.pk:
            if locked.share == 100 and not locked.halted and not same:  # else most devices still run the one before
                locked.before = locked.wanted
            locked.wanted, locked.released_at = package, now()
        locked.share, locked.halted, locked.number = share, False, locked.number + 1
        locked.soak_minutes, locked.stage_at = soak_minutes or 0, now()
        locked.save()
        audit.record(by, "edge_released", locked, version=str(version), share=share)
    packages.tidy()
    return locked


def roll_back(*, group: EdgeGroup, by: User) -> EdgeGroup:
    """Tell all devices to run what the group ran before.

    Raises:
        CannotRelease: it ran nothing before.
    """
    with transaction.atomic():
        held = EdgeGroup.objects.select_for_update().get(pk=group.pk)
        if held.before is None:
            raise CannotRelease(_("This group has no previous model."))
        held.wanted, held.before = held.before, held.wanted
        held.share, held.halted, held.number, held.released_at = 100, False, held.number + 1, now()
        held.soak_minutes, held.stage_at = 0, now()
        held.save()
        audit.record(by, "edge_rolled_back", held, version=held.wanted.model_label)
    return held


# What devices ask
def enrol(*, code: str, hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Exchange a one-time code for a token; returns what the agent stores.

    Raises:
        NotKnown: the code was used, or is too old, or never was.
    """
    token = "aipe_" + secrets.token_urlsafe(32)
    with transaction.atomic():
        device = EdgeDevice.objects.select_for_update().filter(code_digest=digest(code)).exclude(code_digest="").first()
        if device is None or device.code_expires_at < now():
            raise NotKnown(_("This code was already used or has expired. Add the device again to get a new one."))
        device.code_digest, device.token_digest, device.enrolled_at = "", digest(token), now()
        device.hardware, device.seen_at = _plain(hardware), now()
        device.save()
    return {
        "device": device.uid,
        "name": device.name,
        "token": token,
        "secret": keys.secret_of(device.uid),
        "trust": keys.trust(),
    }


def device_for_token(token: str) -> EdgeDevice:
    """Return the device with this token.

    Raises:
        NotKnown.
    """
    rows = EdgeDevice.objects.select_related("group__wanted", "group__before")
    device = rows.filter(token_digest=digest(token)).first() if token else None
    if device is None:
        raise NotKnown(_("This device is unknown, or its token was revoked. Add it again."))
    return device


def word(device: EdgeDevice) -> dict[str, Any]:
    """What a device should run, signed; the same bytes for an hour while nothing changes."""
    group, moment = device.group, int(time.time()) // SAME_WORD_S * SAME_WORD_S
    wanted = wanted_by(device)
    document = {
        "device": device.uid,
        "number": group.number,
        "package": wanted and {"sha256": wanted.sha256, "size": wanted.size_bytes, "name": wanted.model_label},
        "signed_at": moment,
        "expires": moment + group.days_offline * 86_400,
    }
    if (rule := sampling.rule_of(group)) is not None:
        document["samples"] = rule
    return keys.signed(document, device=device.uid)


def wanted_by(device: EdgeDevice) -> EdgePackage | None:
    """The package that a device should run: the newest where the release reaches it."""
    group: EdgeGroup = device.group
    if group.wanted is None or reached(device):
        return group.wanted
    return group.before


def reached_in(group: EdgeGroup) -> set[int]:
    """Numbers of the devices of a group that `reached` is true of, in one query."""
    if group.halted or group.wanted is None:
        held = group.devices.filter(package=group.wanted.sha256) if group.wanted else group.devices.none()
        return set(held.values_list("pk", flat=True))
    return set(group.devices.order_by("place", "pk").values_list("pk", flat=True)[: aimed_at(group)])


def reached(device: EdgeDevice) -> bool:
    """Whether the newest release is for this device; one that is halted is only for those that run it."""
    group = device.group
    if group.halted:
        return bool(group.wanted and device.package == group.wanted.sha256)
    before = group.devices.filter(Q(place__lt=device.place) | Q(place=device.place, pk__lt=device.pk)).count()
    return before < aimed_at(group)


def aimed_at(group: EdgeGroup) -> int:
    """How many devices of a group the newest release reaches: at least one."""
    return max(1, ceil(group.share * group.devices.count() / 100))


def may_fetch(device: EdgeDevice, sha256: str) -> bool:
    """Whether a package is one of those that the group of a device runs."""
    return sha256 in {package.sha256 for package in (device.group.wanted, device.group.before) if package}


def report(device: EdgeDevice, values: Mapping[str, Any]) -> None:
    """Store the report of a device; too many failures halt the release of its group."""
    outcome = values.get("outcome")
    if outcome not in OUTCOMES or not outcome:
        raise Invalid(_("Unknown result."), field="outcome")
    fields = {
        "seen_at": now(),
        "outcome": outcome,
        "detail": _to_short_text(values.get("detail"), MAX_LENGTH),
        "differs": labels.parse_difference(values.get("differs")) if outcome == labels.DIFFER else {},
        "package": _to_short_text(values.get("package"), 64),
        "number": int(min(max(finite(values.get("number")) or 0, 0), 2**31 - 1)),
        "counters": _plain(values.get("counters", {})),
        "hardware": _plain(values.get("hardware", {})),
        "samples": values.get("samples") if values.get("samples") in SAMPLES else "",
    }
    wanted = wanted_by(device)
    if outcome in ("same", "updated") and _fails_with_images(fields["counters"]):
        outcome = fields["outcome"] = "errors"
    if outcome in FAILURES and wanted is not None:
        fields["failed"] = wanted.sha256
    elif outcome in ("same", "updated"):
        fields["failed"] = ""
    fields["runs_well_since"] = None
    if outcome in ("same", "updated"):
        known_good = device.runs_well_since if device.package == fields["package"] else None
        fields["runs_well_since"] = known_good or now()
    with transaction.atomic():
        changed = (device.outcome, device.package) != (fields["outcome"], fields["package"])
        EdgeDevice.objects.filter(pk=device.pk).update(**fields)
        if changed:
            EdgeReport.objects.create(
                device=device, **{name: fields[name] for name in ("outcome", "detail", "differs", "package")}
            )
            old = device.reports.values_list("pk", flat=True)[MAX_REPORTS:]
            EdgeReport.objects.filter(pk__in=list(old)).delete()
    logs.store(device, values.get("log"))
    speeds.record(device, values.get("speed"), hardware=fields["hardware"])
    if fields.get("failed"):
        _halt_where_many_fail(device.group_id)


def _fails_with_images(counters: Mapping[str, Any]) -> bool:
    """Whether a model certainly fails with more than a tenth of the images that its device received."""
    errors, requests = (int(max(finite(counters.get(name)) or 0, 0)) for name in ("errors", "requests"))
    return requests >= FEW_PICTURES and proportions.interval(min(errors, requests), requests)[0] > MAX_ERROR_SHARE


def _halt_where_many_fail(group_id: int) -> None:
    """Stop a release where too large a share of the devices that it reached fail with it."""
    with transaction.atomic():
        group = EdgeGroup.objects.select_for_update().filter(pk=group_id).select_related("wanted").first()
        if group is None or group.wanted is None or group.halted:
            return
        failed = group.devices.filter(failed=group.wanted.sha256).count()
        if failed and failed >= HALTED_AT * aimed_at(group):
            group.halted, group.number = True, group.number + 1
            group.save(update_fields=["halted", "number"])
            audit.record(None, "edge_release_halted", group, version=group.wanted.model_label, failed=failed)


def _plain(value: Any) -> dict[str, Any]:
    """Short words and numbers of a table that a device sent."""
    if not isinstance(value, Mapping):
        return {}
    return {
        str(name)[:40]: entry[:100] if isinstance(entry, str) else entry
        for name, entry in list(value.items())[:30]
        if (isinstance(entry, str) and is_sound(entry)) or finite(entry) is not None
    }


def _to_short_text(value: Any, max_length: int) -> str:
    return value[:max_length] if isinstance(value, str) and is_sound(value) else ""


def _check_title(name: str) -> None:
    if not TITLE.regex.match(name) or len(name) > 100:  # type: ignore[union-attr]  # compiled by the validator
        raise Invalid(TITLE.message, field="name")

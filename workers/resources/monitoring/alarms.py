"""Alarms: update a monitoring snapshot, raise what lasted, notify once, end what is over."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import Delivery, Role, User
from accounts.services import audit, outbox
from accounts.services.notify import notify
from aiplatform.lib import rates, wording
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.outbound import ForbiddenAddress
from aiplatform.lib.wording import Message
from workers.core.models import Alarm, AlarmAddress, AlarmRule, AlarmSilence, Job, Severity
from workers.resources.monitoring import affected_jobs
from workers.resources.monitoring.rules import RULES, Breach, breaches, label_of, message_of
from workers.resources.monitoring.snapshot import MonitoringSnapshot

log = logging.getLogger(__name__)

ENDED_RETENTION = timedelta(days=90)
MAX_NAMED_JOBS = 3
RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}


class AddressTaken(DomainError, code="address_taken", field="target"): ...


def ensure_rules() -> None:
    """Give every built-in rule its row; what an operator set stays."""
    existing = set(AlarmRule.objects.values_list("key", flat=True))
    for key, rule in RULES.items():
        if key not in existing:
            AlarmRule.objects.get_or_create(
                key=key, defaults={"severity": rule.severity, "threshold": rule.threshold, "for_s": rule.for_s}
            )


def update(snapshot: MonitoringSnapshot, moment: datetime) -> int:
    """Update the alarms from one snapshot; return the number of raised ones.

    A breach is pending until it lasted `for_s` of its rule. What is raised is told once: to the addresses,
    and to the administrators as a notification; a silenced one is told if it outlives the silence.
    """
    lasting = set(Alarm.objects.filter(ended_at=None).values_list("rule", flat=True))
    for rule in AlarmRule.objects.filter(key__in=RULES):
        breached = breaches(rule.key, snapshot, rule.threshold) if rule.enabled else []
        if breached or rule.pk in lasting:
            _update_rule(rule, breached, moment)
    raised = list(Alarm.objects.filter(ended_at=None).exclude(raised_at=None).select_related("rule"))
    quiet = list(AlarmSilence.objects.filter(until__gt=moment))
    for alarm in raised:
        if alarm.told_at is None and silenced_until(alarm, quiet) is None:
            _notify(alarm, moment)
    return len(raised)


def forget(moment: datetime) -> None:
    """Remove what ended long ago, and silences that are over."""
    Alarm.objects.filter(ended_at__lt=moment - ENDED_RETENTION).delete()
    AlarmSilence.objects.filter(until__lt=moment - ENDED_RETENTION).delete()


@transaction.atomic
def _update_rule(rule: AlarmRule, breached: Iterable[Breach], moment: datetime) -> None:
    still = {alarm.subject: alarm for alarm in Alarm.objects.filter(rule=rule, ended_at=None)}
    for breach in breached:
        subject = breach.subject[:120]
        alarm = still.pop(subject, None)
        if alarm is None:
            raised = moment if rule.for_s == 0 else None
            values: dict[str, Any] = {"value": breach.value, "facts": breach.facts}
            new = Alarm(rule=rule, subject=subject, severity=rule.severity, seen_at=moment, raised_at=raised, **values)
            # whoever took over while we waited for a lock may have raised it already: one of us is enough
            Alarm.objects.bulk_create([new], ignore_conflicts=True)
            continue
        changes: dict[str, Any] = {}
        if round(alarm.value, 1) != round(breach.value, 1) or alarm.facts != breach.facts:
            changes |= {"value": breach.value, "facts": breach.facts}
        if alarm.severity != rule.severity:
            changes["severity"] = rule.severity
        if alarm.raised_at is None and (moment - alarm.seen_at).total_seconds() >= rule.for_s:
            changes["raised_at"] = moment
        if changes:
            Alarm.objects.filter(pk=alarm.pk).update(**changes)
    for alarm in still.values():
        if alarm.raised_at is None:
            alarm.delete()
        elif Alarm.objects.filter(pk=alarm.pk, ended_at=None).update(ended_at=moment) and alarm.told_at:
            alarm.ended_at = moment
            _notify_end(alarm)


def silenced_until(alarm: Alarm, silences: Iterable[AlarmSilence]) -> datetime | None:
    """Return when the last of the silences that match an alarm ends; None if none matches."""
    ends = (
        silence.until
        for silence in silences
        if silence.rule_id in (None, alarm.rule_id) and silence.subject in ("", alarm.subject)
    )
    return max(ends, default=None)


@transaction.atomic
def _notify(alarm: Alarm, moment: datetime) -> None:
    if not Alarm.objects.filter(pk=alarm.pk, told_at=None).update(told_at=moment):
        return
    log.warning("alarm=%s rule=%s subject=%s raised", alarm.pk, alarm.rule.key, alarm.subject)
    if RANK[Severity(alarm.severity)] >= RANK[Severity.WARNING]:
        title, text, url = _title(alarm), _message(alarm), reverse("workers:alarms")
        for person in administrators():
            notify(person, "alarm", title=title, text=text, url=url, key=f"alarm-{alarm.pk}")
    owner = alarm.facts.get("user")
    if owner and (person := User.objects.filter(pk=owner).first()):
        title = wording.message("alarm.rule", rule=alarm.rule.key)
        page = alarm.facts.get("page") or ""
        notify(person, "quota", title=title, text=_message(alarm), url=page, key=f"alarm-{alarm.pk}")
    _notify_owners(alarm)
    _send(alarm, _title(alarm), key=f"alarm-{alarm.pk}")


def _notify_owners(alarm: Alarm) -> None:
    """Notify the owners of the jobs that the alarm affects, each once with the names of their jobs."""
    by_owner: dict[User, list[Job]] = {}
    for job in affected_jobs.of_alarm(alarm):
        by_owner.setdefault(job.owner, []).append(job)
    for owner, jobs in by_owner.items():
        names = ", ".join(job.name for job in jobs[:MAX_NAMED_JOBS]) + (", …" if len(jobs) > MAX_NAMED_JOBS else "")
        title = wording.message("alarm.affects", jobs=names)
        page = reverse("workers:job", args=[jobs[0].pk])
        notify(owner, "alarm", title=title, text=_message(alarm), url=page, key=f"alarm-{alarm.pk}-jobs")


def _notify_end(alarm: Alarm) -> None:
    _send(alarm, _title(alarm, "alarm.over"), key=f"alarm-{alarm.pk}-ended")


def _title(alarm: Alarm, code: str = "alarm.title") -> Message:
    return wording.message(code, severity=alarm.severity, rule=alarm.rule.key)


def _message(alarm: Alarm) -> Message:
    return message_of(alarm.rule.key, alarm.subject, alarm.value, alarm.facts)


def _send(alarm: Alarm, title: Message, *, key: str) -> None:
    for address in _addresses(alarm):
        outbox.add(
            address.channel,
            address.target,
            kind="alarm",
            key=f"{key}-{address.pk}",
            title=title,
            text=_message(alarm),
            url=reverse("workers:alarms"),
            secret=address.secret,
        )


def _addresses(alarm: Alarm) -> list[AlarmAddress]:
    """Who hears of an alarm, where its rule sends any."""
    if not alarm.rule.send:
        return []
    wanted = RANK[Severity(alarm.severity)]
    return [row for row in AlarmAddress.objects.filter(enabled=True) if wanted >= RANK[Severity(row.least)]]


def tell_unrecorded(key: str, *, subject: str, value: float, moment: datetime) -> int:
    """Send an alarm that no row can keep now, once, without the outbox; returns how many heard of it."""
    rule = AlarmRule.objects.filter(key=key, enabled=True).first()
    if rule is None:
        return 0
    alarm = Alarm(rule=rule, subject=subject, severity=rule.severity, value=value, facts={}, seen_at=moment)
    if silenced_until(alarm, AlarmSilence.objects.filter(until__gt=moment)):
        return 0
    sent = 0
    for address in _addresses(alarm):
        sent += outbox.send_unrecorded(
            address.channel,
            address.target,
            kind="alarm",
            key=f"alarm-{key}-{moment.timestamp():.0f}-{address.pk}",
            title=_title(alarm),
            text=_message(alarm),
            url=reverse("workers:alarms"),
            secret=address.secret,
        )
    return sent


def words(alarm: Alarm) -> str:
    """The alarm as a sentence in the reader's language."""
    return str(_message(alarm)) if alarm.rule.key in RULES else alarm.subject


def administrators() -> list[User]:
    """Active people who manage the machines."""
    granting = [role.pk for role in Role.objects.all() if Action.CLUSTER_MANAGE.value in role.actions]
    allowed = Q(roles__in=granting) | Q(user_groups__roles__in=granting) | Q(is_superuser=True)
    return list(User.objects.filter(allowed, is_active=True).distinct())


def raised_for(user: User, **wanted: str) -> list[Any]:
    """Raised alarms the reader may see, worst and newest first, with `words` and `label`.

    Args:
        wanted: as `AlarmQuerySet.narrowed`.
    """
    if not user.can(Action.CLUSTER_MANAGE):
        return []
    rows: list[Any] = list(
        Alarm.objects.visible_to(user)
        .narrowed(**wanted)
        .filter(ended_at=None)
        .exclude(raised_at=None)
        .select_related("rule")
    )
    for row in rows:
        row.words = words(row)
        row.label = label_of(row.rule.key)
    return sorted(rows, key=lambda alarm: (-RANK[Severity(alarm.severity)], -alarm.pk))


@transaction.atomic
def set_rule(rule: AlarmRule, *, by: User, **values: Any) -> AlarmRule:
    """Change `enabled`, `severity`, `threshold`, `for_s` or `send`; takes effect at the next look.

    Raises:
        Invalid: a value that makes no sense.
    """
    if not 0 <= values.get("for_s", 0) <= 7 * 86400:
        raise Invalid(_("An alert can be silenced for at most a week."), field="for_s")
    if not abs(values.get("threshold", 0.0)) <= 1e9:  # also what is no number at all
        raise Invalid(_("The threshold is out of range."), field="threshold")
    changed = {name: value for name, value in values.items() if getattr(rule, name) != value}
    for name, value in changed.items():
        setattr(rule, name, value)
    if changed:
        rule.save(update_fields=list(changed))
        audit.record(by, "alarm_rule_changed", rule, **changed)
    return rule


@transaction.atomic
def save_address(
    address: AlarmAddress | None, *, by: User, channel: str, target: str, least: str, enabled: bool = True
) -> AlarmAddress:
    """Add or change an address that alarms are sent to.

    Raises:
        AddressTaken: it is in the list already.
        ForbiddenAddress: a webhook into our own network.
    """
    target = target.strip()
    if channel == AlarmAddress.Channel.WEBHOOK:
        try:
            outbox.check_address(target)
        except ForbiddenAddress as exc:
            raise ForbiddenAddress(exc.message, field="target") from exc
    others = AlarmAddress.objects.filter(channel=channel, target=target)
    if address is not None:
        others = others.exclude(pk=address.pk)
    if others.exists():
        raise AddressTaken(_("This address is already in the list."))
    row = address or AlarmAddress()
    if channel == AlarmAddress.Channel.WEBHOOK and (not row.secret or row.target != target):
        row.secret = get_random_string(40)
    row.channel, row.target, row.least, row.enabled = channel, target, least, enabled
    row.save()
    audit.record(by, "alarm_address_saved", row, way=channel, least=least, enabled=enabled)
    return row


@transaction.atomic
def remove_address(address: AlarmAddress, *, by: User) -> None:
    """Remove an address: no more alarms are sent to it."""
    audit.record(by, "alarm_address_removed", address)
    address.delete()


def try_address(address: AlarmAddress) -> bool:
    """Send a test message to one address; False where mail is not set up.

    Raises:
        TooOften: ten in a quarter of an hour are enough to see whether it works.
    """
    rates.limit(f"alarm-test:{address.pk}", max_count=10, within_s=900)
    row = outbox.add(
        address.channel,
        address.target,
        kind="test",
        key=f"alarm-test-{address.pk}-{get_random_string(12)}",
        title=wording.message("alarm.test"),
        text=wording.message("notice.arrived"),
        url=reverse("workers:alarms"),
        secret=address.secret,
    )
    return isinstance(row, Delivery)


@transaction.atomic
def silence(*, by: User, hours: float, rule: AlarmRule | None = None, subject: str = "") -> AlarmSilence:
    """Send no matching alarms for `hours`; they still show.

    Raises:
        Invalid: not between a minute and 30 days.
    """
    if not 1 / 60 <= hours <= 30 * 24:
        raise Invalid(_("Between a minute and 30 days."), field="hours")
    until = now() + timedelta(hours=hours)
    row = AlarmSilence.objects.create(rule=rule, subject=subject[:120], until=until, by=by)
    verb = "alarm_silenced" if rule else "all_alarms_silenced"
    audit.record(by, verb, rule, subject=subject, until=until.isoformat())
    return row


@transaction.atomic
def end_silence(row: AlarmSilence, *, by: User) -> None:
    """End a silence: alarms are sent again."""
    AlarmSilence.objects.filter(pk=row.pk).update(until=now())
    audit.record(by, "alarm_silence_ended" if row.rule else "all_alarms_silence_ended", row.rule, subject=row.subject)

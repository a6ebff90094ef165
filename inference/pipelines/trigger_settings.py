"""Triggers are set up, changed, switched and deleted."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.timezone import get_default_timezone_name
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import rates, sealed, signatures
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed, NotFound, Refusals
from datasets.models import Dataset
from inference.pipelines import graph, inlining, schedules, trigger_firings, writing
from inference.pipelines.models import Pipeline, PipelineRun, PipelineTrigger
from inference.serving.models import Service
from workers.core.clock import now
from workers.core.models import AlarmRule

K = PipelineTrigger.Kind


class BeganNone(DomainError, code="began_none"):
    """A delivery was accepted and starts no run: an earlier run is active, or its run was refused."""


MAX_TRIGGERS = 20  # triggers of one pipeline
MAX_BODY_BYTES = 64 << 10  # bytes of a delivery
NEWEST = "secret"  # what the newest secret of a webhook is sealed as; older ones are by when they end
HOLDS = timedelta(hours=24)  # an older secret, after a new one was made
MAX_OLD_SECRETS = 4  # that hold at once
MAX_PER_MINUTE = 60  # deliveries to one trigger


@transaction.atomic
def create(
    pipeline: Pipeline,
    *,
    user: User,
    kind: str,
    schedule: str = "",
    zone: str = "",
    missed: str = PipelineTrigger.Missed.LATEST,
    dataset: Dataset | None = None,
    service: Service | None = None,
    rule: str = "",
    busy: str = PipelineTrigger.Busy.SKIP,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[PipelineTrigger, str]:
    """Create a trigger, which starts runs as this user; returns it and, of a webhook, its secret, shown once.

    Args:
        schedule: five fields of cron, in `zone`; "" takes the person's own zone.

    Raises:
        Invalid, NotAllowed: with everything that is wrong.
    """
    zone = (zone or user.time_zone or get_default_timezone_name()) if kind == K.CRON else ""
    params = dict(parameters or {})
    refusals = Refusals()
    with refusals:
        check(user=user, kind=kind, schedule=schedule, zone=zone, dataset=dataset, service=service, rule=rule)
    version = writing.newest(pipeline)
    with refusals:
        inlining.parameters_of(graph.parse(writing.newest_or_refused(pipeline).spec), params)
    with refusals:
        if pipeline.triggers.count() >= MAX_TRIGGERS:
            raise Invalid(_("A pipeline can have at most %(most)s triggers.") % {"most": MAX_TRIGGERS}, field="kind")
    refusals.end()
    secret = secrets.token_urlsafe(32) if kind == K.WEBHOOK else ""
    row = PipelineTrigger.objects.create(
        pipeline=pipeline, owner=user, kind=kind, schedule=schedule.strip() if kind == K.CRON else "", zone=zone,
        missed=missed, dataset=dataset if kind == K.DATASET else None, service=service if kind == K.DRIFT else None,
        rule=rule if kind == K.ALARM else "", busy=busy, parameters=params, agreed=version.number if version else 0,
        secret=sealed.seal({NEWEST: secret} if secret else {}), seen_at=now(),
    )  # fmt: skip
    return row, secret


def check(
    *,
    user: User,
    kind: str,
    schedule: str = "",
    zone: str = "",
    dataset: Dataset | None = None,
    service: Service | None = None,
    rule: str = "",
) -> None:
    """Refuse a trigger that could never fire, or not for this person.

    Raises:
        Invalid, NotAllowed.
    """
    if kind == K.CRON:
        schedules.check(schedule, zone)
    elif kind == K.DATASET and dataset is None:
        raise Invalid(_("Choose the dataset whose new versions start a run."), field="dataset")
    elif kind == K.DRIFT:
        if service is None or service.owner_id != user.pk:
            raise Invalid(_("Choose one of your endpoints."), field="service")
    elif kind == K.ALARM:
        if not user.can(Action.CLUSTER_MANAGE):
            raise NotAllowed(_("Only users who manage nodes can use alerts."), field="kind")
        if rule and not AlarmRule.objects.filter(key=rule).exists():
            raise Invalid(_("Alert rule “%(rule)s” does not exist.") % {"rule": rule[:30]}, field="rule")
    elif kind not in K.values:
        raise Invalid(_("The trigger must be one of %(known)s.") % {"known": ", ".join(K.values)}, field="kind")


def switch(trigger: PipelineTrigger, *, on: bool, by: User) -> PipelineTrigger:
    """Switch a trigger on or off; what came while it was off is no news.

    Raises:
        NotAllowed: another user switches it on.
    """
    if on:
        _check_own(trigger, by)
    columns: dict[str, Any] = {"is_on": on} | ({"seen_at": now(), "message": {}} if on else {})
    PipelineTrigger.objects.filter(pk=trigger.pk).exclude(is_on=on).update(**columns)
    trigger.refresh_from_db()
    return trigger


def agree(trigger: PipelineTrigger, number: int, *, by: User) -> PipelineTrigger:
    """Set the version that a trigger runs from now on.

    Raises:
        NotAllowed: it belongs to another user.
        Invalid: there is no such version.
    """
    _check_own(trigger, by)
    if not trigger.pipeline.versions.filter(number=number).exists():
        message = _("The pipeline %(name)s has no version %(word)s.")
        raise Invalid(message % {"name": trigger.pipeline, "word": number}, field="version")
    PipelineTrigger.objects.filter(pk=trigger.pk).update(agreed=number, message={})
    trigger.refresh_from_db()
    return trigger


def _check_own(trigger: PipelineTrigger, by: User) -> None:
    if trigger.owner_id != by.pk:
        message = _(
            "Only %(person)s can change this, because its runs use the permissions of that user. Create your "
            "own trigger."
        )
        raise NotAllowed(message % {"person": trigger.owner.get_full_name()})


class Handed:
    """What becomes of a person's triggers when all is handed over: they are off until the new owner agrees."""

    key = "pipeline_triggers"
    label = gettext_lazy("Triggers of pipelines")

    def count(self, user: User) -> int:
        return PipelineTrigger.objects.filter(owner=user).count()

    def transfer(self, giver: User, taker: User) -> int:
        rows = PipelineTrigger.objects.filter(owner=giver)
        return rows.update(owner=taker, agreed=0, is_on=False)


def next_times(trigger: PipelineTrigger, at: datetime | None = None) -> list[datetime]:
    """The next five times of a schedule; [] for others, and while it is off."""
    if trigger.kind != K.CRON or not trigger.is_on:
        return []
    return schedules.next_times(trigger.schedule, trigger.zone, at or now())


@transaction.atomic
def rotate(trigger: PipelineTrigger, *, by: User, at_once: bool = False) -> tuple[PipelineTrigger, str]:
    """Give a webhook a new secret, shown once; earlier ones remain valid for another day.

    Args:
        at_once: they end now, because they may be compromised.

    Raises:
        NotAllowed: it belongs to another user.
        Invalid: it is no webhook, or has had many new secrets today.
    """
    _check_own(trigger, by)
    if trigger.kind != K.WEBHOOK:
        raise Invalid(_("Only webhooks have a secret."))
    row = PipelineTrigger.objects.select_for_update(of=("self",)).get(pk=trigger.pk)
    current = _read_secrets(row)
    until = now() + HOLDS
    older = {} if at_once else {word: current[word] for word in current if word != NEWEST and _holds(word)}
    if len(older) >= MAX_OLD_SECRETS:
        message = _(
            "The webhook received %(count)s new secrets within a day. Wait, or revoke the older ones immediately."
        )
        raise Invalid(message % {"count": len(older)})
    if not at_once and NEWEST in current:
        older[until.isoformat()] = current[NEWEST]
    secret = secrets.token_urlsafe(32)
    columns = {"secret": sealed.seal({NEWEST: secret} | older), "older_until": until if older else None}
    PipelineTrigger.objects.filter(pk=trigger.pk).update(**columns)
    trigger.refresh_from_db()
    return trigger, secret


def has_older(trigger: PipelineTrigger) -> bool:
    """Whether an older secret of a webhook still holds."""
    return trigger.older_until is not None and trigger.older_until > now()


def _holding(trigger: PipelineTrigger) -> list[str]:
    """The secrets of a webhook that hold now."""
    return [secret for word, secret in _read_secrets(trigger).items() if word == NEWEST or _holds(word)]


def _read_secrets(trigger: PipelineTrigger) -> dict[str, str]:
    """Return all secrets of a webhook; none if the platform's secret key has changed, until a new secret is created."""
    try:
        return sealed.unseal(trigger.secret)
    except sealed.Unsealable:
        return {}


def _holds(until: str) -> bool:
    return datetime.fromisoformat(until) > now()


def delivered(
    trigger: PipelineTrigger | None, *, signature: str, body: bytes, facts: Mapping[str, Any]
) -> PipelineRun | None:
    """Answer a delivery to a webhook; None where the same one began a run before.

    Args:
        trigger: None where there is no such webhook, which is answered like one whose secret the sender does not know.

    Raises:
        BadSignature: it was not proven to come from who knows the secret, now.
        TooOften: more than sixty proven ones in a minute.
        BeganNone: an earlier run is active, or its run was refused.
        Invalid: it is switched off.
    """
    secrets_held = [secrets.token_urlsafe(32)] if trigger is None else _holding(trigger)
    delivery = signatures.verify(secrets_held, signature, body, now())
    if trigger is None:
        raise NotFound(_("Webhook not found."))  # a secret that was just created cannot have been used
    rates.limit(f"pipeline-delivery-{trigger.pk}", max_count=MAX_PER_MINUTE, within_s=60)
    if not trigger.is_on:
        raise Invalid(_("This trigger is disabled."))
    news = trigger_firings.News(delivery.key, delivery.sent, {"delivery": delivery.key, **facts})
    run = trigger_firings.fire(trigger, news)
    if run is None:
        row = trigger.firings.filter(key=delivery.key[:120]).select_related("run").first()
        if row is not None and row.run is not None:
            return row.run
        raise BeganNone(str(row.message if row else "") or _("No run was started."))
    return run

"""Triggers fire: what is new for each becomes a firing with one run, in one transaction, once.

A firing's key says what it answers: a due time, a dataset version, a notice, a delivery. The unique key of its row
makes a second look at the same thing nothing. What a run made by a trigger makes itself may fire others, but never the
same pipeline again, and no chain is longer than five.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Q

from accounts.access.permissions import Action
from accounts.models import Notification
from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from annotation.models import Export
from datasets.models import DatasetVersion, Import
from inference.batch.models import PredictedData
from inference.pipelines import runs, schedules, step_start
from inference.pipelines.models import Firing, Pipeline, PipelineRun, PipelineTrigger, StepRun
from inference.serving.monitoring import notices as drift
from workers.core.clock import now
from workers.core.models import Alarm

log = logging.getLogger(__name__)

MAX_NEWS = 100  # of one trigger in one look
MAX_DEPTH = 5  # triggers behind one another
EXPECTED_REASONS = ("pipeline.own_work", "pipeline.still_busy")  # why no run began where all is well
PICKING = ("dataset", "input")  # kinds of steps that give a version which was there before
K = PipelineTrigger.Kind


@dataclass(frozen=True, slots=True)
class News:
    """Something that a trigger answers.

    Attributes:
        at: when it came to be; the next look begins behind it.
        facts: what the run's `trigger` says of it.
        ancestry: pipelines whose runs led to it, the first one first.
    """

    key: str
    at: datetime
    facts: Mapping[str, Any] = field(default_factory=dict)
    ancestry: tuple[int, ...] = ()


def fire_due() -> int:
    """Fire all triggers with news; returns how many runs began. One that breaks holds up no other."""
    begun = 0
    rows = PipelineTrigger.objects.filter(is_on=True).exclude(kind=K.WEBHOOK).order_by("pk")
    for trigger in rows.select_related("pipeline", "owner", "dataset", "service"):
        try:
            begun += fire_news(trigger)
        except OperationalError:  # the database is away: the next sweep tries again
            raise
        except Exception:
            log.exception("pipeline trigger=%s did not fire, the next sweep tries again", trigger.pk)
    return begun


def fire_news(trigger: PipelineTrigger) -> int:
    """Fire one trigger for all its events; returns how many runs started."""
    started = 0
    for news in list(_news(trigger, now()))[:MAX_NEWS]:
        started += fire(trigger, news) is not None
    return started


def _news(trigger: PipelineTrigger, at: datetime) -> Iterator[News]:
    """Yield the events since the last check, oldest first."""
    if trigger.kind == K.CRON:
        for moment in schedules.due(trigger.schedule, trigger.zone, trigger.seen_at, at, _missed(trigger)):
            yield News(f"at:{moment.isoformat()}", moment, {"due": moment.isoformat()})
    elif trigger.kind == K.DATASET and trigger.dataset is not None:
        yield from _versions(trigger)
    elif trigger.kind == K.DRIFT and trigger.service is not None:
        notifications = Notification.objects.filter(
            user=trigger.owner, kind=drift.KIND.name, created_at__gt=trigger.seen_at,
            key__startswith=f"drift-{trigger.service_id}-",
        )  # fmt: skip
        for notice in notifications.order_by("created_at"):
            yield News(notice.key, notice.created_at, {"service": trigger.service_id})
    elif trigger.kind == K.ALARM and trigger.owner.can(Action.CLUSTER_MANAGE):
        alarms = Alarm.objects.filter(raised_at__gt=trigger.seen_at).select_related("rule")
        alarms = alarms.filter(rule__key=trigger.rule) if trigger.rule else alarms
        for alarm in alarms.order_by("raised_at"):
            if alarm.raised_at is not None:
                facts = {"rule": alarm.rule.key, "subject": alarm.subject}
                yield News(f"alarm:{alarm.pk}", alarm.raised_at, facts)


def _missed(trigger: PipelineTrigger) -> schedules.Missed:
    values: dict[str, schedules.Missed] = {"all": "all", "none": "none"}
    return values.get(trigger.missed, "latest")


def _versions(trigger: PipelineTrigger) -> Iterator[News]:
    """The newest version of its dataset that came since; older ones between are passed over."""
    rows = DatasetVersion.objects.usable_by(trigger.owner).filter(dataset=trigger.dataset_id)
    newest = rows.filter(state=DatasetVersion.State.READY, created_at__gt=trigger.seen_at).order_by("-number").first()
    if newest is not None:
        facts = {"dataset_version": newest.pk, "label": str(newest)}
        yield News(f"version:{newest.pk}", newest.created_at, facts, ancestry_of(newest))


def ancestry_of(version: DatasetVersion) -> tuple[int, ...]:
    """Return the pipelines whose runs led to a dataset version, the first one first; () where users created it."""
    produced = Q(outputs__data__type="dataset", outputs__data__id=version.pk, state=StepRun.State.OK)
    rows = StepRun.objects.filter(produced | _requested(version))
    for step in rows.select_related("run").order_by("pk")[:MAX_NEWS]:
        if step_start.kind_of(step.run, step) not in PICKING:
            return (*step.run.trigger.get("ancestry", ()), step.run.pipeline_id)
    return ()


def _requested(version: DatasetVersion) -> Q:
    """Match steps that requested a version, from its creation on, before they are polled and output it."""
    intakes = list(Import.objects.filter(version=version).values_list("pk", flat=True))
    exports = list(Export.objects.filter(version=version).values_list("pk", flat=True))
    drafts = list(PredictedData.objects.filter(intake__in=intakes).values_list("pk", flat=True))
    return Q(kept__import__in=intakes) | Q(kept__export__in=exports) | Q(kept__made__in=drafts)


def fire(trigger: PipelineTrigger, news: News) -> PipelineRun | None:
    """Begin the run that one piece of news asks for; None where it was answered before, or begins none."""
    try:
        with transaction.atomic():
            held = PipelineTrigger.objects.select_for_update(of=("self",)).select_related("owner", "pipeline")
            fresh = held.get(pk=trigger.pk)
            firing = Firing.objects.create(trigger=fresh, key=news.key[:120], at=now())
            run, message = _answer(fresh, news)
            Firing.objects.filter(pk=firing.pk).update(run=run, message=message)
            seen_at = max(fresh.seen_at, news.at)
            PipelineTrigger.objects.filter(pk=fresh.pk).update(seen_at=seen_at, message=message)
            if message and message.code not in EXPECTED_REASONS:
                _notify_owner(fresh, message, firing.at)
            return run
    except IntegrityError:
        if trigger.firings.filter(key=news.key[:120]).exists():  # another process was faster
            return None
        raise
    except PipelineTrigger.DoesNotExist:
        return None


def _notify_owner(trigger: PipelineTrigger, message: Message, at: datetime) -> None:
    """Notify the owner that no run was started, once a day."""
    notify(
        trigger.owner, "failed", title=wording.message("pipeline.trigger_refused", name=trigger.pipeline.name),
        text=message, url=f"/pipelines/{trigger.pipeline_id}/", key=f"pipeline-trigger-{trigger.pk}-{at:%Y-%m-%d}",
    )  # fmt: skip


def _may(trigger: PipelineTrigger) -> bool:
    """Whether its owner could still set it up."""
    owner = trigger.owner
    editable = Pipeline.objects.editable_by(owner).filter(pk=trigger.pipeline_id)
    return owner.is_active and owner.can(Action.JOBS_SUBMIT) and editable.exists()


def _answer(trigger: PipelineTrigger, news: News) -> tuple[PipelineRun | None, Message]:
    """Return the run, or the reason why there is none."""
    if trigger.pipeline_id in news.ancestry:
        return None, wording.message("pipeline.own_work")
    if len(news.ancestry) >= MAX_DEPTH:
        return None, wording.message("pipeline.chain_too_long", most=MAX_DEPTH)
    if not _may(trigger):
        return None, wording.message("pipeline.owner_not_allowed")
    version = trigger.pipeline.versions.filter(number=trigger.agreed).first()
    if version is None:
        return None, wording.message("pipeline.not_agreed", person=trigger.owner.get_full_name())
    earlier = trigger.pipeline.runs.filter(state=PipelineRun.State.RUNNING)  # regardless of who started them
    if trigger.busy == PipelineTrigger.Busy.SKIP and earlier.exists():
        return None, wording.message("pipeline.still_busy")
    try:
        with transaction.atomic():
            if trigger.busy == PipelineTrigger.Busy.CANCEL:
                for run in earlier.filter(cancel=False).order_by("pk"):  # all who hold several take them in order
                    with contextlib.suppress(runs.NotNow):  # it ended meanwhile
                        runs.cancel(run)
            trigger_facts = {"by": trigger.kind, "trigger": trigger.pk, "ancestry": list(news.ancestry), **news.facts}
            return runs.start(
                user=trigger.owner, version=version, parameters=trigger.parameters, trigger=trigger_facts
            ), Message()
    except DomainError as exc:
        return None, wording.of_error(exc)

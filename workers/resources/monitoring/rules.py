"""Built-in alarm rules. A rule turns a snapshot and a threshold into breaches; `for_s` is how long they must last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy, npgettext_lazy

from aiplatform.lib.wording import Message, Show, Wording, message, nested
from workers.resources.monitoring.snapshot import Card, Machine, MonitoringSnapshot

INFO, WARNING, CRITICAL = "info", "warning", "critical"


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule broken by `subject`. `facts` fill the rule's sentence; `value` is what is compared."""

    subject: str
    value: float
    facts: dict[str, Any] = field(default_factory=dict)


Check = Callable[[MonitoringSnapshot, float], Iterable[Breach]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A built-in rule with its defaults; an operator may change threshold, duration, severity, and switch it off.

    `sentence` is the sentence of an alarm, filled with subject, value, limit and the breach's facts. The threshold is
    measured in `unit`, or counts things (`npgettext_lazy("threshold", "day", "days")`); a rule with neither has none.
    """

    key: str
    label: Any
    sentence: Any
    check: Check
    threshold: float = 0.0
    unit: Any = ""
    for_s: int = 0
    severity: str = WARNING
    counts: Any = None

    @property
    def wording(self) -> Wording:
        many = Show("value", _how_many)
        return Wording(self.sentence, value=Show("value", _figure_text), many=many, note=nested("note"))

    def unit_of(self, threshold: float) -> str:
        """The unit behind this threshold: "day" for 1, "days" for 14; empty where there is no threshold to set."""
        return str(self.counts % _how_many(threshold)) if self.counts else str(self.unit)


def _figure_text(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _how_many(value: float) -> int:
    """The figure as it is shown, for a plural; what is no whole number is never "one"."""
    shown = round(value, 1)
    return int(shown) if shown == int(shown) else 2


def _machines(read: Callable[[Machine], float | None], *, above: bool = True) -> Check:
    def check(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
        for machine in snapshot.machines:
            value = read(machine)
            if value is not None and (value > limit if above else value < limit):
                yield Breach(machine.name, value)

    return check


def _cards(read: Callable[[Card], float | None], *, above: bool = True) -> Check:
    def check(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
        for card in snapshot.cards:
            value = read(card)
            if value is not None and (value > limit if above else value < limit):
                yield Breach(card.name, value)

    return check


def _health(wanted: str) -> Check:
    def check(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
        for card in snapshot.cards:
            if card.health == wanted:
                yield Breach(card.name, 1.0, {"note": card.note.as_json()})

    return check


def _figure(subject: str, read: Callable[[MonitoringSnapshot], float | None], *, above: bool = True) -> Check:
    def check(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
        value = read(snapshot)
        if value is not None and (value > limit if above else value < limit):
            yield Breach(subject, value)

    return check


def _broker(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
    if snapshot.broker_s is None:
        yield Breach("broker", 1.0)


def _queue(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
    for queue in snapshot.queues:
        if queue.longest_s > limit * 60:
            yield Breach(queue.cluster, queue.longest_s / 60, {"count": queue.waiting})


def _versions(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
    for machine in snapshot.machines:
        if machine.version and snapshot.version and machine.version != snapshot.version:
            yield Breach(machine.name, 1.0, {"has": machine.version, "server": snapshot.version})


def _failing(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
    percent = 100 * snapshot.failed / snapshot.ended if snapshot.ended else 0.0
    if snapshot.ended >= 5 and percent > limit:
        yield Breach("jobs", percent, {"failed": snapshot.failed, "ended": snapshot.ended})


def _restarting(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
    for job in snapshot.restarts:
        if job.count > limit:
            yield Breach(f"job {job.job}", job.count, {"name": job.name})


def _shares(of: str) -> Check:
    def check(snapshot: MonitoringSnapshot, limit: float) -> Iterator[Breach]:
        for share in snapshot.shares:
            if share.of == of and share.percent > limit:
                yield Breach(share.what, share.percent, {"user": share.user, "page": share.page})

    return check


def _idle(card: Card) -> float | None:
    return card.util if card.held else None


def _busy_memory(card: Card) -> float | None:
    return card.memory_percent if card.health == "ok" else None


def _clock(machine: Machine) -> float | None:
    return abs(machine.clock_off_s) if machine.clock_off_s is not None else None


RULES: dict[str, Rule] = {
    rule.key: rule
    for rule in (
        Rule(
            "node_silent", _("Node does not respond"), _("No heartbeat from %(subject)s for %(value)s s."),
            _machines(lambda m: m.silent_s), 60, _("s"), 0, CRITICAL,
        ),
        Rule(
            "unkillable", _("Process cannot be killed"),
            ngettext_lazy(
                "%(value)s process on %(subject)s cannot be killed. Restart the node, then resume scheduling.",
                "%(value)s processes on %(subject)s cannot be killed. Restart the node, then resume scheduling.",
                "many",
            ),
            _machines(lambda m: float(m.unkillable)), severity=CRITICAL,
        ),
        Rule(
            "disk_low", _("Low disk space"), _("%(subject)s has %(value)s %% free disk space."),
            _machines(lambda m: m.disk_free_percent, above=False), 20, "%",
        ),
        Rule(
            "disk_full", _("Disk almost full"), _("%(subject)s has only %(value)s %% free disk space."),
            _machines(lambda m: m.disk_free_percent, above=False), 5, "%", 0, CRITICAL,
        ),
        Rule(
            "inodes_low", _("Low on inodes"), _("%(subject)s has %(value)s %% free inodes."),
            _machines(lambda m: m.inodes_free_percent, above=False), 10, "%",
        ),
        Rule(
            "memory_high", _("Memory almost full"), _("%(subject)s uses %(value)s %% of its memory."),
            _machines(lambda m: m.memory_percent), 95, "%", 60,
        ),
        Rule(
            "cpu_high", _("The CPU is constantly busy"), _("%(subject)s uses %(value)s %% of its CPU."),
            _machines(lambda m: m.cpu_percent), 98, "%", 600,
        ),
        Rule(
            "clock_differs", _("Clock out of sync"), _("The clock of %(subject)s differs from the server by "
                                                      "%(value)s s."),
            _machines(_clock), 5, _("s"), 30,
        ),
        Rule(
            "version_differs", _("Node runs a different version"),
            _("%(subject)s runs version %(has)s, the server runs %(server)s."), _versions, for_s=300,
        ),
        Rule(
            "gpu_gone", _("The number of GPUs changed"), _("%(subject)s disappeared. %(note)s"), _health("gone"),
            severity=CRITICAL,
        ),
        Rule(
            "gpu_sick", _("A GPU is unhealthy (ECC, driver)"), _("%(subject)s is out of "
                                                                 "order. %(note)s"), _health("sick"),
            severity=CRITICAL,
        ),
        Rule(
            "external_process", _("A process from outside the platform uses a GPU"),
            _("%(subject)s is used by a foreign process. %(note)s"), _health("external"), for_s=30,
        ),
        Rule(
            "gpu_hot", _("A GPU is overheating"), _("%(subject)s has reached %(value)s °C."),
            _cards(lambda c: c.temperature_c), 88, "°C", 60,
        ),
        Rule(
            "gpu_memory_full", _("The memory of a GPU is full"), _("%(subject)s uses %(value)s %% of its memory."),
            _cards(_busy_memory), 98, "%", 300, INFO,
        ),
        Rule(
            "gpu_idle", _("A GPU is assigned but idle"),
            _("%(subject)s is allocated to a job and %(value)s %% utilized."),
            _cards(_idle, above=False), 5, "%", 4 * 3600,
        ),
        Rule(
            "job_waiting", _("Long queue time"),
            ngettext_lazy(
                "A job in cluster %(subject)s has been queued for %(value)s min.",
                "The first of %(count)s queued jobs in cluster %(subject)s has been queued for %(value)s min.", "count",
            ),
            _queue, 30, _("min"), 0, INFO,
        ),
        Rule(
            "jobs_failing", _("Many jobs fail"), _("%(failed)s of %(ended)s jobs of the last hour failed."),
            _failing, 50, "%",
        ),
        Rule(
            "service_restarts", _("Service restarts repeatedly"),
            ngettext_lazy(
                "%(subject)s (%(name)s) restarted %(value)s time within an hour.",
                "%(subject)s (%(name)s) restarted %(value)s times within an hour.", "many",
            ),
            _restarting, 3, counts=npgettext_lazy("threshold", "time", "times"),
        ),
        Rule(
            "storage_quota", _("Storage almost full"), _("Storage of %(subject)s: %(value)s %% used."),
            _shares("storage"), 90, "%",
        ),
        Rule(
            "home_low", _("Home folder almost full"),
            _("The home folder of %(subject)s uses %(value)s %% of its quota."), _shares("home"), 90, "%", 0, INFO,
        ),
        Rule(
            "home_full", _("Home folder full"),
            _(
                "The home folder of %(subject)s uses %(value)s %% of its quota. Nothing can be uploaded and no "
                "workspace of this user starts until files are deleted, on the page Files or in a workspace."
            ),
            _shares("home"), 100, "%",
        ),
        Rule(
            "scheduler_away", _("The scheduler is not running"), _("The scheduler has been inactive for %(value)s s."),
            _figure("scheduler", lambda p: p.scheduler_silent_s), 20, _("s"), 0, CRITICAL,
        ),
        Rule(
            "broker_away", _("Broker unavailable"), _("The broker does not respond; messages are delayed."), _broker,
            for_s=15, severity=CRITICAL,
        ),
        Rule(
            "broker_slow", _("Broker slow"), _("The broker responds in %(value)s ms."),
            _figure("broker", lambda p: p.broker_s * 1000 if p.broker_s is not None else None), 200, _("ms"), 60,
        ),
        Rule(
            "database_slow", _("Database slow"), _("A small transaction takes %(value)s ms."),
            _figure("database", lambda p: p.database_s * 1000), 1000, _("ms"), 60,
        ),
        Rule(
            "unwatched", _("Database or monitoring was unavailable"), _("No check was possible for %(value)s s."),
            _figure("platform", lambda p: p.unwatched_s), 120, _("s"),
        ),
        Rule(
            "certificate", _("Certificate expires soon"),
            ngettext_lazy(
                "The certificate of the site expires in %(value)s day.", "The certificate of the site expires in "
                                                                 "%(value)s days.",
                "many",
            ),
            _figure("certificate", lambda p: p.certificate_days, above=False), 14,
            counts=npgettext_lazy("threshold", "day", "days"),
        ),
        Rule(
            "undelivered", _("Messages cannot be delivered"),
            ngettext_lazy(
                "Delivery of %(value)s e-mail or webhook of the last hour failed.",
                "Delivery of %(value)s e-mails or webhooks of the last hour failed.", "many",
            ),
            _figure("messages", lambda p: float(p.undelivered)), 0,
            counts=npgettext_lazy("threshold", "message", "messages"),
        ),
    )
}  # fmt: skip


def breaches(key: str, snapshot: MonitoringSnapshot, threshold: float) -> list[Breach]:
    """What breaks rule `key` in this snapshot, once per subject."""
    breached: dict[str, Breach] = {}
    for breach in RULES[key].check(snapshot, threshold):
        breached.setdefault(breach.subject[:120], breach)
    return list(breached.values())


def message_of(key: str, subject: str, value: float, facts: dict[str, Any]) -> Message:
    """The message of an alarm: the facts of the breach, what it is about and the newest figure."""
    return message(f"alarm.rule.{key}", **{**facts, "subject": subject, "value": value})


def label_of(key: str) -> str:
    """What people call a rule; its key where another version of the platform has it."""
    return str(RULES[key].label) if key in RULES else key

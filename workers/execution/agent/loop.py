"""Node agent: one per node. It keeps no state of its own; rows and run directories hold everything.

It looks at an attempt when something happens to it (`events`), and at all of them every `FULL_LOOK_S`: that finds what
no event announced. Attempts that start, gangs, and attempts whose events cannot be received it looks at every `LOOK_S`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib import after_commit
from aiplatform.lib.errors import NameTaken
from workers.core import clock, kinds, scratch
from workers.core.clock import now
from workers.core.models import Allocation, Attempt, Device, Node
from workers.execution import launch, results
from workers.execution.agent import (
    cards,
    containers,
    device_errors,
    mps,
    ranks,
    registration,
    remote_ranks,
    settling,
    sharing,
)
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.execution.agent.events import Due, Events
from workers.execution.agent.heartbeat import Heartbeat
from workers.execution.agent.npu_logs import NpuLogs
from workers.execution.exec import socket_paths
from workers.jobs.output import metrics
from workers.jobs.output import report_ingestion as reporting
from workers.resources.nodes import lifecycle, unkillable
from workers.resources.nodes.telemetry import host, sampler
from workers.supervisor import sandbox

log = logging.getLogger(__name__)

REFUSED_CODE = os.EX_CONFIG  # of the process: starting it again would change nothing
LOOK_S = 0.2  # between looks at what no event announces; while something runs also at the lengths of logs
FULL_LOOK_S = 2.0  # between looks at everything
REST_FACTOR, MIN_REST_S = 3.0, 0.02  # rest after a look, by how long it took: one look then serves several events
INGEST_S, INGEST_LONGEST_S = 2.0, 5.0  # between two rounds of taking in figures; after so long a round ends
HEARTBEAT_S, IDLE_HEARTBEAT_S = 5.0, 10.0  # between two samples of the node, while something runs and otherwise
SWEEP_S = 5.0
TIDY_S = 300.0
NEW_LAUNCHES = 2  # of each look: where many wait, their worker is at it, and would only be slowed down
MAX_LAUNCHES = 32  # threads that start something; more at once would mean that most of them hang


class Agent:
    """The agent. `tick` is one pass over everything, which tests call; `run` repeats it."""

    def __init__(self, name: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name or settings.NODE
        self.clock = clock
        self.probe = sampler.open_probe(env.FAKE_GPUS, env.FAKE_NPUS)
        self.sampler = sampler.Sampler(self.probe, settings.DATA_ROOT)
        self.watched: dict[int, AttemptMonitor] = {}
        self.remote: remote_ranks.Watched = {}
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="agent")
        self.sharing = sharing.CardMonitor()
        self.busy: dict[object, Future[None]] = {}
        self.launches: dict[tuple[int, int], threading.Thread] = {}
        self.refusal = ""
        self.pulse = Heartbeat(self.name, clock)
        self.cards = cards.Memory()
        self.npu_logs = NpuLogs()
        self.mps = mps.MpsWatch()
        self.events = Events(self.name)
        self.attempts: dict[int, Attempt] = {}  # those that this node leads, as they were when looked at
        self._unsettled: set[int] = set()  # attempts to look at every `LOOK_S`
        self._begun = 0  # launches of this look
        self._ingested_last = 0  # attempt
        self._looked = self._beaten = self._ingested = self._swept = self._tidied = float("-inf")

    def run(self, stopped: Callable[[], bool]) -> None:
        """Repeat passes until `stopped`. While the database is unavailable passes fail, the process stays.

        A machine that was removed, or whose name belongs to another, ends with `refusal` set.
        """
        is_registered = False
        self.events.open(stopped)
        while not stopped():
            started_at = self.clock()
            self.pulse.looked()
            due, failed = self.events.take_due(), True
            due.everything |= started_at - self._looked >= (FULL_LOOK_S if self.events.announce_starts else LOOK_S)
            try:
                is_registered = is_registered or bool(self.register())
                self.tick(due)
                failed = False
            except (OperationalError, InterfaceError) as exc:
                log.warning("database away, trying again: %s", exc)
                close_old_connections()
            except (lifecycle.Removed, NameTaken) as exc:
                self.refusal = exc.message
                log.error("node=%s %s", self.name, exc.message)
                break
            except Exception:
                log.exception("a look failed, the next one follows")
            if failed:
                self._looked = float("-inf")  # what was due still is
                time.sleep(LOOK_S)
            else:
                self._rest(started_at, has_looked=bool(due))
        self.events.close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _rest(self, started_at: float, *, has_looked: bool) -> None:
        """Wait until something happens or is due."""
        if has_looked or self._unsettled:
            time.sleep(min(LOOK_S, max(MIN_REST_S, REST_FACTOR * (self.clock() - started_at))))
        is_quiet = not (self.watched or self._unsettled or self.launches)
        next_at = self._looked + FULL_LOOK_S if is_quiet else started_at + LOOK_S
        self.events.wait(next_at - self.clock())

    def register(self) -> Node:
        return registration.register(self.name, self.probe.cards())

    def tick(self, due: Due | None = None) -> None:
        """Look at the attempts of this node of which something is due, and do what else is.

        Args:
            due: None: look at all of them.
        """
        moment = self.clock()
        due = Due(everything=True) if due is None else due
        with after_commit.collected():
            fresh = self._check_attempts(due) if due or self._unsettled else set()
            for pk, monitor in self.watched.items():
                if pk not in fresh:
                    self._each(monitor.attempt, self._report_log_growth)
        if due.everything:
            self._looked = moment
        self.launches = {key: thread for key, thread in self.launches.items() if thread.is_alive()}
        self.busy = {key: future for key, future in self.busy.items() if not future.done()}
        if moment - self._ingested >= INGEST_S:
            self._ingested = moment
            self._ingest(self.attempts.values())
        if moment - self._beaten >= (HEARTBEAT_S if self.watched or self._unsettled else IDLE_HEARTBEAT_S):
            self._beaten = moment
            self.beat()
        if moment - self._swept >= SWEEP_S:
            self._swept = moment
            remote_ranks.end_stale(self.name)
            self._in_background("device errors", partial(device_errors.collect, self.name, self.npu_logs))
            self._in_background("mps", partial(self.mps.check, self.name))
            if moment - self._tidied >= TIDY_S:
                self._tidied = moment
                self._in_background("exec sockets", socket_paths.sweep)
                self._in_background("scratch", scratch.sweep)
            if env.SANDBOX_TIER >= sandbox.CONTAINER:
                self._in_background("containers", containers.sweep)
            for job_id in results.unpublished():
                self._in_background(("publish", job_id), partial(results.publish, job_id))

    def _check_attempts(self, due: Due) -> set[int]:
        """Check the attempts that are due, new or about to change; return them."""
        self._begun = 0
        held = Allocation.objects.filter(node__name=self.name, released_at=None, attempt__ended_at=None)
        ranks_here = set(held.values_list("attempt", "rank"))
        rank_zero = {pk for pk, rank in ranks_here if rank == 0}
        self.events.retain(rank_zero)
        for pk in set(self.watched) - rank_zero:
            del self.watched[pk]
        due_now = (
            rank_zero
            if due.everything
            else rank_zero & (due.attempts | self._unsettled) | rank_zero - self.watched.keys()
        )
        attempts = self._attempts(due_now)
        self.attempts = {pk: item for pk, item in self.attempts.items() if pk in rank_zero} | {
            item.pk: item for item in attempts
        }
        for attempt in attempts:
            self._each(attempt, self._check_attempt)
        self._settle()
        self._unsettled = {pk for pk in rank_zero - due_now if pk in self._unsettled}
        self._unsettled |= {pk for pk in due_now if not self._is_announced(pk)}
        others = {pk for pk, rank in ranks_here if rank}
        self._unsettled |= others
        for pk, rank in remote_ranks.check_all(self.name, self.remote) if others or self.remote else ():
            self._start_rank((pk, rank))
        return due_now

    def _is_announced(self, pk: int) -> bool:
        """Whether events report whatever happens next to an attempt."""
        monitor = self.watched.get(pk)
        if monitor is None or monitor.supervisor is None or not monitor.is_watched:
            return False
        return self.events.follow(pk, monitor.supervisor)

    def _ingest(self, attempts: Iterable[Attempt]) -> None:
        """Ingest metrics until the time for it is used: jobs that report without end must not delay the checks.

        Those who were not reached come first in the next round.
        """
        started_at, last = self.clock(), self._ingested_last
        for attempt in sorted(attempts, key=lambda item: (item.pk <= last, item.pk)):
            if self.clock() - started_at > INGEST_LONGEST_S:
                return
            self._each(attempt, _take_in)
            self._each(attempt, reporting.ingest)
            self._ingested_last = attempt.pk

    def _check_attempt(self, attempt: Attempt) -> None:
        watched = self.watched.get(attempt.pk) or self.watched.setdefault(attempt.pk, AttemptMonitor(attempt))
        watched.is_watched = self.events.watch(attempt.pk, attempt.job_id, watched.run.path)
        exists = watched.check(attempt, settle=False)
        if not exists and self._begun < NEW_LAUNCHES and self._start_rank((attempt.pk, 0)):
            self._begun += 1
            watched.launch_requested = time.monotonic()

    def _report_log_growth(self, attempt: Attempt) -> None:
        self.watched[attempt.pk].report_log_growth()

    def _settle(self) -> None:
        """Write how attempts ended that only exited, all together; one by one where that fails."""
        ended = [monitor for monitor in self.watched.values() if monitor.ended is not None]
        try:
            left = settling.settle(ended) if ended else []
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("the ends of %s attempts were not written together", len(ended))
            left = ended
        for monitor in ended:
            if monitor in left:
                self._each(monitor.attempt, monitor.settle)
            monitor.ended = None

    def _each(self, attempt: Attempt, work: Callable[[Attempt], object]) -> None:
        """Run `work` for one attempt; a failure is logged and stops neither other attempts nor the heartbeat."""
        try:
            work(attempt)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("job=%s attempt=%s look failed, the next one follows", attempt.job_id, attempt.number)

    def beat(self) -> None:
        """Write heartbeat, telemetry, and what the jobs on this node use."""
        here = {part.attempt.pk: part for part in ranks.list_for_node(self.name)}
        sample = self.sampler.sample(
            sampler.Watched(pk, pid, part.cards) for pk, part in here.items() if (pid := part.root_pid)
        )
        node = Node.objects.filter(name=self.name).first()
        if node is None:
            self.register()
            return
        if node.state == Node.State.REMOVED:
            raise lifecycle.Removed(_("%(name)s was removed from the cluster.") % {"name": node.name})
        moment = now()
        facts = {**node.facts, **sample.node, "clock_off_s": round(clock.offset_s(), 1), "at": moment.isoformat()}
        facts["mps"] = self.mps.facts
        facts[unkillable.FACT] = unkillable.living(facts)
        Node.objects.filter(pk=node.pk).update(heartbeat_at=moment, facts=facts)
        cards.watch(node, sample.readings, self.cards)
        for card in sample.node["cards"]:
            rows = Device.objects.filter(node=node, kind=Device.Kind.GPU, index=card["index"])
            rows.update(sample={**card, "at": moment.isoformat()})
        for pk, figures in sample.jobs.items():
            figures |= _disk_figures(here[pk])
            self._each(
                here[pk].attempt, partial(metrics.record_system, figures=figures, at=moment, node=here[pk].number)
            )
        self.sharing.check(here, sample.jobs, moment, self.clock())

    def _attempts(self, numbers: Collection[int]) -> list[Attempt]:
        if not numbers:
            return []
        live = Attempt.objects.filter(pk__in=numbers, ended_at=None)
        return list(live.select_related("job__cluster").order_by("pk"))

    def _start_rank(self, rank: tuple[int, int]) -> bool:
        """Start one rank of an attempt in its own thread: one that hangs delays no other, nor our end.

        Returns:
            Whether it began just now.
        """
        self.launches = {key: thread for key, thread in self.launches.items() if thread.is_alive()}
        if rank in self.launches or len(self.launches) >= MAX_LAUNCHES:
            return False
        work = partial(_logged, ("start", *rank), partial(launch.start, *rank))
        thread = self.launches[rank] = threading.Thread(target=work, name=f"start-{rank[0]}-{rank[1]}", daemon=True)
        thread.start()
        return True

    def _in_background(self, key: object, work: Callable[[], object]) -> None:
        """Run something slower in the background, once at a time per key."""
        if key not in self.busy or self.busy[key].done():
            self.busy[key] = self.pool.submit(_logged, key, work)


def _disk_figures(part: ranks.RankRun) -> dict[str, float]:
    """The curve of what a job takes of its disk limit; nothing without one. Its row has the newest value."""
    used = part.disk_bytes
    if used is None:
        return {}
    if part.rank == 0 and part.attempt.disk_bytes != used:
        Attempt.objects.filter(pk=part.attempt.pk).update(disk_bytes=used)
    return {"system/disk_used_mib": round(used / host.MIB, 1)}


def _take_in(attempt: Attempt) -> None:
    """Take in what a program reported, and tell its kind where there was something."""
    if metrics.ingest(attempt):
        kinds.reported(attempt.job)


def _logged(key: object, work: Callable[[], object]) -> None:
    """Run work in a thread; a failure is logged and ends nothing else."""
    try:
        work()
    except Exception:
        log.exception("agent work=%s failed, it is tried again", key)
    finally:
        connection.close()

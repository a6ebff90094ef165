"""Node agent: one per node. It keeps no state of its own; rows and run directories hold everything."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib import after_commit
from aiplatform.lib.errors import NameTaken
from workers import clock, kinds, scratch
from workers.clock import now
from workers.exec import socket_paths
from workers.execution import agent_wakeup, launching, publishing
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
from workers.execution.agent.heartbeat import Heartbeat
from workers.execution.agent.npu_logs import NpuLogs
from workers.machines import lifecycle, unkillable
from workers.machines.telemetry import sampler
from workers.models import Attempt, Device, Node
from workers.output import metrics
from workers.output.reporting import ingest as reporting
from workers.supervisor import sandbox

log = logging.getLogger(__name__)

REFUSED_CODE = os.EX_CONFIG  # of the process: starting it again would change nothing
LOOK_S = 0.2
IDLE_LOOK_S = 2.0  # while nothing runs here: the start of a job wakes the agent
INGEST_S, INGEST_LONGEST_S = 1.0, 5.0  # between two rounds of taking in figures; after so long a round ends
HEARTBEAT_S = 5.0
SWEEP_S = 5.0
TIDY_S = 300.0
NEW_LAUNCHES = 2  # of each look: where many wait, their worker is at it, and would only be slowed down
MOST_LAUNCHES = 32  # threads that start something; more at once would mean that most of them hang


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
        self._begun = 0  # launches of this look
        self._ingested_last = 0  # attempt
        self._beaten = self._ingested = self._swept = self._tidied = float("-inf")

    def run(self, stopped: Callable[[], bool]) -> None:
        """Repeat passes until `stopped`. While the database is away passes fail, the process stays.

        A machine that was removed, or whose name belongs to another, ends with `refusal` set.
        """
        known = False
        wakeup = agent_wakeup.Wakeup(self.name, without_s=LOOK_S)
        while not stopped():
            begun = self.clock()
            self.pulse.looked()
            try:
                known = known or bool(self.register())
                self.tick()
            except (OperationalError, InterfaceError) as exc:
                log.warning("database away, trying again: %s", exc)
                close_old_connections()
            except (lifecycle.Removed, NameTaken) as exc:
                self.refusal = exc.message
                log.error("node=%s %s", self.name, exc.message)
                break
            except Exception:
                log.exception("a look failed, the next one follows")
            if self._is_idle() and known:
                self._rest(wakeup, stopped)
            else:
                time.sleep(max(0.02, LOOK_S - (self.clock() - begun)))
        wakeup.close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _is_idle(self) -> bool:
        """Whether no attempt runs, starts or is published here, so that only a start can change that."""
        return not (self.watched or self.remote or self.launches or self.busy)

    def _rest(self, wakeup: agent_wakeup.Wakeup, stopped: Callable[[], bool]) -> None:
        """Wait for work, at most `IDLE_LOOK_S`; a signal to end is noticed within `LOOK_S`."""
        until = self.clock() + IDLE_LOOK_S
        while not stopped() and (rest_s := until - self.clock()) > 0:
            if wakeup.wait(min(rest_s, LOOK_S)):
                return

    def register(self) -> Node:
        return registration.register(self.name, self.probe.cards())

    def tick(self) -> None:
        """One pass over every live attempt of this node, and what else is due."""
        moment = self.clock()
        self._begun = 0
        attempts = self._attempts()
        for pk in set(self.watched) - {attempt.pk for attempt in attempts}:
            del self.watched[pk]
        with after_commit.collected():
            for attempt in attempts:
                self._each(attempt, self._look)
            self._settle()
        for pk, rank in remote_ranks.look(self.name, self.remote):
            self._begin((pk, rank))
        self.launches = {key: thread for key, thread in self.launches.items() if thread.is_alive()}
        self.busy = {key: future for key, future in self.busy.items() if not future.done()}
        if moment - self._ingested >= INGEST_S:
            self._ingested = moment
            self._ingest(attempts)
        if moment - self._beaten >= HEARTBEAT_S:
            self._beaten = moment
            self.beat()
        if moment - self._swept >= SWEEP_S:
            self._swept = moment
            remote_ranks.end_stale(self.name)
            self._aside("device errors", partial(device_errors.collect, self.name, self.npu_logs))
            self._aside("mps", partial(self.mps.look, self.name))
            if moment - self._tidied >= TIDY_S:
                self._tidied = moment
                self._aside("exec sockets", socket_paths.sweep)
                self._aside("scratch", scratch.sweep)
            if env.SANDBOX_TIER >= sandbox.CONTAINER:
                self._aside("containers", containers.sweep)
            for job_id in publishing.unpublished():
                self._aside(("publish", job_id), partial(publishing.publish, job_id))

    def _ingest(self, attempts: Sequence[Attempt]) -> None:
        """Take in figures until the time for it is used: jobs that report without end must not hold up the looks.

        Those who were not reached come first in the next round.
        """
        begun, last = self.clock(), self._ingested_last
        for attempt in sorted(attempts, key=lambda one: (one.pk <= last, one.pk)):
            if self.clock() - begun > INGEST_LONGEST_S:
                return
            self._each(attempt, _take_in)
            self._each(attempt, reporting.ingest)
            self._ingested_last = attempt.pk

    def _look(self, attempt: Attempt) -> None:
        watched = self.watched.setdefault(attempt.pk, AttemptMonitor(attempt))
        if not watched.look(attempt, settle=False) and self._begun < NEW_LAUNCHES and self._begin((attempt.pk, 0)):
            self._begun += 1
            watched.launch_requested = time.monotonic()

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
        here = {part.attempt.pk: part for part in ranks.of(self.name)}
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
            self._each(
                here[pk].attempt, partial(metrics.record_system, figures=figures, at=moment, node=here[pk].number)
            )
        self.sharing.look(here, sample.jobs, moment, self.clock())

    def _attempts(self) -> list[Attempt]:
        mine = Attempt.objects.filter(
            ended_at=None, allocations__node__name=self.name, allocations__released_at=None, allocations__rank=0
        )
        return list(mine.distinct().select_related("job__cluster").order_by("pk"))

    def _begin(self, rank: tuple[int, int]) -> bool:
        """Start one rank of an attempt in a thread of its own: one that hangs holds up no other, nor our end.

        Returns:
            Whether it began just now.
        """
        self.launches = {key: thread for key, thread in self.launches.items() if thread.is_alive()}
        if rank in self.launches or len(self.launches) >= MOST_LAUNCHES:
            return False
        work = partial(_logged, ("start", *rank), partial(launching.start, *rank))
        thread = self.launches[rank] = threading.Thread(target=work, name=f"start-{rank[0]}-{rank[1]}", daemon=True)
        thread.start()
        return True

    def _aside(self, key: object, work: Callable[[], object]) -> None:
        """Do something slower beside the looks, once at a time per key."""
        if key not in self.busy or self.busy[key].done():
            self.busy[key] = self.pool.submit(_logged, key, work)


def _take_in(attempt: Attempt) -> None:
    """Take in what a program reported, and tell its kind where there was something."""
    if metrics.ingest(attempt):
        kinds.reported(attempt.job)


def _logged(key: object, work: Callable[[], object]) -> None:
    """Run work in a thread beside the passes; a failure is logged and ends nothing else."""
    try:
        work()
    except Exception:
        log.exception("agent work=%s failed, it is tried again", key)
    finally:
        connection.close()

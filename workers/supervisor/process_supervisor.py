"""Process supervisor: runs one command. Requests in, steps of the ladder, records out."""

import os
import signal
import time

from workers.supervisor import exec_socket, gpu_checkpoint, log_lines, processes, records, sandbox, spawn
from workers.supervisor.command_watch import CommandWatch
from workers.supervisor.hold import Hold
from workers.supervisor.keeper import RecordKeeper
from workers.supervisor.ladder import Ladder, ProcessPause
from workers.supervisor.limit_checks import CLOSE_S, LimitChecks
from workers.supervisor.logfile import LogFile
from workers.supervisor.sweep import sweep
from workers.supervisor.ticket import Ticket
from workers.supervisor.wakeups import Wakeups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.supervisor.cgroups import Group

_IDLE_S, _BUSY_S = 0.5, 0.05
_FATAL = {"kill": "stopping", "stop": "stopping", "finish": "finishing", "suspend": "suspending"}  # by verb


class ProcessSupervisor(LimitChecks):
    """Owns the user's processes from the first to the last.

    Reads the requested file whenever it is renamed into place (inotify) and twice a
    second anyway, so that control depends on no message. Durations are measured
    by the monotonic clock: setting the machine's clock ends no job.
    """

    def __init__(self, run: str, ticket: Ticket, claim: dict[str, object]) -> None:
        self.run, self.ticket, self.claim = run, ticket, claim
        self.records = RecordKeeper(run)
        self.log = LogFile(self._file(records.LOG), ticket.log_quota_bytes, ticket.secrets)
        self.pausing = ProcessPause(self._pids)
        self.hold = Hold(run, self.pausing)
        self.ladder: Ladder | None = None
        self.requested = "run"  # the one being obeyed
        self.limit, self.held_bytes = "", 0  # "max_runtime" when time ran out, "memory" or "disk" when it took too much
        self._weighed_next, self._close = 0.0, False  # close: near its memory limit, so look more often
        self.told_to_end = False  # SIGTERM to the supervisor itself: the node goes down
        self.card = gpu_checkpoint.GpuCheckpoint(ticket.libcuda)
        self.state, self.oom_before, self.paused_s = "", 0, 0.0
        self._paused_since: float | None = None
        self._child, self._forced = 0, False  # pid of the command; whether its end was not waited for any longer
        self._code: int | None = None
        self.watch = CommandWatch(self._layers)
        self._group: Group | None = None
        self.wakeups = Wakeups(run)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._node_goes_down)

    def _file(self, name: str) -> str:
        return os.path.join(self.run, name)

    def supervise(self, on_start: "Callable[[], None]") -> None:
        """Run the command to its end and write exit.json.

        Args:
            begun: called once the command runs, or could not be started.
        """
        spawn.become_subreaper()
        self.oom_before = processes.oom_kills()
        started_at, since = time.time(), time.monotonic()
        error = self._start(on_start)
        while not error and self._code is None:
            now = time.monotonic()
            self._obey(records.read_request(self.run), now)
            self._step_cards(now)
            self.hold.step(ends=self.ladder is not None, rests=self._paused_since is not None)
            self._check_run_time(now, since)
            self._check_memory(now)
            self._check_disk_limit(now)
            if self.ladder:
                self.ladder.step(now)
            self._look_at_disk(now)
            self._sleep()
            self._reap()
            if self._code is None and self._is_withheld(now):
                break
        leftovers, unkillable = self._sweep()
        if self._group:
            if self._group.out_of_memory() and self._code != 0:
                self.limit, self.held_bytes = "memory", self.ticket.memory_bytes
            self._group.remove()
        self._end_disk_limit()
        self._end_pause(time.monotonic())
        self._look_at_disk(time.monotonic(), last=True)
        code, number = processes.outcome(self._code, wrapped=self.ticket.tier >= sandbox.BUBBLEWRAP)
        if self.ticket.opening and self._child:
            self.log.add_end(code, number.name if number else "", time.monotonic() - since)
        while not self.log.close():
            self._sleep(_IDLE_S)
        self.records.seal(
            {
                "job": self.ticket.job,
                "attempt": self.ticket.attempt,
                "rank": self.ticket.rank,
                "code": code,
                "signal": number.name if number else None,
                "requested": "stop" if self.requested == "kill" else records.verb(self.requested),
                "limit": self.limit,
                "memory_limit_bytes": self.ticket.memory_bytes,
                "held_bytes": self.held_bytes,
                "disk_limit_bytes": self.ticket.disk_bytes,
                "disk_bytes": self.disk.used_bytes if self.disk else None,
                "node_down": self.told_to_end,
                "killed": self._we_killed(),
                "termed": bool(self.ladder and self.ladder.termed),
                "oom": number is signal.SIGKILL and not self._we_killed() and processes.oom_kills() > self.oom_before,
                "leftovers": leftovers,
                "unkillable": unkillable,
                "stranded": self.card.trouble,
                "error": error,
                "started_at": started_at,
                "ended_at": time.time(),
                "paused_s": round(self.paused_s, 3),
                "disk_full": self.records.was_full,
                "log_bytes": os.stat(self._file(records.LOG)).st_size,
            },
            self._sleep,
        )
        self._report_state("ended")

    def _start(self, on_start: "Callable[[], None]") -> str:
        """Start the command; return why it could not be, "" where it runs. A full disk is waited for."""
        self._control("")
        self._begin_disk_limit()
        error = self._try_to_start()
        on_start()
        while error is None:
            self._sleep(_IDLE_S)
            error = self._try_to_start()
        return error

    def _try_to_start(self) -> str | None:
        if records.verb(records.read_request(self.run)) in _FATAL:  # stopped before it began: never begin
            self.requested = records.read_request(self.run)
            self._code = 0 if records.verb(self.requested) == "finish" else 75
            return ""
        self.log.write_opening(self.ticket.opening)
        try:
            self._child = self._start_command()
        except OSError as exc:
            if records.is_refused(exc):
                return None
            self.log.add(log_lines.COMMAND, "not_started", program=self.ticket.argv[0], why=exc)
            return str(exc)
        child = {"pid": self._child, "start_ticks": records.start_ticks(self._child)}
        self.records.write(records.SUPERVISOR, {**self.claim, "tier": self.ticket.tier, "child": child})
        self._report_state("running")
        return ""

    def _start_command(self) -> int:
        """Start the command; returns the pid that its processes hang below.

        Raises:
            OSError: it could not be started.
        """
        if self.ticket.uid:
            sandbox.chown_writable(self.ticket)
        if self.ticket.tier >= sandbox.OWN_UID:
            self._group = self._grouped()
        pid, self.wakeups.server = spawn.start(self.ticket, self.log.path, self._group)
        return pid

    def _grouped(self) -> "Group":
        """The limits of the kernel for this job. Tier 3 only."""
        from workers.supervisor import cgroups  # noqa: PLC0415 - most jobs need none, and every start counts

        group = cgroups.of_job(self.ticket)
        if not group.works:
            self.log.add(log_lines.ENVIRONMENT, "not_limited")
        return group

    def _obey(self, requested: str, now: float) -> None:
        if self.told_to_end and records.STRENGTH[requested] < records.STRENGTH["suspend"]:
            requested = "suspend"
        if records.STRENGTH[requested] < records.STRENGTH[self.requested]:
            return
        if records.verb(requested) in _FATAL:
            if requested != self.requested:
                self._end(requested, now)
        elif requested == "evict":
            if self.requested == "pause":
                self._go_on(now)
            if self.requested != "evict":
                self.requested = "evict"
                self.card.forgive()
        elif self.requested == "evict" or self.card.away:
            self.requested = "run"  # back on its cards first, whatever is requested then
            if not self.card.away:
                self._report_state("running")
        elif requested == "pause":
            self._pause(now)
        elif self.requested == "pause":
            self._go_on(now)
            self._report_state("running")

    def _go_on(self, now: float) -> None:
        """End a pause."""
        self.requested = "run"
        self._control("")
        self._end_pause(now)
        self._resume_processes()

    def _step_cards(self, now: float) -> None:
        """Move its GPU memory where it is wanted: off the GPUs while it is evicted, otherwise onto them."""
        if self.ladder or (not self.card.away and self.requested != "evict"):
            return
        before, evicts = self.card.at, self.requested == "evict"
        if before == gpu_checkpoint.ON and not self.card.why and self._group and self.ticket.memory_bytes:
            self._group.allow(self.ticket.memory_bytes + self.ticket.card_memory_bytes)
        if before == gpu_checkpoint.OFF and not evicts:
            self._resume_processes()  # a process that stands still cannot be brought back
        at = self.card.step(evicts, now)
        if at == gpu_checkpoint.OFF:
            if self._paused_since is None:
                self._paused_since = now
            if self.pausing.pause():
                self._report_state("evicted")
        elif at == gpu_checkpoint.STUCK:
            self._give_up(now)
        elif at == gpu_checkpoint.ON and (before != at or self.card.why):
            self._end_pause(now)
            if self._group:
                self._group.allow(self.ticket.memory_bytes)
            if self.card.why and self.state != "kept":
                self.log.add(log_lines.PROGRAM, "stays_on_cards", why=self.card.why)
            self._report_state("kept" if self.card.why else "running", why=self.card.why)
        elif at in (gpu_checkpoint.LEAVING, gpu_checkpoint.RETURNING):
            self._report_state("evicting" if at == gpu_checkpoint.LEAVING else "returning")

    def _give_up(self, now: float) -> None:
        """Its memory cannot come back: what is left of it ends, to start again from its newest checkpoint."""
        self.limit = "stranded"
        self.log.add(log_lines.PROGRAM, "stranded", why=self.card.trouble)
        self._end_pause(now)
        self.ladder = self._ladder(0.0, 0.0)
        self._report_state("stopping")

    def _pause(self, now: float) -> None:
        if self.requested != "pause":
            self.requested = "pause"
            self._control("pause")
            self._report_state("pausing")
        if self.pausing.pause() and self._paused_since is None:
            self._paused_since = now
            self._report_state("paused")

    def _end(self, requested: str, now: float) -> None:
        """Begin the way down; a way already begun is replaced by the harder one."""
        was_paused, self.requested = self.requested == "pause" or self.card.away, requested
        listens = (verb := records.verb(requested)) != "stop" and verb in self.ticket.listens and not self.card.away
        self.card.abandon()  # what is off its cards cannot save anything
        self._report_state(_FATAL[verb])  # before anybody can end of it: parts on other machines ask here why we did
        self._control("" if requested in ("stop", "kill") else requested)
        if was_paused:
            self._end_pause(now)
            self._resume_processes()
        ask_s = {"finish": self.ticket.finish_grace_s, "suspend": self.ticket.suspend_grace_s}.get(verb, 0.0)
        grace_s = {"stop": self.ticket.stop_grace_s, "kill": 0.0}.get(requested, self.ticket.term_grace_s)
        self.ladder = self._ladder(ask_s if listens else 0.0, grace_s)

    def _look_at_disk(self, now: float, *, last: bool = False) -> None:
        if (full_s := self.records.check(now, due=last)) is not None:
            self.log.add(log_lines.PROGRAM, "disk_was_full", seconds=round(full_s))
        self.log.keep_quota()

    def _ladder(self, ask_s: float, grace_s: float) -> Ladder:
        return Ladder(self._pids, ask_s, grace_s)

    def _resume_processes(self) -> None:
        if not self.hold.active or self.ladder:
            self.pausing.resume()

    def _end_pause(self, now: float) -> None:
        if self._paused_since is not None:
            self.paused_s += now - self._paused_since
            self._paused_since = None
            self.records.write(records.PAUSED, f"{self.paused_s:.3f}")  # programs leave it out of what they measure

    def _reap(self) -> None:
        """Collect every dead child: the command itself and whatever orphans came to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                if self._code is None and self._child:
                    self._code = 255
                return
            if pid == 0:
                return
            if pid == self._child:
                self._code = os.waitstatus_to_exitcode(status)

    def _layers(self) -> tuple[list[int], list[int]]:
        """Wrapper processes around the command, outermost first, and the children of the innermost."""
        if self.ticket.tier < sandbox.BUBBLEWRAP:
            return [], [self._child]
        inner = processes.children(self._child)
        return [self._child, *inner], processes.children(inner[0]) if inner else []

    def _is_withheld(self, now: float) -> bool:
        """Whether the command's end is not to be waited for any longer; what is left is killed then, all of it."""
        if self.requested == "kill" or (self.ladder and self.ladder.is_spent(now)):
            self._forced = True
        elif self.watch.held(now):
            self._forced = True
            self.log.add(log_lines.PROGRAM, "withheld")
        return self._forced

    def _sweep(self) -> tuple[int, list[int]]:
        """End what outlived the command, and its wrapper processes: a job is over when its command is."""
        around = [*self._layers()[0], *exec_socket.end(self.ticket.exec_socket)] if self._child else []
        outcome = sweep(self._left, around, self._rest, self._group.kill if self._group else None)
        self._reap()
        if self._forced and self.watch.code is not None:
            self._code = self.watch.code
        return outcome

    def _rest(self) -> None:
        self._sleep(0.01)
        self._reap()

    def _left(self) -> list[int]:
        """What lives below us, and in the job's group."""
        pids = [*processes.descendants(os.getpid()), *(self._group.pids() if self._group else [])]
        return processes.alive(dict.fromkeys(pids))

    def _we_killed(self) -> bool:
        return self._forced or bool(self.ladder and self.ladder.killed)

    def _pids(self) -> list[int]:
        own = spawn.jobs_own(self.ticket, self._child) if self._child else []
        return [pid for pid in own if pid != self.card.helper]

    def _control(self, word: str) -> None:
        self.records.write(records.CONTROL, word)

    def _report_state(self, state: str, **more: object) -> None:
        if state != self.state:
            self.state = state
            more |= {"limit": self.limit, "node_down": self.told_to_end}
            self.records.write(records.STATUS, {"state": state, "since": time.time(), **more})

    def _node_goes_down(self, *_: object) -> None:
        self.told_to_end = True

    def _sleep(self, timeout_s: float | None = None) -> None:
        busy = self.ladder or self._ends() or self.state in ("pausing", "evicting", "returning") or self.hold.active
        wait_s = timeout_s if timeout_s is not None else _BUSY_S if busy else CLOSE_S if self._close else _IDLE_S
        if self.disk and timeout_s is None:
            wait_s = min(wait_s, self.disk.wait_s())
        self.wakeups.wait(wait_s, self._ended_fds())

    def _ended_fds(self) -> list[int]:
        """Further descriptors that become readable when the command ends; its parent gets a signal."""
        return []

    def _ends(self) -> bool:
        """Whether it ended, and how is not known yet."""
        return False

"""Limit checks of a supervisor: run time, memory and disk usage of the job that it runs."""

from workers.supervisor import log_lines, processes, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.cgroups import Group
    from workers.supervisor.disk_limit import DiskLimit
    from workers.supervisor.gpu_checkpoint import GpuCheckpoint
    from workers.supervisor.keeper import RecordKeeper
    from workers.supervisor.ladder import Ladder
    from workers.supervisor.logfile import LogFile
    from workers.supervisor.ticket import Ticket

CLOSE_S = 0.1  # between two looks at the memory when more than half of it is taken
_WEIGH_S = 1.0  # otherwise
_SAVE_S, _LEAVE_S = 10.0, 2.0  # over its disk limit: to write a checkpoint where it listens, then from TERM to KILL


class LimitChecks:
    """What `ProcessSupervisor` does about limits; it owns everything that is named here."""

    run: str
    ticket: "Ticket"
    log: "LogFile"
    records: "RecordKeeper"
    card: "GpuCheckpoint"
    ladder: "Ladder | None"
    requested: str
    limit: str
    held_bytes: int
    paused_s: float
    disk: "DiskLimit | None" = None
    _group: "Group | None"
    _code: int | None
    _weighed_next: float
    _close: bool

    if TYPE_CHECKING:

        def _pids(self) -> list[int]: ...
        def _ladder(self, ask_s: float, grace_s: float) -> Ladder: ...
        def _end(self, requested: str, now: float) -> None: ...
        def _end_pause(self, now: float) -> None: ...
        def _resume_processes(self) -> None: ...
        def _control(self, word: str) -> None: ...
        def _report_state(self, state: str, **more: object) -> None: ...

    def _check_run_time(self, now: float, since: float) -> None:
        allowed = records.read_limit(self.run, self.ticket.max_runtime_s)
        if self.requested != "run" or self.card.away or allowed is None:
            return
        if now - since - self.paused_s >= allowed:
            self.limit = "max_runtime"
            self.log.add(log_lines.PROGRAM, "over_time", seconds=f"{allowed:g}")
            self._end("suspend", now)

    def _check_memory(self, now: float) -> None:
        """End at once what holds more memory than it may: asking nicely would let it take the machine along."""
        allowed = self.ticket.memory_bytes
        if not allowed or now < self._weighed_next or self.limit == "memory" or self.card.away:
            return  # what came off its cards is counted where evictions are decided
        held = processes.memory_bytes(self._pids(), allowed)
        self._close = held > allowed // 2
        self._weighed_next = now + (CLOSE_S if self._close else _WEIGH_S)
        by_kernel = self._group is not None and self._group.out_of_memory()  # it took one; others may wait for that
        if held > allowed or by_kernel:
            self.limit, self.held_bytes = "memory", max(held, allowed)
            self.log.add(log_lines.PROGRAM, "over_memory", limit_bytes=allowed, held_bytes=self.held_bytes)
            self._end_by_limit(now, 0.0, 0.0)

    def _check_disk_limit(self, now: float) -> None:
        """End what takes more disk space than it may: it can save for a moment, unless it goes on to write a lot."""
        if self.disk is None:
            return
        self.disk.check(now)
        if used := self.disk.news(now):
            self.records.write(records.DISK, {"used_bytes": used, "limit_bytes": self.disk.limit_bytes})
        if self.disk.is_far_over and self.ladder and self.ladder.killed_at is None:
            self.ladder = self._ladder(0.0, 0.0)
        elif self.disk.is_over and not self.ladder:
            self._note_over_disk(self.disk)
            listens = "suspend" in self.ticket.listens and not self.card.away
            self.requested = "suspend"
            self._control("suspend" if listens else "")
            self.card.abandon()
            self._end_by_limit(now, _SAVE_S if listens and not self.disk.is_far_over else 0.0, _LEAVE_S)

    def _note_over_disk(self, disk: "DiskLimit") -> None:
        self.limit = "disk"
        facts = {"limit_bytes": disk.limit_bytes, "used_bytes": disk.used_bytes}
        self.log.add(log_lines.PROGRAM, "over_disk", **facts)

    def _begin_disk_limit(self) -> None:
        if self.ticket.disk_bytes:
            from workers.supervisor import disk_limit  # noqa: PLC0415 - most jobs have none, and every start counts

            self.disk = disk_limit.start(self.ticket, self._pids)

    def _end_disk_limit(self) -> None:
        """Take the limit away; a program that failed because the kernel let it write no more was over it, too."""
        if self.disk is None:
            return
        if self._code != 0 and not self.limit and not self.ladder and self.disk.is_used_up():
            self._note_over_disk(self.disk)
        self.disk.end()

    def _end_by_limit(self, now: float, ask_s: float, grace_s: float) -> None:
        self._end_pause(now)
        self._resume_processes()
        self.ladder = self._ladder(ask_s, grace_s)
        self._report_state("stopping")

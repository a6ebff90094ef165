"""Container supervisor: what tier 4 does otherwise than `process_supervisor`."""

import time

from workers.supervisor import container, exec_socket, log_lines, processes, records
from workers.supervisor.gpu_checkpoint import GpuCheckpoint
from workers.supervisor.ladder import Ladder
from workers.supervisor.process_supervisor import ProcessSupervisor
from workers.supervisor.sweep import still, sweep

_KILLED, _TERMED = 137, 143


class ContainerSupervisor(ProcessSupervisor):
    """Keeps the one container of a run."""

    box: container.Container | None = None
    _resume_due = False  # nobody could let it go on yet

    def _start_command(self) -> int:
        """Create and start the container; supervisor.json names it before it exists."""
        self.card = _Stays(self.ticket.libcuda)
        self.claim |= {"container": {"engine": self.ticket.container["engine"], "name": container.name(self.run)}}
        records.write(self._file(records.SUPERVISOR), self.claim, durable=True)
        box = container.Container(self.run, self.ticket, self.claim)
        box.start()
        self.box, self.pausing = box, container.ContainerPause(box, self._pids)
        self.hold.pausing = self.pausing
        return box.pid

    def _pids(self) -> list[int]:
        return self.box.pids() if self.box else []

    def _ladder(self, ask_s: float, grace_s: float) -> Ladder:
        assert self.box
        return Ladder(self._pids, ask_s, grace_s, self.box.send)

    def _resume_processes(self) -> None:
        self._resume_due = not self.pausing.resume()

    def _pause(self, now: float) -> None:
        self._resume_due = False
        super()._pause(now)

    def _reap(self) -> None:
        if self._resume_due:
            self._resume_processes()
        if self.box and self.box.handover:
            self.box.handover.step(time.monotonic(), paused=self.requested == "pause" or self._resume_due)
        if self.box and self._code is None:
            waited = self.box.waits
            self._code = self.box.code(time.monotonic())
            if self.box.waits and not waited:
                self.log.add(log_lines.PROGRAM, "engine_away")

    def _ends(self) -> bool:
        return bool(self.box and self.box.ends)

    def _ended_fds(self) -> list[int]:
        return self.box.waking() if self.box else []

    def _layers(self) -> tuple[list[int], list[int]]:
        pid = self.box.pid if self.box else 0
        return ([pid], processes.children(pid)) if pid else ([], [])

    def _is_withheld(self, now: float) -> bool:
        """As elsewhere; an engine that is away may take its time to tell how it ended, unless that is forced."""
        return (self.requested == "kill" or not self._ends()) and super()._is_withheld(now)

    def _sweep(self) -> tuple[int, list[int]]:
        """Remove the container; it took all of its processes along by itself."""
        box = self.box
        if box is None:
            return 0, []
        by_kernel = self._code == _KILLED and not self._we_killed() and processes.oom_kills() > self.oom_before
        if self.ticket.memory_bytes and not self.limit and (by_kernel or (box.out_of_memory and self._code != 0)):
            self.limit, self.held_bytes = "memory", self.ticket.memory_bytes
        if self._code in (_KILLED, _TERMED) and not self.ladder and not self.limit and box.was_deserted():
            self.told_to_end = True  # as if the machine went down
            self.log.add(log_lines.PROGRAM, "engine_restarted")
        if box.unknown:
            self.log.add(log_lines.PROGRAM, "unknown_end", why=box.unknown)
        look = still([] if self._ends() else [*self._layers()[0], *self._pids()])
        exec_socket.end(self.ticket.exec_socket)
        if not box.remove():
            self.log.add(log_lines.PROGRAM, "engine_silent")
        return sweep(look, self._layers()[0], lambda: self._sleep(0.01), None)


class _Stays(GpuCheckpoint):
    """A container's processes stay on their GPUs: the driver could only be called inside of it."""

    def step(self, evict: bool, now: float) -> str:
        """Return where its memory is: on its GPUs."""
        if evict:
            self.why = "it runs in a container"
        return self.at

"""Disk limit of a job: kept by the kernel's project quota where that is possible, else by counting.

Counting costs: a walk over a million files takes seconds. So a walk begins only where the job can be over its limit,
by what its processes wrote and by how much less is free since the last one, and otherwise now and then. All walks
together take at most `CPU_PART` of a core; `CREDIT_S` of that may be spent at once, so that an endless writer is
found out fast. Times are monotonic seconds.
"""

from workers.supervisor.disk_usage import Walk, free_bytes, written_bytes
from workers.supervisor.project_quota import SLACK_BYTES, ProjectQuota

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.supervisor.ticket import Ticket

CPU_PART, CREDIT_S = 0.05, 2.0
MIN_PAUSE_S, MAX_PAUSE_S = 5.0, 300.0  # between two walks while the job cannot be over its limit
COST_PAUSES = 100  # and at least so many times the CPU time of a walk
URGENT_PAUSE_S, BLIND_PAUSE_S = 0.2, 1.0  # where it can be over; where nobody knows what it wrote
LIKELY_RATE = 256 << 20  # bytes per second that a job may begin to write at any time
_LOOK_S, _FAST_LOOK_S = 1.0, 0.1  # between two looks at what it wrote
_PIECE_S, _URGENT_PIECE_S = 0.025, 0.05
_TOLD_PARTS, _TOLD_S = 100, 5.0  # how much of the limit, and how many seconds, between two reports of what it uses
HARD_PART, HARD_BYTES = 8, 64 << 20
"""A job that takes an eighth and 64 MiB more than it may while it ends is killed at once."""


def start(ticket: "Ticket", pids: "Callable[[], list[int]]") -> "DiskLimit":
    """Return the limit of a ticket, in effect from now on.

    Args:
        pids: the job's processes now.
    """
    limit = DiskLimit(ticket.disk_folders, ticket.disk_bytes, pids, ticket.disk_project)
    limit.set_quota()
    return limit


class DiskLimit:
    """The limit of one rank, and what it uses.

    Attributes:
        used_bytes: by the last look; None before the first.
        by_quota: whether the kernel keeps the limit.
    """

    def __init__(self, folders: list[str], limit_bytes: int, pids: "Callable[[], list[int]]", project: int = 0) -> None:
        self.folders, self.limit_bytes = folders, limit_bytes
        self.used_bytes: int | None = None
        self.by_quota = False
        self._pids = pids
        self._quota = ProjectQuota(folders, project) if project else None
        self._walk: Walk | None = None
        self._walk_cpu_s = self._last_cpu_s = 0.0
        self._credit_s, self._credited_at = CREDIT_S, 0.0
        self._look_next = self._walk_next = 0.0
        self._written = self._lost = 0
        self._looked_at: float | None = None
        self._is_urgent = True
        self._base: tuple[int, int] | None = None  # written and free when the last whole walk began
        self._begun_with = (0, 0)
        self._counted = 0
        self._told, self._told_next = 0, 0.0

    def set_quota(self) -> str:
        """Let the kernel enforce the limit; return why it cannot, "" where it does."""
        if self._quota is None:
            return "no project number"
        why = self._quota.set(self.limit_bytes)
        self.by_quota = not why
        return why

    def news(self, now: float) -> int:
        """Return the bytes in use if they changed enough to be reported, else 0."""
        used = self.used_bytes or 0
        is_first = not self._told
        if not used or now < self._told_next:
            return 0
        if not is_first and abs(used - self._told) * _TOLD_PARTS < self.limit_bytes:
            return 0
        self._told, self._told_next = used, now + _TOLD_S
        return used

    def is_used_up(self) -> bool:
        """Return whether the kernel quota is exhausted now; false without a quota."""
        if self.by_quota:
            self._ask_quota()
        return self.by_quota and self.is_over

    def end(self) -> None:
        """Remove the limit of the kernel: the platform still writes into these folders."""
        if self._walk:
            self._walk.close()
        if self.by_quota and self._quota:
            self._quota.clear()

    @property
    def is_over(self) -> bool:
        """Whether it uses more than it may; under a quota, whether it uses all of it."""
        allowed = self.limit_bytes - SLACK_BYTES if self.by_quota else self.limit_bytes + 1
        return self.used_bytes is not None and self.used_bytes >= allowed

    @property
    def is_far_over(self) -> bool:
        """Whether it cannot be given time to end by itself."""
        return self.used_bytes is not None and (
            self.used_bytes > self.limit_bytes + self.limit_bytes // HARD_PART + HARD_BYTES
        )

    def wait_s(self) -> float:
        """How long the next look may wait."""
        if self._walk and self._is_urgent and self._credit_s > 0:
            return 0.0
        return _FAST_LOOK_S if self._is_urgent else _LOOK_S

    def check(self, now: float) -> None:
        """Do what is due: check what was written, and continue or start a walk."""
        self._earn(now)
        if now >= self._look_next:
            self._look_at_growth(now)
            if self.by_quota:
                self._ask_quota()
        if self._walk is None and now >= self._walk_next:
            self._walk = Walk(self.folders, self._pids)
            self._walk_cpu_s, self._begun_with = 0.0, (self._written, free_bytes(self.folders))
        if self._walk and self._credit_s > 0:
            self._advance(self._walk, now)

    def _earn(self, now: float) -> None:
        if self._credited_at:
            self._credit_s = min(CREDIT_S, self._credit_s + (now - self._credited_at) * CPU_PART)
        self._credited_at = now

    def _look_at_growth(self, now: float) -> None:
        """Find out whether it can be over its limit by now, and when to look and walk again."""
        before, span_s = self._written, now - self._looked_at if self._looked_at is not None else 0.0
        self._looked_at = now
        written = written_bytes(self._pids())
        if written is None or self._base is None:
            self._is_urgent, self._look_next = True, now + _LOOK_S
            if self._walk is None and written is None:
                self._walk_next = min(self._walk_next, now + BLIND_PAUSE_S)
            self._written = max(self._written, written or 0)
            return
        if written + self._lost < before:  # of a process that ended and was collected by nobody
            self._lost = before - written
        self._written = written + self._lost
        room = self.limit_bytes - self._counted
        grown = max(self._written - self._base[0], self._base[1] - free_bytes(self.folders))
        self._is_urgent = grown > room
        if self._is_urgent:
            self._walk_next = min(self._walk_next, now + URGENT_PAUSE_S)
        rate = max((self._written - before) / span_s if span_s > 0 else 0.0, LIKELY_RATE)
        self._look_next = now + max(_FAST_LOOK_S, min(_LOOK_S, max(0, room - grown) / (2 * rate)))

    def _ask_quota(self) -> None:
        try:
            self.used_bytes = max(self._quota.used_bytes(), self._counted) if self._quota else self._counted
        except OSError:
            return

    def _advance(self, walk: Walk, now: float) -> None:
        spent = walk.advance(_URGENT_PIECE_S if self._is_urgent else _PIECE_S)
        self._credit_s -= spent
        self._walk_cpu_s += spent
        if walk.done and walk.whole:
            self._counted, self._base, self._walk = walk.bytes, self._begun_with, None
            self._last_cpu_s = self._walk_cpu_s
            self._walk_next = now + max(MIN_PAUSE_S, min(MAX_PAUSE_S, COST_PAUSES * self._last_cpu_s))
            self._look_next = now  # what was written meanwhile
            if not self.by_quota:
                self.used_bytes = walk.bytes
        elif walk.bytes > self.limit_bytes:  # enough is known
            walk.close()
            self._walk, self.used_bytes = None, walk.bytes
            self._walk_next = now + URGENT_PAUSE_S
        elif walk.done:
            self._walk, self._walk_next = None, now + BLIND_PAUSE_S

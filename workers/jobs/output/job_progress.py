"""Progress of a running job: a named phase with its own counter, read from the lines that its program reports.

All pages, the API and the command line read these columns, so the rules hold everywhere: within a phase progress never
decreases, it is unknown before the first step, and a job that still runs is never complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from aiplatform.lib.numbers import finite
from workers.core.models import Job
from workers.core.states import FINAL, JobPhase

KEYS = frozenset({"phase", "phase_done", "phase_total", "progress", "eta_s", "phase_times"})
MAX_RUNNING = 0.99
MIN_LEFT_S = 1.0  # less is not shown as remaining time
MAX_COUNT = 2**62


@dataclass
class JobProgress:
    """The columns of a job that describe its progress; None is unknown.

    Attributes:
        progress: 0..1 of the phase, not of the whole job.
        eta_s: seconds until the job ends, over all its phases.
        phase_times: `{phase: {"spent_s": …, "left_s": …}}`; `left_s` only where the program estimates it.
    """

    phase: str = ""
    phase_done: int | None = None
    phase_total: int | None = None
    progress: float | None = None
    eta_s: float | None = None
    phase_times: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, job_id: int) -> Self:
        """Read the columns of a job."""
        return cls(**Job.objects.values(*(column.name for column in fields(cls))).get(pk=job_id))

    def apply(self, row: Mapping[str, Any]) -> None:
        """Take over what one reported line says; wrong values are ignored."""
        if not KEYS & row.keys():
            return
        if row.get("phase") in JobPhase.values and row["phase"] != self.phase:
            self.phase, self.phase_done, self.phase_total = row["phase"], None, None
            self.progress = self.eta_s = None
        self._count(row)
        if (left_s := finite(row.get("eta_s"))) is not None:
            self.eta_s = left_s if left_s >= MIN_LEFT_S else None
        if isinstance(row.get("phase_times"), dict):
            self.phase_times = _times(row["phase_times"])

    def _count(self, row: Mapping[str, Any]) -> None:
        done, total = finite(row.get("phase_done")), finite(row.get("phase_total"))
        share = finite(row.get("progress"))
        if done is not None and total is not None and 0 <= done <= total <= MAX_COUNT and total >= 1:
            again = self.phase_total == int(total) and self.phase_done is not None
            self.phase_done = max(int(done), self.phase_done or 0) if again else int(done)
            self.phase_total = int(total)
            share = done / total if share is None else share
        if share is not None and share > 0:
            self.progress = min(max(share, self.progress or 0.0), MAX_RUNNING)

    def save(self, job_id: int, attempt: int) -> None:
        """Write the columns unless a newer attempt was placed; a job that ended keeps its final progress."""
        job = Job.objects.filter(pk=job_id, attempt_number=attempt)
        if not job.exclude(state__in=FINAL).update(**asdict(self)):
            job.update(phase_times=self.phase_times)


def _times(values: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    times: dict[str, dict[str, float]] = {}
    for phase in JobPhase.values:
        seconds = values.get(phase)
        if not phase or not isinstance(seconds, dict):
            continue
        numbers = {name: finite(seconds.get(name)) for name in ("spent_s", "left_s")}
        times[phase] = {name: round(max(number, 0.0), 1) for name, number in numbers.items() if number is not None}
    return {phase: seconds for phase, seconds in times.items() if seconds}

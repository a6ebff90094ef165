"""Run directory: where an attempt lives on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True)
class RunDir:
    """The folders and files of one attempt, as design of the run contract names them."""

    path: Path

    @classmethod
    def for_attempt(cls, job_id: int, number: int) -> RunDir:
        return cls(settings.DATA_ROOT / "jobs" / str(job_id) / str(number))

    def of_rank(self, rank: int) -> Path:
        """Where the supervisor of a rank keeps its records; rank 0 owns the run directory itself."""
        return self.path if rank == 0 else self.path / "ranks" / str(rank)

    @property
    def code(self) -> Path:
        return self.path / "code"

    @property
    def inputs(self) -> Path:
        return self.path / "inputs"

    @property
    def outputs(self) -> Path:
        return self.path / "outputs"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def params(self) -> Path:
        return self.path / "params.json"

    @property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @property
    def control(self) -> Path:
        return self.path / "control"

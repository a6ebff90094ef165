"""A kind of job that only remembers what it was asked."""

from __future__ import annotations

from workers.core.kinds import Capabilities, JobKind, Launch


class RememberingKind(JobKind):
    """Registers under `name`; `capabilities_now` may be set by a test."""

    label = "Command"

    def __init__(self, name: str = "command") -> None:
        self.name = name
        self.capabilities_now = Capabilities(restore=True)
        self.ended_attempts: list[tuple[int, int]] = []

    def prepare(self, job, attempt, run) -> Launch:
        return Launch(argv=["true"])

    def capabilities(self, job) -> Capabilities:
        return self.capabilities_now

    def ended(self, job, attempt) -> None:
        self.ended_attempts.append((job.pk, attempt.number))

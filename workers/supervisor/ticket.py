"""What launching hands to the supervisor: everything it needs, so that it never asks anybody."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """One command to keep. Times are seconds, sizes bytes, paths absolute."""

    job: int
    attempt: int
    rank: int = 0
    argv: list[str]
    env: dict[str, str]  # the whole environment: nothing is inherited
    cwd: str
    tier: int = 0  # see sandbox
    bwrap: str = ""  # path of the bubblewrap binary; needed for tier 2
    read_only: list[str] = field(default_factory=list)
    read_write: list[str] = field(default_factory=list)
    tmp: str = ""  # folder that stands for /tmp in tier 2
    devices: list[str] = field(default_factory=list)  # device files the job may open, besides the harmless
    listens: list[str] = field(default_factory=list)  # words of the control file the script obeys
    max_runtime_s: float | None = None  # frozen time does not count
    log_quota_bytes: int = 2 << 30
    stop_grace_s: float = 10.0  # from TERM to KILL after `stop`
    term_grace_s: float = 30.0  # from TERM to KILL after everything else
    suspend_grace_s: float = 60.0  # time to write a checkpoint before TERM
    finish_grace_s: float = 900.0  # time to save, evaluate and export before TERM
    rlimits: dict[str, int] = field(default_factory=dict)  # soft limits by the name after RLIMIT_

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Ticket":
        """Build a ticket from launch.json; unknown keys are ignored so that old and new may meet."""
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{key: item for key, item in value.items() if key in known})

    def to_json(self) -> dict[str, Any]:
        """Return the ticket as written to launch.json."""
        return dataclasses.asdict(self)

    def paths(self) -> tuple[list[Path], list[Path]]:
        """Return what the command may read and what it may also write, existing paths only."""

        def existing(names: list[str]) -> list[Path]:
            return [path for path in map(Path, names) if path.exists()]

        return existing(self.read_only), existing(self.read_write)

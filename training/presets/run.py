"""The run contract for programs: folders, parameters, reports and control commands.

Files only and standard library only, so that it works anywhere; outside a job every call is harmless:
reports are printed, no command is given, parameters are empty. A whole training script needs no more than

    for step, batch in enumerate(batches):
        loss = learn(batch)
        report(step, {"train/loss": loss})
        if should_stop():
            break
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from . import checkpoints

COMPLETED, FAILED, SUSPENDED, TERMINATED = 0, 1, 75, 143  # exit codes the platform understands
FINISH_QUICK = "finish quick"  # nobody needs a result: end without the last scores and without a model
CONTROL_COMMANDS = ("", "pause", "suspend", "finish", FINISH_QUICK)  # what the control file may say
MAX_START_S = 120.0  # more than the platform ever takes to start a process


class Refused(Exception):
    """The job cannot go on and a person can do something about it; the message says what."""


def process_age_s() -> float:
    """Seconds since this process was started; 0.0 where the kernel does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        up_s = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return 0.0
    return max(0.0, up_s - ticks / os.sysconf("SC_CLK_TCK"))


def job_age_s(env: Mapping[str, str] = os.environ) -> float:
    """Seconds since the job began: what the platform did before this process counts too, where it says when it began.

    A machine whose clock is off by more than a little is not believed.
    """
    age = process_age_s()
    try:
        since = time.time() - float(env.get("AIP_STARTED_AT", ""))
    except ValueError:
        return age
    return since if age <= since <= age + MAX_START_S else age


STARTED = time.monotonic() - job_age_s()


@dataclass
class Run:
    """One attempt of a job, as the environment describes it."""

    dataset_dir: Path
    output_dir: Path
    checkpoint_dir: Path
    cache_dir: Path
    resume_from: Path | None
    params_file: Path | None
    metrics_file: Path | None
    control_file: Path | None
    weights: Path | None = None  # file that the parameter `weights` names, where the platform put it
    teacher: Path | None = None  # and that `teacher` names
    show: str = ""  # what is wanted instead of a training: batch, layers or profile, see the files of these names
    recorder: Callable[[int, Mapping[str, float | str]], None] | None = None  # gets what is reported, too
    terminated: bool = field(default=False, init=False)
    _metrics: int | None = field(default=None, init=False)  # descriptor of the metrics file, once open

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Run:
        """Read AIP_*; what is not set falls back to the current folder."""

        def path(name: str) -> Path | None:
            return Path(env[name]) if env.get(name) else None

        return cls(
            dataset_dir=path("AIP_DATASET_DIR") or Path("dataset"),
            output_dir=path("AIP_OUTPUT_DIR") or Path("outputs"),
            checkpoint_dir=path("AIP_CHECKPOINT_DIR") or Path("checkpoints"),
            cache_dir=path("AIP_CACHE_DIR") or Path("cache"),
            resume_from=path("AIP_RESUME_FROM"),
            params_file=path("AIP_PARAMS"),
            metrics_file=path("AIP_METRICS_FILE"),
            control_file=path("AIP_CONTROL_FILE"),
            weights=path("AIP_WEIGHTS"),
            teacher=path("AIP_TEACHER"),
            show=env.get("AIP_SHOW", ""),
        )

    def params(self) -> dict[str, Any]:
        """Return what the person who submitted the job chose.

        Raises:
            Refused: the file is not a JSON object.
        """
        if self.params_file is None or not self.params_file.exists():
            return {}
        try:
            params = json.loads(self.params_file.read_text())
        except ValueError as error:
            raise Refused(f"{self.params_file.name} is not JSON: {error}.") from error
        if not isinstance(params, dict):
            raise Refused(f"{self.params_file.name} must hold one JSON object.")
        return params

    def report(self, step: int, figures: Mapping[str, float | str]) -> None:
        """Append one line of figures; written in one call, so that a reader never sees half of it."""
        line = json.dumps({"step": step, "time": round(time.time(), 3), **figures}, allow_nan=False)
        if self.metrics_file is None:
            log_line(line)
            return
        if self._metrics is None:  # opening it for each line would cost more than all the rest
            self._metrics = os.open(self.metrics_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.write(self._metrics, f"{line}\n".encode())
        if self.recorder is not None:
            self.recorder(step, figures)

    def requested(self) -> str:
        """Return the control command in force: "", one of CONTROL_COMMANDS. Cheap enough for every step."""
        if self.control_file is None:
            return ""
        try:
            word = self.control_file.read_text().strip()
        except OSError:
            return ""
        return word if word in CONTROL_COMMANDS else ""

    def paused_s(self) -> float:
        """Return for how many seconds the platform stopped the processes of this attempt, without a present pause."""
        if self.control_file is None:
            return 0.0
        try:
            return max(0.0, float(self.control_file.with_name("paused").read_text()))
        except (OSError, ValueError):
            return 0.0

    def clock(self) -> float:
        """Return monotonic seconds on a clock that does not advance while the platform stops the processes."""
        return time.monotonic() - self.paused_s()

    def listen(self) -> None:
        """Take SIGTERM as "save what you can and end": it sets `terminated`, nothing is cut."""

        def note(_number: int, _frame: FrameType | None) -> None:
            self.terminated = True

        signal.signal(signal.SIGTERM, note)

    def keep_to_share(self) -> None:
        """On a share of a card, let torch take no more of its memory than the share; call it before the first tensor.

        Torch's own limit: it covers what torch allocates, which is nearly everything, but not CUDA itself.
        """
        fraction = float(os.environ.get("AIP_GPU_MEMORY_FRACTION", "1"))
        if fraction >= 1:
            return
        import torch  # noqa: PLC0415  only who shares a card pays for it

        if torch.cuda.is_available():
            torch.cuda.set_per_process_memory_fraction(fraction)

    def end_on_signal(self) -> None:
        """From here on SIGTERM ends the process at once: everything worth keeping is on disk."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def log_line(line: str) -> None:
    """Print one line to the job's log and flush it; nothing where the program closed its output."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


# The same for people's own scripts, as plain functions. ------------------------------------------------------

_current: Run | None = None


def current() -> Run:
    """The run this process belongs to, read from the environment once."""
    global _current  # noqa: PLW0603  one process is one run
    if _current is None:
        _current = Run.from_environment()
    return _current


def report(step: int, figures: Mapping[str, float | str]) -> None:
    """Add figures to the job's curves; keys like "train/loss", "val/accuracy".

    The job's page shows "phase" (packing, learning, scoring, exporting), its counter "phase_done" of "phase_total" or
    its share "progress" (0..1), and "eta_s" (seconds until the job ends). Progress begins again with each phase.
    """
    current().report(step, figures)


def should_stop() -> bool:
    """True when the job should save and end; blocks here while the job is paused."""
    while current().requested() == "pause":
        time.sleep(0.2)
    return current().terminated or current().requested() in ("suspend", "finish", FINISH_QUICK)


def checkpoint(step: int, fill: Callable[[Path], None], metric: float | None = None) -> Path:
    """Keep a state of the training: `fill` writes files into the folder it is given.

    The folder becomes visible only when whole, so a crash never leaves half a checkpoint.
    """
    return checkpoints.write(current().checkpoint_dir, step=step, fill=fill, metric=metric)


def restored() -> Path | None:
    """The newest whole checkpoint to go on from, or None to start afresh."""
    run = current()
    return checkpoints.newest(run.resume_from, run.checkpoint_dir)


def keep_to_share() -> None:
    """Take no more of a shared card's memory than the job's share; nothing on whole cards. Before the first tensor."""
    current().keep_to_share()


def params() -> dict[str, Any]:
    """The job's parameters."""
    return current().params()


def dataset() -> Path:
    """The dataset version's folder: dataset.json, manifest.jsonl, annotations.json, images/."""
    return current().dataset_dir


def begun() -> None:
    """Look for garbage from here on, but never among what was imported."""
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def refusals_without_traceback() -> Any:
    """Turn a Refused into its sentence on stderr and exit code 1."""
    begun()
    try:
        yield
    except Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        sys.stderr.flush()
        raise SystemExit(FAILED) from None

"""The likely cause of a failure, by what the last lines of its log say, and what may be done about it.

Only patterns that are certain: who reads a wrong cause looks in the wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.wording import Message, Wording, message, number
from workers.core.models import Allocation, Job
from workers.core.states import JobState, Reason
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel
from workers.jobs.output import logs, waiting_cards

MAX_READ_BYTES = 44 << 10  # from the ends of all logs together; about 45 ms of CPU time
MIN_SEEN_BYTES, MAX_RANKS = 4096, 32
MAX_SHOWN = 3

LABELS = {
    "card_memory": _("Out of GPU memory. Use a smaller batch or image size, or request a larger share."),
    "memory": _(
        "The job exceeded its memory limit. Request more memory, or load less at once, with fewer data workers."
    ),
    "python_memory": _("The program ran out of memory. Load less at once, or request more memory."),
    "shared_memory": _("A data worker ran out of shared memory. Use fewer data workers, or request more memory."),
    "disk_full": _("A disk or quota is full. Delete files that are not needed, and run the job again."),
    "module_missing": _(
        "The Python package %(name)s is missing. Choose an image that contains it, or install it with pip."
    ),
    "program_missing": _("Program %(name)s not found. Correct the name, or choose an image that contains it."),
    "file_missing": _("File %(path)s not found. Datasets are below AIP_DATASET_DIR, your files in the working folder."),
    "label_range": _("A GPU operation failed, usually because of a label beyond the number of classes. Compare both."),
    "card_unsupported": _(
        "This build of PyTorch does not support the GPU. Choose an image with a newer engine, or another kind of GPU."
    ),
    "card_lost": _("A GPU failed. Restore the job on another node, and inform an operator."),
    "mps_failed": _("The MPS daemon of its GPU failed. Restore the job; its program did not cause the failure."),
    "mps_full": _("The GPU has reached its maximum of MPS clients. Start fewer processes, or request a whole GPU."),
    "mps_shared": _(
        "The job shared its GPU by MPS, where a fault of one program ends all of them: another job of the "
        "same user may have caused it. Restore it; if it fails again, request a whole GPU."
    ),
    "machines_apart": _("The nodes timed out waiting for one another. Check the log of each node for the first error."),
    "thread_left": _(
        "The program ended while one of its threads was still running. In distributed programs, each "
        "process must call torch.distributed.destroy_process_group() last."
    ),
    "port_taken": _(
        "A port the program listens on is already in use. Choose another one, or use the port in AIP_PORT."
    ),
    "over_disk": _("The job exceeded its disk limit. Delete files that are not needed, or request a higher limit."),
    "over_time": _("The maximum run time was exceeded. Request a longer one, and restore the job."),
    "cards_idle": Wording(
        _(
            "The GPUs computed only %(percent)s %% of the time in the last ten minutes, usually because data "
            "loading is too slow. Use more data workers or smaller images."
        ),
        percent=number,
    ),
    "cards_wait_for_cores": Wording(
        _(
            "The GPUs computed only %(percent)s %% of the time in the last ten minutes, while %(busy)s %% of "
            "the CPU cores were busy: data preparation is too slow. Request more cores, or prepare the images "
            "once instead of in each epoch."
        ),
        percent=number,
        busy=number,
    ),
    "cards_wait_for_loader": Wording(
        _(
            "The GPUs computed only %(percent)s %% of the time in the last ten minutes, and %(share)s %% of "
            "each step was spent waiting for data. Use more data workers, copy the data to a local disk, or "
            "make the images smaller."
        ),
        percent=number,
        share=number,
    ),
}

_RANK = r"^(?:\[rank\d+\]: ?)?"  # how PyTorch begins the last line of a traceback, where there are several ranks
_MARK = re.compile(r"^\[rank\d+\]: (?=\S)")  # of a command that starts several processes; their lines follow
_GAP = r".{0,300}"  # words between two parts; without a limit the search is quadratic in the length of a line
_SHELL = r"(?:/\S+/)?(?:ba|da|k|a)?sh"

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (code, re.compile(pattern))
    for code, pattern in (
        ("memory", r"^\[program\] over_memory limit_bytes=\d+ held_bytes=\d+$"),
        ("over_disk", r"^\[program\] over_disk limit_bytes=\d+ used_bytes=\d+$"),
        ("over_time", r"^\[program\] over_time seconds=[\d.]+$"),
        ("card_memory", r"(?:CUDA|NPU|HIP) out of memory\. Tried to allocate"),
        ("card_memory", _RANK + r"torch\.(?:cuda\.)?OutOfMemoryError: "),
        ("card_memory", _RANK + r"RuntimeError: (?:CUDA|NPU|HIP) (?:error: )?out of memory"),
        ("shared_memory", rf"DataLoader worker {_GAP}killed by signal: Bus error"),
        ("python_memory", _RANK + r"MemoryError(?:$|:)|DefaultCPUAllocator: can't allocate memory"),
        ("python_memory", r"terminate called after throwing an instance of 'std::bad_alloc'|what\(\): +std::bad_alloc"),
        ("thread_left", r"^terminate called without an active exception$"),
        ("disk_full", r"\[Errno (?:28|122)\] |: (?:No space left on device|Disk quota exceeded)$"),
        ("module_missing", _RANK + r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'"),
        ("program_missing", rf"^{_SHELL}(?:: (?:line )?\d+)?: (?P<name>[\w./+-]+): (?:command )?not found$"),
        ("program_missing", r"^\S+\.sh: (?:line )?\d+: (?P<name>[\w./+-]+): (?:command )?not found$"),
        ("program_missing", r"^\S+: line \d+: (?P<name>[\w./+-]+): command not found$"),
        ("file_missing", _RANK + r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>[^']+)'"),
        ("label_range", r"CUDA error: device-side assert triggered"),
        ("card_unsupported", r"CUDA error: no kernel image is available"),
        ("card_lost", r"CUDA error: (?:unspecified launch failure|uncorrectable ECC error)|GPU has fallen off the bus"),
        (
            "mps_full",
            rf"cudaErrorMpsMax\w+|CUDA_ERROR_MPS_MAX_\w+|CUDA error: {_GAP}resources required to create MPS client",
        ),
        ("mps_failed", rf"cudaErrorMps\w+|CUDA_ERROR_MPS_\w+|CUDA error: {_GAP}\bMPS (?:client|server|control)\b"),
        ("machines_apart", r"Watchdog caught collective operation timeout"),
        ("port_taken", _RANK + r"OSError: \[[Ee]rrno \d+\] .*\b[Aa]ddress already in use\b"),
    )
)


#: what ends a program's use of its card for good, and under MPS that of all others on it
_FATAL = re.compile(
    r"CUDA error: (?:an illegal (?:memory access|instruction)|unspecified launch failure|misaligned address|"
    r"device-side assert triggered|uncorrectable ECC error)"
)


@dataclass(frozen=True)
class Cause:
    """A possible cause: a message, and the log line that shows it, which may be empty."""

    message: Message
    line: str = ""


def register() -> None:
    """Make the texts known; called once when the app is ready."""
    wording.register("cause", LABELS)


def in_text(text: str) -> list[Cause]:
    """Causes in the last lines of a log, the newest line first; each cause once."""
    causes: dict[str, Cause] = {}
    for line in reversed(text.splitlines()):
        printed = _MARK.sub("", line)
        for code, pattern in _PATTERNS:
            if code not in causes and (match := pattern.search(printed)):
                causes[code] = Cause(message(f"cause.{code}", **match.groupdict()), line.strip()[:400])
                break
    return list(causes.values())[:MAX_SHOWN]


def in_texts(texts: Iterable[str]) -> list[Cause]:
    """Causes in the logs of several nodes, those of the first node first; each cause once."""
    causes: dict[str, Cause] = {}
    for text in texts:
        for cause in in_text(text):
            causes.setdefault(cause.message.code, cause)
    return list(causes.values())[:MAX_SHOWN]


def list_causes(job: Job) -> list[Cause]:
    """The likely causes of a failed job; of one that runs, why it may be slow."""
    if job.state == JobState.RUNNING:
        slow = waiting_cards.diagnose(job)
        return [Cause(slow)] if slow else []
    ended = job.state == JobState.FAILED or job.reason in (
        Reason.OUT_OF_MEMORY, Reason.MAX_RUNTIME, Reason.DISK_LIMIT,
    )  # fmt: skip
    if not ended or not job.attempt_number:
        return []
    tail = max(MIN_SEEN_BYTES, MAX_READ_BYTES // max(1, len(job.ranks)))
    texts = [logs.piece(job, tail=tail, rank=rank).text for rank in job.ranks[:MAX_RANKS]]
    causes = [*_by_mps(job, texts), *in_texts(texts)][:MAX_SHOWN]
    if not causes and job.reason == Reason.OUT_OF_MEMORY:
        causes = [Cause(message("cause.memory"))]
    return causes


def _by_mps(job: Job, texts: Iterable[str]) -> list[Cause]:
    """What only concerns a job that shared its card by MPS: a fault that may be another's, a daemon that ended."""
    by_mps = Allocation.objects.filter(attempt__job=job, attempt__number=job.attempt_number, mps=True)
    if not by_mps.exists():
        return []
    faults = [line for text in texts for line in text.splitlines() if _FATAL.search(line)]
    if faults:
        return [Cause(message("cause.mps_shared"), faults[-1].strip()[:400])]
    ended = job.events.filter(attempt=job.attempt_number, event="mps_lost")
    return [Cause(message("cause.mps_failed"))] if ended.exists() else []


def context(job: Job, user: User) -> dict[str, Any] | None:
    """What `_causes_panel.html` shows; None where nothing is certain."""
    causes = list_causes(job)
    return {"causes": causes, "is_slow": job.state == JobState.RUNNING} if causes else None


def slow_context(job: Job, user: User) -> dict[str, Any] | None:
    """The same for the page of the curves, which shows only causes of slowness."""
    return context(job, user) if job.state == JobState.RUNNING else None


PANEL = Panel("causes", "workers/_causes_panel.html", context, 1, also=job_tabs.CONSOLE)
SLOW_PANEL = Panel("slow", "workers/_causes_panel.html", slow_context, 1, job_tabs.METRICS)

"""Counts the steps of a loop, and takes what is to be known of those that count. The SDK's `profile` is its face.

The standard library only; of torch it uses what the program has imported. Each step of its work is guarded: what fails
is one line of the log.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from training.presets import profile_facts, profile_spans
from training.presets.profile_facts import FOLDER, MARK, MAX_NAME_LENGTH, OTHER, PARTS
from training.presets.profile_spans import STEP, Found, Span
from training.presets.run import current, log_line

MAX_DURATION_S = 60.0  # the watched steps end with the one in which this is reached: what torch notes lies in memory
MAX_NAMED = 12
STEPS_DRAWN, MAX_INTERVALS = 8, 50  # of the time line, and stretches of each
SKIPPING, PLAIN, WATCHED, OVER = "skipping", "plain", "watched", "over"


class Recorder:
    """Counts steps, and takes what is to be known of those that count. One of a process.

    Args:
        steps: so many as they are, then so many watched.
        skip: steps before, which are no measure of the others.
    """

    def __init__(self, steps: int, skip: int) -> None:
        self.steps, self.left = steps, skip
        self.phase = (SKIPPING if skip else PLAIN) if (os.environ.get("RANK") or "0") == "0" else OVER
        self.torch: Any = None
        self.seen: Any = None  # torch's profiler, while it is at work
        self.busy = False  # a loop is going through its steps
        self.told = False  # what came of it was said in the log
        self.loader: dict[str, Any] = {}
        self.plain_ns: list[int] = []
        self.taken: list[tuple[int, int]] = []
        self.spans: list[Span] = []
        self._began = 0
        self._step: Any = None
        self._process = os.getpid()
        if self.phase != OVER:
            atexit.register(self._ended)

    @property
    def over(self) -> bool:
        return self.phase == OVER

    @property
    def marking(self) -> bool:
        """Whether parts of the step at work are noted: of those that are watched, without torch of all that count."""
        return self.phase == WATCHED or (self.phase == PLAIN and self.torch is None)

    def begin_step(self) -> None:
        """Start recording a step."""
        with self._harmless():
            if self.phase == PLAIN and not self.plain_ns:
                self.torch = sys.modules.get("torch")
                self._settle()
            if self.phase == WATCHED:
                self._watch()
                self._step = self._range(STEP)
            self._began = time.perf_counter_ns()

    def end(self) -> None:
        """The step is over."""
        with self._harmless():
            if self.phase == SKIPPING:
                self.left -= 1
                self.phase = SKIPPING if self.left else PLAIN
            elif self.phase == PLAIN:
                if len(self.plain_ns) + 1 >= self.steps:
                    self._settle()
                ended = time.perf_counter_ns()
                self.plain_ns.append(ended - self._began)
                if self.torch is None:
                    self.taken.append((self._began, ended))
                if len(self.plain_ns) >= self.steps:
                    self.phase = WATCHED
                    if self.torch is None:
                        self._finish()
            elif self.phase == WATCHED:
                last = len(self.taken) + 1 >= self.steps or self._watched_s() >= MAX_DURATION_S
                if last:
                    self._settle()
                self._close_step()
                self.taken.append((self._began, time.perf_counter_ns()))
                if last:
                    self._finish()

    def leave(self) -> None:
        """The loop is left: take what there is where steps were watched; else go on in the next loop."""
        self.busy = False
        with self._harmless():
            self._close_step()
            if self.phase == WATCHED and self.taken:
                self._settle()
                self._finish()
            else:
                self._stop()

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Attribute the time inside to `name`; an enclosing part is paused meanwhile."""
        begun, around = time.perf_counter_ns(), None
        with self._harmless():
            around = self._range(name) if self.seen is not None else None
        try:
            yield
        finally:
            with self._harmless():
                if around is not None:
                    around.__exit__(None, None, None)
                if self.marking:
                    self.spans.append(Span(begun, time.perf_counter_ns(), name))

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """What fails within ends the profile, and nothing else."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  whatever a profiler meets, the program goes on
            self.phase = OVER
            self._abandon()
            if not self.told:
                self._log(f"none was taken, {type(error).__name__}: {str(error)[:300]}")

    def _watch(self) -> None:
        """Start torch's profiler."""
        if self.seen is not None:
            return
        kinds = self.torch.profiler.ProfilerActivity
        activities = [kinds.CPU, *([kinds.CUDA] if self._on_card() else [])]
        if self._at_work():
            raise RuntimeError("another profiler of torch is at work")  # which a second one would stop
        self._settle()
        profiler = self.torch.profiler.profile(activities=activities, record_shapes=True)
        profiler.start()
        self.seen = profiler

    def _stop(self) -> Any:
        """Stop torch's profiler and return it; None if it was not running."""
        if self.seen is not None:
            self.seen.stop()
        profiler, self.seen = self.seen, None
        return profiler

    def _abandon(self) -> None:
        """Stop the profiler in any case: torch crashes at exit while it still records."""
        profiler, self.seen = self.seen, None
        if profiler is None:
            return
        with contextlib.suppress(Exception):
            profiler.stop()
        with contextlib.suppress(Exception):
            if self._at_work():
                self.torch._C._autograd._disable_profiler()

    def _at_work(self) -> bool:
        """Whether torch notes what this thread does."""
        return bool(self.torch._C._autograd._profiler_enabled())

    def _range(self, name: str) -> Any:
        around = self.torch.profiler.record_function(f"{MARK}{name}")
        around.__enter__()
        return around

    def _close_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def _on_card(self) -> bool:
        return bool(self.torch.cuda.is_available() and self.torch.cuda.is_initialized())

    def _settle(self) -> None:
        """Wait for the GPU, so that pending work is attributed to the part that launched it."""
        if self.torch is not None and self._on_card():
            self.torch.cuda.synchronize()

    def _watched_s(self) -> float:
        return (time.perf_counter_ns() - (self.taken[0][0] if self.taken else self._began)) / 1e9

    def _finish(self) -> None:
        """Stop, and write the profile."""
        self.phase = OVER
        profiler = self._stop()
        facts = self._facts(profiler)
        run = current()
        if run.metrics_file is None:  # outside a job
            self._log(_summarize(facts))
            return
        folder = run.output_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        if profiler is not None:
            try:
                profile_facts.write_trace(profiler, folder)
            except Exception as error:  # noqa: BLE001  the rest is worth keeping without it
                self._log(f"the trace was not kept, {type(error).__name__}: {str(error)[:300]}")
        profile_facts.write_profile(facts, folder)
        self._log(f"{_summarize(facts)} ({FOLDER}/profile.json)")

    def _log(self, line: str) -> None:
        """Log the result, if there is a log to write to."""
        self.told = True
        with contextlib.suppress(OSError, ValueError):
            log_line(f"profile: {line}")

    def _facts(self, profiler: Any) -> dict[str, Any]:
        """Return the measurements in the form of a preset's profile, with the script's own parts."""
        steps = len(self.taken)
        record = self._spans(profiler)
        pieces = profile_spans.laid(record.steps, record.spans)
        shares = profile_spans.shares(record.steps, pieces)
        on_card = profiler is not None and self._on_card()
        batch_size = self.loader.get("batch_size")
        nothing = {"operations": [], "of_operations": 0, "kernels": 0.0, "device_busy_ms": 0.0}
        return {
            "source": "script",
            "torch": str(self.torch.__version__) if self.torch else "",
            "device": self.torch.cuda.get_device_name() if on_card else "cpu",
            "kind": "cuda" if on_card else "cpu",
            "threads": self.torch.get_num_threads() if self.torch else 1,
            "cores": _cores(),
            "batch_size": batch_size if isinstance(batch_size, int) else 0,
            "precision": record.precision,
            "loader": self.loader,
            "steps": steps,
            "step_ms": _ms(sum(self.plain_ns) / len(self.plain_ns)),
            "profiled_step_ms": _ms(sum(end - begin for begin, end in self.taken) / steps) if profiler else None,
            "known": [part for part in PARTS[:-1] if part in shares],
            "shares": _rounded({part: shares.get(part, 0.0) for part in PARTS[:-1]}),
            "named": _named(shares),
            "timeline": list(_line(record.steps, pieces)),
            "memory_mib": round(self.torch.cuda.max_memory_allocated() / 2**20) if on_card else None,
            **(profile_facts.operations(profiler, steps) if profiler is not None else nothing),
        }

    def _spans(self, profiler: Any) -> Found:
        """Return the spans from torch's record; without one, or with an unknown format, from the marks alone."""
        if profiler is not None:
            with contextlib.suppress(Exception):
                record = profile_spans.read_events(profiler.profiler.kineto_results.events())
                if len(record.steps) >= len(self.taken):  # the last may have been left before its end
                    return record._replace(steps=record.steps[: len(self.taken)])
        return Found(self.taken, self.spans, "")

    def _ended(self) -> None:
        """The program ends: take what there is, or say why there is nothing."""
        if os.getpid() != self._process or self.over:
            return
        self.leave()
        if self.over:
            return
        if self.taken:  # without torch each step that counts says something
            with self._harmless():
                self._finish()
        else:
            self.phase = OVER
            self._log("none was taken, the loop ended before it had seen enough steps; lower `skip` or `steps`")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 3)


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    """Round shares to four digits; with the rest they add up to 1."""
    rounded = {part: round(share, 4) for part, share in shares.items()}
    return rounded | {OTHER: round(max(1.0 - sum(rounded.values()), 0.0), 4)}


def _named(shares: dict[str, float]) -> dict[str, float]:
    """Return the parts that the script named, which are included in the rest."""
    own = sorted(((part, share) for part, share in shares.items() if part not in PARTS), key=lambda item: -item[1])
    return {part[:MAX_NAME_LENGTH]: round(share, 4) for part, share in own[:MAX_NAMED]}


def _line(steps: list[tuple[int, int]], pieces: list[list[Span]]) -> Iterator[dict[str, Any]]:
    """Yield the first steps as they are drawn."""
    for number, own in enumerate(pieces[:STEPS_DRAWN]):
        for piece in sorted(sorted(own, key=lambda span: span.begin - span.end)[:MAX_INTERVALS]):
            part = piece.part if piece.part in PARTS else OTHER
            begin_ms = _ms(piece.begin - steps[0][0])
            yield {"step": number, "part": part, "begin_ms": begin_ms, "ms": _ms(piece.end - piece.begin)}


def _summarize(facts: dict[str, Any]) -> str:
    """Return a profile as one line."""
    parts = ", ".join(f"{part} {100 * facts['shares'][part]:.0f} %" for part in (*facts["known"], OTHER))
    return f"{facts['step_ms']:.1f} ms a step; {parts}"

"""Phases of a conversion with their counters, and how long it still takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import mean

from inference.conversion.converter import speedups, variant_catalog
from inference.kit.samples.run import Run

REPORT_EVERY_S = 0.5
MEASURED_S = 4.0  # what measuring one variant once takes, before it was done
CALIBRATED = 2.0  # a variant that is calibrated takes so many times as long as evaluating the source
PLAIN = 1.2


class Progress:
    """Reports what a conversion does now.

    Args:
        names: of the source and the variants, in the order in which they are made.
    """

    def __init__(self, run: Run, names: Sequence[str]) -> None:
        self.run, self.names = run, names
        self.seconds: dict[str, float] = {}  # of variants that are done
        self.place = 0  # of the variant that is being made
        self.measuring_since: float | None = None
        self.began = self.reported = 0.0
        self.counter = ("", 0)  # the phase and total that are being counted

    def finished(self, name: str, seconds: float | None) -> None:
        """Take in what a variant took."""
        if seconds is not None:
            self.seconds[name] = seconds

    def remaining_s(self, index: int) -> float | None:
        """Return the seconds for what follows the variant at an index; None before the source was evaluated."""
        if not self.seconds and index == 0:
            return None
        later = sum(self._thought_s(name) for name in self.names[index + 1 :])
        return later + MEASURED_S * speedups.MIN_ROUNDS * len(self.names)

    def _thought_s(self, name: str) -> float:
        """What a variant is thought to take: as others of its kind did, or by the source."""
        alike = [
            seconds
            for other, seconds in self.seconds.items()
            if other != variant_catalog.SOURCE
            and variant_catalog.TARGETS[other].calibrated == variant_catalog.TARGETS[name].calibrated
        ]
        times = CALIBRATED if variant_catalog.TARGETS[name].calibrated else PLAIN
        return mean(alike) if alike else times * self.seconds.get(variant_catalog.SOURCE, 0.0)

    def converting(self, name: str) -> None:
        """Report that a variant is being made: which one, of all."""
        self.place, total = self.names.index(name), len(self.names) - 1
        rest_s = self.remaining_s(self.place)
        eta = {} if rest_s is None else {"eta_s": round(rest_s + self._thought_s(name), 1)}
        self.run.report(self.place, phase="converting", phase_done=self.place - 1, phase_total=total, **eta)

    def calibrating(self, done: int, total: int) -> None:
        """Report inputs that were calibrated on."""
        self._count("calibrating", done, total)

    def searching(self, done: int, total: int) -> None:
        """Report nodes of the graph that were tried alone."""
        self._count("searching", done, total)

    def _count(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self.counter != (phase, total) or not done:
            self.counter, self.began, self.reported = (phase, total), now, 0.0
        if now - self.reported < REPORT_EVERY_S and done < total:
            return
        self.reported = now
        rest_s, name = self.remaining_s(self.place), self.names[self.place]
        eta = {}
        if done and rest_s is not None:
            evaluated_s = self.seconds.get(variant_catalog.SOURCE, 0.0) if name != variant_catalog.SOURCE else 0.0
            eta["eta_s"] = round((now - self.began) * (total - done) / done + evaluated_s + rest_s, 1)
        self.run.report(self.place, phase=phase, phase_done=done, phase_total=total, **eta)

    def measuring(self, rounds: int, done: int, count: int) -> None:
        """Report measurements that are done: whole rounds, and those of the present one.

        There are at least MIN_ROUNDS, and at most MAX_ROUNDS; more are needed where the machine is busy.
        """
        now = time.monotonic()
        self.measuring_since = now if self.measuring_since is None else self.measuring_since
        made, total = rounds * count + done, speedups.MAX_ROUNDS * count
        least = speedups.MIN_ROUNDS * count if rounds < speedups.MIN_ROUNDS else (rounds + 1) * count
        each_s = (now - self.measuring_since) / made if made else MEASURED_S
        eta_s = round(each_s * (least - made), 1)
        self.run.report(len(self.names), phase="measuring", phase_done=made, phase_total=total, eta_s=eta_s)

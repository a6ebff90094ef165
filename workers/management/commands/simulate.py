"""`manage.py simulate`: the scheduler's own planner on a workload, under a virtual clock. Needs no database."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from workers.planning.planner import record
from workers.planning.simulator import generators, workloads
from workers.planning.simulator.figures import CLASSES, LARGE, Figures, figures
from workers.planning.simulator.policies import POLICIES
from workers.planning.simulator.simulate import Outcome, simulate
from workers.planning.simulator.timeline import draw

DAY = 86_400.0
MAX_DAYS = 3660.0


class Command(BaseCommand):
    help = (
        "Run the planner on a workload with a virtual clock and print utilization, throughput, waiting times "
        "and fairness."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        source = parser.add_mutually_exclusive_group(required=True)
        names = ", ".join(generators.GENERATORS)
        source.add_argument("workload", nargs="?", help=f"a file of JSON lines, or a generator: {names}")
        source.add_argument("--replay", type=Path, metavar="FILE.json", help="repeat a downloaded scheduling decision")
        add(
            "--weeks",
            type=_above_zero,
            help="length of a generated workload (default 12); of a file: the counted period",
        )
        add("--days", type=_above_zero, help="same in days")
        add("--seed", type=int, default=1, help="of a generated workload (default 1)")
        add("--load", type=_above_zero, default=0.80, help="gang jobs: share of the requested GPUs (default 0.80)")
        add("--warm-up", type=_not_negative, metavar="DAYS", help="warm-up days that are not counted")
        add("--policy", action="append", choices=sorted(POLICIES), help="policy (default ours); can be repeated")
        add("--nodes", type=int, help="nodes (default 4)")
        add("--cards", type=int, help="GPUs per node (default 8)")
        for name, what in (
            ("start-overhead", "start overhead of a job"),
            ("restart-overhead", "restart overhead after a preemption"),
            ("lost", "lost work per preemption"),
            ("grace", "time from a preemption to free GPUs"),
        ):
            add(f"--{name}", type=_not_negative, metavar="SECONDS", help=f"seconds {what}")
        add("--json", action="store_true", help="one line of JSON per policy")
        add("--plot", type=Path, metavar="FILE.png", help="plot used GPUs and the queue over time")
        add("--export", type=Path, metavar="FILE.jsonl", help="write the workload to a file")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["replay"]:
            self.stdout.write("\n".join(_replay(options["replay"])))
            return
        try:
            workload = _workload(options)
        except workloads.WrongWorkload as exc:
            raise CommandError(str(exc)) from exc
        if options["export"]:
            with _written(options["export"]) as path:
                path.write_text("".join(f"{line}\n" for line in workloads.lines(workload)), "utf-8")
        rows, outcomes = [], []
        for name in dict.fromkeys(options["policy"] or ["ours"]):
            began = time.monotonic()
            outcome = simulate(workload, POLICIES[name])
            row = figures(outcome, name)
            rows.append(row)
            outcomes.append((name, outcome))
            if options["json"]:
                self.stdout.write(json.dumps({"workload": workload.name, **row.as_json()}))
            else:
                self.stderr.write(f"{name}: {outcome.passes} passes in {time.monotonic() - began:.1f} s")
        if options["plot"]:
            _plot(options["plot"], outcomes)
        if not options["json"]:
            self.stdout.write("\n".join(table(workload, rows)))


def table(workload: workloads.Workload, rows: list[Figures]) -> Iterator[str]:
    """The lines of the table: one column for each policy."""
    setup = workload.setup
    yield (
        f"{workload.name}: {len(workload.works)} jobs on {setup.nodes} x {setup.cards} GPUs, {rows[0].days:g} "
        f"days counted; start {setup.start_overhead_s:g} s, restart {setup.restart_overhead_s:g} s, "
        f"{setup.lost_s:g} s lost and {setup.grace_s:g} s grace per preemption"
    )
    lines: list[tuple[str, list[str]]] = [("", [row.policy for row in rows])]

    def add(what: str, cells: list[float | None], form: str = ".2f") -> None:
        lines.append((what, ["-" if cell is None else format(cell, form) for cell in cells]))

    add("utilisation, %", [100 * row.utilisation for row in rows], ".1f")
    add("utilization, hours per GPU and day", [row.in_use_hours_per_card_day for row in rows])
    add("GPU-hours allocated per day", [row.card_hours_per_day for row in rows], ".1f")
    add("jobs completed per week, without workspaces", [row.jobs_per_week for row in rows], ".1f")
    for name in (*(name for name, *_ in CLASSES), LARGE, "all"):
        figures_of = [
            [row.wait_p50_hours.get(name), row.wait_p95_hours.get(name), row.wait_max_hours.get(name)] for row in rows
        ]
        if any(three[0] is not None for three in figures_of):
            what = f"wait p50 / p95 / max, hours, {name} GPUs" if name != "all" else "wait p50 / p95 / max, hours, all"
            lines.append((what, [" / ".join("-" if v is None else f"{v:.1f}" for v in three) for three in figures_of]))
    add("urgent: wait p95, hours", [row.urgent_wait_p95_hours for row in rows], ".3f")
    add("workspaces: maximum wait, hours", [row.environment_wait_max_hours for row in rows], ".3f")
    add("preemptions per week", [row.preemptions_per_week for row in rows], ".1f")
    add("maximum preemptions of one job", [row.most_preemptions_of_a_job for row in rows], "d")
    add("GPU-hours lost to them per week", [row.lost_card_hours_per_week for row in rows], ".1f")
    add("fairness (Jain, users)", [row.fairness for row in rows], ".3f")
    if any(row.never_started for row in rows):
        add("jobs that never started", [row.never_started for row in rows], "d")
    first = max(len(what) for what, _ in lines)
    widths = [max(len(cells[n]) for _, cells in lines) for n in range(len(rows))]
    for what, cells in lines:
        yield "  ".join([what.ljust(first), *(cell.rjust(w) for cell, w in zip(cells, widths, strict=True))]).rstrip()


def _workload(options: dict[str, Any]) -> workloads.Workload:
    """The workload that the command line names."""
    days = options["days"] or (7 * options["weeks"] if options["weeks"] else None)
    if days and days > MAX_DAYS:
        raise CommandError(f"At most {MAX_DAYS:g} days can be simulated.")
    named = {"nodes": "nodes", "cards": "cards"} | {
        f"{key}_s": key for key in ("start_overhead", "restart_overhead", "lost", "grace")
    }
    overrides = {field: options[key] for field, key in named.items() if options[key] is not None}
    if options["workload"] in generators.GENERATORS:
        setup, days = workloads.setup_of(overrides), days or 84.0
        if options["workload"] == "gangs":
            workload = generators.gangs(setup, days=days, seed=options["seed"], load=options["load"])
        else:
            workload = generators.aistation(setup, days=days, seed=options["seed"])
    else:
        try:
            with Path(options["workload"]).open(encoding="utf-8") as file:
                workload = workloads.read(Path(options["workload"]).stem, file, days, overrides)
        except OSError as exc:
            raise CommandError(f"{options['workload']} cannot be read: {exc.strerror}.") from exc
        except UnicodeDecodeError as exc:
            raise CommandError(f"{options['workload']} is not UTF-8 text.") from exc
    if options["warm_up"] is not None:
        if options["warm_up"] * DAY >= workload.until_s:
            raise CommandError("The warm-up leaves no time to count.")
        workload = dataclasses.replace(workload, counted_from_s=options["warm_up"] * DAY)
    return workload


def _replay(path: Path) -> list[str]:
    """What the planner makes of a recorded snapshot, in lines for people."""
    try:
        return list(record.lines(record.load(json.loads(path.read_text("utf-8")))))
    except OSError as exc:
        raise CommandError(f"{path} cannot be read: {exc.strerror}.") from exc
    except (record.WrongRecord, ValueError) as exc:
        raise CommandError(f"{path} is not a recorded decision: {exc}.") from exc


def _plot(path: Path, outcomes: list[tuple[str, Outcome]]) -> None:
    with _written(path):
        draw(outcomes).save(path, "PNG")


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    try:
        yield path
    except OSError as exc:
        raise CommandError(f"{path} is not writable: {exc.strerror or exc}.") from exc


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return number


def _above_zero(text: str) -> float:
    if (number := _number(text)) <= 0:
        raise argparse.ArgumentTypeError("must be a number above 0")
    return number


def _not_negative(text: str) -> float:
    if (number := _number(text)) < 0:
        raise argparse.ArgumentTypeError("must be a number of at least 0")
    return number

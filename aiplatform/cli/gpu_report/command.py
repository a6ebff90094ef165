"""The command line of the report: run the checks, print a line for each, write the files."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

from aiplatform import env
from aiplatform.cli import output
from aiplatform.cli.gpu_report import FOLDER, documents, reservation, runner
from aiplatform.cli.gpu_report.catalog import CHECKS
from aiplatform.cli.gpu_report.definitions import Check, Result, Status

MIN_MINUTES = 1.0
COLORS = {Status.PASSED: "32", Status.FAILED: "31"}


def run(options: argparse.Namespace) -> int:
    """Run the report; 0: nothing failed, 1: a check failed, 2: nothing could be checked."""
    checks = [check for check in CHECKS if not options.only or check.id in options.only]
    if unknown := set(options.only or ()) - {check.id for check in checks}:
        print(f"Unknown checks: {', '.join(sorted(unknown))}. Available: {', '.join(check.id for check in CHECKS)}.")
        return 2
    if options.minutes < MIN_MINUTES or options.gpus < 1:
        print(f"--minutes must be at least {MIN_MINUTES:g}, and --gpus at least 1.")
        return 2
    folder = Path(env.DATA_ROOT) / FOLDER
    signal.signal(signal.SIGTERM, _interrupt)
    simulated = bool(env.FAKE_GPUS) and not reservation.is_platform_running()
    reserve = (
        partial(reservation.simulate, max_gpus=options.gpus)
        if simulated
        else partial(reservation.reserve, folder=folder, max_gpus=options.gpus, wait_s=options.wait)
    )
    print(f"GPU report of {env.NODE}, at most {options.minutes:g} min")
    try:
        document = runner.run(
            checks, minutes=options.minutes, folder=folder, reserve=reserve, fake_gpus=env.FAKE_GPUS, node=env.NODE,
            on_result=_print,
        )  # fmt: skip
    except KeyboardInterrupt:
        print("Interrupted: the GPUs are released, no report was written.")
        return 130
    if not document["facts"].get("devices"):
        print(f"  {document['reservation']['problem']}")
        _print_catalog(checks)
        return 2
    for line in [document["reservation"].get("problem", ""), *document["reservation"].get("warnings", ())]:
        if line:
            print(f"  {line}")
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    paths = documents.write(document, options.output or folder / moment)
    print(documents.headline(document))
    for path in paths:
        print(f"  {path}")
    return int(document["exit_code"])


def _print(result: Result) -> None:
    status = output.paint(result.status.ljust(14), COLORS.get(result.status, "33"))
    print(f"  {status} {result.title}", flush=True)
    if result.reason and result.status != Status.SIMULATED:
        print(f"{' ' * 17}→ {result.reason}", flush=True)


def _print_catalog(checks: Sequence[Check]) -> None:
    """What would be checked on a node with GPUs."""
    print("On a node with NVIDIA GPUs these checks would run:")
    for check in checks:
        needs = ", ".join(need.value for need in check.needs) or "one GPU"
        print(f"  {check.id}: {check.title} (about {check.seconds:.0f} s; feature lines {', '.join(check.lines)})")
        print(f"      requires {needs}")
        for quantity in check.quantities:
            unit = f" [{quantity.unit}]" if quantity.unit else ""
            print(f"      {quantity.label}{unit}: {quantity.expectation or 'recorded'}")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End in an orderly way: GPUs are released and programs ended."""
    sys.exit(143)

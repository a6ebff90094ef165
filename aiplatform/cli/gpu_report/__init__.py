"""`manage.py doctor --gpu-report`: what only GPUs can prove, measured on this node and written as one report.

The modules import the apps, so they can be imported only after `django.setup()`; `command.run` is the way in.
"""

from __future__ import annotations

import argparse
from pathlib import Path

FOLDER = "gpu-reports"  # below AIP_DATA_ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `doctor` that belong to the report."""
    group = parser.add_argument_group("GPU report", "Measure what only GPUs can prove on free GPUs of this node.")
    group.add_argument("--gpu-report", action="store_true", help="run the checks and write an HTML and a JSON file")
    group.add_argument("--minutes", type=float, default=8.0, help="time limit of the report (default: 8)")
    group.add_argument("--gpus", type=int, default=2, help="maximum number of GPUs to reserve (default: 2)")
    group.add_argument("--wait", type=float, default=30.0, help="seconds to wait for the reservation (default: 30)")
    group.add_argument("--only", metavar="ID", nargs="+", help="run only these checks")
    group.add_argument("--output", type=Path, help=f"folder of the report (default: AIP_DATA_ROOT/{FOLDER}/TIME)")

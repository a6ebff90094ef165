"""`manage.py help_site`: build the help site that `/help/` serves."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from aiplatform.pages.help import site

NICENESS = 15


class Command(BaseCommand):
    help = "Build the help site; nothing is done if its sources are unchanged."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", type=Path, help="folder to build into (default: AIP_DATA_ROOT/help)")
        parser.add_argument("--force", action="store_true", help="build also if the sources are unchanged")
        parser.add_argument("--background", action="store_true", help="run with low priority, as `up` does")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["background"]:
            os.nice(NICENESS)
        try:
            from aiplatform.pages.help import build  # noqa: PLC0415 - MkDocs is loaded in this process only
        except ModuleNotFoundError as exc:
            raise CommandError(f"The help site was not built: the package {exc.name} is not installed.") from exc
        started = time.monotonic()
        try:
            is_built = build.build_site(options["to"] or site.root(), is_forced=options["force"])
        except build.BuildFailed as exc:
            raise CommandError(f"The help site was not built:\n{exc}") from exc
        if is_built:
            self.stdout.write(f"help site built in {time.monotonic() - started:.1f} s")

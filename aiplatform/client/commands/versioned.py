"""Downloads of dataset and model versions and of results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from aiplatform.client import download
from aiplatform.client.verbs import done


def fetch(
    args: argparse.Namespace,
    route: str,
    name: str,
    *,
    query: Mapping[str, object] | None = None,
    ending: str = ".zip",
) -> None:
    """Write the archive at `route` to `--to`, or to the current folder under the name of the version."""
    target = args.to or Path(f"{name.replace(':', '-v')}{ending}")
    download.fetch(args.client, route, target, query=query, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")

"""Verbs that `aip datasets` and `aip models` share: show, download, remove."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from aiplatform.client import download
from aiplatform.client.commands.verbs import confirm, done, show_one
from aiplatform.client.output import Column


def show(args: argparse.Namespace, route: str, columns: Sequence[Column]) -> None:
    """Show the thing at `route` with its description."""
    fields: list[Column] = [*((name.capitalize(), key) for name, key in columns), ("Description", "description")]
    show_one(args, args.client.get(route), fields)


def fetch(
    args: argparse.Namespace,
    route: str,
    called: str,
    *,
    query: Mapping[str, object] | None = None,
    ending: str = ".zip",
) -> None:
    """Write the archive at `route` to `--to`, or beside the caller under the version's name."""
    target = args.to or Path(f"{called.replace(':', '-v')}{ending}")
    download.fetch(args.client, route, target, query=query, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")


def remove(args: argparse.Namespace, route: str, *, question: str, removed: str) -> None:
    """Remove the thing at `route` after asking."""
    confirm(args, question)
    args.client.delete(route)
    done(args, {}, removed)

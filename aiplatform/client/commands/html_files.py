"""Save a page that needs nothing else as HTML, or print it as PDF."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aiplatform.client import printing
from aiplatform.client.commands.verbs import done
from aiplatform.client.errors import USAGE, ClientError


def options(verb: argparse.ArgumentParser, stem: str) -> None:
    """Add where to and how; `stem` is the name that a file gets."""
    verb.add_argument("file", nargs="?", help=f"where to; {stem}.html or .pdf when left out, - for what goes out")
    verb.add_argument("--pdf", action="store_true", help="print it by a Chromium of this machine")
    verb.add_argument("-f", "--force", action="store_true", help="write over a file that is there")


def save(args: argparse.Namespace, route: str, stem: str) -> None:
    """Fetch the page at a route of the API and save it as the options say."""
    if args.pdf:
        printing.browser()  # before anything is asked for
    out = args.file == "-"
    target = Path(args.file or f"{stem}.{'pdf' if args.pdf else 'html'}")
    if target.exists() and not args.force and not out:
        raise ClientError(f"{target} is there already. Add --force to write over it.", USAGE)
    if out and args.pdf:
        raise ClientError("Name a file for the PDF.", USAGE)
    answer = args.client.open("GET", route)
    try:
        html = answer.read()
    finally:
        answer.close()
    if out:
        sys.stdout.write(html.decode())
        return
    if args.pdf:
        printing.as_pdf(html, target)
    else:
        target.write_bytes(html)
    done(args, {"file": str(target)}, f"Saved as {target}.")

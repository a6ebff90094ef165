"""Save a page that needs nothing else as HTML, or print it as PDF."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aiplatform.client import printing
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import Option, flag, option
from aiplatform.client.verbs import done


def options(stem: str) -> tuple[Option, ...]:
    """Options of the target; `stem` is the default name of the file."""
    return (
        option("file", nargs="?", help=f"target; default: {stem}.html or .pdf, - for standard output"),
        flag("--pdf", help="print it with a local Chromium"),
        flag("-f", "--force", help="overwrite an existing file"),
    )


def save(args: argparse.Namespace, route: str, stem: str) -> None:
    """Fetch the page at a route of the API and save it as the options say."""
    if args.pdf:
        printing.browser()  # refuses before a request is sent
    to_stdout = args.file == "-"
    target = Path(args.file or f"{stem}.{'pdf' if args.pdf else 'html'}")
    if target.exists() and not args.force and not to_stdout:
        raise ClientError(f"{target} already exists. Add --force to overwrite it.", USAGE)
    if to_stdout and args.pdf:
        raise ClientError("Specify a file for the PDF.", USAGE)
    response = args.client.open("GET", route)
    try:
        html = response.read()
    finally:
        response.close()
    if to_stdout:
        sys.stdout.write(html.decode())
        return
    if args.pdf:
        printing.as_pdf(html, target)
    else:
        target.write_bytes(html)
    done(args, {"file": str(target)}, f"Saved as {target}.")

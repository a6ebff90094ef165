"""`aip report`: texts with live panels over runs, written, read and exported."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from aiplatform.client import output, printing
from aiplatform.client.commands import html_files, lookup
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import LIMIT, YES, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb

COLUMNS = columns("id, title, owner, visible to=visibility, version, changed=updated_at|ago")
REPORT = option("report", find=lookup.report, help="title or id")


def _show(args: argparse.Namespace, row: Any) -> None:
    for line in row["text"].splitlines():
        print(output.clean(line))


def _read_text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}.", USAGE) from exc


def _export(args: argparse.Namespace) -> None:
    if args.pdf:
        printing.browser()  # refuses before a request is sent
    row = lookup.report(args.client, args.report)
    html_files.save(args, f"reports/{row['id']}/export/", f"report-{row['id']}")


NOUNS = {
    "report": (
        Verb("list", "List reports, recently changed first.",
             (option("-q", "--search", help="only those that contain these words"), LIMIT),
             get="reports/", send={"ordering": "-changed"}, table=COLUMNS,
             empty="No reports yet. Write one: aip report create --help"),
        Verb("show", "Print the text of a report; --json prints all properties.", (REPORT,),
             get="reports/{report}/", show=_show),
        Verb("create", "Create a report from a Markdown file.", (
            option("title"),
            option("file", field="text", convert=_read_text,
                   help="Markdown file with panels, - reads standard input"),
            option("--visibility", choices=["private", "group", "public"], default="private", help="visibility"),
        ), post="reports/", once=True, done="Created report {row[title]} with id {row[id]}: {row[url]}"),
        Verb("versions", "List the versions of a report.", (REPORT, LIMIT), get="reports/{report}/versions/",
             table=columns("version=number, title, saved by=made_by, saved=made_at|ago, restores")),
        Verb("delete", "Delete a report.", (REPORT, YES),
             delete="reports/{report}/", confirm="Delete report {args.report}?", done="Deleted report {args.report}."),
        Verb("export", "Save a report as one HTML file, or as PDF, with the runs visible to you.",
             (REPORT, *html_files.options("report-ID")), run=_export),
    ),
}  # fmt: skip

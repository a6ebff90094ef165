"""`aip report`: texts with live panels over runs, written, read and taken along."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from aiplatform.client import output, printing
from aiplatform.client.commands import html_files, lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("title", "title"),
    ("owner", "owner"),
    ("visible to", "visibility"),
    ("version", "version"),
    ("changed", lambda row: output.ago(row.get("updated_at"))),
]


def add(nouns: Nouns, parent: Parent) -> None:
    report = Noun(nouns, parent, "report", "Reports: texts with live tables, curves and numbers of runs.")
    verb = report.verb("list", report_list, "List reports, those that changed last first.")
    verb.add_argument("-q", "--search", help="only those with these words")
    paging(verb)
    verb = report.verb("show", show, "Print the text of a report; --json everything about it.")
    verb.add_argument("report", help="title or id")
    verb = report.verb("create", create, "Write a report from a file of Markdown.")
    verb.add_argument("title")
    verb.add_argument("file", help="file of Markdown with panels, - for what comes in")
    verb.add_argument("--visibility", choices=["private", "group", "public"], default="private", help="who sees it")
    verb = report.verb("export", export, "Save a report as one HTML file, or as PDF, as you may see its runs now.")
    verb.add_argument("report", help="title or id")
    html_files.options(verb, "report-ID")


def find(client: Client, given: str) -> Any:
    """The report of a title, or of an id; refuses a title that several have."""
    rows = [row for row in client.pages("reports/", search=given) if row["title"] == given]
    if len(rows) > 1:
        raise lookup.ambiguous(given, [{"name": row["title"], **row} for row in rows])
    if rows:
        return rows[0]
    if given.isdigit():
        return client.get(f"reports/{given}/")
    raise ClientError(f"There is no report {given}. See: aip report list", NOT_FOUND)


def report_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("reports/", limit=args.limit, search=args.search, ordering="-changed")
    show_list(args, rows, COLUMNS, empty="No reports yet. Write one: aip report create --help")


def show(args: argparse.Namespace) -> None:
    row = args.client.get(f"reports/{find(args.client, args.report)['id']}/")
    if args.json:
        output.as_json(row)
        return
    for line in row["text"].splitlines():
        print(output.clean(line))


def create(args: argparse.Namespace) -> None:
    try:
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{args.file} cannot be read: {exc}.", USAGE) from exc
    body = {"title": args.title, "text": text, "visibility": args.visibility}
    row = args.client.post("reports/", body, once=True)
    done(args, row, f"Report {output.clean(row['title'])} is written, number {row['id']}: {row['url']}")


def export(args: argparse.Namespace) -> None:
    if args.pdf:
        printing.browser()  # before anything is asked for
    row = find(args.client, args.report)
    html_files.save(args, f"reports/{row['id']}/export/", f"report-{row['id']}")

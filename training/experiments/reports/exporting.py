"""A report as one file of HTML: styles and drawings within, no script, nothing that is asked for over a network.

It is frozen: it says when it was made, for whom, and of which runs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from accounts.models import User
from aiplatform.lib import titles
from training.experiments.reports import presentation
from training.experiments.reports.models import Report
from workers.core.clock import now

SHEETS = ("reports/export.css", "reports/charts.css", "reports/report.css")


def html(report: Report, reader: User) -> str:
    """The file, as this person sees the report now."""
    shown = presentation.show(report.text, reader, report.author, apart=True)
    context = {"report": report, "shown": shown, "reader": reader, "made_at": now(), "styles": _styles()}
    return render_to_string("reports/export.html", context)


def file_name(report: Report) -> str:
    """A name for the file."""
    return ".".join([titles.derive_name(report.title, room=80), "html"])


@cache
def _styles() -> SafeString:
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{_sheet('base/dark.css')}}}\n"  # paper is light
    sheets = [_sheet("base/tokens.css"), dark, *map(_sheet, SHEETS)]
    return mark_safe("\n".join(sheets))  # noqa: S308 - files of ours


def _sheet(name: str) -> str:
    path = finders.find(name)
    assert isinstance(path, str), name
    return Path(path).read_text()

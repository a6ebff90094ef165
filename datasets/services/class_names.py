"""Names people give to classes of an import whose files hold none: values of masks, numbers of YOLO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from datasets.formats import detect
from datasets.models import Import

MAX_LENGTH = 200


def can_be_named(report: Mapping[str, Any]) -> bool:
    """Return whether users may name the classes of a report."""
    format_ = detect.FORMATS.find(report.get("format", ""))
    return bool(format_ and format_.nameless and report.get("classes"))


def named(row: Import, names: Mapping[int, str]) -> dict[str, Any]:
    """The report of `row` with its classes called as `names` says, by class id; classes left out keep their names.

    Raises:
        Invalid: the format names its classes itself, there is no such class, a name is empty, too long or used twice.
    """
    if not names:
        return row.report
    if not can_be_named(row.report):
        raise Invalid(_("The classes of this data already have names."), field="classes")
    classes = [dict(item) for item in row.report["classes"]]
    unknown = sorted(set(names) - {item["id"] for item in classes})
    if unknown:
        raise Invalid(_("Class %(id)s does not exist in this data.") % {"id": unknown[0]}, field="classes")
    for item in classes:
        item["name"] = names.get(item["id"], item["name"]).strip()
        if not item["name"] or not item["name"].isprintable() or len(item["name"]) > MAX_LENGTH:
            raise Invalid(
                _("Enter a name of at most %(most)s characters for each class.") % {"most": MAX_LENGTH}, field="classes"
            )
    taken: set[str] = set()
    for item in classes:
        if item["name"] in taken:
            raise Invalid(
                _("Two classes are named “%(name)s”. Use a different name for each.") % {"name": item["name"]},
                field="classes",
            )
        taken.add(item["name"])
    return {**row.report, "classes": classes}


def of_plan(row: Import, classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The classes of a plan under the names that were agreed to."""
    agreed = {item["id"]: item["name"] for item in row.report.get("classes", [])} if can_be_named(row.report) else {}
    return [item | {"name": agreed.get(item["id"], item["name"])} for item in classes]

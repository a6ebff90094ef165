"""Template tags and filters of all pages: chips, icons, sizes, times, form rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any

from django import template
from django.contrib.staticfiles.storage import staticfiles_storage
from django.forms import BoundField
from django.template import loader
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy, pgettext_lazy
from django.utils.translation import gettext as _

from aiplatform.lib.fields import must_be_filled_in
from aiplatform.lib.times import format_duration
from aiplatform.lib.units import MIB_PER_GIB, Count, Unknown

register = template.Library()

SPRITE = Path(__file__).parents[1] / "static" / "base" / "icons.svg"

#: state → (hue, icon, word). One state looks the same wherever it shows.
CHIPS: dict[str, tuple[str, str, Any]] = {
    # jobs
    "queued": ("wait", "wait", gettext_lazy("Queued")),
    "assigned": ("wait", "wait", gettext_lazy("Assigned")),
    "starting": ("wait", "running", gettext_lazy("Starting")),
    "running": ("run", "running", gettext_lazy("Running")),
    "paused": ("pause", "pause", gettext_lazy("Paused")),
    "asleep": ("pause", "pause", gettext_lazy("Scaled to zero")),
    "stopping": ("wait", "stop", gettext_lazy("Stopping")),
    "finishing": ("wait", "finish", gettext_lazy("Finishing")),
    "preempting": ("pause", "arrow-down", gettext_lazy("Preempting")),
    "succeeded": ("end", "ok", gettext_lazy("Completed")),
    "finished_early": ("end", "finish", gettext_lazy("Finished early")),
    "failed": ("fail", "fail", gettext_lazy("Failed")),
    "stopped": ("end", "stop", gettext_lazy("Stopped")),
    "lost": ("fail", "warning", gettext_lazy("Lost")),
    # trials
    "complete": ("end", "ok", gettext_lazy("Completed")),
    "pruned": ("pause", "finish", gettext_lazy("Pruned")),
    # data on its way
    "open": ("wait", "upload", gettext_lazy("Uploading")),
    "uploading": ("wait", "upload", gettext_lazy("Uploading")),
    "importing": ("wait", "running", gettext_lazy("Importing")),
    "converting": ("wait", "running", gettext_lazy("Converting")),
    "deleting": ("wait", "trash", gettext_lazy("Deleting")),
    "ready": ("run", "ok", gettext_lazy("Ready")),
    "success": ("run", "ok", gettext_lazy("Ready")),
    "done": ("end", "ok", gettext_lazy("Done")),
    "used": ("end", "ok", gettext_lazy("Imported")),
    # machines
    "live": ("run", "ok", gettext_lazy("Live")),
    "suspect": ("wait", "warning", gettext_lazy("Suspect")),
    "unreachable": ("fail", "warning", gettext_lazy("Unreachable")),
    "draining": ("pause", "arrow-down", gettext_lazy("Draining")),
    "removed": ("end", "ended", gettext_lazy("Removed")),
    "external": ("wait", "warning", gettext_lazy("External process")),
    "ok": ("run", "ok", gettext_lazy("OK")),
    "gone": ("fail", "warning", gettext_lazy("Gone")),
    "sick": ("fail", "warning", gettext_lazy("Faulty")),
    # alarms
    "info": ("end", "info", pgettext_lazy("severity", "Note")),
    "warning": ("wait", "warning", gettext_lazy("Warning")),
    "critical": ("fail", "alarms", gettext_lazy("Critical")),
    # accounts
    "active": ("run", "ok", gettext_lazy("Active")),
    "disabled": ("end", "ended", gettext_lazy("Disabled")),
    "awaiting": ("wait", "wait", gettext_lazy("Waiting for approval")),
    "no_rights": ("wait", "wait", gettext_lazy("Without permissions")),
    # versions of models
    "candidate": ("wait", "dot", gettext_lazy("Candidate")),
    "approved": ("run", "ok", gettext_lazy("Approved")),
    "archived": ("end", "archive", gettext_lazy("Archived")),
    # steps of pipelines
    "asking": ("wait", "person", gettext_lazy("Awaiting approval")),
    "started": ("run", "running", gettext_lazy("Running")),
    "cached": ("end", "save", gettext_lazy("From an earlier run")),
    "skipped": ("pause", "arrow-right", gettext_lazy("Skipped")),
    "cancelled": ("end", "stop", gettext_lazy("Cancelled")),
    # services
    "waiting": ("wait", "wait", gettext_lazy("Waiting")),
    "healthy": ("run", "ok", gettext_lazy("Healthy")),
    "unhealthy": ("fail", "warning", gettext_lazy("Unhealthy")),
}


@cache
def icon_names() -> frozenset[str]:
    """Names of the icons we have drawn."""
    return frozenset(re.findall(r'<symbol id="([^"]+)"', SPRITE.read_text()))


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """Return an icon of our own set; hidden from screen readers, so it needs a text next to it or a label.

    Args:
        name: see /styleguide/; an unknown name shows a dot, and a test finds it.
        size: "" (16 px) or "large" (20 px).
    """
    return _drawn(name if name in icon_names() else "dot", size, staticfiles_storage.url("base/icons.svg"))


@lru_cache(maxsize=1024)
def _drawn(name: str, size: str, address: str) -> SafeString:
    extra = f" icon-{size}" if size else ""
    return format_html('<svg class="icon{}" aria-hidden="true"><use href="{}#{}"/></svg>', extra, address, name)


def hue(state: str) -> str:
    """run, wait, fail, pause or end: the hue of a state."""
    return CHIPS.get(str(state), ("end", "dot", ""))[0]


@register.simple_tag
def state_chip(state: Any, label: Any = "") -> SafeString:
    """Icon, word and hue of a state. `label` replaces the usual word."""
    value = str(getattr(state, "value", state))
    colour, drawing, word = CHIPS.get(value, ("end", "dot", getattr(state, "label", value)))
    return _chip(colour, icon(drawing), str(label or word))


@lru_cache(maxsize=1024, typed=True)  # a safe text equals the same text that is to be escaped
def _chip(colour: str, drawing: SafeString, word: str) -> SafeString:
    return format_html('<span class="chip chip-{}">{}{}</span>', colour, drawing, word)


@register.simple_tag
def class_dot(color: str) -> SafeString:
    """Return a dot in the color of a class, to stand before its name."""
    dot = '<svg class="class-dot" viewBox="0 0 12 12" aria-hidden="true"><circle cx="6" cy="6" r="5" fill="{}"/></svg>'
    return format_html(dot, color)


@register.filter(name="bytes")
def bytes_(size: float | None) -> str:
    """12,345,678 → "11.8 MiB"."""
    if size is None:
        return "–"
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@register.filter
def count(number: Any) -> Count:
    """12345 → "12,345", on its own and in `{% blocktranslate count n=rows|count %}`; "–" for None.

    Every number of things on a page goes through here, numbers that name something (version 7, job 1024) do not.
    """
    return Unknown(0) if number in (None, "") else Count(round(number + 0))  # a lazy number cannot be rounded itself


@register.filter
def concat(text: str, value: object) -> str:
    """ "delete-role-" and 7 → "delete-role-7"."""
    return f"{text}{value}"


@register.filter
def gib(mib: float | None) -> str:
    """24,105 MiB → "23.5", without its unit, so that two stand side by side: "0.4 / 23.5 GiB"."""
    return "–" if mib is None else f"{float(mib) / MIB_PER_GIB:.1f}"


@register.filter
def duration(span: timedelta | float | None) -> str:
    """A span in words, the two largest units: "2 h 5 min"; "–" for None."""
    return "–" if span is None else format_duration(span)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Relative time with the exact one, in the reader's zone, on hover; time.js keeps it true."""
    if moment is None:
        return "–"
    exact = escape(timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z"))
    text = _since(round((timezone.now() - moment).total_seconds()), get_language())
    return SafeString(f'<time datetime="{moment.isoformat()}" data-ago title="{exact}">{escape(text)}</time>')


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """Exact time in the reader's zone with the relative one on hover; time.js keeps it true."""
    if at is None:
        return "–"
    local = timezone.localtime(at)
    zone, relative = f"{local:%Z}", _since(round((timezone.now() - at).total_seconds()), get_language())
    title = escape(f"{relative} ({zone})")
    text = f"{local:%Y-%m-%d %H:%M:%S}"
    return SafeString(f'<time datetime="{at.isoformat()}" data-moment="{zone}" title="{title}">{text}</time>')


@lru_cache(maxsize=4096)
def _since(seconds: int, _language: str | None) -> str:
    """How long ago something was; negative seconds are in the future."""
    if abs(seconds) < 45:
        return _("just now")
    span = format_duration(abs(seconds), max_units=1)
    return (_("%(span)s ago") if seconds > 0 else _("in %(span)s")) % {"span": span}


@register.filter
def percent(part: float | None, digits: int = 0) -> str:
    """0.873 → "87 %"."""
    return "–" if part is None else f"{part * 100:.{digits}f} %"


@register.filter
def initials(person: object) -> str:
    """One or two letters for a person's round picture."""
    parts = str(person).split()
    return "".join(part[0] for part in (parts if len(parts) > 1 else [str(person)])[:2]) or "?"


@register.inclusion_tag("components/field.html")
def field(bound: BoundField, unit: str = "") -> dict[str, Any]:
    """A whole form row: label, control with an optional unit inside, help, errors."""
    widget = bound.field.widget
    kind = "file" if getattr(widget, "input_type", "") == "file" else bound.widget_type
    return {"field": bound, "unit": unit, "kind": kind, "many": getattr(widget, "allow_multiple_selected", False)}


@register.filter
def any_errors(fields: Iterable[BoundField]) -> bool:
    """Whether a field has an error, so that the folded part of a form with these fields is opened."""
    return any(field.errors for field in fields)


@register.simple_tag
def lost_file(bound: BoundField) -> str:
    """Name of the file that came with a refused form, and that the browser forgets with the page; "" for none.

    A form names in `keeps_files` those that it keeps itself.
    """
    files: Any = bound.form.files
    sent = files.get(bound.html_name) if files else None
    return "" if sent is None or bound.name in getattr(bound.form, "keeps_files", ()) else str(sent.name)


@register.simple_tag
def required_mark(bound: BoundField) -> str:
    """The mark of a field that must be filled in; all other fields may be left as they are."""
    if not must_be_filled_in(bound):
        return ""
    return format_html(' <span class="required-mark" title="{}"></span>', _("Required"))


@register.simple_block_tag
def more_menu(content: SafeString, label: str = "", icon: str = "more") -> SafeString:
    """Acts that are not the primary one, folded into a menu: links and buttons of the class `menu-item`.

    Whatever destroys stands here (`menu-item menu-danger`, `data-dialog-open`), never beside the primary act.

    Args:
        label: what the button says; "" is "More".
    """
    facts = {"content": content, "label": label, "drawing": icon}
    return SafeString(loader.get_template("components/more_menu.html").render(facts))


@register.inclusion_tag("components/hint.html")
def hint(text: Any) -> dict[str, Any]:
    """An info icon that shows an explanation when it is clicked; nothing where `text` is empty."""
    return {"text": text}


@register.inclusion_tag("components/pager.html")
def pager(page: Any) -> dict[str, Any]:
    """Links to the next and previous keyset page. `page` has next_url, previous_url, total (or None)."""
    return {"page": page}


@register.inclusion_tag("components/stacked.html")
def stacked(parts: list[dict[str, Any]], label: str) -> dict[str, Any]:
    """Parts of a whole as one bar with a legend.

    Args:
        parts: [{"label", "hue", "count"}, …]; parts of count 0 stand in the legend only.
        label: what the bar shows, for people who cannot see it.
    """
    total = sum(part["count"] for part in parts)
    shown, x = [], 0.0
    for part in parts:
        width = 1000 * part["count"] / total if total else 0.0
        shown.append({**part, "percent": round(width / 10), "x": f"{x:.2f}", "width": f"{width:.2f}" if width else ""})
        x += width
    text = ", ".join(f"{part['label']} {part['count']:,}" for part in parts)
    return {"parts": shown, "label": f"{label}: {text}" if text else label, "total": total}

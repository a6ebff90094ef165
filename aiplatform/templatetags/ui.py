"""Tags and filters every page uses: chips, icons, sizes, times, form rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.forms import BoundField
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import now
from django.utils.translation import gettext as _

from aiplatform.lib.times import words

register = template.Library()


@register.filter(name="bytes")
def bytes_(size: float | None) -> str:
    """12,345,678 → "11.8 MiB"."""
    if size is None:
        return "–"
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return ""


@register.filter
def duration(span: timedelta | float | None) -> str:
    """A span in words; "–" for None."""
    return "–" if span is None else words(span)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Relative time with the exact one on hover."""
    if moment is None:
        return "–"
    return format_html(
        '<time datetime="{}" data-ago title="{}">{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S %Z"),
        _("%(span)s ago") % {"span": words(now() - moment)},
    )


@register.simple_tag
def state_chip(state: str, label: str = "") -> SafeString:
    """Icon, word and hue of a state."""
    return format_html('<span class="chip">{}</span>', label or state)


@register.simple_tag
def icon(name: str) -> SafeString:
    return format_html('<span class="icon" aria-hidden="true" data-icon="{}"></span>', name)


@register.inclusion_tag("components/field.html")
def field(bound: BoundField, unit: str = "") -> dict[str, Any]:
    """A whole form row: label, control, help, error."""
    return {"field": bound, "unit": unit}


@register.inclusion_tag("components/pager.html", takes_context=True)
def pager(context: dict[str, Any], page: Any) -> dict[str, Any]:
    """Links to the next and previous keyset page. `page` has next_url, previous_url, total (or None)."""
    return {"page": page}

"""Template tags of lists: the filter bar, what stands in it, and heads that sort.

    {% filter_bar "trainings" _("Filter trainings") %}
      {% filter_words "q" _("Name, preset or dataset") %}
      {% filter_choice "state" _("State") states %}
      {% filter_tick "mine" _("Mine only") %}
    {% endfilter_bar %}
    <div id="trainings" data-list>{% include "training/_job_table.html" %}</div>

The values stand in the address, so the controls read them there and views hand nothing on. base/lists.js fetches the
region (by its id) as soon as something changes; the view answers htmx with the region's content alone. Without scripts
the same form is sent by a button, and heads are links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template import loader
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from aiplatform.lib.keyset import BACKWARD, FORWARD
from aiplatform.lib.ordering import PARAMETER, ListPage
from aiplatform.objects.bulk import BulkAction, allowed
from aiplatform.templatetags.ui import icon

register = template.Library()

#: Parameters of an address that say how a list is read, not which rows it has; base/lists.js knows them too.
HOW = frozenset((PARAMETER, FORWARD, BACKWARD, "page", "size", "start"))


def _query(context: template.Context) -> Any:
    return context["request"].GET


@register.simple_tag(takes_context=True)
def filtered(context: template.Context) -> bool:
    """Whether the address filters the list: an empty one then says so, and offers all rows."""
    return any(value for name, value in _query(context).items() if name not in HOW)


@register.simple_block_tag(takes_context=True)
def filter_bar(
    context: template.Context,
    content: SafeString,
    region: str,
    label: str,
    heads: bool = True,
    where: str = "",
) -> SafeString:
    """The filters above a list.

    Args:
        region: id of the element that shows the rows.
        label: what is filtered, for the ear.
        heads: whether the list is a table, sorted by its heads; False where the bar has a choice of the order.
        where: parameters of the address, apart by spaces, that say which list it is: they filter nothing, and stay.
    """
    query = _query(context)
    stay = {name: query[name] for name in where.split() if query.get(name)}
    facts = {
        "content": content,
        "region": region,
        "label": label,
        "has_table": heads,
        "ordering": query.get(PARAMETER, "") if heads else "",
        "filtered": any(value for name, value in query.items() if name not in HOW and name not in stay),
        "path": context["request"].path,
        "stay": stay,
        "query": f"?{urlencode(stay)}" if stay else "",
    }
    return SafeString(loader.get_template("components/filter_bar.html").render(facts))


@register.inclusion_tag("components/filter_words.html", takes_context=True)
def filter_words(context: template.Context, name: str, label: str) -> dict[str, Any]:
    """A field for words; the list follows while one types."""
    return {"name": name, "label": label, "value": _query(context).get(name, "")}


@register.inclusion_tag("components/filter_choice.html", takes_context=True)
def filter_choice(
    context: template.Context,
    name: str,
    label: str,
    choices: Iterable[tuple[Any, Any]],
    everything: str = "",
    usual: str = "",
) -> dict[str, Any]:
    """A choice of one.

    Args:
        choices: (value, word) pairs. The first has the value "" and says "all", or `everything` says it.
        usual: what is chosen where the address says nothing.
    """
    chosen = _query(context).get(name, usual)
    rows = [(str(value), word, str(value) == chosen) for value, word in choices]
    if everything:
        rows.insert(0, ("", everything, chosen == ""))
    return {"name": name, "label": label, "rows": rows, "usual": usual}


@register.simple_tag(takes_context=True)
def filter_object(context: template.Context, control: Mapping[str, Any]) -> SafeString:
    """The object whose rows the list shows, as a choice that also offers all; nothing while no object filters."""
    value = _query(context).get(control["name"], "")
    choices = control["filter"].choices(context["user"], value)
    if not choices:
        return SafeString("")
    facts = filter_choice(context, control["name"], control["label"], choices)
    return SafeString(loader.get_template("components/filter_choice.html").render(facts))


@register.inclusion_tag("components/filter_tick.html", takes_context=True)
def filter_tick(context: template.Context, name: str, label: str) -> dict[str, Any]:
    """A box to tick; "1" in the address."""
    return {"name": name, "label": label, "ticked": _query(context).get(name) == "1"}


@register.inclusion_tag("components/filter_day.html", takes_context=True)
def filter_day(context: template.Context, name: str, label: str, usual: date | None = None) -> dict[str, Any]:
    """A day, as 2026-11-22 in the address; `usual` where it says none."""
    otherwise = usual.isoformat() if usual else ""
    return {"name": name, "label": label, "value": _query(context).get(name) or otherwise, "usual": otherwise}


@register.simple_tag
def sort_head(page: ListPage, word: str, label: str, kind: str = "") -> SafeString:
    """Return the head of a column that sorts the list: a link, with the order for screen readers.

    Args:
        word: one of the list's `Ordering`.
        kind: "num" is aligned right; it and "time" start with the largest.
    """
    rising, falling = word, f"-{word}"
    first, second = (falling, rising) if kind else (rising, falling)
    current = page.ordering
    target = second if current == first else first
    direction = {rising: "ascending", falling: "descending"}.get(current, "")
    icon_name = {"ascending": "arrow-up", "descending": "arrow-down"}.get(direction, "sort")
    return format_html(
        '<th scope="col"{}{}><a href="{}" data-order="{}" title="{}">{}{}</a></th>',
        SafeString(' class="num"') if kind == "num" else "",
        format_html(' aria-sort="{}"', direction) if direction else "",
        page.order_url(target),
        word,
        _("Sort by %(column)s") % {"column": label},
        label,
        icon(icon_name),
    )


@register.simple_tag
def select_head() -> SafeString:
    """Return the head of the column of boxes: one that selects all rows of the page."""
    return format_html(
        '<th scope="col" class="select-cell"><input type="checkbox" data-select-all aria-label="{}"></th>',
        _("Select all on this page"),
    )


@register.simple_block_tag
def select_cell(content: SafeString, key: int, name: str) -> SafeString:
    """Return the cell with the box of a row.

    Args:
        content: codes of the actions that are possible for the row, apart by spaces; without any there is no box.
        key: key of the row in the API.
    """
    possible = content.strip()
    if not possible:
        return SafeString('<td class="select-cell"></td>')
    return format_html(
        '<td class="select-cell"><input type="checkbox" data-select data-possible="{}" data-name="{}" value="{}" '
        'aria-label="{}"></td>',
        possible,
        name,
        key,
        _("Select %(name)s") % {"name": name},
    )


@register.inclusion_tag("components/bulk_bar.html", takes_context=True)
def bulk_bar(context: template.Context, region: str, actions: Iterable[BulkAction]) -> dict[str, Any]:
    """Show the bar with the actions on the rows that are selected in a list; hidden until some are."""
    return {"region": region, "actions": allowed(actions, context["user"])}

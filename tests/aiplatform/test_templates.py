"""Quick nodes write what Django's own nodes write, and are the ones that pages are made of."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.template import Context, Engine, Origin, Template, engines
from django.template.base import VariableNode
from django.test import override_settings
from django.utils import translation
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from aiplatform.lib import templates

PLAIN = Engine(builtins=["django.templatetags.i18n", "django.templatetags.l10n", "django.templatetags.tz"])


class Row:
    """A row as pages show it."""

    name, pk, code = "<b>&'\"", 1234567, 0
    label = gettext_lazy("Save")
    items = ("first", "second")

    def __init__(self) -> None:
        self.calls = 0

    def title(self) -> str:
        self.calls += 1
        return "a <title>"

    def wants(self, argument: str) -> str:
        return argument

    def delete(self) -> str:
        raise AssertionError("templates must not call this")

    delete.alters_data = True  # type: ignore[attr-defined]  # as Django marks methods that templates must not call

    @property
    def missing(self) -> str:
        raise ObjectDoesNotExist

    def __str__(self) -> str:
        return "row & co"


def context() -> dict[str, Any]:
    return {
        "row": Row(), "kind": Row, "text": "a < b", "safe": mark_safe("<i>x</i>"), "number": 12345, "share": 0.5,
        "price": Decimal("1234.50"), "yes": True, "none": None, "empty": "", "facts": {"a b": 1, "items": "own"},
        "rows": [Row(), Row()], "day": date(2026, 11, 28), "moment": datetime(2026, 11, 28, 12, tzinfo=UTC),
        "percent": "100%", "word": "Save",
    }  # fmt: skip


SOURCES = [
    "{{ text }}|{{ safe }}|{{ number }}|{{ share }}|{{ price }}|{{ yes }}|{{ none }}|{{ empty }}|{{ unknown }}",
    "{{ row }}|{{ row.name }}|{{ row.pk }}|{{ row.code }}|{{ row.label }}|{{ row.title }}",
    "{{ row.wants }}|{{ row.delete }}|{{ row.missing }}|{{ row.nothing }}|{{ row.nothing.more }}",
    "{{ row.items.1 }}|{{ row.name.upper }}",
    "{{ kind }}|{{ kind.name }}|{{ facts.items }}|{{ facts.x }}|{{ facts.none }}|{{ rows.0.pk }}",
    "{{ rows.5.pk }}",
    "{{ day }}|{{ moment }}|{{ moment|date:'H:i' }}|{{ row.name|lower }}|{{ none|default:row.name }}",
    "{{ 5 }}|{{ 'é<' }}",
    "{% autoescape off %}{{ text }}{{ row.name }}{{ row }}{% endautoescape %}",
    "{% localize off %}{{ number }}{{ share }}{% endlocalize %}{{ text|safe }}{{ safe|escape }}",
    "{% for one in rows %}{{ forloop.counter }}{% if one.pk and not row.code %}{{ one.name }}{% endif %}{% endfor %}",
    "{% if facts.items == 'own' or unknown.thing %}a{% endif %}{% with row.title as t %}{{ t }}{% endwith %}",
    "{% translate 'Save' %}|{% translate 'Save' as s %}{{ s }}",
    "{% translate 'no such <text> 5%' %}|{% translate text %}",
    "{{ word }}|{% translate word %}|{{ word }}|{% translate word as w %}{{ w }}|{% translate word noop %}",
    "{% translate 'Save'|upper %}|{% translate 'Save' noop %}|{% translate 'May' context 'month name' %}",
    "{% blocktranslate %}Save{% endblocktranslate %}",
    "{% blocktranslate with n=row.name %}{{ n }} 5%{% endblocktranslate %}",
    "{% blocktranslate with n=text asvar b %}Delete {{ n }}{% endblocktranslate %}{{ b }}",
    "{% blocktranslate %}of {{ text }} and {{ nothing }}{% endblocktranslate %}",
    "{% blocktranslate trimmed with n=number %}\n  One\n  {{ n }}{% endblocktranslate %}",
    "{% blocktranslate count n=number %}{{ n }} row{% plural %}{{ n }} rows{% endblocktranslate %}",
    "{% blocktranslate with n=none %}is {{ n }} {{ percent }}{% endblocktranslate %}",
]


def quick(source: str) -> Template:
    template = Template(source, Origin("a.html"), "a.html", PLAIN)
    templates.quicken(template)
    return template


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("source", SOURCES)
def test_quick_nodes_write_what_djangos_write(source, language):
    with translation.override(language):
        expected = PLAIN.from_string(source).render(Context(context()))
        template = quick(source)

        assert [template.render(Context(context())) for _turn in range(2)] == [expected, expected]


def test_quick_texts_follow_the_language_of_each_page():
    template = quick("{% translate 'Save' %}|{% blocktranslate %}Save{% endblocktranslate %}")

    pages = []
    for language in ("en", "zh-hans", "en"):
        with translation.override(language):
            pages.append(template.render(Context()))

    assert pages[0] == pages[2] == "Save|Save"
    assert pages[1] != pages[0]


def test_quick_lookup_calls_a_method_once():
    row = Row()

    quick("{{ row.title }}").render(Context({"row": row}))

    assert row.calls == 1


def test_quick_lookup_lets_errors_through():
    with pytest.raises(ZeroDivisionError):
        quick("{{ broken }}").render(Context({"broken": lambda: 1 / 0}))


@override_settings(USE_THOUSAND_SEPARATOR=True)
def test_quick_numbers_are_grouped_where_the_settings_group_them():
    assert quick("{{ n }}").render(Context({"n": 12345})) == PLAIN.from_string("{{ n }}").render(Context({"n": 12345}))


def test_pages_are_made_of_quick_nodes():
    nodes = engines["django"].get_template("training/_job_rows.html").template.nodelist.get_nodes_by_type(VariableNode)

    assert nodes
    assert {type(node) for node in nodes} == {templates.QuickVariableNode}

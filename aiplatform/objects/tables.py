"""Tables of lists and facts of objects, declared by columns; each is one Django template, compiled once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from django.template import engines

from aiplatform.lib.templates import quicken
from aiplatform.objects.bulk import BulkAction


@dataclass(frozen=True)
class Column:
    """A column: its head, and what its cells show.

    Args:
        value: an expression of Django's templates about `row`, as in `row.updated_at|ago`, or a template with braces.
        sort: the word of `?ordering=` that sorts by this column; empty: it does not sort.
        kind: "num" is aligned to the right; "num" and "time" sort the largest first; "actions" has buttons, and its
            head is for screen readers alone.
        css: classes of the cells; with "wide-only" a column that does not sort is left out of narrow windows.
        template: a partial that shows the cell in place of `value`.
    """

    label: Any
    value: str = ""
    sort: str = ""
    kind: Literal["", "num", "time", "actions"] = ""
    css: str = ""
    template: str = ""

    def head(self, number: int) -> str:
        """Source of the head."""
        label = f"pages.table.columns.{number}.label"
        if self.sort:
            return f'{{% sort_head page "{self.sort}" {label} "{self.kind}" %}}'
        number_class = "num" if self.kind == "num" else ""
        wide = "wide-only" if "wide-only" in self.css.split() else ""
        if self.kind == "actions":
            return f'<th scope="col"{_attribute(wide)}><span class="sr-only">{{{{ {label} }}}}</span></th>'
        return f'<th scope="col"{_attribute(f"{number_class} {wide}".strip())}>{{{{ {label} }}}}</th>'

    def content(self) -> str:
        """Source of what a cell shows."""
        if self.template:
            return f'{{% include "{self.template}" %}}'
        return self.value if "{" in self.value else f"{{{{ {self.value} }}}}"

    def cell(self) -> str:
        """Source of a cell."""
        kind = {"num": "num", "time": "nowrap", "actions": "" if self.css else "actions"}.get(self.kind, "")
        return f"<td{_attribute(f'{kind} {self.css}'.strip())}>{self.content()}</td>"


@dataclass(frozen=True)
class MainColumn(Column):
    """The column that leads to the page of the object.

    Args:
        below: an expression that may follow in small letters.
        is_public: an expression; where it is true the tag "Public" follows.
        sample_kind: kind of sample objects (aiplatform.pages.sample); rows of the sample project get the tag "Sample".
    """

    value: str = "row"
    css: str = "main-cell"
    below: str = ""
    is_public: str = ""
    sample_kind: str = ""

    def content(self) -> str:
        link = f'<a href="{{% url pages.names.detail row.pk %}}">{{{{ {self.value} }}}}</a>'
        if self.sample_kind:
            link = f'{link} {{% sample_chip "{self.sample_kind}" row.pk %}}'
        if self.is_public:
            tag = '<span class="tag">{% icon "public" %}{% translate "Public" %}</span>'
            link = f"{link}{{% if {self.is_public} %}} {tag}{{% endif %}}"
        if not self.below:
            return link
        return f'{link}{{% if {self.below} %}}<div class="small muted cut">{{{{ {self.below} }}}}</div>{{% endif %}}'


class Table:
    """The columns of a list: `{% include pages.table.rows %}` shows head and body. It needs `page` and `pages`.

    With `refresh_s` in the context the list is read again after as many seconds.

    Args:
        anchor: each row has the id `ANCHOR-NUMBER`; empty: none.
        libraries: of template tags and filters that values use, besides those of lists.
        bulk: actions on selected rows; rows with any get a box in a first column.
        row_name: an expression that names a row for screen readers and in questions.
        row_key: an expression with the key that the actions send.
    """

    def __init__(
        self,
        *columns: Column,
        anchor: str = "",
        libraries: str = "",
        bulk: tuple[BulkAction, ...] = (),
        row_name: str = "row.name",
        row_key: str = "row.pk",
    ) -> None:
        self.columns, self.anchor, self.libraries = columns, anchor, libraries
        self.bulk, self.row_name, self.row_key = bulk, row_name, row_key

    @cached_property
    def rows(self) -> Any:
        """The compiled template."""
        heads = "".join(column.head(number) for number, column in enumerate(self.columns))
        cells = "".join(column.cell() for column in self.columns)
        if self.bulk:
            possible = "".join(action.condition() for action in self.bulk)
            heads = f"{{% select_head %}}{heads}"
            cells = f"{{% select_cell {self.row_key} {self.row_name} %}}{possible}{{% endselect_cell %}}{cells}"
        anchor = f' id="{self.anchor}-{{{{ row.pk }}}}"' if self.anchor else ""
        refresh = '{% if refresh_s %} data-refresh-s="{{ refresh_s }}"{% endif %}'
        body = f"<tbody{refresh}>{{% for row in page %}}<tr{anchor}>{cells}</tr>{{% endfor %}}</tbody>"
        return _compiled(f"<thead><tr>{heads}</tr></thead>{body}", self.libraries)


class Facts:
    """What the page of an object says about it: `{% include pages.facts.rows %}` in a `<dl>`. It needs `row`."""

    def __init__(self, *columns: Column) -> None:
        self.columns = columns

    @cached_property
    def rows(self) -> Any:
        """The compiled template."""
        return _compiled(
            "".join(
                f"<dt>{{{{ pages.facts.columns.{number}.label }}}}</dt><dd>{column.content()}</dd>"
                for number, column in enumerate(self.columns)
            )
        )


def _compiled(source: str, libraries: str = "") -> Any:
    template = engines["django"].from_string(f"{{% load i18n lists ui {libraries} %}}{source}")
    quicken(template.template)  # type: ignore[attr-defined]  # of Django's engine
    return template


def _attribute(css: str) -> str:
    return f' class="{css}"' if css else ""

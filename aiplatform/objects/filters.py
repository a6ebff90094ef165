"""Filters of lists: declared once with django-filter, read from the address of a page and from an API request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from django import forms
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import Filter, FilterSet

from aiplatform.lib import ids, search
from aiplatform.lib.errors import Invalid
from aiplatform.lib.ordering import Ordering

#: Parameters that have another name on pages than in the API.
PAGE_NAMES = {"search": "q"}


class Words(Filter):
    """Rows in which each of the words is part of one of `columns`."""

    control = "words"

    def __init__(self, *columns: str, label: Any = "") -> None:
        super().__init__(label=label)
        self.columns = columns

    def filter(self, qs: QuerySet[Any], value: str | None) -> QuerySet[Any]:
        return search.filter_by_text(qs, value or "", *self.columns)


class Choice(Filter):
    """Rows with one of the values that `choices` names.

    Args:
        method: (rows, name, value) → rows, where more than a comparison with the column is needed.
        shown: what the page offers, "all" first, where that is not all of them.
        all_label: of the choice that filters nothing; empty: "all".
    """

    control = "choice"
    field_class = forms.ChoiceField

    def __init__(
        self, field_name: str, choices: Iterable[tuple[Any, Any]], *, label: Any = "", method: Any = None,
        shown: Iterable[tuple[Any, Any]] = (), all_label: Any = "",
    ) -> None:  # fmt: skip
        super().__init__(field_name, label=label, method=method, choices=list(choices))
        self.shown, self.all_label = list(shown), all_label

    @property
    def offered(self) -> list[tuple[Any, Any]]:
        """Choices of the control on the page, "all" first."""
        return self.shown or [("", self.all_label or _("all")), *self.extra["choices"]]


class Number(Filter):
    """Rows with this whole number, such as the id of another object."""

    field_class = forms.IntegerField

    def __init__(self, field_name: str) -> None:
        super().__init__(field_name, max_value=10**18 - 1)


class OfObject(Number):
    """Rows of one other object, by its id; the page names the object in a choice that also removes the filter.

    Args:
        objects: the model of the other object, with `visible_to(user)`.
        all_label: of the choice that filters nothing.
        none_text: of a list that is empty because of this filter alone.
    """

    control = "object"

    def __init__(self, field_name: str, objects: type[Model], *, label: Any, all_label: Any, none_text: Any) -> None:
        super().__init__(field_name)
        self.label, self.objects, self.all_label, self.none_text = label, objects, all_label, none_text

    def choices(self, user: Any, value: str) -> list[tuple[str, Any]]:
        """What the control offers while the list is filtered: the object, if `user` may see it, or all."""
        number = ids.number(value)
        visible: Any = self.objects._default_manager
        chosen = visible.visible_to(user).filter(pk=number).first() if number else None
        return [("", self.all_label), (str(number), str(chosen))] if chosen else []


class Mine(Filter):
    """Rows that the reader owns, where the value is 1.

    Args:
        owner: column of the owner.
        of_all: the page has the control for users who see the rows of all users.
    """

    def __init__(self, owner: str = "owner", *, of_all: bool = False) -> None:
        super().__init__(owner, label=gettext_lazy("Mine only"))
        self.control = "tick_of_all" if of_all else "tick"

    def filter(self, qs: QuerySet[Any], value: str | None) -> QuerySet[Any]:
        return qs.filter(**{self.field_name: self.parent.request.user}) if value == "1" else qs


class ObjectFilters(FilterSet):
    """The filters and orders of the list of one kind of object.

        class TemplateFilters(ObjectFilters):
            search = Words("name", "description", label=_("Name or description"))
            mine = Mine()
            orders = Ordering("-changed", changed="updated_at", name=Lower("name"))

    A filter with a control and a label has a control above the list; all filters are parameters of the API.
    """

    orders: ClassVar[Ordering | None] = None
    do_not_call_in_templates = True  # the class is a part of `pages`, which templates read

    @classmethod
    def for_page(cls, request: Any, rows: QuerySet[Any]) -> Self:
        """Filters of a page; values that are not valid filter nothing."""
        values = {name: request.GET.get(PAGE_NAMES.get(name, name), "") for name in cls.base_filters}
        return cls(values, queryset=rows, request=request)

    @classmethod
    def for_api(cls, request: Any, rows: QuerySet[Any]) -> Self:
        """Filters of an API request.

        Raises:
            Invalid: a value that is none of the choices, or no whole number.
        """
        filters = cls(request.query_params, queryset=rows, request=request)
        for name in filters.errors:
            if isinstance(cls.base_filters[name], Number):
                raise Invalid(_("%(name)s must be an integer.") % {"name": name})
            choices = ", ".join(str(value) for value, _label in filters.form.fields[name].choices if value)
            raise Invalid(_("%(name)s must be one of %(words)s.") % {"name": name, "words": choices})
        return filters

    @classmethod
    def controls(cls) -> list[Mapping[str, Any]]:
        """What the filter bar of the page shows: kind, name, label and choices of each control, words first."""
        controls = [
            {
                "kind": control,
                "name": PAGE_NAMES.get(name, name),
                "label": object_filter.label,
                "choices": getattr(object_filter, "offered", ()),
                "filter": object_filter,
            }
            for name, object_filter in cls.base_filters.items()
            if (control := getattr(object_filter, "control", "")) and object_filter.label
        ]
        return sorted(controls, key=lambda control: control["kind"] != Words.control)

    def none_text(self) -> Any:
        """The text of an empty list that nothing but an object filters; else nothing."""
        used = [self.base_filters[name] for name, value in self.data.items() if value and name in self.base_filters]
        return used[0].none_text if len(used) == 1 and isinstance(used[0], OfObject) else ""

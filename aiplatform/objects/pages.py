"""Pages of a kind of object by declaration: list, new, detail, edit, delete, and actions with their permission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.forms import BaseForm, Form, ModelForm
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods

from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import View, check_valid_fields, errors_as_messages, errors_shown_on, is_name_confirmed, needs
from aiplatform.objects.filters import ObjectFilters
from aiplatform.objects.tables import Facts, Table

if TYPE_CHECKING:
    from accounts.http import SignedInRequest

Row = TypeVar("Row", bound=Model)
SAFE, POST = ("GET", "HEAD"), ("POST",)
FORM = (*SAFE, *POST)
STANDARD = ("list", "new", "detail", "edit", "delete")


@dataclass(frozen=True)
class Page:
    """What is declared about a page: where it is, who may open it, and which rows it is about."""

    methods: tuple[str, ...]
    needs: str = ""  # empty: the permission to view for safe methods, else the one to change
    path: str | None = None  # below the path of the kind; None: made of the name
    rows: str = "visible_to"  # the method of the queryset that says which rows the page opens for; empty: it has no row
    shows_refusals: bool = False  # as messages on the page of the object


def page(needs: str = "", **declared: Any) -> Callable[[Any], Any]:
    """Declare a method as a page of an object: `method(request, row)` returns the response. See `Page`.

    With `rows=""` it is no page of an object: `method(request)`.
    """
    return _declare(Page(**{"methods": SAFE, "needs": needs, **declared}))


def action(needs: str = "", **declared: Any) -> Callable[[Any], Any]:
    """Declare a method as an action that a form sends: `method(request, row)`.

    It gets rows that the user may change. A DomainError becomes a message. The page of the object follows, unless the
    method returns another response.
    """
    standard = {"methods": POST, "needs": needs, "rows": "editable_by", "shows_refusals": True}
    return _declare(Page(**{**standard, **declared}))


def _declare(declared: Page) -> Callable[[Any], Any]:
    def mark(method: Any) -> Any:
        method.page = declared
        return method

    return mark


class ObjectPages(Generic[Row]):
    """The pages of one kind of object.

    A subclass declares texts, filters and table, and overrides `create`, `change` and `remove` with calls of services;
    a page whose method is not overridden does not exist, nor a list without `table`, nor a detail page without `facts`
    or `details`. Further pages are methods with `@page` or `@action`. Each page has a URL `PATH<int:pk>/NAME/` with the
    name `NAMESPACE:BASENAME-NAME`.
    """

    model: ClassVar[type[Model]]
    path: ClassVar[str] = ""
    namespace: ClassVar[str]
    basename: ClassVar[str] = ""
    url_names: ClassVar[Mapping[str, str]] = {}  # page → name, where it differs
    url_paths: ClassVar[Mapping[str, str]] = {}  # page → path below that of the kind, where it differs
    view_permission: ClassVar[str]
    change_permission: ClassVar[str]
    needs: ClassVar[Mapping[str, str]] = {}  # page → permission, where it differs
    object_rows: ClassVar[str] = "for_list"  # the method of the queryset that reads what pages of one object show

    filters: ClassVar[type[ObjectFilters]]
    table: ClassVar[Table]
    facts: ClassVar[Facts] = Facts()  # what the standard detail page shows
    form_class: ClassVar[type[Form | ModelForm[Any]]]

    region: ClassVar[str]  # id of the table on the page of the list
    title: ClassVar[Any]
    parents: ClassVar[tuple[tuple[str, Any], ...]] = ()  # (URL name, title) of the pages above the list
    tabs_template: ClassVar[str] = ""  # tabs above the list
    lead: ClassVar[Any] = ""
    new_title: ClassVar[Any] = ""
    new_icon: ClassVar[str] = "plus"
    form_lead: ClassVar[Any] = ""
    save_label: ClassVar[Any] = ""
    filter_label: ClassVar[Any] = ""
    empty_text: ClassVar[Any] = ""
    offers_sample: ClassVar[bool] = False  # whether an empty list offers to load the sample project
    empty_action: ClassVar[Any] = ""  # of the button in an empty list, where it is not `new_title`
    no_match_text: ClassVar[Any] = ""
    delete_title: ClassVar[Any] = ""
    delete_goes: ClassVar[Any] = ""
    delete_stays: ClassVar[Any] = ""
    confirms_name: ClassVar[bool] = True  # before an object is deleted
    delete_shows_refusals: ClassVar[bool] = True  # as messages on the page of the object; False: as an error page
    deleted_text: ClassVar[Any] = ""  # with %(name)s; empty: no message
    art: ClassVar[str] = "list"  # icon of an empty list
    layout: ClassVar[str] = ""

    list_template: ClassVar[str] = "objects/list.html"
    table_template: ClassVar[str] = "objects/_table.html"
    form_template: ClassVar[str] = "objects/form.html"
    edit_template: ClassVar[str] = ""  # of the form that changes an object, where it is not `form_template`
    detail_template: ClassVar[str] = "objects/detail.html"
    live_template: ClassVar[str] = ""  # the part of the detail page that htmx gets; empty: the page

    # what subclasses override

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        """Further context of the list; may set attributes of its rows."""
        return {}

    def details(self, request: SignedInRequest, row: Row, is_own: bool) -> dict[str, Any]:
        """Further context of the detail page; `is_own`: the user may change the row, whatever their role."""
        return {}

    def form(self, request: SignedInRequest, row: Row | None = None) -> BaseForm:
        """The form of a new object, or the one that changes `row`."""
        initial = {name: getattr(row, name) for name in self.form_class.base_fields} if row else None
        return self.form_class(request.POST or None, initial=initial)

    def form_context(self, request: SignedInRequest, form: Any, row: Row | None) -> dict[str, Any]:
        """Further context of the form page."""
        return {}

    def service_check(self, request: SignedInRequest, row: Row | None) -> Callable[..., object] | None:
        """What the service would refuse of valid fields, judged where the form refused others; see `look_further`."""
        return None

    def create(self, request: SignedInRequest, form: Any) -> Row:
        """Create an object from a valid form."""
        raise NotImplementedError

    def change(self, request: SignedInRequest, form: Any, row: Row) -> object:
        """Change `row` to what a valid form says."""
        raise NotImplementedError

    def remove(self, request: SignedInRequest, row: Row) -> HttpResponse | None:
        """Delete `row`; the list follows, unless another response is returned."""
        raise NotImplementedError

    # the standard pages

    def list_page(self, request: SignedInRequest) -> HttpResponse:
        """Objects that the user may see; htmx gets the table alone."""
        filters = self.filters.for_page(request, self.rows(request))
        rows: Any = filters.qs
        orders: Any = self.filters.orders
        listed = orders.page(request, rows.for_list())
        context = {"page": listed, **self._none(request, filters), **self.prepare(request, listed)}
        return self.render(request, self.table_template if request.htmx else self.list_template, context)

    def _none(self, request: SignedInRequest, filters: ObjectFilters) -> dict[str, Any]:
        """What a list says that is empty because of one object, and where the form for that object is."""
        text = filters.none_text()
        if not text or not self.new_title:
            return {"none_text": text}
        return {"none_text": text, "new_url": f"{self.new_url}?{request.GET.urlencode()}"}

    def new_page(self, request: SignedInRequest, **kwargs: Any) -> HttpResponse:
        """The form of a new object."""
        form = self.form(request, **kwargs)
        if form.is_valid():
            with errors_shown_on(form):
                return self.to_detail(self.create(request, form))
        elif check := self.service_check(request, None):
            check_valid_fields(form, check)
        return self.render_form(request, form)

    def detail_page(self, request: SignedInRequest, pk: int) -> HttpResponse:
        """One object; htmx gets its live part alone."""
        row = self.row(request, pk)
        template = self.live_template if self.live_template and request.htmx else self.detail_template
        return self.render_detail(request, row, template=template)

    def edit_page(self, request: SignedInRequest, pk: int) -> HttpResponse:
        """The form that changes an object."""
        row = self.row(request, pk, "editable_by")
        form = self.form(request, row=row)
        if form.is_valid():
            with errors_shown_on(form):
                self.change(request, form, row)
                return self.to_detail(row)
        elif check := self.service_check(request, row):
            check_valid_fields(form, check)
        return self.render_form(request, form, row)

    def delete_page(self, request: SignedInRequest, pk: int) -> HttpResponse:
        """Delete an object, once its name was typed where that is demanded."""
        row = self.row(request, pk, "editable_by")
        name = str(row)
        if self.confirms_name and not is_name_confirmed(request, name):
            return self.to_detail(row)
        with errors_as_messages(request) if self.delete_shows_refusals else nullcontext():
            response = self.remove(request, row)
            if self.deleted_text:
                messages.info(request, self.deleted_text % {"name": name})
            return response or redirect(self.names.list)
        return self.to_detail(row)

    # what pages share

    def rows(self, request: SignedInRequest, which: str = "visible_to") -> Any:
        """The rows that the user may see; `which` may be a narrower method of the queryset."""
        manager: Any = self.model.objects  # type: ignore[attr-defined]  # our models have our querysets
        visible: QuerySet[Any] = manager.visible_to(request.user)
        return visible if which == "visible_to" else getattr(visible, which)(request.user)

    def row(self, request: SignedInRequest, pk: int, which: str = "visible_to") -> Any:
        """One of these rows, or the response 404."""
        return get_object_or_404(getattr(self.rows(request, which), self.object_rows)(), pk=pk)

    def may(self, request: SignedInRequest, name: str) -> bool:
        """Whether the role of the user allows the page of this name."""
        return request.user.can(self.permission(name))

    def render(
        self, request: SignedInRequest, template: str, context: Mapping[str, Any], status: int = 200
    ) -> HttpResponse:
        """A response with `pages` and `may_create` in its context."""
        standard = {"pages": self, "may_create": bool(self.new_title) and self.may(request, "new")}
        return render(request, template, {**standard, **context}, status=status)

    def render_detail(
        self, request: SignedInRequest, row: Row, status: int = 200, *, template: str = "", **context: Any
    ) -> HttpResponse:
        """The page of an object; `context` replaces what `details` says."""
        is_own = self.rows(request, "editable_by").filter(pk=row.pk).exists()
        standard = {"row": row, "may_change": is_own and request.user.can(self.change_permission)}
        full_context = {**standard, **self.details(request, row, is_own), **context}
        return self.render(request, template or self.detail_template, full_context, status)

    def render_form(self, request: SignedInRequest, form: Any, row: Row | None = None) -> HttpResponse:
        """The form page, with the errors of the form."""
        context = {"form": form, "row": row, **self.form_context(request, form, row)}
        template = (row and self.edit_template) or self.form_template
        return self.render(request, template, context, 422 if form.errors else 200)

    def to_detail(self, row: Any) -> HttpResponse:
        """A redirect to the page of an object, or to the list where it has none."""
        return redirect(self.names.detail, row.pk) if self.has_detail else redirect(self.names.list)

    @property
    def has_detail(self) -> bool:
        """Whether an object has a page that shows it."""
        return "detail" in self.declared or "detail" in self.url_names

    # addresses

    @cached_property
    def names(self) -> SimpleNamespace:
        """The full URL names of the standard and the declared pages: `pages.names.list`."""
        names = {*STANDARD, *self.declared}
        return SimpleNamespace(**{name: f"{self.namespace}:{self._url_name(name)}" for name in names})

    @property
    def new_url(self) -> str:
        """Where the form of a new object is."""
        return reverse(self.names.new)

    def permission(self, name: str) -> str:
        """The permission that a page requires."""
        declared = self.declared.get(name, Page(FORM))
        standard = self.view_permission if declared.methods == SAFE else self.change_permission
        return self.needs.get(name) or declared.needs or standard

    @classmethod
    def urls(cls) -> list[URLPattern]:
        """All pages of the kind, for the `urlpatterns` of its app."""
        pages = cls()
        return [
            path(f"{cls.path}{pages._path(name)}", pages._view(name), name=pages._url_name(name))
            for name in pages.declared
        ]

    @cached_property
    def declared(self) -> dict[str, Page]:
        """Every page that exists, by name."""
        kind = type(self)
        standard = {}
        if hasattr(kind, "table"):
            standard["list"] = Page(SAFE, path="")
        if kind.details is not ObjectPages.details or kind.facts.columns:
            standard["detail"] = Page(SAFE, path="<int:pk>/")
        if kind.create is not ObjectPages.create:
            standard["new"] = Page(FORM, path="new/")
        if kind.change is not ObjectPages.change:
            standard["edit"] = Page(FORM)
        if kind.remove is not ObjectPages.remove:
            standard["delete"] = Page(POST)
        members = {name: getattr(kind, name) for base in reversed(kind.__mro__) for name in vars(base)}
        declared = {name: getattr(method, "page", None) for name, method in members.items()}
        return standard | {name: declaration for name, declaration in declared.items() if isinstance(declaration, Page)}

    def _url_name(self, name: str) -> str:
        word = name.replace("_", "-")
        standard = f"{self.basename}-{word}" if self.basename else word
        return self.url_names.get(name) or (self.basename if name == "detail" and self.basename else standard)

    def _path(self, name: str) -> str:
        declared = self.url_paths.get(name, self.declared[name].path)
        return f"<int:pk>/{name.replace('_', '-')}/" if declared is None else declared

    def _view(self, name: str) -> View:
        declared = self.declared[name]
        method = getattr(self, name, None) or getattr(self, f"{name}_page")
        view = self._on_row(method, declared) if hasattr(method, "page") and declared.rows else method

        @wraps(method)
        def respond(request: SignedInRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            response: HttpResponse = view(request, *args, **kwargs)
            return response

        return require_http_methods(list(declared.methods))(needs(self.permission(name))(respond))

    def _on_row(self, method: Callable[..., HttpResponse | None], declared: Page) -> Callable[..., HttpResponse]:
        """A view that reads the row and calls a method with `@page` or `@action`."""

        def view(request: SignedInRequest, pk: int, **kwargs: Any) -> HttpResponse:
            row = self.row(request, pk, declared.rows)
            if not declared.shows_refusals:
                return method(request, row, **kwargs) or self.to_detail(row)
            with errors_as_messages(request):
                if (response := method(request, row, **kwargs)) is not None:
                    return response
            return self.to_detail(row)

        return view

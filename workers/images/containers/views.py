"""Pages of container images and of the credentials they are fetched with."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage, Ordering
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from aiplatform.objects.filters import ObjectFilters
from aiplatform.objects.pages import ObjectPages, action
from aiplatform.objects.tables import Column, Table
from workers.images.containers import adding, logins
from workers.images.containers.forms import ContainerForm, LoginEditForm, LoginForm
from workers.images.models import RegistryLogin


@needs(Action.JOBS_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """Add a container image."""
    form = ContainerForm(request.POST or None, user=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            image = adding.add(user=request.user, **form.cleaned_data)
            return redirect("images:detail", image.pk)
    else:
        check_valid_fields(form, adding.check, user=request.user)
    return render(request, "images/container.html", {"form": form}, status=422 if form.errors else 200)


class LoginFilters(ObjectFilters):
    orders = Ordering("-created", created="pk")


class LoginPages(ObjectPages[RegistryLogin]):
    """Pages of the credentials that a user has or may use. They are tested whenever they are saved."""

    model, filters = RegistryLogin, LoginFilters
    namespace, basename, path = "images", "login", "credentials/"
    url_names, url_paths = {"list": "logins", "edit": "login"}, {"edit": "<int:pk>/"}
    view_permission = change_permission = Action.JOBS_SUBMIT
    table = Table(
        Column(
            _("Registry"),
            '{% if row.is_own %}<a href="{% url pages.names.edit row.pk %}">{{ row.host }}</a>{% else %}{{ row.host }}'
            "{% endif %}",
            css="main-cell mono",
        ),
        Column(_("Username"), "row.username|default:'–'"),
        Column(_("Tested"), template="images/_login_tested.html"),
        Column(_("Visible to"), "row.get_visibility_display"),
        Column(_("Owner"), "row.owner.get_full_name"),
        Column(pgettext_lazy("container", "Images"), "row.used", kind="num"),
        Column(_("Actions"), template="images/_login_buttons.html", kind="actions"),
    )
    region, art, title = "logins", "key", pgettext_lazy("registry", "Registry credentials")
    parents = (("images:list", pgettext_lazy("container", "Images")),)
    lead = _(
        "Used to download container images from private registries. Passwords are stored encrypted and never shown."
    )
    form_lead = _(
        "The platform signs in to the registry with them when it downloads an image. They are tested when you save."
    )
    empty_text = _("No credentials yet. Public images need none.")
    new_title, save_label = _("Add credentials"), _("Save and test")
    table_template = "images/_login_table.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        own = set(self.rows(request, "editable_by").values_list("pk", flat=True))
        for login in rows:
            login.is_own = login.pk in own
        return {}

    def form(self, request: SignedInRequest, row: RegistryLogin | None = None) -> LoginForm | LoginEditForm:
        if row is None:
            return LoginForm(request.POST or None)
        return LoginEditForm(request.POST or None, initial={"ca": row.ca, "visibility": row.visibility})

    def service_check(self, request: SignedInRequest, row: RegistryLogin | None) -> Any:
        return None if row else logins.check

    def create(self, request: SignedInRequest, form: Any) -> RegistryLogin:
        login = logins.add(user=request.user, **form.cleaned_data)
        self.test(request, login)
        return login

    def change(self, request: SignedInRequest, form: Any, row: RegistryLogin) -> None:
        self.test(request, logins.change(login=row, by=request.user, **form.cleaned_data))

    def remove(self, request: SignedInRequest, row: RegistryLogin) -> None:
        logins.delete(login=row, by=request.user)

    @action()
    def test(self, request: SignedInRequest, row: RegistryLogin) -> None:
        """Sign in at the registry with credentials."""
        if logins.test(row):
            messages.success(request, gettext("%(host)s responds and accepts these credentials.") % {"host": row.host})
        else:
            messages.error(request, str(row.message))

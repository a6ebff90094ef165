"""Pages of container images and of the credentials they are fetched with."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, is_name_confirmed, needs
from workers.images.containers import adding, logins
from workers.images.containers.forms import ContainerForm, LoginEditForm, LoginForm
from workers.images.models import Image, RegistryLogin


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


@needs(Action.JOBS_SUBMIT)
@require_POST
def look_up(request: SignedInRequest, pk: int) -> HttpResponse:
    """Look a container image up again."""
    rows = Image.objects.editable_by(request.user).filter(kind=Image.Kind.CONTAINER)
    image = get_object_or_404(rows, pk=pk)
    with errors_as_messages(request):
        adding.look_up_again(image)
    return redirect("images:detail", pk)


@needs(Action.JOBS_SUBMIT)
@require_safe
def login_list(request: SignedInRequest) -> HttpResponse:
    """Credentials that this person has or may use."""
    rows = RegistryLogin.objects.visible_to(request.user).for_list()
    own = set(RegistryLogin.objects.editable_by(request.user).values_list("pk", flat=True))
    for login in rows:
        login.is_own, login.dialog = login.pk in own, f"delete-login-{login.pk}"
    return render(request, "images/logins.html", {"logins": rows})


@needs(Action.JOBS_SUBMIT)
def login_new(request: SignedInRequest) -> HttpResponse:
    """Keep credentials of a registry, and test them at once."""
    form = LoginForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            login = logins.add(user=request.user, **form.cleaned_data)
            _show_result(request, login, works=logins.test(login))
            return redirect("images:logins")
    else:
        check_valid_fields(form, logins.check)
    return render(request, "images/login.html", {"form": form, "login": None}, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
def login_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change credentials; they are tested again."""
    login = get_object_or_404(RegistryLogin.objects.editable_by(request.user), pk=pk)
    form = LoginEditForm(request.POST or None, initial={"ca": login.ca, "visibility": login.visibility})
    if form.is_valid():
        with errors_shown_on(form):
            login = logins.change(login=login, by=request.user, **form.cleaned_data)
            _show_result(request, login, works=logins.test(login))
            return redirect("images:logins")
    return render(request, "images/login.html", {"form": form, "login": login}, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
@require_POST
def login_test(request: SignedInRequest, pk: int) -> HttpResponse:
    """Sign in at the registry with credentials."""
    login = get_object_or_404(RegistryLogin.objects.editable_by(request.user), pk=pk)
    _show_result(request, login, works=logins.test(login))
    return redirect("images:logins")


@needs(Action.JOBS_SUBMIT)
@require_POST
def login_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete credentials, even if in use; their name must be typed."""
    login = get_object_or_404(RegistryLogin.objects.editable_by(request.user), pk=pk)
    if is_name_confirmed(request, str(login)):
        with errors_as_messages(request):
            logins.delete(login=login, by=request.user)
    return redirect("images:logins")


def _show_result(request: SignedInRequest, login: RegistryLogin, *, works: bool) -> None:
    if works:
        messages.success(request, _("%(host)s responds and accepts these credentials.") % {"host": login.host})
    else:
        messages.error(request, str(login.message))

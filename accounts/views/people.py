"""Accounts as administrators see them."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts import clusters
from accounts.forms import PersonFactsForm, PersonForm, RightsForm
from accounts.http import SignedInRequest
from accounts.models import Role, User, UserGroup
from accounts.permissions import Action
from accounts.services import links, people
from aiplatform import env
from aiplatform.lib.keyset import page
from aiplatform.lib.pages import needs, refusals_shown_on


def counts(user: User) -> dict[str, int]:
    """How many people, groups and roles there are: the tabs of these pages."""
    return {
        "people": User.objects.visible_to(user).count(),
        "groups": UserGroup.objects.visible_to(user).count(),
        "roles": Role.objects.visible_to(user).count(),
    }


def _person(request: SignedInRequest, pk: int) -> User:
    return get_object_or_404(User.objects.visible_to(request.user), pk=pk)


@needs(Action.PEOPLE_MANAGE)
def person_list(request: SignedInRequest) -> HttpResponse:
    """Everybody with an account; `?q=` looks in names, phone and e-mail, `?role=` takes one role's."""
    found = User.objects.visible_to(request.user).prefetch_related("roles", "user_groups__roles")
    words, role = request.GET.get("q", "").strip()[:100], request.GET.get("role", "")
    if words:
        found = found.named(words)
    if role == "none":
        found = found.filter(roles=None, user_groups__roles=None)
    elif role.isdecimal() and len(role) < 19:
        found = found.filter(roles=int(role))
    context = {
        "page": page(request, found),
        "counts": counts(request.user),
        "roles": Role.objects.visible_to(request.user),
        "words": words,
        "role": role,
    }
    template = "accounts/_person_rows.html" if request.htmx else "accounts/person_list.html"
    return render(request, template, context)


@never_cache
@needs(Action.PEOPLE_MANAGE)
@sensitive_post_parameters("password")
def person_new(request: SignedInRequest) -> HttpResponse:
    """Make an account; its first password is shown on the answer, this once."""
    form = PersonForm(request.POST or None, by=request.user)
    if request.method == "POST" and form.is_valid():
        facts = dict(form.cleaned_data)
        chosen = facts.pop("clusters", [])
        with refusals_shown_on(form), transaction.atomic():
            person = people.create(**facts, by=request.user)
            clusters.put(person, chosen, by=request.user)
            context = {
                "person": person,
                "password": facts["password"],
                "address": request.build_absolute_uri("/login/"),
            }
            return render(request, "accounts/person_made.html", context)
    return render(request, "accounts/person_new.html", {"form": form}, status=422 if form.errors else 200)


@needs(Action.PEOPLE_MANAGE)
def person_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One account: facts, rights, sign-in."""
    person = _person(request, pk)
    rights = {"roles": person.roles.all(), "groups": person.user_groups.all(), "clusters": clusters.of(person)}
    context = {
        "person": person,
        "facts": PersonFactsForm(initial={"nickname": person.nickname, "email": person.email, "phone": person.phone}),
        "rights": RightsForm(initial=rights, by=request.user),
    }
    return render(request, "accounts/person_detail.html", context)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_facts(request: SignedInRequest, pk: int) -> HttpResponse:
    """Correct nickname, e-mail, phone."""
    person = _person(request, pk)
    facts = PersonFactsForm(request.POST)
    if facts.is_valid():
        with refusals_shown_on(facts):
            people.update(user=person, **facts.cleaned_data, by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:person", person.pk)
    rights = {"roles": person.roles.all(), "groups": person.user_groups.all(), "clusters": clusters.of(person)}
    context = {"person": person, "facts": facts, "rights": RightsForm(initial=rights, by=request.user)}
    return render(request, "accounts/person_detail.html", context, status=422)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_rights(request: SignedInRequest, pk: int) -> HttpResponse:
    """Give roles, groups and clusters."""
    person = _person(request, pk)
    rights = RightsForm(request.POST, by=request.user)
    if rights.is_valid():
        with refusals_shown_on(rights), transaction.atomic():  # both or nothing
            chosen = rights.cleaned_data
            people.set_rights(user=person, roles=chosen["roles"], groups=chosen["groups"], by=request.user)
            clusters.put(person, chosen.get("clusters", []), by=request.user)
            messages.success(request, _("Rights saved. They hold from the next click on."))
            return redirect("accounts:person", person.pk)
    facts = PersonFactsForm(initial={"nickname": person.nickname, "email": person.email, "phone": person.phone})
    context = {"person": person, "facts": facts, "rights": rights}
    return render(request, "accounts/person_detail.html", context, status=422)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_active(request: SignedInRequest, pk: int) -> HttpResponse:
    """Switch an account on or off (`active`: "1" or "0")."""
    person = _person(request, pk)
    active = request.POST.get("active") == "1"
    people.set_active(user=person, active=active, by=request.user)
    said = _("The account of %(name)s is active again.") if active else _("The account of %(name)s is disabled.")
    messages.success(request, said % {"name": person})
    return redirect("accounts:person", person.pk)


@require_POST
@never_cache
@needs(Action.PEOPLE_MANAGE)
def person_password_link(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a link with which the person sets a new password; shown on the answer, this once."""
    person = _person(request, pk)
    base = env.BASE_URL.rstrip("/") or request.build_absolute_uri("/").rstrip("/")
    context = {"person": person, "link": base + links.password(user=person, by=request.user)}
    return render(request, "accounts/person_link.html", context)

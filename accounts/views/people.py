"""Pages of accounts, for administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.access import clusters, ownership
from accounts.access.permissions import Action
from accounts.forms.people import AccountDeletionForm, PersonFactsForm, RightsForm
from accounts.http import SignedInRequest
from accounts.models import Role, User, UserGroup
from accounts.presentation.orders import PEOPLE
from accounts.services import (
    account_deletion,
    ceiling,
    cluster_membership,
    finding,
    links,
    people,
    rights,
    root_inside,
    second_factor,
    taking_over,
)
from aiplatform import env
from aiplatform.lib import search
from aiplatform.lib.downloads import csv_answer
from aiplatform.lib.pages import errors_shown_on, needs


def _person(request: SignedInRequest, pk: int) -> User:
    return get_object_or_404(User.objects.visible_to(request.user), pk=pk)


MAX_MATCHES = 12
"""People whom one answer of the search names."""
SHOWN = (
    "username", "nickname", "email", "phone", "first", "is_active", "awaiting", "is_superuser", "last_login",
    "date_joined",
)  # fmt: skip
"""Columns that the table and its export show."""
STATES = [
    ("", gettext_lazy("All states")),
    ("active", gettext_lazy("Active")),
    ("awaiting", gettext_lazy("Waiting for approval")),
    ("disabled", gettext_lazy("Disabled")),
]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _filtered(request: SignedInRequest) -> Any:
    """Return the accounts that match the filters."""
    filters = {name: request.GET.get(name, "").strip()[:100] for name in ("q", "role", "group", "state")}
    people = User.objects.visible_to(request.user).only(*SHOWN).with_rights()
    if filters["q"]:
        people = people.named(filters["q"])
    if filters["role"] == "none":
        people = people.without_rights()
    elif (role := _number(filters["role"])) is not None:
        people = people.having_role(role)
    if (group := _number(filters["group"])) is not None:
        people = people.filter(user_groups=group)
    if filters["state"] == "awaiting":
        people = people.filter(awaiting=True)
    elif filters["state"] in ("active", "disabled"):
        people = people.filter(is_active=filters["state"] == "active", awaiting=False)
    return people


@needs(Action.PEOPLE_MANAGE)
def person_list(request: SignedInRequest) -> HttpResponse:
    """Everybody with an account: searched, filtered, sorted. htmx gets the table alone."""
    context: dict[str, Any] = {"page": PEOPLE.page(request, _filtered(request))}
    if request.htmx:
        return render(request, "accounts/_person_table.html", context)
    roles = [(role.pk, role.label) for role in Role.objects.visible_to(request.user)]
    context |= {
        "roles": [*roles, ("none", _("Without permissions"))],
        "groups": [(group.pk, group.name) for group in UserGroup.objects.visible_to(request.user)],
        "states": STATES,
        "query": request.GET.urlencode(),
    }
    return render(request, "accounts/person_list.html", context)


@needs(Action.SELF_MANAGE)  # everybody; `known_to` says whom they find
def person_find(request: SignedInRequest) -> JsonResponse:
    """Return the first users whose username or nickname contains `?q=`, for the user field."""
    text = request.GET.get("q", "").strip()[: search.MAX_QUERY_LENGTH]
    rows = finding.known_to(request.user).called(text).order_by("username")
    matches = list(rows.values("username", "nickname")[: MAX_MATCHES + 1]) if text else []
    return JsonResponse({"people": matches[:MAX_MATCHES], "more": len(matches) > MAX_MATCHES})


@needs(Action.PEOPLE_MANAGE)
def person_export(request: SignedInRequest) -> HttpResponse:
    """What the filters leave, as CSV."""
    order = PEOPLE.chosen(request.GET)
    people = PEOPLE.with_column(_filtered(request), order).order_by(PEOPLE.column(order), "pk")
    header = [_("Username"), _("Display name"), _("E-mail"), _("Phone"), _("State"), _("Roles"), _("Groups")]
    lines = (
        [
            person.username,
            person.nickname,
            person.email,
            person.phone,
            "active" if person.is_active else "disabled",
            "; ".join(role.name for role in person.own_roles),
            "; ".join(group.name for group in person.own_groups),
            localtime(person.date_joined).isoformat(timespec="seconds"),
            localtime(person.last_login).isoformat(timespec="seconds") if person.last_login else "",
        ]
        for person in people
    )
    return csv_answer("people.csv", [*header, _("Since"), _("Last sign-in")], lines)


def _detail(request: SignedInRequest, person: User, *, status: int = 200, **forms: Any) -> HttpResponse:
    """Render the page of one account, with refused forms in place of fresh ones."""
    initial = {
        "roles": person.roles.all(),
        "groups": person.user_groups.all(),
        "clusters": clusters.ids_for_user(person),
    }
    facts = {"nickname": person.nickname, "email": person.email, "phone": person.phone}
    mine = person.pk == request.user.pk
    reachable = mine or ceiling.covers(request.user, person.granted())
    effective = rights.effective(person)
    context = {
        "person": person,
        "facts": forms.get("facts") or PersonFactsForm(initial=facts),
        "rights": forms.get("rights") or RightsForm(initial=initial, by=request.user),
        "starts_no_jobs": bool(effective) and Action.JOBS_VIEW not in person.granted(),
        "effective": effective,
        "effective_groups": rights.grouped(effective),
        "second_factor": second_factor.is_on(person),
        "can_take_over": taking_over.possible(request, person),
        "mine": mine,
        "reachable": reachable,
        "editable": reachable and (mine or not person.first),  # everything else would be refused
    }
    return render(request, "accounts/person_detail.html", context, status=status)


@needs(Action.PEOPLE_MANAGE)
def person_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One account: facts, rights and where each comes from, sign-in."""
    return _detail(request, _person(request, pk))


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_facts(request: SignedInRequest, pk: int) -> HttpResponse:
    """Correct nickname, e-mail, phone."""
    person, facts = _person(request, pk), PersonFactsForm(request.POST)
    if facts.is_valid():
        with errors_shown_on(facts):
            people.update(user=person, **facts.cleaned_data, by=request.user)
            messages.success(request, _("Saved."))
            return redirect("accounts:person", person.pk)
    return _detail(request, person, status=422, facts=facts)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_rights(request: SignedInRequest, pk: int) -> HttpResponse:
    """Give roles, groups and clusters."""
    person, form = _person(request, pk), RightsForm(request.POST, by=request.user)
    if form.is_valid():
        with errors_shown_on(form), transaction.atomic():  # both or nothing
            chosen = form.cleaned_data
            people.set_rights(user=person, roles=chosen["roles"], groups=chosen["groups"], by=request.user)
            cluster_membership.replace(person, chosen.get("clusters", []), by=request.user)
            messages.success(request, _("Permissions saved. They take effect immediately."))
            return redirect("accounts:person", person.pk)
    return _detail(request, person, status=422, rights=form)


@needs(Action.PEOPLE_MANAGE)
def person_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete an account, after showing what it owns and choosing who gets it."""
    person = _person(request, pk)
    ceiling.touch(request.user, person)
    ceiling.stays(person)
    owns = [(kind, count) for kind, count in ownership.count_by_kind(person) if count]
    form = AccountDeletionForm(request.POST or None, person=person, by=request.user, owns=bool(owns))
    if request.method == "POST" and form.is_valid():
        taker = form.cleaned_data["taker"] if form.cleaned_data.get("then") == "give" else None
        with errors_shown_on(form):
            account_deletion.delete(user=person, by=request.user, taker=taker)
            messages.success(request, _("The account %(name)s is deleted.") % {"name": person.username})
            return redirect("accounts:people")
    context = {"person": person, "form": form, "owns": owns}
    return render(request, "accounts/person_delete.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_active(request: SignedInRequest, pk: int) -> HttpResponse:
    """Switch an account on or off (`active`: "1" or "0")."""
    person = _person(request, pk)
    active = request.POST.get("active") == "1"
    people.set_active(user=person, active=active, by=request.user)
    message = _("The account of %(name)s is enabled again.") if active else _("The account of %(name)s is disabled.")
    messages.success(request, message % {"name": person})
    return redirect("accounts:person", person.pk)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_root(request: SignedInRequest, pk: int) -> HttpResponse:
    """Allow a user to be root inside of their jobs, or revoke it (`allowed`: "1" or "0")."""
    person = _person(request, pk)
    allowed = request.POST.get("allowed") == "1"
    root_inside.allow(person, allowed=allowed, by=request.user)
    message = (
        _("%(name)s can enable root in the sandbox.")
        if allowed
        else _("New jobs of %(name)s do not run as root in the sandbox.")
    )
    messages.success(request, message % {"name": person})
    return redirect("accounts:person", person.pk)


@require_POST
@never_cache
@needs(Action.PEOPLE_MANAGE)
def person_password_link(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a link with which the person sets a new password; shown once."""
    person = _person(request, pk)
    base = env.BASE_URL.rstrip("/") or request.build_absolute_uri("/").rstrip("/")
    context = {"person": person, "link": base + links.issue_password_link(user=person, by=request.user)}
    return render(request, "accounts/person_link.html", context)


@require_POST
@needs(Action.PEOPLE_MANAGE)
def person_second_factor(request: SignedInRequest, pk: int) -> HttpResponse:
    """Switch off the second factor of a user who lost phone and recovery codes."""
    person = _person(request, pk)
    second_factor.switch_off(person, by=request.user)
    messages.success(request, _("The second factor of %(name)s is disabled.") % {"name": person})
    return redirect("accounts:person", person.pk)

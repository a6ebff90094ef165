"""Pages that make accounts: a wizard for up to ten, a file for up to a thousand."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.access import clusters
from accounts.access.permissions import Action
from accounts.forms.people import FirstPasswordForm, NewPeopleRights, NewPersonForm, OwnRolesForm, PeopleFileForm
from accounts.forms.wizard import Step, Wizard, part
from accounts.http import SignedInRequest
from accounts.models import PeopleImport, User
from accounts.services import batches, cluster_membership, passwords, people
from aiplatform.lib.downloads import csv_answer
from aiplatform.lib.errors import DomainError, NotAllowed
from aiplatform.lib.pages import errors_shown_on, needs, show

MAX_AT_ONCE = 10
EXAMPLE = "username,nickname,email,roles\nrosa,Rosa,rosa@example.org,User\nli.wei,李伟,,User;Annotation person"


def _count(data: QueryDict | None) -> int:
    """How many people the wizard is about, 1 to 10."""
    count = data.get("count", "1") if data else "1"
    return max(1, min(int(count), MAX_AT_ONCE)) if count.isdecimal() and len(count) < 4 else 1


def _rows_changed(request: SignedInRequest) -> QueryDict | None:
    """Return the sent rows, with one person more or less when that button was pressed."""
    if request.method != "POST":
        return None
    data, go = request.POST.copy(), request.POST.get("go", "")
    count = _count(data)
    if go == "more":
        data["count"] = str(count + 1)
    elif go.startswith("drop-") and go[5:].isdecimal() and len(go) < 8 and count > 1:
        for n in range(int(go[5:]), count):  # the rows behind move up; the last one goes
            for stem in ("p{}-username", "p{}-nickname", "p{}-email", "p{}-phone", "o{}-roles", "w{}-password"):
                data.pop(stem.format(n), None)
                if moved := data.getlist(stem.format(n + 1)):
                    data.setlist(stem.format(n), moved)
        data["count"] = str(count - 1)
    return data


@never_cache
@needs(Action.PEOPLE_MANAGE)
@sensitive_post_parameters()
def person_new(request: SignedInRequest) -> HttpResponse:
    """Who → roles → confirm with generated passwords, which the answer shows once."""
    data = _rows_changed(request)
    count = _count(data)
    who = [part(NewPersonForm, f"p{n}") for n in range(count)]
    rights = part(NewPeopleRights, "r", by=request.user)
    own = [part(OwnRolesForm, f"o{n}", by=request.user) for n in range(count)] if count > 1 else []
    first = [part(FirstPasswordForm, f"w{n}", initial={"password": passwords.generate()}) for n in range(count)]
    wizard = Wizard(
        [
            Step("who", gettext_lazy("User"), who),
            Step("rights", gettext_lazy("Roles"), [rights, *own]),
            Step("confirm", gettext_lazy("Confirm"), first),
        ],
        data,
    )
    if wizard.walk() and (made := _create_accounts(request, wizard)):
        shown = {"made": made, "address": request.build_absolute_uri("/login/")}
        return render(request, "accounts/person_made.html", shown)
    context: dict[str, object] = {"wizard": wizard, "count": count, "most": MAX_AT_ONCE}
    if wizard.step.key == "rights":
        context["each"] = list(zip(wizard.shown(0), wizard.forms[1:], strict=False))
    if wizard.is_last:
        chosen, *own_roles = wizard.bound(1)
        roles = [form.cleaned_data["roles"] for form in own_roles] or [None] * count
        context["pairs"] = list(zip(wizard.bound(0), wizard.forms, roles, strict=True))
        context["rights"] = chosen
        joined = chosen.cleaned_data.get("clusters", [])
        context["joins"] = [name for pk, name in clusters.choices() if pk in joined]
    return render(request, "accounts/person_new.html", context, status=wizard.status)


def _create_accounts(request: SignedInRequest, wizard: Wizard) -> list[tuple[User, str]]:
    """Create all accounts or none: (account, first password). An error is shown at its form."""
    common, *own = wizard.cleaned(1)
    rights = dict(common)
    chosen = rights.pop("clusters", [])
    roles = [step["roles"] or rights["roles"] for step in own] or [rights["roles"]]
    created = []
    with transaction.atomic():
        for form, password_form, own_roles in zip(wizard.bound(0), wizard.bound(2), roles, strict=True):
            fields = form.cleaned_data | rights | password_form.cleaned_data | {"roles": own_roles}
            try:
                with transaction.atomic():
                    person = people.create(**fields, by=request.user)
                    cluster_membership.replace(person, chosen, by=request.user)
            except NotAllowed:
                raise
            except DomainError as exc:
                for refusal in exc.every:
                    show(password_form if refusal.blamed == "password" else form, refusal)
                wizard.refuse(2 if all(refusal.blamed == "password" for refusal in exc.every) else 0)
            else:
                created.append((person, password_form.cleaned_data["password"]))
        if wizard.refused:
            transaction.set_rollback(True)
            return []
    return created


@needs(Action.PEOPLE_MANAGE)
def people_file(request: SignedInRequest) -> HttpResponse:
    """Import a table of accounts; they are created in the background."""
    form = PeopleFileForm(request.POST or None, request.FILES or None, by=request.user)
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        with errors_shown_on(form):
            table = fields["file"]
            if table.size > batches.MAX_BYTES:
                raise batches.too_large()
            batch = batches.start(
                data=table.read(),
                name=table.name,
                roles=fields["roles"],
                groups=fields["groups"],
                chosen=fields.get("clusters", []),
                by=request.user,
            )
            return redirect("accounts:people-import", batch.pk)
    context = {"form": form, "batches": PeopleImport.objects.visible_to(request.user)[:10], "example": EXAMPLE}
    return render(request, "accounts/people_file.html", context, status=422 if form.errors else 200)


@needs(Action.PEOPLE_MANAGE)
def people_import(request: SignedInRequest, pk: int) -> HttpResponse:
    """The state of an import, row by row."""
    batch = get_object_or_404(PeopleImport.objects.visible_to(request.user), pk=pk)
    rows = [
        {
            "username": row["username"],
            "done": n < len(batch.report),
            **(batch.report[n] if n < len(batch.report) else {}),
        }
        for n, row in enumerate(batch.rows)
    ]
    context = {"batch": batch, "rows": rows, "mine": batch.by_id == request.user.pk}
    template = "accounts/_people_import.html" if request.htmx else "accounts/people_import.html"
    return render(request, template, context)


@require_POST
@never_cache
@needs(Action.PEOPLE_MANAGE)
def people_import_result(request: SignedInRequest, pk: int) -> HttpResponse:
    """The report with first passwords as CSV, once."""
    batch = get_object_or_404(PeopleImport.objects.visible_to(request.user), pk=pk)
    try:
        rows = batches.result(batch, by=request.user)
    except DomainError as exc:
        messages.error(request, exc.message)
        return redirect("accounts:people-import", batch.pk)
    return csv_answer(
        f"accounts-{batch.pk}.csv", [_("Username"), _("Created"), _("Initial password"), _("Problem")], rows
    )

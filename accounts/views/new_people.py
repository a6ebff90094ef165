"""Pages that create accounts: a table of up to 50, a file with up to a thousand."""

from __future__ import annotations

import io
from urllib.parse import quote

from django.contrib import messages
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.forms.new_users import FIELDS, MAX_ROWS, SHOWN_ROWS, TABLE, Choices, NewUsersFormSet
from accounts.forms.people import PeopleFileForm
from accounts.http import SignedInRequest
from accounts.models import PeopleImport, Role, User, UserGroup
from accounts.services import batches, cluster_membership, passwords, people
from aiplatform.lib import tables
from aiplatform.lib.downloads import csv_answer
from aiplatform.lib.errors import DomainError, NotAllowed
from aiplatform.lib.pages import errors_shown_on, needs, show

EXAMPLE = """username,nickname,email,roles,clusters
rosa,Rosa,rosa@example.org,User,default
li.wei,李伟,,User;Annotator,"""


@never_cache
@needs(Action.PEOPLE_MANAGE)
@sensitive_post_parameters()
def person_new(request: SignedInRequest) -> HttpResponse:
    """A table of new users; the response to a valid one shows the initial passwords once."""
    choices, data = Choices.for_user(request.user), request.POST
    if data.get("go") == "more":
        values = [{name: data.get(f"u-{n}-{name}", "") for name in FIELDS} for n in range(_row_count(data))]
        table = TABLE(initial=values, choices=choices, shown=data.getlist("columns"))
        table.extra += len(values)
    else:
        table = TABLE(data or None, choices=choices, shown=data.getlist("columns"))
    if table.is_valid() and (created := _create_accounts(table, by=request.user)):
        address = request.build_absolute_uri("/login/")
        return render(request, "accounts/person_made.html", {"made": created, "address": address, "csv": _csv(created)})
    context = {"table": table, "failed": sum(bool(form.errors) for form in table) if table.is_bound else 0}
    return render(request, "accounts/person_new.html", context, status=422 if table.is_bound else 200)


def _row_count(data: QueryDict) -> int:
    text = data.get("u-TOTAL_FORMS", "")
    return min(int(text), MAX_ROWS - SHOWN_ROWS) if text.isdecimal() and len(text) < 5 else 0


def _create_accounts(table: NewUsersFormSet, *, by: User) -> list[tuple[User, str]]:
    """Create all accounts or none: (account, initial password). An error is shown at its cell."""
    chosen = [form.cleaned_data["password"] or passwords.generate() for form in table.rows]
    hashes = [make_password(password) for password in chosen]  # before the transaction, which blocks other writers
    created = []
    with transaction.atomic():
        for form, password, password_hash in zip(table.rows, chosen, hashes, strict=True):
            fields = form.cleaned_data
            try:
                with transaction.atomic():
                    person = people.create(
                        username=fields["username"],
                        nickname=fields["nickname"],
                        email=fields["email"],
                        phone=fields["phone"],
                        roles=list(Role.objects.visible_to(by).filter(pk=fields["role"])),
                        groups=list(UserGroup.objects.visible_to(by).filter(pk__in=_ids(fields.get("group")))),
                        password=password,
                        password_hash=password_hash,
                        by=by,
                    )
                    cluster_membership.replace(person, _ids(fields.get("cluster")), by=by)
            except NotAllowed:
                raise
            except DomainError as exc:
                for refusal in exc.every:
                    show(form, refusal)
            else:
                created.append((person, password))
        if len(created) < len(table.rows):
            transaction.set_rollback(True)
            return []
    return created


def _ids(chosen: str | None) -> list[int]:
    return [int(chosen)] if chosen else []


def _csv(created: list[tuple[User, str]]) -> str:
    """Return the initial passwords as the address of a CSV file, which the server does not keep."""
    out = io.StringIO()
    rows = [(person.username, person.nickname, password) for person, password in created]
    tables.write_csv(out, [_("Username"), _("Display name"), _("Initial password")], rows)
    return f"data:text/csv;charset=utf-8,{quote(tables.BOM + out.getvalue())}"


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

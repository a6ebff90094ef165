"""Imports of accounts from a file: read at once, made in the background, reported row by row."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import logging
import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import translation
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import PeopleImport, Role, User, UserGroup
from accounts.services import audit, ceiling, cluster_membership, finding, passwords, people
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid

log = logging.getLogger(__name__)

MAX_ROWS = 1000
MAX_BYTES = 1024 * 1024
COLUMNS = ("username", "nickname", "email", "phone", "roles", "groups", "clusters")
#: Other names of columns, among them those of the table of new users.
ALIASES = {"display name": "nickname", "e-mail": "email", "role": "roles", "group": "groups", "cluster": "clusters"}
SILENCE_TIMEOUT = timedelta(minutes=5)  # a worker that wrote nothing for so long has died
CLAIMS = Claims(ttl=SILENCE_TIMEOUT, epoch="tries")
FETCHED_WITHIN = timedelta(days=1)  # first passwords older than this cannot be fetched any more

State = PeopleImport.State


def _text(data: bytes) -> str:
    """The file as text: UTF-8, or GBK as Chinese spreadsheets write it."""
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise Invalid(_("This is not a text file in UTF-8 or GBK."), field="file")


def _named(kind: str, cell: str, rows: dict[str, Any], problems: list[str]) -> list[Any]:
    """Return the rows that a cell names; unknown names become problems of its line."""
    names = [name.strip() for name in cell.split(";") if name.strip()]
    problems += [
        _("No %(kind)s is named “%(name)s”.") % {"kind": kind, "name": name[:50]} for name in names if name not in rows
    ]
    return [rows[name] for name in names if name in rows]


def too_large() -> Invalid:
    return Invalid(_("The file is larger than 1 MiB."), field="file")


def _rows(data: bytes) -> list[dict[str, str]]:
    if len(data) > MAX_BYTES:
        raise too_large()
    try:
        table = csv.DictReader(io.StringIO(_text(data)), strict=True)
        names = [str(name).strip().lower() for name in table.fieldnames or ()]
        header = [ALIASES.get(name, name) for name in names]
        if "username" not in header or (unknown := sorted(set(header) - set(COLUMNS))):
            columns = ", ".join(COLUMNS)
            raise Invalid(
                _("The first line must name the columns: %(columns)s; “username” is required.") % {"columns": columns},
                field="file",
                unknown=[] if "username" not in header else unknown,
            )
        table.fieldnames = header
        rows = []
        for values in table:
            row = {name: (values.get(name) or "").replace("\x00", "").strip() for name in COLUMNS}
            if any(row.values()):
                rows.append(row)
            if len(rows) > MAX_ROWS:
                raise Invalid(_("A file can contain at most %(most)s accounts.") % {"most": MAX_ROWS}, field="file")
    except csv.Error as exc:
        raise Invalid(_("Not a valid table: %(why)s") % {"why": exc}, field="file") from exc
    if not rows:
        raise Invalid(_("The file has no rows."), field="file")
    return rows


@transaction.atomic
def start(
    *, data: bytes, name: str, roles: Sequence[Role], groups: Sequence[UserGroup], chosen: Sequence[int], by: User
) -> PeopleImport:
    """Read a table of accounts and queue the import.

    Args:
        data: CSV with a header; columns `COLUMNS`, of which only username is needed. Roles, groups and clusters are
            names separated by semicolons.
        roles: of rows that name none.
        groups: of rows that name none.
        chosen: ids of the clusters of rows that name none.

    Raises:
        Invalid: the file as a whole is wrong; nothing was queued. Errors in single rows are in the report.
        BeyondYou: one row asks for more than `by` has; nothing was queued.
    """
    all_roles = finding.roles_by_name(by)
    all_groups = {group.name: group for group in UserGroup.objects.visible_to(by).prefetch_related("roles")}
    all_clusters = {name: pk for pk, name in cluster_membership.choices(by)}
    wanted = []
    for row in _rows(data):
        problems: list[str] = []
        its_roles = _named(_("role"), row["roles"], all_roles, problems) or list(roles)
        its_groups = _named(_("group"), row["groups"], all_groups, problems) or list(groups)
        its_clusters = _named(_("cluster"), row["clusters"], all_clusters, problems) or list(chosen)
        if not its_roles and not problems:
            problems.append(_("Choose at least one role."))
        ceiling.grant(by, ceiling.of_roles(its_roles) | ceiling.of_groups(its_groups))
        facts = {key: row[key][:254] for key in ("username", "nickname", "email", "phone")}
        chosen_here: dict[str, list[int]] = {
            "roles": [role.pk for role in its_roles],
            "groups": [group.pk for group in its_groups],
            "clusters": its_clusters,
        }
        wanted.append(facts | chosen_here | {"problem": " ".join(problems)})
    cluster_membership.check(chosen, by=by)
    batch = PeopleImport.objects.create(
        by=by, name=name[-100:], rows=wanted, clusters=list(chosen), nonce=secrets.token_hex(32)
    )
    audit.record(by, "accounts_imported", batch, rows=len(wanted))
    enqueue("accounts.import_people", batch_id=batch.pk)
    return batch


def _password(batch: PeopleImport, number: int) -> str:
    """Derive the first password of a row: 116 bits out of the platform's key and the batch's nonce."""
    key = hashlib.sha256(f"people-import:{settings.SECRET_KEY}".encode()).digest()
    drawn = int.from_bytes(hmac.digest(key, f"{batch.nonce}:{number}".encode(), "sha256"), "big")
    signs = []
    for _sign in range(passwords.LENGTH):
        drawn, at = divmod(drawn, len(passwords.ALPHABET))
        signs.append(passwords.ALPHABET[at])
    return "-".join("".join(signs[at : at + 5]) for at in range(0, passwords.LENGTH, 5))


def run(batch_id: int) -> None:
    """Make the accounts of a batch that are not made yet. Safe to run twice, also at the same time."""
    claim = CLAIMS.acquire(PeopleImport.objects.filter(pk=batch_id).exclude(state=State.DONE), state=State.RUNNING)
    if claim is None:
        return
    batch = PeopleImport.objects.select_related("by").get(pk=batch_id)
    try:
        with translation.override(batch.by.speaks):
            for number in range(len(batch.report), len(batch.rows)):
                _make(batch, number, claim)
    except ClaimLost:
        log.info("people_import=%s taken over by another worker", batch_id)
        return
    claim.release(state=State.DONE)


def _make(batch: PeopleImport, number: int, claim: Claim) -> None:
    """Make one row's account and its line of the report, both or neither.

    Raises:
        ClaimLost: another worker took over; no account was made.
    """
    row = batch.rows[number]
    with transaction.atomic():
        try:
            if row.get("problem"):
                raise Invalid(row["problem"])
            with transaction.atomic():
                person = people.create(
                    **{key: row[key] for key in ("username", "nickname", "email", "phone")},
                    password=_password(batch, number),
                    roles=list(Role.objects.filter(pk__in=row["roles"])),
                    groups=list(UserGroup.objects.filter(pk__in=row["groups"])),
                    by=batch.by,
                )
                cluster_membership.replace(person, row.get("clusters", batch.clusters), by=batch.by)
            line: dict[str, Any] = {"made": person.pk, "said": ""}
        except DomainError as exc:
            line = {"made": None, "said": exc.sentences}
        batch.report = [*batch.report, line]
        claim.write(report=batch.report)


def sweep() -> None:
    """Queue imports again that lost their message or worker, and delete first passwords that were not fetched."""
    left = PeopleImport.objects.exclude(state=State.DONE).filter(created_at__lt=now() - SILENCE_TIMEOUT)
    for pk in CLAIMS.free(left).values_list("pk", flat=True):
        enqueue("accounts.import_people", batch_id=pk)
    PeopleImport.objects.filter(created_at__lt=now() - FETCHED_WITHIN, state=State.DONE).exclude(nonce="").update(
        nonce=""
    )


def result(batch: PeopleImport, *, by: User) -> Iterable[Sequence[Any]]:
    """Return the report with first passwords, once: username, made, password, message.

    Raises:
        Invalid: it is not done yet, or the passwords were fetched already.
    """
    if batch.state != State.DONE:
        raise Invalid(_("The accounts are still being created."))
    if batch.by_id != by.pk or not batch.nonce:
        raise Invalid(_("The initial passwords were already downloaded. Create password links for users without one."))
    if not PeopleImport.objects.filter(pk=batch.pk, nonce=batch.nonce).update(nonce=""):
        raise Invalid(_("The initial passwords were already downloaded. Create password links for users without one."))
    return [
        (row["username"], "yes" if line["made"] else "no", _password(batch, n) if line["made"] else "", line["said"])
        for n, (row, line) in enumerate(zip(batch.rows, batch.report, strict=True))
    ]

"""Imports: check everything first and report it; make a version once a person agrees.

`start`, `commit`, `cancel`, `retry` write what is wanted; `run` (a Celery task calls it) does the work in
`checking` and `committing`, under a claim, so that a killed worker is followed by the next.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.claims import ClaimLost, is_gone
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import remove_tree
from datasets.models import Dataset, DatasetVersion, Import, Upload
from datasets.services import checking, class_names, committing, removal, server_paths, uploads, versions
from datasets.services.claims import CLAIMS, TTL, ImportClaim
from datasets.services.import_options import Options

log = logging.getLogger(__name__)
S = Import.State
MAX_ATTEMPTS = 3
REPORT_RETENTION = timedelta(days=30)  # an import that waits so long for an agreement is given up
ENDED_RETENTION = timedelta(days=7)


class Unlabelled(DomainError, code="unlabelled", field="allow_unlabelled"):
    """Annotation files are there, and nothing of them would be imported."""


class NotNow(DomainError, code="not_now"):
    """The import is not in a state that allows this."""


@transaction.atomic
def start(
    *,
    dataset: Dataset,
    by: User,
    annotated: bool | None = None,
    upload_id: str = "",
    server_path: str = "",
    wanted: str = "",
    agreed: bool = False,
    split: Mapping[str, Any] | None = None,
    options: Options | None = None,
    creates_dataset: bool = False,
) -> Import:
    """Begin to check an upload, or a folder on the server, for a new version of `dataset`.

    Args:
        annotated: True insists on annotations in the data, False takes the images only; None takes annotations
            where there are any.
        upload_id: a complete upload of `by`; or
        server_path: an absolute path below an allowed root, read in place.
        wanted: the name of a format insists on it, "auto" takes annotations where there are any; "" goes by
            `annotated`.
        agreed: make the version without asking again, unless the report forbids it or a user must decide.
        split: fields of a `splitting.Wish` by which all images are split; None keeps what the data says.
        options: how the data is read, and whether annotations may be missing.
        creates_dataset: the dataset was made for this import and is removed with it, if it is discarded.

    Raises:
        NotNow: another import of this dataset is open.
        NotFound, Invalid, PathRefused: the source cannot be used.
    """
    if annotated is None and not wanted:
        wanted = "auto"
    upload = uploads.claim(by, upload_id) if upload_id else None
    path = "" if upload else str(server_paths.require(server_path, by=by))
    try:
        with transaction.atomic():
            row = Import.objects.create(
                dataset=dataset,
                upload=upload,
                server_path=path,
                annotated=bool(annotated) or wanted not in {"", "auto", "images"},
                wanted=wanted,
                agreed=agreed,
                split=dict(split or {}),
                options=(options or Options()).checked().as_json(),
                creates_dataset=creates_dataset,
                created_by=by,
            )
    except IntegrityError:
        raise NotNow(_("Another import of this dataset is still open. Complete or cancel it first.")) from None
    nudge(row)
    return row


def start_from(
    *,
    version: DatasetVersion,
    rewrite: str,
    facts: Mapping[str, Any],
    annotated: bool,
    by: User,
    dataset: Dataset | None = None,
    images: int | None = None,
) -> Import:
    """Queue the next version of a dataset, made of `version`.

    Args:
        rewrite: name of a `rewriting.Rewrite`; "" splits again.
        facts: parameters of the rewrite, as JSON.
        dataset: that gets the version; None: the one that `version` is of.
        images: how many there will be, for its progress; None: as many as `version` has.

    Raises:
        NotNow: another import of the dataset is open.
    """
    try:
        with transaction.atomic():
            row = Import.objects.create(
                dataset=dataset or version.dataset,
                source_version=version,
                wanted=rewrite,
                split=dict(facts),
                agreed=True,
                annotated=annotated,
                state=S.COMMITTING,
                report={"images": version.image_count if images is None else images},
                created_by=by,
            )
    except IntegrityError:
        raise NotNow(_("Another import of this dataset is still open. Complete or cancel it first.")) from None
    nudge(row)
    return row


def commit(row: Import, *, by: User, names: Mapping[int, str] | None = None, allow_unlabelled: bool = False) -> Import:
    """Agree to the report: the version is made.

    Args:
        names: class id → name, where the data does not name its classes; None keeps what the report says.
        allow_unlabelled: import the images although no annotation of the annotation files is used.

    Raises:
        Invalid: see `class_names.named`.
        Unlabelled: annotation files are there but none was used.
        NotNow: nothing to agree to, or the report holds problems that forbid it.
    """
    if row.report.get("fatal"):
        raise NotNow(_("The data has problems that must be fixed first. See the report."))
    refusal = _("No finished report to confirm.")
    if row.state != S.REPORTED:
        raise NotNow(refusal)
    if not (allow_unlabelled or _may_be_unlabelled(row)):
        raise Unlabelled(
            _("There are annotation files, but none of their annotations can be imported. See the report.")
        )
    _move(row, {S.REPORTED}, S.COMMITTING, refusal, report=class_names.named(row, names or {}))
    return row


def _may_be_unlabelled(row: Import) -> bool:
    return not row.report.get("unlabelled") or Options.from_json(row.options).allow_unlabelled


def recheck(
    row: Import,
    *,
    annotated: bool | None = None,
    options: Options | None = None,
    split: Mapping[str, Any] | None = None,
    agreed: bool | None = None,
) -> Import:
    """Check the same files again.

    Args:
        annotated: with (or without) their annotations; None: as before.
        options: how they are read this time; None: as before.
        split: fields of a `splitting.Wish`, {} keeps what the data says; None: as before.
        agreed: make the version without asking again; None: as before.

    Raises:
        Invalid: an option has an unknown value.
        NotNow: there is no report.
    """
    changes: dict[str, Any] = {"report": {}}
    if annotated is not None:
        changes |= {"annotated": False, "wanted": "auto" if annotated else "images"}
    if options is not None:
        changes["options"] = options.checked().as_json()
    if split is not None:
        changes["split"] = dict(split)
    if agreed is not None:
        changes["agreed"] = agreed
    _move(row, {S.REPORTED}, S.WAITING, _("No finished report to change."), **changes)
    return row


def retry(row: Import) -> Import:
    """Try a failed import again, from what is already there.

    Raises:
        NotNow: it did not fail, its files are gone, or another import is open.
    """
    if not row.server_path and not row.source_version_id and not _has_files(row):
        raise NotNow(_("The files of this import no longer exist. Upload them again."))
    aim = S.COMMITTING if row.source_version_id or (row.version_id and row.report) else S.WAITING
    try:
        _move(row, {S.FAILED}, aim, _("Only failed imports can be retried."), error="", tries=0)
    except IntegrityError:
        raise NotNow(_("Another import of this dataset is still open. Complete or cancel it first.")) from None
    return row


def cancel(row: Import) -> Import:
    """Cancel an import, or discard one that failed; nothing of it stays, nor a dataset that was made for it.

    Raises:
        NotNow: it is over, or the version is already being written.
    """
    _move(row, {S.WAITING, S.CHECKING, S.REPORTED, S.FAILED}, S.CANCELLED, _("This import can no longer be cancelled."))
    clean(row)
    removal.hide_with(row)
    return row


def stop(row: Import) -> Import:
    """Cancel an import even if its version is being written, for callers that are stopped themselves.

    A worker that writes the version loses it; what it left is removed by the sweep, once it surely writes no more.

    Raises:
        NotNow: it is over.
    """
    untouched = Import.objects.filter(pk=row.pk, state__in=Import.OPEN, holder="")
    if untouched.update(state=S.CANCELLED, done=0, total=0, phase="", updated_at=now()):
        row.refresh_from_db()
        clean(row)
    else:
        _move(row, set(Import.OPEN), S.CANCELLED, _("This import can no longer be cancelled."))
    return row


def _move(row: Import, allowed: set[S], to: S, refusal: str, **fields: object) -> None:
    """Compare-and-set; a worker that holds the import loses it."""
    changed = Import.objects.filter(pk=row.pk, state__in=allowed).update(
        state=to, holder="", done=0, total=0, phase="", updated_at=now(), **fields
    )
    if not changed:
        raise NotNow(refusal)
    row.refresh_from_db()
    if row.is_working:
        nudge(row)


def nudge(row: Import) -> None:
    """Send an import to a worker; a lost message only costs until the next sweep."""
    enqueue("datasets.run_import", import_id=row.pk)


def nudge_if_forgotten(row: Import) -> None:
    """Nudge again when no worker has held the import for a while."""
    idle = now() - timedelta(seconds=15)
    if row.is_working and _is_orphaned(row) and row.updated_at < idle:
        nudge(row)


def _is_orphaned(row: Import) -> bool:
    """Return whether no worker has it in hand: none took it, or the one that did is silent or has ended."""
    return CLAIMS.is_free(row) or is_gone(row.holder)


def run(import_id: int) -> None:
    """Do what the import waits for, unless another worker does."""
    taken = CLAIMS.acquire(Import.objects.filter(pk=import_id, state__in=Import.WORKING), updated_at=now())
    if taken is None:
        return
    claim = ImportClaim(taken)
    row = Import.objects.select_related("dataset__owner", "upload", "version").get(pk=import_id)
    try:
        if row.tries > MAX_ATTEMPTS:
            raise NotNow(_("The import failed %(count)d times. See the log of the worker.") % {"count": MAX_ATTEMPTS})
        if row.state == S.COMMITTING:
            committing.commit(row, claim)
        else:
            claim.write(state=S.CHECKING)
            checking.check(row, claim)
            _go_on(row)
    except ClaimLost as exc:
        log.info("import=%s given up: %s", import_id, exc)
    except DomainError as exc:
        _fail(row, claim, exc.message)
    except Exception:
        log.exception("import=%s broke off", import_id)
        _fail(row, claim, _("The import failed because of a platform error. Try again."))
    row.refresh_from_db()
    if row.state == S.DONE:
        clean(row)


def _go_on(row: Import) -> None:
    """After the report: commit at once where that was agreed beforehand."""
    row.refresh_from_db()
    if row.agreed and row.state == S.REPORTED and _agree(row):
        run(row.pk)


def _agree(row: Import) -> bool:
    """Agree to a report as its user did beforehand, record what forbids it, or wait for a decision."""
    if row.report["fatal"]:
        sentence = _("The data has problems that must be fixed first. See the report.")
        Import.objects.filter(pk=row.pk, state=S.REPORTED).update(state=S.FAILED, error=sentence, updated_at=now())
        return False
    if row.report.get("undecided") or not _may_be_unlabelled(row):
        Import.objects.filter(pk=row.pk, state=S.REPORTED).update(agreed=False, updated_at=now())
        return False
    _move(row, {S.REPORTED}, S.COMMITTING, _("No finished report to confirm."))
    return True


def _fail(row: Import, claim: ImportClaim, message: str) -> None:
    log.warning("import=%s failed: %s", row.pk, message)
    try:
        claim.finish(state=S.FAILED, error=message[:500])
    except ClaimLost:
        return


def clean(row: Import) -> None:
    """Remove an import's working files, its upload, and a version it never finished."""
    remove_tree(row.folder)
    if row.upload_id and (upload := Upload.objects.filter(pk=row.upload_id).first()):
        remove_tree(upload.folder)
        upload.delete()
    if row.state != S.DONE and row.version_id and row.version and not row.version.is_ready:
        versions.discard(row.version)


def kept_until(row: Import) -> datetime:
    """Return when an import without agreement is given up, and its upload removed."""
    return row.updated_at + REPORT_RETENTION


def _has_files(row: Import) -> bool:
    return (row.folder / "files").is_dir() or bool(row.upload and row.upload.file.exists())


def sweep() -> int:
    """Nudge imports whose worker fell silent, remove leftovers; returns how many were nudged."""
    count = 0
    for row in Import.objects.filter(state__in=Import.WORKING, updated_at__lt=now() - TTL / 4)[:1000]:
        if _is_orphaned(row):
            nudge(row)
            count += 1
    reported = Import.objects.filter(state=S.REPORTED)
    for row in reported.filter(agreed=True, updated_at__lt=now() - TTL / 4)[:100]:  # its worker died after the report
        with contextlib.suppress(NotNow):  # another user agreed or cancelled meanwhile
            count += _agree(row)
    for row in reported.filter(updated_at__lt=now() - REPORT_RETENTION)[:100]:
        log.info("import=%s given up: nobody agreed to its report", row.pk)
        cancel(row)
    over = Import.objects.filter(
        state__in=[S.FAILED, S.CANCELLED, S.DONE], updated_at__lt=now() - ENDED_RETENTION
    ).select_related("upload", "version", "dataset")
    for row in over.exclude(upload=None, state__in=[S.DONE])[:100]:
        if row.upload_id or row.folder.exists():
            clean(row)
    return count

"""The files of an import on disk: unpacked once, archives inside archives too, all under one limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib import disk
from aiplatform.lib.archive_names import safe_name
from aiplatform.lib.archive_refusals import ArchiveRefused
from aiplatform.lib.archives import Limits, Report, extract, kind_of
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import remove_tree, sha256_of, walk_beneath, write_json
from aiplatform.lib.wording import of_error
from datasets.formats.file_kinds import sort_of
from datasets.models import Import, Upload
from datasets.services import server_paths, sources, uploads
from datasets.services.claims import ImportClaim
from datasets.storage import image_files

MAX_INSIDE = 200  # archives inside one archive
MAX_DEPTH = 3  # archives within one another
_ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz", ".tar.zst")


class CannotRead(DomainError, code="cannot_read", status=400): ...


def files(row: Import, claim: ImportClaim) -> tuple[Path, dict[str, Any]]:
    """Return the folder to read, and what unpacking changed in it.

    Raises:
        CannotRead: the upload is gone, or is no archive and no image.
        ArchiveRefused: damaged, unsafe or too large.
    """
    if row.server_path:
        assert row.created_by is not None
        row.folder.mkdir(parents=True, exist_ok=True)
        return server_paths.require(row.server_path.rstrip("/") + "/", by=row.created_by), {}
    folder, note = row.folder / "files", row.folder / "unpacked.json"
    if not folder.exists():
        upload = row.upload
        if upload is None or not upload.file.exists():
            raise CannotRead(_("The uploaded file no longer exists. Upload it again."))
        _unpack(row, upload, folder, note, claim)
    return folder, json.loads(note.read_text())


def _unpack(row: Import, upload: Upload, folder: Path, note: Path, claim: ImportClaim) -> None:
    row.folder.mkdir(parents=True, exist_ok=True)
    claim.write(phase="unpacking", done=0, total=0)
    if upload.sha256 and sha256_of(upload.file) != upload.sha256:
        raise CannotRead(_("The uploaded file differs from the announced file: the SHA-256 does not match."))
    uploads.require_room(owner=upload.owner, size_bytes=0)
    partial = folder.with_name("files.partial")
    remove_tree(partial)
    limits = Limits(max_bytes=env.MAX_UNPACKED_BYTES, max_files=env.MAX_ARCHIVE_FILES)
    try:
        source = sources.for_upload(upload)
        if source is not None and source.files is not None:
            report = sources.copy_files(source, upload, partial, limits, lambda n: claim.progress("unpacking", n, 0))
            refused = _open_inside(partial, report, limits, upload.length, claim)
        elif kind_of(upload.file) is None:
            report, refused = _single(upload, partial), []
        else:
            report = extract(
                upload.file,
                partial,
                limits=limits,
                on_progress=lambda count, _size: claim.progress("unpacking", count, 0),
            )
            refused = _open_inside(partial, report, limits, upload.length, claim)
    except OSError as exc:
        remove_tree(partial)
        if disk.is_full(exc):
            raise disk.DiskFull from exc
        raise CannotRead(_("The archive could not be unpacked: %(why)s.") % {"why": exc.strerror}) from exc
    facts = {"renamed": report.renamed[:100], "renamed_total": len(report.renamed), "ignored": report.ignored}
    write_json(note, facts | {"refused_inside": refused})
    partial.rename(folder)
    upload.file.unlink(missing_ok=True)  # its content is in files/ now


def _single(upload: Upload, folder: Path) -> Report:
    """A file that is no archive, as the only one of its folder, where it is an image.

    Raises:
        CannotRead: it is none; says what can be done with it.
    """
    with upload.file.open("rb") as file:
        head = file.read(16)
    name = safe_name(upload.filename)
    if image_files.content_type(head) is None and not image_files.is_still_kind(head):
        if sort_of(upload.folder, name) == "video":
            raise CannotRead(_("This is a video. Extract frames as images and upload those."))
        raise CannotRead(
            _("Neither an archive nor an image. Upload images, a folder of images, or a .zip or .tar file.")
        )
    folder.mkdir(parents=True)
    (folder / name).hardlink_to(upload.file)
    return Report(files=1, size_bytes=upload.length)


def _open_inside(folder: Path, report: Report, limits: Limits, packed: int, claim: ImportClaim) -> list[dict[str, Any]]:
    """Unpack archives inside `folder` next to themselves, within the remaining limits of the whole import.

    Returns the archives that were refused, each with its reason; they stay as they are.
    """
    refused: list[dict[str, Any]] = []
    budget = limits.budget(packed)
    opened = 0
    waiting = [(name, 1) for name in _archives(folder)]
    while waiting and opened < MAX_INSIDE:
        name, depth = waiting.pop(0)
        path = folder / name
        if kind_of(path) is None:
            continue
        left = Limits(budget - report.size_bytes, limits.max_files - report.files, limits.ratio)
        into = _free_folder(path)
        try:
            inner = extract(path, into, limits=left)
        except ArchiveRefused as exc:
            refused.append({"path": name, "message": of_error(exc).as_json()})
            continue
        path.unlink()
        opened += 1
        report.files += inner.files
        report.size_bytes += inner.size_bytes
        report.renamed += inner.renamed
        report.ignored += inner.ignored
        claim.progress("unpacking", report.files, 0)
        if depth < MAX_DEPTH:
            below = str(into.relative_to(folder))
            waiting += [(f"{below}/{inside}", depth + 1) for inside in _archives(into)]
    return refused


def _archives(folder: Path) -> list[str]:
    return [name for name in walk_beneath(folder) if name.lower().endswith(_ENDINGS)]


def _free_folder(archive: Path) -> Path:
    """Return an unused folder path named like the archive, in its folder."""
    name = archive.name.lower()
    ending = next(ending for ending in sorted(_ENDINGS, key=len, reverse=True) if name.endswith(ending))
    wanted = archive.with_name(archive.name[: -len(ending)] or "archive")
    free, number = wanted, 1
    while free.exists():
        number += 1
        free = wanted.with_name(f"{wanted.name} ({number})")
    return free

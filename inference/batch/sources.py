"""Which pictures a prediction answers: those of a dataset version, of a folder on the server, or a list of either."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.files import OutsideRoot, walk_beneath, write_atomically
from datasets.formats.file_kinds import IMAGE_SUFFIXES
from datasets.models import DatasetVersion
from datasets.services import server_paths

MAX_IMAGES = 200_000  # pictures of a folder or a list
MAX_LIST_BYTES = 32 << 20
SHOWN = 3  # names in a refusal
AT_ONCE = 500  # paths per database query
HEADERS = ("path", "file", "file_name", "filename", "name", "image", "sample")


class ListRefused(DomainError, code="list_refused", status=400, field="listed"):
    """The list of pictures cannot be used."""


def folder(path: str, *, by: User) -> Path:
    """The real folder on the server behind `path`.

    Raises:
        PathRefused, PathMissing: see `server_paths.require`.
    """
    return server_paths.require(path.rstrip("/") + "/" if path.strip("/") else path, by=by)


def pictures_of(root: Path, *, by: User) -> list[str]:
    """Return the paths of all images below a folder, without links, that this user may read.

    Raises:
        Invalid: there is none, or there are too many.
        PathRefused: one is not for everybody on the server.
    """
    try:
        pictures = [
            path
            for path in walk_beneath(root, max_files=10 * MAX_IMAGES, lenient=True)
            if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES
        ]
    except OutsideRoot as exc:
        raise Invalid(exc.message, field="server_path") from None
    if not pictures:
        raise Invalid(_("This folder contains no images."), field="server_path")
    if len(pictures) > MAX_IMAGES:
        message = _(
            "The folder contains %(count)s images; a batch prediction processes at most %(most)s. Choose a part of it."
        )
        raise Invalid(message % {"count": f"{len(pictures):,}", "most": f"{MAX_IMAGES:,}"}, field="server_path")
    server_paths.require_files(root, pictures, by=by)
    return pictures


def parse_list(data: bytes, filename: str) -> list[str]:
    """Return the names in a .txt file, one on each line, or in the first column of a .csv file, without duplicates.

    Raises:
        ListRefused: it is neither, is empty, or names too many.
    """
    if len(data) > MAX_LIST_BYTES:
        raise ListRefused(_("The list is larger than %(most)s MiB.") % {"most": MAX_LIST_BYTES >> 20})
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ListRefused(_("The list is not UTF-8 text.")) from None
    if filename.lower().endswith(".csv"):
        try:
            rows = [row[0].strip() for row in csv.reader(io.StringIO(text)) if row]
        except csv.Error:
            raise ListRefused(_("The list is not valid CSV.")) from None
        rows = rows[1:] if rows and rows[0].lower() in HEADERS else rows
    else:
        rows = [line.strip() for line in text.splitlines()]
    return check_names([row for row in rows if row])


def check_names(names: Sequence[str]) -> list[str]:
    """Return the names without duplicates, in their order.

    Raises:
        ListRefused: there is none, there are too many, or one leads out of the folder.
    """
    unique = list(dict.fromkeys(name.removeprefix("./") for name in names))
    if not unique:
        raise ListRefused(_("The list contains no images."))
    if len(unique) > MAX_IMAGES:
        facts = {"count": f"{len(unique):,}", "most": f"{MAX_IMAGES:,}"}
        raise ListRefused(_("The list contains %(count)s images; the maximum is %(most)s.") % facts)
    invalid = [name for name in unique if not _stays(name)]
    if invalid:
        message = _("Names must be paths below the folder, without “..”: %(names)s is not.")
        raise ListRefused(message % {"names": _first_names(invalid)})
    return unique


def _stays(name: str) -> bool:
    path = PurePosixPath(name)
    return len(name) <= 500 and "\0" not in name and not path.is_absolute() and ".." not in path.parts


def listed_in_version(version: DatasetVersion, names: Sequence[str]) -> list[str]:
    """The names, all of which are pictures of the version.

    Raises:
        ListRefused: names some that are none.
    """
    there: set[str] = set()
    for begin in range(0, len(names), AT_ONCE):
        some = names[begin : begin + AT_ONCE]
        there.update(version.assets.filter(path__in=some).values_list("path", flat=True))
    _refuse_missing([name for name in names if name not in there], str(version))
    return list(names)


def listed_in_folder(root: Path, names: Sequence[str], *, by: User) -> list[str]:
    """The names, all of which are files below the folder that the user may read.

    Raises:
        ListRefused: names some that are none, or that a link leads to.
        PathRefused: one is not for everybody on the server.
    """
    base = Path(root)
    real = {name: _is_own_file(base, name) for name in names}
    _refuse_missing([name for name, there in real.items() if not there], str(root))
    server_paths.require_files(base, names, by=by)
    return list(names)


def _is_own_file(root: Path, name: str) -> bool:
    """Whether it is a file, and nothing on the way there is a link."""
    path = root / name
    return path.is_file() and not any((root / part).is_symlink() for part in [name, *_parents(name)])


def _parents(name: str) -> Iterator[str]:
    return (str(parent) for parent in PurePosixPath(name).parents if str(parent) != ".")


def _refuse_missing(missing: Sequence[str], where: str) -> None:
    if missing:
        message = _("The list contains names that do not exist in %(where)s: %(names)s.")
        raise ListRefused(message % {"where": where, "names": _first_names(missing)}, count=len(missing))


def _first_names(names: Sequence[str]) -> str:
    more = ", …" if len(names) > SHOWN else ""
    return ", ".join(name[:100] for name in names[:SHOWN]) + more


def write_listing(listing: Path, names: Iterable[str]) -> None:
    """Write the images to a file, so that every attempt uses the same ones in the same order."""
    listing.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(listing, "".join(f"{json.dumps(name)}\n" for name in names).encode())

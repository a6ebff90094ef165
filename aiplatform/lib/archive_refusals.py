"""Why an archive is refused."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Wording, nested, thousands

wording.register(
    "archive",
    {
        "none": _("Not an archive. Upload a .zip, .tar, .tar.gz, .tar.bz2, .tar.xz or .tar.zst file."),
        "damaged": _("The archive is damaged or not supported (%(error)s)."),
        "too_large": Wording(
            _("The archive unpacks to more than %(limit)s bytes, which its packed size does not allow."),
            limit=thousands,
        ),
        "too_many": Wording(_("The archive contains more than %(limit)s entries."), limit=thousands),
        "claims_too_many": Wording(
            _("The archive contains %(count)s entries; the limit is %(limit)s."), count=thousands, limit=thousands
        ),
        "overlap": _("The entries of the archive overlap, as in a zip bomb."),
        "overlaps_its_table": _("The entries of the archive overlap its table of contents."),
        "password": _("The archive is password-protected. Upload it without a password."),
        "special_file": _("The archive contains a link, a device, a setuid file or another special file: “%(name)s”."),
        "twins": _(
            "The archive contains two entries that have the same name on many systems: “%(one)s” and “%(other)s”."
        ),
        "unsafe_name": Wording(_("The archive contains an unsafe name: “%(name)s”. %(why)s"), why=nested),
        "name_nul": _("The name contains a NUL byte."),
        "name_backslash": _("The name contains a backslash. Pack the archive with / between folders."),
        "name_absolute": _("The name is an absolute path."),
        "name_drive": _("The name contains a drive letter."),
        "name_leaves": _("The path leaves its folder."),
        "name_deep": Wording(_("The path is more than %(most)s folders deep."), most=thousands),
        "name_long": Wording(_("The path is longer than %(most)s bytes."), most=thousands),
    },
)


class ArchiveRefused(DomainError, code="archive_refused", status=400):
    """The archive is broken, dangerous or too large; nothing of it was written."""

"""Why an archive is refused."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Wording, nested, thousands

wording.register(
    "archive",
    {
        "none": Wording(_("Not an archive. Upload a .zip, .tar, .tar.gz, .tar.bz2, .tar.xz or .tar.zst file.")),
        "damaged": Wording(_("The archive is damaged or not supported (%(error)s).")),
        "too_large": Wording(
            _("The archive unpacks to more than %(limit)s bytes, which its packed size does not allow."),
            limit=thousands("limit"),
        ),
        "too_many": Wording(_("The archive contains more than %(limit)s entries."), limit=thousands("limit")),
        "claims_too_many": Wording(
            _("The archive contains %(count)s entries; the limit is %(limit)s."),
            count=thousands("count"),
            limit=thousands("limit"),
        ),
        "overlap": Wording(_("The entries of the archive overlap, as in a zip bomb.")),
        "overlaps_its_table": Wording(_("The entries of the archive overlap its table of contents.")),
        "password": Wording(_("The archive is password-protected. Upload it without a password.")),
        "special_file": Wording(
            _("The archive contains a link, a device, a setuid file or another special file: “%(name)s”.")
        ),
        "twins": Wording(
            _("The archive contains two entries that have the same name on many systems: “%(one)s” and “%(other)s”.")
        ),
        "unsafe_name": Wording(_("The archive contains an unsafe name: “%(name)s”. %(why)s"), why=nested("why")),
        "name_nul": Wording(_("The name contains a NUL byte.")),
        "name_backslash": Wording(_("The name contains a backslash. Pack the archive with / between folders.")),
        "name_absolute": Wording(_("The name is an absolute path.")),
        "name_drive": Wording(_("The name contains a drive letter.")),
        "name_leaves": Wording(_("The path leaves its folder.")),
        "name_deep": Wording(_("The path is more than %(most)s folders deep."), most=thousands("most")),
        "name_long": Wording(_("The path is longer than %(most)s bytes."), most=thousands("most")),
    },
)


class ArchiveRefused(DomainError, code="archive_refused", status=400):
    """The archive is broken, dangerous or too large; nothing of it was written."""

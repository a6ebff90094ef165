"""Why an archive is refused."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Wording, nested, thousands

wording.register(
    "archive",
    {
        "none": Wording(_("This is not an archive. Upload a .zip, .tar, .tar.gz, .tar.bz2, .tar.xz or .tar.zst file.")),
        "damaged": Wording(_("The archive is damaged or of a kind that cannot be read (%(error)s).")),
        "too_large": Wording(
            _("The archive unpacks to more than %(limit)s bytes, which is more than its packed size allows."),
            limit=thousands("limit"),
        ),
        "too_many": Wording(_("The archive holds more than %(limit)s entries."), limit=thousands("limit")),
        "claims_too_many": Wording(
            _("The archive holds %(count)s entries, at most %(limit)s are taken."),
            count=thousands("count"),
            limit=thousands("limit"),
        ),
        "overlap": Wording(_("The archive's entries overlap, as in a zip bomb.")),
        "overlaps_its_table": Wording(_("The archive's entries overlap its own table of contents.")),
        "password": Wording(_("The archive is protected by a password. Upload it without one.")),
        "special_file": Wording(
            _("The archive holds a link, a device, a setuid file or another special file: “%(name)s”.")
        ),
        "twins": Wording(
            _("The archive holds two entries that are one name on many computers: “%(one)s” and “%(other)s”.")
        ),
        "unsafe_name": Wording(_("The archive holds an unsafe name: “%(name)s”. %(why)s"), why=nested("why")),
        "name_nul": Wording(_("It contains a NUL byte.")),
        "name_backslash": Wording(_("It contains a backslash; pack it with / between folders.")),
        "name_absolute": Wording(_("It is an absolute path.")),
        "name_drive": Wording(_("It names a drive.")),
        "name_leaves": Wording(_("It leaves its folder.")),
        "name_deep": Wording(_("It is more than %(most)s folders deep."), most=thousands("most")),
        "name_long": Wording(_("It is longer than %(most)s bytes."), most=thousands("most")),
    },
)


class ArchiveRefused(DomainError, code="archive_refused", status=400):
    """The archive is broken, dangerous or too large; nothing of it was written."""

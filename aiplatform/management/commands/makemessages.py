"""`manage.py makemessages`: gather the texts of templates, Python and our ES modules into the .po files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polib
from django.core.management.commands import makemessages

from aiplatform.lib.messages import texts_in_data

LOCALES = ["zh_Hans"]
DOMAINS = ("django", "djangojs")
IGNORED = ["var", ".venv", "tests", "node_modules"]
KEYWORDS = ["--keyword=t:1", "--keyword=tn:1,2"]  # of /static/base/i18n.js
NOISE = re.compile(r'^"(POT-Creation-Date|Report-Msgid-Bugs-To): .*\n', re.MULTILINE)


class Command(makemessages.Command):
    """Django's own command, with our options as defaults.

    Knows the `t` and `tn` of our scripts, never guesses a translation from a similar text, and writes neither
    places nor dates, so that a .po file changes only where a text does.
    """

    help = "Collect translatable texts of templates, Python and scripts into aiplatform/locale."
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]

    def handle(self, *args: Any, **options: Any) -> None:
        """Update both domains and all languages, run from the folder of manage.py."""
        options["locale"] = options["locale"] or list(LOCALES)
        options["ignore_patterns"] = [*options["ignore_patterns"], *IGNORED]
        options["no_location"] = options["no_obsolete"] = options["no_wrap"] = True
        for domain in DOMAINS:
            self.xgettext_options = [*makemessages.Command.xgettext_options]
            if domain == "djangojs":
                self.xgettext_options += KEYWORDS
            self.msgmerge_options = [*type(self).msgmerge_options]
            self.msguniq_options = [*makemessages.Command.msguniq_options]
            self.msgattrib_options = [*makemessages.Command.msgattrib_options]
            super().handle(*args, **{**options, "domain": domain})

    def process_files(self, file_list: list[Any]) -> None:
        """Also gather texts kept in data: the presets' names, purposes and parameters."""
        super().process_files(file_list)
        potfile = Path(str(self.default_locale_path)) / "django.pot"
        if self.domain == "django" and potfile.exists():
            pot = polib.pofile(str(potfile), wrapwidth=0)
            pot.extend(polib.POEntry(msgid=text) for text in texts_in_data() if not pot.find(text))
            pot.save()

    def write_po_file(self, potfile: str, locale: str) -> None:
        super().write_po_file(potfile, locale)
        written = Path(potfile).parent / locale / "LC_MESSAGES" / f"{Path(potfile).stem}.po"
        text = written.read_text(encoding="utf-8")
        written.write_text(NOISE.sub("", text), encoding="utf-8")

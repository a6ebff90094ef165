"""The Chinese catalogues, for the tests that read them."""

from __future__ import annotations

from pathlib import Path

import polib

from aiplatform.lib import messages

DOMAINS = ("django", "djangojs")


def catalogue(domain: str, locale: Path = messages.LOCALE) -> polib.POFile:
    return polib.pofile(str(locale / "zh_Hans" / "LC_MESSAGES" / f"{domain}.po"))


def sources(entry: polib.POEntry) -> list[str]:
    return [entry.msgid_plural] if entry.msgid_plural else [entry.msgid]


def answers(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]

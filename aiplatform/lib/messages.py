"""Compile the translations where the sources are newer; needs no gettext program."""

from __future__ import annotations

from pathlib import Path

import polib

LOCALE = Path(__file__).resolve().parents[1] / "locale"


def compile_all(folder: Path = LOCALE) -> list[Path]:
    """Write a .mo beside every .po that changed since; returns what was written."""
    written: list[Path] = []
    for source in sorted(folder.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        draft = target.with_suffix(f".mo.{id(source)}")
        polib.pofile(str(source)).save_as_mofile(str(draft))
        draft.replace(target)
        written.append(target)
    return written

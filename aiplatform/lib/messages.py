"""Compile the translations where the sources are newer; needs no gettext program."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from aiplatform.lib.registry import Registry, dotted_name

LOCALE = Path(__file__).resolve().parents[1] / "locale"

log = logging.getLogger(__name__)

Texts = Callable[[], Iterable[str]]
#: What `makemessages` gathers too: texts for people that stand in data, where no gettext call can be.
TEXTS: Registry[Texts] = Registry("source of texts", name=dotted_name)

register_texts = TEXTS.register


def texts_in_data() -> list[str]:
    """Every registered text once, sorted; nothing for empty ones."""
    return sorted({text for source in TEXTS for text in source() if text})


def compile_all(folder: Path = LOCALE) -> list[Path]:
    """Write a .mo next to every .po that changed since; returns the written files.

    Raises:
        OSError: a .po cannot be read or understood, or the folder cannot be written.
    """
    compiled: list[Path] = []
    for source in sorted(folder.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        import polib  # noqa: PLC0415 - only where there is something to do

        draft = target.with_suffix(f".{os.getpid()}.mo")
        polib.pofile(str(source)).save_as_mofile(str(draft))
        draft.replace(target)
        compiled.append(target)
    return compiled


def compile_quietly() -> None:
    """`compile_all` for the start of a process: pages in English are better than none."""
    try:
        compile_all()
    except OSError as error:
        log.warning("translations not compiled: %s", error)

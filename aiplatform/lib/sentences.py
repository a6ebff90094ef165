"""Sentences that were written into a row in English, said in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import get_language, gettext, ngettext

from aiplatform.lib.registry import Registry

PLACE = re.compile(r"%\((\w+)\)s")
NESTED = {"why", "words"}  # facts that are sentences or words of ours themselves


@dataclass(frozen=True)
class Written:
    """A sentence as it stands in rows, and how its `gettext` call says it: one text, or the two of a number."""

    name: str
    shape: re.Pattern[str]
    one: str
    many: str


SENTENCES: Registry[Written] = Registry("sentence")


def register_sentences(texts: Iterable[str | tuple[str, str]]) -> None:
    """Let sentences with facts in them be known again: each `text` as its `gettext` call says it."""
    for text in texts:
        one, many = (text, "") if isinstance(text, str) else text
        for source in filter(None, (one, many)):
            parts = PLACE.split(source)
            shape = "".join(f"(?P<{part}>.+?)" if n % 2 else re.escape(part) for n, part in enumerate(parts))
            SENTENCES.register(Written(source, re.compile(shape, re.DOTALL), one, many))


def registered() -> list[tuple[str, str]]:
    """Every registered text once, as (one, many); many is empty where there is no number."""
    return list(dict.fromkeys((written.one, written.many) for written in SENTENCES))


def said(sentence: str) -> str:
    """`sentence` in the reader's language where the platform wrote it, as it is otherwise."""
    if not sentence or (get_language() or "en").startswith("en"):
        return sentence
    exact = gettext(sentence)
    if exact != sentence:
        return exact
    for written in SENTENCES:
        if found := written.shape.fullmatch(sentence):
            facts = {name: said(fact) if name in NESTED else fact for name, fact in found.groupdict().items()}
            return (ngettext(written.one, written.many, 1) if written.many else gettext(written.one)) % facts
    return sentence

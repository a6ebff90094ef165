"""Sentences that were written into a row in English, said in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import get_language, gettext, ngettext

PLACE = re.compile(r"%\((\w+)\)s")
NESTED = {"why", "words"}  # facts that are sentences or words of ours themselves

#: What stands in the row → how it was asked for: one text, or the two of a number.
_shapes: list[tuple[re.Pattern[str], tuple[str, str]]] = []


def register_sentences(texts: Iterable[str | tuple[str, str]]) -> None:
    """Let sentences with facts in them be known again: each `text` as its `gettext` call says it."""
    for text in texts:
        one, many = (text, "") if isinstance(text, str) else text
        for source in filter(None, (one, many)):
            parts = PLACE.split(source)
            shape = "".join(f"(?P<{part}>.+?)" if n % 2 else re.escape(part) for n, part in enumerate(parts))
            _shapes.append((re.compile(shape, re.DOTALL), (one, many)))


def registered() -> list[tuple[str, str]]:
    """Every registered text once, as (one, many); many is empty where there is no number."""
    return list(dict.fromkeys(texts for _shape, texts in _shapes))


def said(sentence: str) -> str:
    """`sentence` in the reader's language where the platform wrote it, as it is otherwise."""
    if not sentence or (get_language() or "en").startswith("en"):
        return sentence
    exact = gettext(sentence)
    if exact != sentence:
        return exact
    for shape, (one, many) in _shapes:
        if found := shape.fullmatch(sentence):
            facts = {name: said(fact) if name in NESTED else fact for name, fact in found.groupdict().items()}
            return (ngettext(one, many, 1) if many else gettext(one)) % facts
    return sentence

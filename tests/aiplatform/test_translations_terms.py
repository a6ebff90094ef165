"""The Chinese texts use the terms of `aiplatform/docs/chinese.md`: one translation for one thing."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import polib
from django.conf import settings

from tests.aiplatform.catalogues import DOMAINS, answers, catalogue, sources

PAGE = Path(settings.BASE_DIR) / "aiplatform/docs/chinese.md"
PLACEHOLDER = r"%\(\w+\)[.\d]*[sdf]|<[^>]+>|\$?\{[^}]*\}"
#: Parts of an English text that are the same in every language: placeholders, tags, quotations, calls, shapes.
CODE = re.compile(rf"{PLACEHOLDER}|“[^”]*”|`[^`]*`|\w+\([^)]*\)|\[[^\]]*\]")
#: Words of code: paths, assignments, names of files, options.
WORD_OF_CODE = re.compile(r"\S*(?:[/=@&_]|\w[.:]\w)\S*|-\w\S*|\.\w\S*")
CJK = "[\u4e00-\u9fff]"
LATIN = "[A-Za-z0-9]"
#: Texts that name a term as a word of code, by their beginning.
EXCEPTIONS = (
    "JSON with additional fields of the API",  # names of fields
    "a property: name, state, owner",  # names of properties in filters
    "images, annotations and categories must be lists",  # keys of a COCO file
    "keys: one chart each; axis: step, time or epoch",  # fields of a panel
    "Endpoints respond at",  # paths
    "Chooses one of two branches by the parameters of the run",  # preset == “hog”
)
#: Longer words that contain a word that is not used.
COMPOUNDS = {"人员": ("运维人员", "被拍摄的人员"), "机器": ("机器学习",)}


def texts() -> list[polib.POEntry]:
    return [entry for domain in DOMAINS for entry in catalogue(domain)]


@functools.cache
def table(heading: str) -> tuple[tuple[str, ...], ...]:
    """Rows of the table below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in section.splitlines() if "|" in line]
    return tuple(rows[2:])


def english(entry: polib.POEntry) -> str:
    """The words of a source text, without code."""
    return WORD_OF_CODE.sub(" ", CODE.sub(" ", sources(entry)[0]))


def pattern(term: str) -> re.Pattern[str]:
    """A pattern that finds an English term, singular or plural."""
    words = rf"{re.escape(term[:-1])}(?:y|ies)" if term.endswith("y") else rf"{re.escape(term)}(?:e?s)?"
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


def test_translations_use_one_term_for_one_thing():
    rows = table("Terms")
    spoken = [(entry, english(entry)) for entry in texts() if not entry.msgid.startswith(EXCEPTIONS)]

    wrong = [
        (term, source, answer)
        for term, chinese in rows
        for entry, source in spoken
        if pattern(term).search(source)
        for answer in answers(entry)
        if not any(translation in answer for translation in chinese.split("、"))
    ]

    assert len(rows) > 60
    assert wrong == []


def test_translations_avoid_words_of_former_versions():
    words = [word for row, _ in table("Words that are not used") for word in row.split("、")]
    found = []
    for entry in texts():
        for answer in answers(entry):
            for word in words:
                rest = re.sub("|".join(COMPOUNDS.get(word, ("$^",))), "", answer)
                found += [(word, entry.msgid, answer)] if word in rest else []

    assert len(words) > 15
    assert found == []


def test_translations_of_texts_with_two_meanings_differ_by_context():
    known = {(entry.msgctxt, entry.msgid): entry.msgstr for entry in catalogue("django")}
    expected = {}
    for names, plain, others in table("Texts with two meanings"):
        for name in names.split(", "):
            expected[None, name] = plain
            for translation, context in re.findall(r"(\S+) \(([^)]+)\)", others):
                expected[context, name] = translation

    found = {key: known[key] for key in expected if key in known}

    assert len(found) > 20
    assert found == {key: expected[key] for key in found}


def test_translations_have_spaces_and_punctuation_of_chinese():
    """A space between Chinese and Latin letters, none at quotation marks; full-width punctuation."""
    wrong = re.compile(rf"{CJK}{LATIN}|{LATIN}{CJK}|{CJK} “|” {CJK}|{CJK}[,;:?!]|[，。；：？] |{CJK}\(|\){CJK}")
    found = [
        (entry.msgid, answer)
        for entry in texts()
        for answer in answers(entry)
        if wrong.search(re.sub(rf"{PLACEHOLDER}|\[[^\]]*\]", "\0", answer))
    ]

    assert found == []

"""Names, docstrings and interface texts use the terms of the field; the exceptions may only become fewer."""

import ast
import re
from pathlib import Path

import polib

from tests.architecture.code import APPS, ROOT, modules, tree, where

#: Gerunds, participles and determiners that name no subject.
UNCLEAR_MODULES = re.compile(
    r"^(telling|trying|trier|holding|keeping|kept|asked|asking|told|said|each|other|parts?|ways?|places|known|words|"
    r"showing|drawn|judged|judging|bringing|mending|looking|looks|lasting|doubts|beginning|begin|arranging|sending|"
    r"deciding|nesting|applying|firing|acts?|giving|given|signs|life|trail|things?|one|missing|opening|closing|readying|"
    r"sleeping|parting|filling|copying|exchanging|learning|publishing|withdrawing|swapping|launching|explicit|additional|"
    r"completing|drawing|comparing|slicing|describing|composing|fitting|answering|named|still|put|wire|weighing)$"
)
FUNCTION = re.compile(
    r"^_?(of|told|tell|said|say|ask|asked|look|begin|keep|kept|put|whole|give|given|take|found|bring|known|seen|fill)$"
)
VARIABLES = {
    *("found", "said", "told", "asked", "given", "known", "seen", "kept", "one", "words", "about", "whole", "way"),
    *("place", "this", "off", "most"),
}
DOCSTRING = re.compile(
    r"\b(somebody|whoever|nobody|anew|told|said|asked|stands|lies|gone|beside|thereof|whatever becomes)\b",
    re.IGNORECASE,
)
#: Phrases of interface texts that read as translated prose. Placeholders such as %(card)s do not count.
TEXT = re.compile(
    r"\b((?<!model )cards?|"
    r"somebody|whoever|nobody|anew|pictures?|acts?|begins?|begun|go(es)? on|went on|tells?|told|lies|stands?|"
    r"comes of|processors?|mend(ed)?|bring|brought|there is no|is no|are no|made room|of yours|that you may see|"
    r"gives? back|learnt?|learned|judged?|once more|to come|asks? for)\b"
    r"|^Empty:|^Its? |^They |\bmay not\b|(?<!vector )\bmachines?\b|\bpersons?\b",
    re.IGNORECASE,
)
MAX_FUNCTIONS, MAX_VARIABLES, MAX_DOCSTRINGS, MAX_TEXTS = 6, 33, 6, 1


def findings(path: Path) -> dict[str, list[str]]:
    """Return the unclear function names, variable names and first lines of docstrings of a module with their places."""
    functions, variables, docstrings = [], [], []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and FUNCTION.match(node.name):
            functions.append(f"{where(path, node.lineno)} {node.name}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first_line = (ast.get_docstring(node) or "").partition("\n")[0]
            if DOCSTRING.search(first_line):
                docstrings.append(f"{where(path, node.lineno)} {first_line}")
        name = node.arg if isinstance(node, ast.arg) else ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        if name in VARIABLES:
            variables.append(f"{where(path, node.lineno)} {name}")
    return {"functions": functions, "variables": variables, "docstrings": docstrings}


def test_modules_are_named_by_nouns():
    unclear = [
        path.relative_to(ROOT).as_posix()
        for path in modules("aiplatform", *APPS)
        if UNCLEAR_MODULES.match(path.parent.name if path.name == "__init__.py" else path.stem)
    ]

    assert unclear == []


def test_unclear_names_do_not_increase():
    by_module = [findings(path) for path in modules("aiplatform", *APPS) if "migrations" not in path.parts]
    unclear = {kind: [place for module in by_module for place in module[kind]] for kind in by_module[0]}

    assert len(unclear["functions"]) <= MAX_FUNCTIONS, unclear["functions"]
    assert len(unclear["variables"]) <= MAX_VARIABLES, unclear["variables"]
    assert len(unclear["docstrings"]) <= MAX_DOCSTRINGS, unclear["docstrings"]


def descriptions() -> list[str]:
    """Return the descriptions of fields and settings, which the reference of the API and of settings shows."""
    return [
        text
        for path in modules("aiplatform", *APPS)
        if "migrations" not in path.parts
        for node in ast.walk(tree(path))
        if isinstance(node, ast.keyword) and node.arg == "help_text" and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str)
    ]


def test_unclear_interface_texts_do_not_increase():
    catalogs = [
        polib.pofile(str(ROOT / "aiplatform/locale/zh_Hans/LC_MESSAGES" / name))
        for name in ("django.po", "djangojs.po")
    ]
    texts = [text for catalog in catalogs for entry in catalog for text in (entry.msgid, entry.msgid_plural) if text]
    texts += descriptions()

    unclear = [text for text in texts if TEXT.search(re.sub(r"%\(\w+\)s", "", text))]

    assert len(unclear) <= MAX_TEXTS, unclear

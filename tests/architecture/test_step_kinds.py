"""A step kind's number rises when its meaning changes, else yesterday's cache lies."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from inference.pipelines.kinds import KINDS, StepKind
from tests.architecture.code import TRANSLATING

TABLE = Path(__file__).with_name("step_kinds.json")
TEXTS = TRANSLATING | {"gettext_lazy", "ngettext_lazy"}
#: Kinds whose results are taken from earlier runs; what acts on the world is done anew each time.
SAVED = [kind for kind in KINDS if not kind.acts]
WHAT_TO_DO = """
The file of the step kind {name!r} changed. Its results of earlier runs are used again as long as its `number` stays.
- Does it make the same of the same inputs and parameters as before? Then leave its number.
- Else raise its number by one, and that of each other kind of the file for which this is true.
Then write what stands now into tests/architecture/step_kinds.json:
    AIP_UPDATE=1 pytest -q -n 0 tests/architecture/test_step_kinds.py
"""


def meaning(source: str) -> str:
    """SHA-256 of what a file does: without comments, layout, docstrings and texts for people."""
    parsed = ast.parse(source)
    for node in ast.walk(parsed):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in TEXTS:
            node.args = []
    return hashlib.sha256(json.dumps(_plain(parsed), default=repr).encode()).hexdigest()


def _plain(value: object) -> object:
    """A parsed file as lists; empty fields left out, which versions of Python add and leave out."""
    if isinstance(value, ast.AST):
        fields = [
            [name, _plain(one)] for name, one in ast.iter_fields(value) if one not in (None, []) and name != "kind"
        ]
        return [type(value).__name__, *fields]
    return [_plain(one) for one in value] if isinstance(value, list) else value


def now(kind: StepKind) -> dict[str, int | str]:
    file = sys.modules[type(kind).__module__].__file__ or ""
    return {"number": kind.number, "sha256": meaning(Path(file).read_text())}


def test_table_names_all_kinds_whose_results_are_saved():
    recorded = json.loads(TABLE.read_text())
    lower = [kind.name for kind in SAVED if kind.number < recorded.get(kind.name, {}).get("number", 1)]
    assert lower == [], "a number never falls: results of the higher one may be saved still"
    if os.environ.get("AIP_UPDATE"):
        TABLE.write_text(json.dumps({kind.name: now(kind) for kind in SAVED}, indent=1, sort_keys=True) + "\n")
        recorded = json.loads(TABLE.read_text())

    assert sorted(recorded) == sorted(kind.name for kind in SAVED), WHAT_TO_DO.format(name="new, or gone")


@pytest.mark.parametrize("kind", SAVED, ids=lambda kind: kind.name)
def test_number_of_a_step_kind_was_looked_at_when_its_file_changed(kind):
    recorded = json.loads(TABLE.read_text()).get(kind.name)

    assert recorded == now(kind), WHAT_TO_DO.format(name=kind.name)


@pytest.mark.parametrize(
    ("after", "same"),
    [
        ("def f(x):\n    '''Other.'''\n    return x + 1  # why\n", True),
        ("def f(x):\n    return (x\n        + 1)\n", True),
        ("def f(x):\n    return x + 2\n", False),
    ],
)
def test_meaning_is_what_a_file_does(after, same):
    before = "def f(x):\n    '''One.'''\n    return x + 1\n"

    assert (meaning(before) == meaning(after)) is same

"""What people read is made when they read it: no translated text goes into a row, a fact or a message."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.code import TRANSLATING, modules, modules_with, tree, where

#: Calls that write what somebody reads later, in another language.
WRITERS = {
    "move", "note", "lose", "record", "notify", "ask_for_room", "release_idle", "stayed", "message", "verbatim", "put",
    "create", "update", "bulk_create", "get_or_create", "update_or_create", "keep_proof", "release",
}  # fmt: skip
#: Rows that keep a sentence still: why an import or a conversion failed, in the language of the worker.
STILL = {"datasets/services/imports.py", "annotation/services/exports.py"}


def translates(node: ast.AST) -> bool:
    """Whether an expression makes a text in the language of this moment."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = getattr(part.func, "attr", getattr(part.func, "id", ""))
            if name in TRANSLATING or (name.startswith("get_") and name.endswith("_display")):
                return True
        if isinstance(part, ast.Attribute) and part.attr == "label" and isinstance(part.value, ast.Attribute):
            return True  # Reason.IDLE.label
    return False


def prose_written(parsed: ast.AST) -> Iterator[int]:
    """Lines that hand such a text, or a name for one, to a writer."""
    for function in (node for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        texts = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and translates(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if getattr(call.func, "attr", getattr(call.func, "id", "")) not in WRITERS:
                continue
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                if translates(given) or any(isinstance(n, ast.Name) and n.id in texts for n in ast.walk(given)):
                    yield call.lineno


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('def f():\n    note(job, "x", _("Stop asked."))', True),
        ('def f():\n    said = _("Idle.") % {}\n    notify(user, text=said)', True),
        ("def f():\n    stop(job)\n    Job.objects.update(text=str(Reason.IDLE.label))", True),
        ('def f():\n    note(job, "x", message("job.idle", idle_s=3))', False),
        ('def f():\n    raise Refused(_("No."))', False),
    ],
)
def test_prose_written_finds_texts_on_their_way_into_rows(source, wrong):
    assert bool(list(prose_written(ast.parse(source)))) is wrong


def test_rows_are_given_no_translated_text():
    makes_text = rf"\b(?:{'|'.join(TRANSLATING)})\(|_display\b|\.label\b"
    found = [where(path, line) for path in modules_with(makes_text) for line in prose_written(tree(path))]

    assert [place for place in found if place.split(":")[0] not in STILL] == []
    assert {place.split(":")[0] for place in found} >= STILL, "one of them keeps facts now: take it out of the list"


#: Calls by which readers of data say what they found, and which of their arguments is the sentence.
TELLERS = {"add": 2, "note": 2, "refuse": 2, "drop": 2, "Flaw": 1, "Worded": 0, "BadImage": 0, "ArchiveRefused": 0}


def prose_told(parsed: ast.AST) -> Iterator[int]:
    """Lines that tell a report a text, whoever wrote it, where a message belongs."""
    for call in (node for node in ast.walk(parsed) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        at = TELLERS.get(name)
        if at is None or len(call.args) <= at:
            continue
        said = call.args[at]
        called = said.func if isinstance(said, ast.Call) else None
        maker = getattr(called, "attr", getattr(called, "id", ""))
        if isinstance(said, ast.Constant | ast.JoinedStr | ast.BinOp) or maker in {*TRANSLATING, "str", "verbatim"}:
            yield call.lineno


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('problems.add(path, "bad_image", "It is broken.")', True),
        ('problems.note(path, "bad_image", f"{path} is broken.")', True),
        ('report.drop("bbox", "bad_box", str(exc))', True),
        ('raise Worded(_("It is broken."))', True),
        ('raise BadImage(verbatim("It is broken."))', True),
        ('problems.add(path, "bad_image", message("report.file_empty"))', False),
        ('report.refuse("bbox", "bad_box", exc.worded)', False),
    ],
)
def test_prose_told_finds_texts_on_their_way_into_reports(source, wrong):
    assert bool(list(prose_told(ast.parse(source)))) is wrong


def test_reports_of_imports_are_told_no_prose():
    rooms = ("datasets", "aiplatform")
    found = [where(path, line) for path in modules(*rooms) for line in prose_told(tree(path))]

    assert found == []

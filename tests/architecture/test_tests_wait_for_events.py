"""Tests wait for what they need, not for a time in which it surely happens; and none takes a port that others may have.

Both fail on a busy machine and nowhere else. A pause is right where nothing may happen meanwhile, or where chance is
what is wanted: such a line says so in a comment that begins with "pause:".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.code import modules_with, text, tree, where

PAUSES = {"sleep", "wait_for_timeout"}
LISTENS = {"bind", "create_server", "start_server", "TCPServer", "HTTPServer", "ThreadingHTTPServer"}


def _outside_loops(node: ast.AST) -> Iterator[ast.Call]:
    """Calls that run once for each call of their function; a loop that looks again is no blind wait."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child
        if not isinstance(child, ast.While | ast.For | ast.AsyncFor):
            yield from _outside_loops(child)


def _pauses(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in PAUSES and not (call.args and isinstance(call.args[0], ast.Constant) and not call.args[0].value)


def _own_tests(*words: str) -> list[Path]:
    """Return the modules of the tests that name one of these words."""
    return [path for path in modules_with("|".join(words), "tests") if "bench" not in path.parts]


def test_tests_pause_only_where_they_say_why():
    blind = []
    for path in _own_tests(*PAUSES):
        lines = text(path).splitlines()
        calls = [call for call in _outside_loops(tree(path)) if _pauses(call)]
        blind += [where(path, call.lineno) for call in calls if "# pause: " not in lines[call.lineno - 1]]

    assert blind == []


@pytest.mark.parametrize(
    ("line", "is_blind"),
    [("time.sleep(1)", True), ("sleep(1)", True), ("page.wait_for_timeout(500)", True), ("sleep(0)", False)],
)
def test_pause_is_one_however_it_is_imported(line, is_blind):
    assert [_pauses(call) for call in _outside_loops(ast.parse(line))] == [is_blind]


def test_tests_ask_pages_without_eval():
    """Pages forbid `eval`, by which `wait_for_function` asks again, where its first question came early."""
    asked = [
        where(path, call.lineno)
        for path in _own_tests("wait_for_function")
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "wait_for_function"
    ]

    assert asked == []


def _number(call: ast.Call) -> int:
    """The port that a call listens on, where it is written as a number."""
    for argument in [*call.args, *[keyword.value for keyword in call.keywords if keyword.arg == "port"]]:
        pair = argument.elts if isinstance(argument, ast.Tuple) else [argument]
        for element in pair[-1:]:
            if isinstance(element, ast.Constant) and type(element.value) is int:
                return element.value
    return 0


def test_tests_listen_on_no_port_by_its_number():
    fixed = [
        where(path, node.lineno)
        for path in _own_tests(*LISTENS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in LISTENS
        and _number(node)
    ]

    assert fixed == []

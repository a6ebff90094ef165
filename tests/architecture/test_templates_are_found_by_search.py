"""Who searches for a template's name finds where it is used: names stand in code whole, not put together."""

from __future__ import annotations

import ast
import re

from tests.architecture.code import APPS, ROOT, modules, modules_with, text, tree, where

TEMPLATES = ROOT / "templates"
#: Templates that Django and its apps look for by themselves.
BY_NAME_ELSEWHERE = re.compile(r"admin/|unfold/|registration/")


def _put_together(module: ast.AST) -> list[int]:
    """Lines where the name of a template is put together: f-string, %, + or format."""
    found = []
    for node in ast.walk(module):
        match node:
            case ast.JoinedStr():
                parts: list[ast.expr] = node.values
            case ast.BinOp(op=ast.Add() | ast.Mod()):
                parts = [node.left, node.right]
            case ast.Call(func=ast.Attribute(value=value, attr="format" | "replace" | "join")):
                parts = [value]
            case _:
                continue
        if any(isinstance(part, ast.Constant) and str(part.value).endswith(".html") for part in parts):
            found.append(node.lineno)
    return found


def test_template_names_are_never_put_together():
    paths = modules_with(r"\.html", "aiplatform", *APPS)
    found = [where(path, line) for path in paths for line in _put_together(tree(path))]

    assert found == [], 'Write a table instead: {"log": "training/job_log.html", …}'


def test_template_names_put_together_are_found():
    lines = ['f"a/{tab}.html"', '"a/" + tab + ".html"', '"a/%s.html" % tab', '"a/{}.html".format(tab)', '"a/b.html"']

    assert _put_together(ast.parse("\n".join(lines))) == [1, 2, 3, 4]


def test_templates_are_all_used_under_their_whole_name():
    sources = [*modules("aiplatform", *APPS), *TEMPLATES.rglob("*.html")]
    named = {name for path in sources for name in re.findall(r"""["']([\w/.-]+\.html)[#"']""", text(path))}
    there = {path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html")}

    assert len(there) > 100
    assert {name for name in there - named if not BY_NAME_ELSEWHERE.match(name)} == set()

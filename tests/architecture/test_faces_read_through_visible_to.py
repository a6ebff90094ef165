"""Pages, API and sockets never start from all rows."""

import ast

from tests.architecture.code import ROOT, modules, tree, where

FACES = {"views", "api", "forms", "consumers"}
ALLOWED = {
    "visible_to",
    "usable_by",
    "annotatable_by",
    "reviewable_by",
    "editable_by",
    "forcible_by",
    "openable_by",
    "none",
}


def unfiltered(parsed: ast.AST):
    """Lines with X.objects.<anything but visible_to and its narrower sisters>."""
    for node in ast.walk(parsed):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr in {"objects", "_default_manager"}
            and node.attr not in ALLOWED
        ):
            yield node.lineno


def test_faces_read_through_visible_to():
    faces = [p for p in modules() if FACES & {part.removesuffix(".py") for part in p.relative_to(ROOT).parts}]

    found = [where(p, line) for p in faces for line in unfiltered(tree(p))]

    assert found == []

"""A test module is read by nobody but pytest: what several share lies in a helper module."""

import ast

from tests.architecture.code import modules, tree, where


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def test_modules_import_no_test_module():
    found = [
        where(path, node.lineno)
        for path in modules("tests")
        for node in ast.walk(tree(path))
        for name in imported(node)
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    ]

    assert sorted(set(found)) == []

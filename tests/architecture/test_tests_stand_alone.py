"""A test module is read by nobody but pytest: what several share lies in a helper module."""

import ast
import re

from tests.architecture.code import modules_with, tree, where
from tests.cases import case_table


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


#: Imports that name a module test_… below `tests`, in one line or in brackets.
NAMES_TEST_MODULE = (
    r"\bfrom\s+tests[\w.]*\.test_|\bfrom\s+tests[\w.]*\s+import\s*(?:\([^)]*|[^\n]*)\btest_|\bimport\s[^\n]*\.test_"
)


def imports_of_tests(parsed: ast.AST) -> list[int]:
    names = [(node.lineno, name) for node in ast.walk(parsed) for name in imported(node)]
    return [line for line, name in names if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")]


def test_modules_import_no_test_module():
    found = {
        where(path, line) for path in modules_with(NAMES_TEST_MODULE, "tests") for line in imports_of_tests(tree(path))
    }

    assert sorted(found) == []


@case_table(
    "source",
    [
        "from tests.workers import test_a",
        "from tests.workers import work, test_a",
        "from tests.workers import (\n    work,\n    test_a,\n)",
        "from tests.workers.test_a import ended",
        "def f():\n    import tests.workers.test_a",
        "import ast, tests.workers.test_a",
    ],
)
def test_import_of_a_test_module_is_found(source):
    assert re.search(NAMES_TEST_MODULE, source)
    assert imports_of_tests(ast.parse(source))

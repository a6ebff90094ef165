"""The product's own source files, parsed."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRANSLATING = {"_", "gettext", "ngettext", "pgettext", "npgettext"}  # names of calls that make a text in a language
APPS = ["accounts", "datasets", "annotation", "training", "inference", "workers"]


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders or APPS:
        yield from (p for p in sorted((ROOT / folder).rglob("*.py")) if "migrations" not in p.parts)


def modules_with(pattern: str, *folders: str) -> Iterator[Path]:
    """Yield the modules whose text matches a regular expression.

    Parsing a module and visiting its nodes takes 50 times as long as a search in its text. The pattern must match every
    module that may hold what the test looks for; what it matches beyond that costs only time.
    """
    search = re.compile(pattern).search
    yield from (path for path in modules(*folders) if search(text(path)))


@cache
def text(path: Path) -> str:
    return path.read_text()


def tree(path: Path) -> ast.AST:
    return ast.parse(text(path))


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"

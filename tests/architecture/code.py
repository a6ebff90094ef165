"""The product's own source files, parsed."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRANSLATING = {"_", "gettext", "ngettext", "pgettext", "npgettext"}  # names of calls that make a text in a language
APPS = ["accounts", "datasets", "annotation", "training", "inference", "workers"]


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders or APPS:
        yield from (p for p in sorted((ROOT / folder).rglob("*.py")) if "migrations" not in p.parts)


def tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"

"""Packages of each app: few, by subject, and services of workers independent of pages and API."""

import ast
from pathlib import Path

import pytest

from tests.architecture.code import ROOT, modules, tree, where

APPS = ("accounts", "aiplatform", "annotation", "datasets", "inference", "training", "workers")
MAX_PACKAGES = 9
MAX_LOOSE_MODULES = 8
#: Folders that Django reads by their names.
DJANGO = {"migrations", "management", "templatetags", "static", "__pycache__"}
WORKERS = ROOT / "workers"
USER_INTERFACES = {"views", "api", "forms", "sockets"}
ROUTES = {"urls", "api_urls"}


@pytest.mark.parametrize("app", APPS)
def test_app_has_few_packages_and_loose_modules(app):
    packages = {path.name for path in (ROOT / app).iterdir() if path.is_dir()} - DJANGO
    loose = {path.stem for path in (ROOT / app).glob("*.py")} - {"__init__"}

    assert len(packages) <= MAX_PACKAGES, sorted(packages)
    assert len(loose) <= MAX_LOOSE_MODULES, sorted(loose)


def is_user_interface(path: Path) -> bool:
    parts = {part.removesuffix(".py") for part in path.relative_to(WORKERS).parts}
    return bool((USER_INTERFACES | ROUTES) & parts)


def imported_names(path: Path) -> list[tuple[int, str]]:
    """Return (line, dotted name) of what a module imports from workers."""
    return [
        (node.lineno, f"{node.module}.{alias.name}")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("workers.")
        for alias in node.names
    ]


def test_services_of_workers_import_no_user_interface():
    folders = [path.name for path in WORKERS.iterdir() if path.is_dir() and path.name not in DJANGO]
    services = [path for name in folders for path in modules(f"workers/{name}") if not is_user_interface(path)]

    imports = [
        where(path, line)
        for path in services
        for line, name in imported_names(path)
        if USER_INTERFACES & set(name.split(".")[1:])
    ]

    assert services
    assert imports == []

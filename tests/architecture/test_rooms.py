"""The rooms of workers: each with the same face, and no service that knows a face."""

import ast
from pathlib import Path

from tests.architecture.code import ROOT, modules, tree, where

WORKERS = ROOT / "workers"
ROOMS = (
    *("clusters", "machines", "jobs", "output", "exec", "proxy", "execution", "scheduling", "monitoring"),
    *("images", "ssh"),
)
FACES = {"views", "api", "forms", "sockets"}
ROUTES = {"urls", "api_urls"}


def _is_face(path: Path) -> bool:
    return bool((FACES | ROUTES) & {part.removesuffix(".py") for part in path.relative_to(WORKERS).parts})


def _imported(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("workers."):
            found += [(node.lineno, f"{node.module}.{name.name}") for name in node.names]
    return found


def test_room_services_import_no_face():
    services = [p for room in ROOMS for p in modules(f"workers/{room}") if not _is_face(p)]

    found = [
        where(path, line) for path in services for line, name in _imported(path) if FACES & set(name.split(".")[1:])
    ]

    assert services
    assert found == []


def test_workers_folders_are_rooms_the_core_or_a_part_of_django():
    known = {*ROOMS, "planner", "simulator", "supervisor", "models", "migrations", "management", "static"}

    there = {p.name for p in WORKERS.iterdir() if p.is_dir() and p.name != "__pycache__"}

    assert there == known

"""What guards something stands once: who mends it mends it everywhere."""

from __future__ import annotations

import ast
import re

import pytest

from aiplatform.lib.tables import FORMULA, cell
from tests.architecture.code import APPS, ROOT, modules_with, tree, where

SCRIPTS = [path for app in ("aiplatform", *APPS) for path in sorted((ROOT / app).glob("static/**/*.js"))]


def _files_that_call(*names: str) -> list[str]:
    """Files with a call of one of these functions, by its full name or its last words."""
    last_words = "|".join(sorted({name.rpartition(".")[2] for name in names}))
    calls = [
        (ast.unparse(node.func), where(path, node.lineno).rpartition(":")[0])
        for path in modules_with(rf"\b(?:{last_words})\b", "aiplatform", *APPS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]
    return sorted(
        {file for called, file in calls if any(called == name or called.endswith(f".{name}") for name in names)}
    )


@pytest.mark.parametrize("sign", FORMULA)
def test_cell_guard_makes_no_formula(sign):
    assert cell(f"{sign}cmd|'/c calc'!A1").startswith("'")


def test_spreadsheet_tables_are_written_by_the_one_that_guards_cells():
    assert _files_that_call("csv.writer", "DictWriter") == ["aiplatform/lib/tables.py"]


def test_redis_clients_are_made_in_one_place():
    made = _files_that_call("Redis.from_url", "Redis", "StrictRedis", "ConnectionPool.from_url")

    assert made == ["aiplatform/lib/redis_client.py"]


def test_csrf_token_is_found_by_one_script():
    reading = re.compile(r"""csrf-token|csrftoken["'=)|]|__Host-csrf|csrfmiddlewaretoken""")

    found = [path.relative_to(ROOT).as_posix() for path in SCRIPTS if reading.search(path.read_text())]

    assert len(SCRIPTS) > 20
    assert found == ["aiplatform/static/base/api.js"]

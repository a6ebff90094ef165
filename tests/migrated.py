"""A migrated SQLite database, made once and copied by every test process after: making takes seconds, copying none.

The copy is still migrated when tests begin, which finds nothing to do and runs what follows every migration.
`python -m tests.migrated` makes it where it is missing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".test_cache"


def migrations() -> list[Path]:
    """The migrations of all apps, of apps within apps too."""
    from aiplatform.cli.gate_steps import APPS  # not above: it reads settings that benches make first

    return sorted(path for app in APPS for path in (ROOT / app).glob("**/migrations/*.py"))


def template() -> Path:
    """Where the database lies that belongs to today's migrations and packages."""
    seal = hashlib.sha256((ROOT / "requirements.lock").read_bytes())
    for path in migrations():
        seal.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return KEPT / f"migrated-{seal.hexdigest()[:16]}.sqlite3"


def take(target: Path) -> bool:
    """Put a copy at `target`; whether there was one to take."""
    target.unlink(missing_ok=True)
    try:
        shutil.copyfile(template(), target)
    except FileNotFoundError:
        return False
    return True


def begin(folder: Path) -> None:
    """Let a platform's data folder begin with a copy, unless it has a database."""
    target = folder / "aiplatform.sqlite3"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        take(target)


def keep(source: Path) -> None:
    """Keep the database at `source`, as the only one."""
    KEPT.mkdir(exist_ok=True)
    target = template()
    fresh = target.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with sqlite3.connect(source) as database:
        database.execute("VACUUM INTO ?", (str(fresh),))
    database.close()
    fresh.replace(target)
    for old in KEPT.glob("migrated-*.sqlite3"):
        if old != target:
            old.unlink(missing_ok=True)


def main(where: str = "") -> None:
    """Make it, unless it is there; or create the tables of the configured database ("here")."""
    is_own_root = "AIP_TEST_ROOT" not in os.environ
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import tests.settings  # noqa: F401 - before anything reads the data folder of an installation

    try:
        if where or not template().exists():
            _create(keep_it=not where)
    finally:
        if is_own_root:
            shutil.rmtree(os.environ["AIP_TEST_ROOT"], ignore_errors=True)


def _create(*, keep_it: bool) -> None:
    import django
    from django.db import connection

    from aiplatform.cli import schema

    django.setup()
    schema.create()
    if keep_it:
        keep(Path(connection.settings_dict["NAME"]))


if __name__ == "__main__":
    main(*sys.argv[1:])

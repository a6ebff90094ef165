"""`python3 manage.py restore BACKUP`: restore a backup into an empty data root and an empty database.

What became of waiting and running jobs since the backup is not known. They are lost, not started again: their owners
are told and may restore them from their newest checkpoint.

Django and the apps are imported inside functions: only after `django.setup()` can they be.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from aiplatform import env
from aiplatform.cli.backups import database, folder_copies
from aiplatform.cli.backups.messages import FORMAT, MANIFEST, SECRET, UNFINISHED, Refused
from aiplatform.lib.files import sha256_of

EMPTY_ANYWAY = {"lost+found", UNFINISHED}


def main(argv: list[str]) -> int:
    """Parse the command line, restore, print what to do next."""
    parser = argparse.ArgumentParser(prog="manage.py restore", description=__doc__.partition("\n")[0])
    parser.add_argument("backup", type=Path, help="a folder created by `manage.py backup`")
    parser.add_argument(
        "--keep-queue", action="store_true",
        help="keep queued jobs in the queue: only if nothing ran since the backup, otherwise they run twice",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(argv)
    try:
        summary = bring_back(options.backup, keep_queue=options.keep_queue)
    except (Refused, OSError) as refusal:
        print(f"Not restored: {refusal}")
        return 1
    if options.json:
        print(json.dumps(summary))
        return 0
    print(f"Restored into {env.DATA_ROOT} as of {summary['made_at']}: {summary['files']} files.")
    lost = len(summary["lost"])
    jobs = (
        "1 job was queued or running then and is" if lost == 1 else f"{lost:,} jobs were queued or running then and are"
    )
    print(f"{jobs} lost; {summary['waiting']:,} still queued.")
    for name in summary["set_aside"]:
        print(f"newer than the database, moved aside: {name}")
    if summary["database"] == database.POSTGRESQL:
        print("Restore the permissions of the node user: manage.py deploy --grants | psql -U postgres aip")
    print("Start it: python3 manage.py up")
    return 0


def bring_back(backup: Path, *, keep_queue: bool = False) -> dict[str, Any]:
    """Restore `backup` and return what was done.

    Raises:
        Refused: it is no whole backup, or something is there already.
        OSError: no room, or no right to write; empty the data root before trying again.
    """
    facts = read(backup)
    there = {path.name for path in env.DATA_ROOT.iterdir()} - EMPTY_ANYWAY if env.DATA_ROOT.exists() else set()
    if there:
        raise Refused(f"{env.DATA_ROOT} is not empty (AIP_DATA_ROOT). Move its contents away, or use another folder.")
    env.DATA_ROOT.mkdir(parents=True, exist_ok=True)
    (env.DATA_ROOT / UNFINISHED).touch()
    if facts["secret"] and not env.SECRET_KEY:  # before the settings make one
        env.RUN_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(backup / SECRET, env.RUN_DIR / SECRET)
        (env.RUN_DIR / SECRET).chmod(0o600)
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    if database.kind(connection) != facts["database"]:
        raise Refused(f"The backup is of {facts['database']}, but AIP_DATABASE_URL names {database.kind(connection)}.")
    if not database.is_empty(connection):
        raise Refused("The database is not empty. Create an empty one, and set AIP_DATABASE_URL to it.")
    moved = (facts["root"], str(env.DATA_ROOT))
    copied = folder_copies.copy_tree(backup / "data", env.DATA_ROOT, moved=moved if moved[0] != moved[1] else None)
    if copied.files != facts["files"]:
        raise Refused(f"The backup is damaged: it should have {facts['files']} files, but has {copied.files}.")
    database.put_back(connection, backup / "database")
    _check_program(connection)
    call_command("migrate", interactive=False, verbosity=0)
    from aiplatform.cli.backups import settling

    settled = settling.settle(
        made_at=datetime.fromisoformat(facts["made_at"]), moved=moved, keep_queue=keep_queue
    )  # fmt: skip
    os.sync()
    (env.DATA_ROOT / UNFINISHED).unlink()
    return {"made_at": facts["made_at"], "database": facts["database"], "files": copied.files, **settled}


def read(backup: Path) -> dict[str, Any]:
    """Read the manifest of a complete backup.

    Raises:
        Refused: it is none, or its database is damaged.
    """
    try:
        facts: dict[str, Any] = json.loads((backup / MANIFEST).read_text())
    except (OSError, ValueError) as exc:
        raise Refused(f"{backup} is not a complete backup: {exc}") from exc
    if facts.get("format") != FORMAT:
        raise Refused(f"{backup} was created by another version of the program ({facts.get('program')}).")
    if sha256_of(backup / "database") != facts["database_sha256"]:
        raise Refused(f"{backup}/database is damaged: the checksum does not match.")
    return facts


def _check_program(connection: Any) -> None:
    """Refuse a newer program's backup, whose columns this one does not know."""
    from django.db.migrations.loader import MigrationLoader

    loader = MigrationLoader(connection)
    if unknown := sorted(set(loader.applied_migrations) - set(loader.disk_migrations)):
        named = ", ".join(".".join(key) for key in unknown[:3])
        raise Refused(f"The backup is from a newer program: it has {named}. Install that version first.")

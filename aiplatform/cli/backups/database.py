"""Dump a database at one moment, and load the dump. SQLite by its online copy, PostgreSQL by pg_dump."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from aiplatform.cli.backups.messages import Refused

SQLITE, POSTGRESQL = "sqlite", "postgresql"


def kind(connection: Any) -> str:
    """Return "sqlite" or "postgresql" for a Django connection."""
    return SQLITE if connection.vendor == "sqlite" else POSTGRESQL


def dump(connection: Any, target: Path) -> None:
    """Write everything committed at this moment; writers are not blocked.

    Raises:
        Refused: PostgreSQL's programs are missing, or do not fit the server; with their own words.
    """
    if kind(connection) == SQLITE:
        with sqlite3.connect(str(connection.settings_dict["NAME"]), timeout=60) as source:
            copy = sqlite3.connect(target)
            source.backup(copy)
            copy.close()
        source.close()
        return
    _run(connection, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")


def put_back(connection: Any, source: Path) -> None:
    """Load what `dump` wrote into an empty database.

    Raises:
        Refused: the file is damaged, or PostgreSQL would not take it.
    """
    if kind(connection) == SQLITE:
        with sqlite3.connect(source) as backup:
            check = backup.execute("PRAGMA quick_check").fetchone()[0]
        backup.close()
        if check != "ok":
            raise Refused(f"{source} is damaged: {check}")
        shutil.copyfile(source, str(connection.settings_dict["NAME"]))
        return
    _run(connection, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction",
         f"--dbname={connection.settings_dict['NAME']}", str(source))  # fmt: skip


def is_empty(connection: Any) -> bool:
    """Whether the database holds nothing. A SQLite file that does not exist is empty."""
    if kind(connection) == SQLITE:
        return not Path(connection.settings_dict["NAME"]).exists()
    empty = not connection.introspection.table_names()
    connection.close()
    return empty


def _run(connection: Any, name: str, *args: str) -> None:
    """Run a PostgreSQL program, with the password in the environment, hidden from other users."""
    options = connection.settings_dict
    variables = {
        "PGHOST": options["HOST"], "PGPORT": str(options["PORT"] or 5432), "PGUSER": options["USER"],
        "PGPASSWORD": options["PASSWORD"], "PGDATABASE": options["NAME"],
    }  # fmt: skip
    environment = os.environ | {key: str(value) for key, value in variables.items() if value}
    result = subprocess.run([_program(name), *args], env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Refused(f"{name} failed: {result.stderr.strip()[-2000:]}")


def _program(name: str) -> str:
    """The newest of this name: an older one refuses a newer server."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    program = str(versions[-1]) if versions else shutil.which(name)
    if program is None:
        raise Refused(
            f"The program {name} is not installed. Install the PostgreSQL client programs (postgresql-client)."
        )
    return program

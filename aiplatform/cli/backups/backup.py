"""`python3 manage.py backup FOLDER`: back up database and data root while the platform runs.

The database is kept as of one moment, then the files are copied. Rows point only at files that were whole before,
so whatever the kept database knows is among the copied files; `restore` recognizes files that were added later.
Files that an earlier backup in the same FOLDER has are linked, so that a daily backup costs what changed.

Django and the apps are imported inside functions: only after `django.setup()` can they be.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from aiplatform import __version__, env
from aiplatform.cli.backups import database, folder_copies
from aiplatform.cli.backups.messages import FORMAT, MANIFEST, REBUILT, SECRET, Refused, is_within
from aiplatform.lib.files import remove_tree, sha256_of, write_json

DATABASE = "aiplatform.sqlite3"


def main(argv: list[str]) -> int:
    """Parse the command line, make one backup, say where it is."""
    parser = argparse.ArgumentParser(prog="manage.py backup", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder outside the data root; each backup is a subfolder")
    parser.add_argument("--keep", type=int, metavar="N", help="then remove all but the newest N backups")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(argv)
    if options.keep is not None and options.keep < 1:
        parser.error("--keep: at least 1")
    import django

    django.setup()
    begun = time.monotonic()
    try:
        made = make(options.folder)
        removed = [] if options.keep is None else thin_out(options.folder, options.keep)
    except (Refused, OSError) as refusal:
        print(f"No backup was created: {refusal}")
        return 1
    facts = json.loads((made / MANIFEST).read_text())
    if options.json:
        print(json.dumps({"backup": str(made), "removed": [str(path) for path in removed], **facts}))
        return 0
    print(
        f"{made}: database and {facts['files']} files, {facts['bytes'] / 1000000000.0:.2f} GB, {facts['linked']} "
        f"of them unchanged since the previous backup; {time.monotonic() - begun:.0f} s"
    )
    if not facts["secret"]:
        print("AIP_SECRET_KEY is not included: store it separately; without it second factors cannot be verified.")
    if facts["too_deep"]:
        paths = "1 path is" if facts["too_deep"] == 1 else f"{facts['too_deep']:,} paths are"
        print(f"{paths} longer than {folder_copies.MAX_LENGTH:,} bytes and not included.")
    for path in removed:
        print(f"removed {path}")
    return 0


def make(folder: Path) -> Path:
    """Make a backup in `folder` and return its path. It gets its name only when it is complete.

    Raises:
        Refused, OSError: nothing is left behind.
    """
    from django.db import connection

    if is_within(folder, env.DATA_ROOT) or is_within(env.DATA_ROOT, folder):
        raise Refused(f"{folder} and the data root {env.DATA_ROOT} must not contain each other.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left in folder.glob(".*.part"):  # of one that was killed
        remove_tree(left)
    moment = datetime.now(UTC)
    name = moment.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
    part, before = folder / f".{name}.part", list_complete(folder)
    part.mkdir(mode=0o700)
    try:
        database.dump(connection, part / "database")
        copied = folder_copies.copy_tree(
            env.DATA_ROOT, part / "data", leave_out=left_out, earlier=before[-1] / "data" if before else None
        )
        secret = env.RUN_DIR / SECRET
        if not env.SECRET_KEY:
            shutil.copy2(secret, part / SECRET)
        os.sync()
        facts = {
            "format": FORMAT, "made_at": moment.isoformat(), "program": __version__, "root": str(env.DATA_ROOT),
            "database": database.kind(connection), "database_sha256": sha256_of(part / "database"),
            "secret": not env.SECRET_KEY, **vars(copied),
        }  # fmt: skip
        write_json(part / MANIFEST, facts)
        part.rename(folder / name)
    except BaseException:
        remove_tree(part)
        raise
    return folder / name


def left_out(relative: str) -> bool:
    """Whether a path is left out: the database (copied apart), sockets, locks, caches."""
    first = relative.partition("/")[0]
    own = env.RUN_DIR.is_relative_to(env.DATA_ROOT) and first == env.RUN_DIR.relative_to(env.DATA_ROOT).parts[0]
    return own or first in REBUILT or first.startswith(DATABASE)


def list_complete(folder: Path) -> list[Path]:
    """Return complete backups in `folder`, oldest first."""
    return sorted(path.parent for path in folder.glob(f"[0-9]*Z/{MANIFEST}"))


def thin_out(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest `keep` backups; return those removed."""
    gone = list_complete(folder)[:-keep]
    for path in gone:
        remove_tree(path)
    return gone

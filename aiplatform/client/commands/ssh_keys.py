"""`aip ssh-keys`: public keys with which you sign in to running jobs."""

from __future__ import annotations

import argparse
import platform as computer
from pathlib import Path

from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

COLUMNS = columns("Name=name, Kind=kind, Fingerprint=fingerprint, Added=created_at")
USUAL = ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub")
MAX_BYTES = 10_000


def _add(args: argparse.Namespace) -> None:
    path = args.file or next((key for name in USUAL if (key := Path.home() / ".ssh" / name).is_file()), None)
    if path is None:
        raise ClientError("No public key in ~/.ssh. Create one with: ssh-keygen -t ed25519", USAGE)
    try:
        line = path.read_text(encoding="utf-8", errors="replace")[:MAX_BYTES].strip()
    except OSError as exc:
        raise ClientError(f"{path} cannot be read: {exc.strerror}.", NOT_FOUND) from exc
    row = args.client.post("ssh-keys/", {"name": args.name or computer.node()[:50] or path.stem, "line": line})
    done(args, row, f"Added {path} as {row['name']}.")


def _find_id(client: Client, name: str) -> int:
    rows = [row for row in client.pages("ssh-keys/") if name in (row["name"], str(row["id"]), row["fingerprint"])]
    if len(rows) != 1:
        problem = f"You have no SSH key {name}." if not rows else f"Several SSH keys have the name {name}; use the id."
        raise ClientError(f"{problem} aip ssh-keys list shows them.", NOT_FOUND)
    return int(rows[0]["id"])


NOUNS = {
    "ssh-keys": (
        Verb("list", "List your SSH keys.", get="ssh-keys/", table=COLUMNS,
             empty="No SSH keys yet. Add one: aip ssh-keys add"),
        Verb("add", "Add a public key.", (
            option("file", type=Path, nargs="?", help="a .pub file (the first one in ~/.ssh)"),
            option("--name", help="name of the key (name of this computer)"),
        ), run=_add),
        Verb("delete", "Delete a key: it is rejected from then on.", (
            option("key", find=_find_id, help="name, id or fingerprint"),
        ), delete="ssh-keys/{key}/", done="Deleted {args.key}."),
    ),
}  # fmt: skip

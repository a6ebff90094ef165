"""`aip files`: the home folder on the platform, and folders that others share."""

from __future__ import annotations

import argparse
import os
import shlex
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from aiplatform.client import download, output, tus
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, show_list
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
COLUMNS: list[Column] = [
    ("name", lambda row: row["name"] + ("/" if row["kind"] == "folder" else "")),
    ("size", lambda row: output.size(row["size_bytes"]) if row["kind"] == "file" else row["kind"]),
    ("changed", lambda row: output.ago(row.get("changed_at"))),
]
SHARED: list[Column] = [("id", "id"), ("owner", "owner"), ("folder", "path")]


def add(nouns: Nouns, parent: Parent) -> None:
    files = Noun(nouns, parent, "files", "Your home folder on the platform: the same files in every environment.")
    verb = files.verb("ls", listed, "List a folder.")
    verb.add_argument("path", nargs="?", default="", help="the home itself when left out")
    _shared(verb)
    verb = files.verb("get", get, "Download a file, or a folder with all in it.")
    verb.add_argument("path")
    verb.add_argument("--to", type=Path, metavar="PATH", help="file or folder to write; its own name when left out")
    _shared(verb)
    verb = files.verb("put", put, "Upload files and folders; what was cut goes on when it is run again.")
    verb.add_argument("local", nargs="+", type=Path, help="files or folders here")
    verb.add_argument("--to", default="", metavar="FOLDER", help="folder there; the home itself when left out")
    verb.add_argument("--replace", action="store_true", help="replace files of the same name")
    verb.add_argument("--skip", action="store_true", help="leave out what is there already")
    verb = files.verb("rm", remove, "Delete a file, or a folder with all in it.")
    verb.add_argument("path", nargs="+")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    files.verb("mkdir", make_folder, "Make a folder, with those above it.").add_argument("path")
    verb = files.verb("mv", move, "Give a file or folder another name or place.")
    verb.add_argument("path")
    verb.add_argument("to", help="its whole new path")
    verb.add_argument("--replace", action="store_true", help="replace what is there")
    verb = files.verb("share", share, "Let others read a folder.")
    verb.add_argument("path")
    verb.add_argument("--person", action="append", default=[], metavar="NAME", help="username; repeat for more")
    verb.add_argument("--group", action="append", default=[], metavar="NAME", help="name of a group; repeat for more")
    verb.add_argument("--stop", action="store_true", help="take it back from them")
    files.verb("shared", shared, "Folders that others share with you, and those you share.")
    files.verb("usage", usage, "How much your home holds and may hold.")


def _shared(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--shared", type=int, metavar="ID", help="in this shared folder (see: aip files shared)")


def listed(args: argparse.Namespace) -> None:
    rows = args.client.pages("files/", path=args.path or None, shared=args.shared)
    show_list(args, rows, COLUMNS, empty="Nothing here yet.")


def get(args: argparse.Namespace) -> None:
    query = {"path": args.path, "shared": args.shared}
    entry = args.client.get("files/about/", **query)
    target = args.to or Path(PurePosixPath(output.clean(entry["name"]) or "home").name)
    if entry["kind"] == "folder":
        count = _bring_folder(args.client, query, target, quiet=args.json)
        done(args, entry, f"{count} {'file' if count == 1 else 'files'} in {target}")
        return
    target = target / entry["name"] if target.is_dir() else target
    download.fetch(args.client, "files/content/", target, query=query, quiet=args.json)
    done(args, entry, f"Saved as {target}")


def _bring_folder(client: Client, query: dict[str, Any], folder: Path, *, quiet: bool) -> int:
    packed = folder / ".aip-files.zip"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        download.fetch(client, "files/zip/", packed, query=query, quiet=quiet)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)  # zipfile cuts names that would lead out of it
            count = len(archive.namelist())
        packed.unlink()
    except OSError as exc:
        raise ClientError(f"{shlex.quote(str(folder))} cannot be written: {exc.strerror}.") from exc
    return count


def put(args: argparse.Namespace) -> None:
    if args.replace and args.skip:
        raise ClientError("Give --replace or --skip, not both.", USAGE)
    brought = skipped = 0
    row: Any = None
    for source, name in _sources(args.local):
        path = "/".join(part for part in (args.to.strip("/"), name) if part)
        where = {"path": path, "replace": args.replace}
        try:
            _patiently(args.client, "files/check/", {**where, "size_bytes": source.stat().st_size})
        except ClientError as exc:
            if not (args.skip and exc.code == "name_taken"):
                raise
            skipped += 1
            continue
        upload = tus.upload(args.client, source, name=name.rsplit("/", 1)[-1], quiet=args.json)
        row = _patiently(args.client, "files/put/", {**where, "upload": upload})
        brought += 1
    left_out = f", {skipped} there already" if skipped else ""
    done(args, row, f"{brought} {'file' if brought == 1 else 'files'} brought{left_out}.")


def _patiently(client: Client, route: str, body: dict[str, Any], *, pause: Callable[[float], None] = time.sleep) -> Any:
    """POST one intention, again where no answer comes: what took hours to send does not fail at its last step."""
    key = {"Idempotency-Key": uuid.uuid4().hex}
    for wait_s in PAUSES_S:
        try:
            return client.call("POST", route, body=body, headers=key)
        except ClientError as exc:
            if exc.status not in (0, 502, 503, 504) and exc.code != "idempotency_in_progress":
                raise
            pause(wait_s)
    return client.call("POST", route, body=body, headers=key)


def _sources(given: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each file with its path below the folder it goes to; links in folders are left out."""
    for source in given:
        if source.is_file():
            yield source, _written(source.name)
        elif source.is_dir():
            top = source.resolve()
            for folder, below, names in os.walk(top):
                below.sort()
                for path in (Path(folder, name) for name in sorted(names)):
                    if path.is_file() and not path.is_symlink():
                        yield path, _written(path.relative_to(top.parent).as_posix())
        else:
            raise ClientError(f"{source} is not there.", NOT_FOUND)


def _written(path: str) -> str:
    """A path here as the platform writes it: a backslash as two, bytes that are no UTF-8 as \\xNN."""
    signs = path.replace("\\", "\\\\")
    return "".join(f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in signs)


def remove(args: argparse.Namespace) -> None:
    confirm(args, f"Delete {', '.join(args.path)}? It cannot be brought back.")
    for path in args.path:
        args.client.post("files/remove/", {"path": path})
    done(args, {}, f"Deleted {output.clean(', '.join(args.path))}.")


def make_folder(args: argparse.Namespace) -> None:
    row = args.client.post("files/folder/", {"path": args.path}, once=True)
    done(args, row, f"Made {output.clean(row['path'])}.")


def move(args: argparse.Namespace) -> None:
    row = args.client.post("files/move/", {"path": args.path, "to": args.to, "replace": args.replace}, once=True)
    done(args, row, f"It is at {output.clean(row['path'])} now.")


def share(args: argparse.Namespace) -> None:
    if not args.person and not args.group:
        raise ClientError("Say with whom: --person NAME or --group NAME.", USAGE)
    row = args.client.post("files/share/", {"path": args.path}, once=True)
    level = None if args.stop else "view"
    whom = [{"person": name} for name in args.person] + [{"group_name": name} for name in args.group]
    for one in whom:
        args.client.call("PUT", f"shares/folder/{row['id']}/", body={**one, "level": level})
    names = ", ".join([*args.person, *args.group])
    done(args, row, output.clean(f"{row['path']} is {'no longer ' if args.stop else ''}shared with {names}."))


def shared(args: argparse.Namespace) -> None:
    show_list(args, args.client.get("files/shared/"), SHARED, empty="Nobody shares a folder with you yet.")


def usage(args: argparse.Namespace) -> None:
    row = args.client.get("files/usage/")
    of = f" of {output.size(row['quota_bytes'])}" if row["quota_bytes"] else ""
    least = "" if row["whole"] else "at least "
    done(args, row, f"{least}{output.size(row['size_bytes'])}{of}, {row['files']} files")

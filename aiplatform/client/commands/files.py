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
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import LIMIT, YES, flag, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, confirm, done

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
COLUMNS = columns(
    "name=|name, size=|size, changed=changed_at|ago",
    name=lambda row: row["name"] + ("/" if row["kind"] == "folder" else ""),
    size=lambda row: output.size(row["size_bytes"]) if row["kind"] == "file" else row["kind"],
)
SHARED = option("--shared", type=int, metavar="ID", help="in this shared folder (see: aip files shared)")


def _download(args: argparse.Namespace) -> None:
    query = {"path": args.path, "shared": args.shared}
    entry = args.client.get("files/about/", **query)
    target = args.to or Path(PurePosixPath(output.clean(entry["name"]) or "home").name)
    if entry["kind"] == "folder":
        count = _download_folder(args.client, query, target, quiet=args.json)
        done(args, entry, f"{count} {'file' if count == 1 else 'files'} in {target}")
        return
    target = target / entry["name"] if target.is_dir() else target
    download.fetch(args.client, "files/content/", target, query=query, quiet=args.json)
    done(args, entry, f"Saved as {target}")


def _download_folder(client: Client, query: dict[str, Any], folder: Path, *, quiet: bool) -> int:
    packed = folder / ".aip-files.zip"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        download.fetch(client, "files/zip/", packed, query=query, quiet=quiet)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)  # zipfile cuts names that would lead out of it
            count = len(archive.namelist())
        packed.unlink()
    except OSError as exc:
        raise ClientError(f"{shlex.quote(str(folder))} is not writable: {exc.strerror}.") from exc
    return count


def _upload(args: argparse.Namespace) -> None:
    if args.replace and args.skip:
        raise ClientError("Specify --replace or --skip, not both.", USAGE)
    uploaded = skipped = 0
    row: Any = None
    for source, name in _sources(args.local):
        path = "/".join(part for part in (args.to.strip("/"), name) if part)
        target = {"path": path, "replace": args.replace}
        try:
            _patiently(args.client, "files/check/", {**target, "size_bytes": source.stat().st_size})
        except ClientError as exc:
            if not (args.skip and exc.code == "name_taken"):
                raise
            skipped += 1
            continue
        upload = tus.upload(args.client, source, name=name.rsplit("/", 1)[-1], quiet=args.json)
        row = _patiently(args.client, "files/put/", {**target, "upload": upload})
        uploaded += 1
    left_out = f", {skipped} already exist" if skipped else ""
    done(args, row, f"{uploaded} {'file' if uploaded == 1 else 'files'} uploaded{left_out}.")


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


def _sources(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each file with its path below the folder it goes to; links in folders are left out."""
    for source in paths:
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
            raise ClientError(f"{source} not found.", NOT_FOUND)


def _written(path: str) -> str:
    """A path here as the platform writes it: a backslash as two, bytes that are no UTF-8 as \\xNN."""
    signs = path.replace("\\", "\\\\")
    return "".join(f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in signs)


def _remove(args: argparse.Namespace) -> None:
    confirm(args, f"Delete {', '.join(args.path)}? This cannot be undone.")
    for path in args.path:
        args.client.post("files/remove/", {"path": path})
    done(args, {}, f"Deleted {output.clean(', '.join(args.path))}.")


def _share(args: argparse.Namespace) -> None:
    if not args.person and not args.group:
        raise ClientError("Specify users or groups: --person NAME or --group NAME.", USAGE)
    row = args.client.post("files/share/", {"path": args.path}, once=True)
    level = None if args.stop else "view"
    holders = [{"person": name} for name in args.person] + [{"group_name": name} for name in args.group]
    for holder in holders:
        args.client.call("PUT", f"shares/folder/{row['id']}/", body={**holder, "level": level})
    names = ", ".join([*args.person, *args.group])
    done(args, row, output.clean(f"{row['path']} is {'no longer ' if args.stop else ''}shared with {names}."))


def _describe_usage(args: argparse.Namespace, row: Any) -> str:
    quota = f" of {output.size(row['quota_bytes'])}" if row["quota_bytes"] else ""
    least = "" if row["whole"] else "at least "
    return f"{least}{output.size(row['size_bytes'])}{quota}, {row['files']} files"


UPLOADS = columns("id, file=filename, size=length|size, received=offset|size, state, expires=expires_at|ago")

NOUNS = {
    "uploads": (Verb("list", "List uploads.", (LIMIT,), get="uploads/", table=UPLOADS, empty="No uploads."),),
    "files": (
        Verb("ls", "List a folder.", (option("path", nargs="?", help="default: the home folder"), SHARED),
             get="files/", table=COLUMNS),
        Verb("get", "Download a file, or a folder with its contents.", (
            option("path"),
            option("--to", type=Path, metavar="PATH", help="target file or folder; default: its own name"),
            SHARED,
        ), run=_download),
        Verb("put", "Upload files and folders; interrupted uploads resume when run again.", (
            option("local", nargs="+", type=Path, help="local files or folders"),
            option("--to", default="", metavar="FOLDER", help="target folder; default: the home folder"),
            flag("--replace", help="replace files of the same name"),
            flag("--skip", help="skip existing files"),
        ), run=_upload),
        Verb("rm", "Delete a file, or a folder with its contents.", (option("path", nargs="+"), YES), run=_remove),
        Verb("mkdir", "Create a folder with its parents.", (option("path"),),
             post="files/folder/", once=True, done="Created {row[path]}."),
        Verb("mv", "Rename or move a file or folder.", (
            option("path"),
            option("to", help="new path"),
            flag("--replace", help="replace existing files"),
        ), post="files/move/", once=True, done="Moved to {row[path]}."),
        Verb("share", "Share a folder for reading.", (
            option("path"),
            repeated("--person", default=[], metavar="NAME", help="username; can be repeated"),
            repeated("--group", default=[], metavar="NAME", help="name of a group; can be repeated"),
            flag("--stop", help="stop sharing"),
        ), run=_share),
        Verb("shared", "List folders shared with you and by you.",
             get="files/shared/", table=columns("id, owner, folder=path"),
             empty="No folders are shared with you yet."),
        Verb("usage", "Show storage use and quota of your home.", get="files/usage/", done=_describe_usage),
    ),
}  # fmt: skip

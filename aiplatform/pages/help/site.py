"""The built help site on disk: `AIP_DATA_ROOT/help/current` links to the newest of its versions.

A version is a folder named by the digest of its sources and a random part. `manifest.json` in it lists every file with
digest and type, so that a request finds a file by its name in a table and never by a path.
"""

from __future__ import annotations

import json
import mimetypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from aiplatform import env

CURRENT: Final = "current"
MANIFEST: Final = "manifest.json"
#: Suffix of the compressed form of a file by its content encoding.
COMPRESSED: Final = {"br": ".br", "gzip": ".gz"}


@dataclass(frozen=True)
class SiteFile:
    """A file of the site.

    Attributes:
        is_immutable: its name changes with its content.
        encodings: content encodings in which it is stored, too.
    """

    path: Path
    digest: str
    content_type: str
    is_immutable: bool
    encodings: tuple[str, ...]

    def stored(self, encoding: str | None) -> Path:
        """Return the path of the content in an encoding."""
        return self.path.with_name(self.path.name + COMPRESSED[encoding]) if encoding else self.path


def root() -> Path:
    return env.DATA_ROOT / "help"


def current_version(folder: Path) -> str:
    """Return the name of the newest version of the site in `folder`; "" before the first build."""
    try:
        return (folder / CURRENT).readlink().name
    except OSError:
        return ""


def find_file(name: str) -> SiteFile | None:
    """Return a file of the current version by its path in the site; None if there is none of this name."""
    version = current_version(root())
    try:
        return _files(root() / version).get(name) if version else None
    except (OSError, ValueError):  # replaced at this moment; not kept, so that the next request reads again
        return None


@lru_cache(maxsize=2)
def _files(folder: Path) -> dict[str, SiteFile]:
    entries = json.loads((folder / MANIFEST).read_text())
    return {
        name: SiteFile(
            folder / name, entry["digest"], content_type(name), entry["immutable"], tuple(entry["encodings"])
        )
        for name, entry in entries.items()
    }


def content_type(name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind.endswith(("javascript", "json")) else kind

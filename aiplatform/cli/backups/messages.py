"""Names and messages that backup and restore share."""

from __future__ import annotations

from pathlib import Path

FORMAT = 1
MANIFEST = "manifest.json"
SECRET = "secret_key"  # noqa: S105 - the name of its file
UNFINISHED = "restore-unfinished"
"""While this file is in the data root, `manage.py up` does not start: jobs could run twice."""
REBUILT = ("log", "cache", "help", "boxes", ".join", UNFINISHED)
"""What of the data root is made again, or, as boxes, not brought back."""


class Refused(Exception):
    """A refusal with a message for the operator."""


def is_within(inner: Path, outer: Path) -> bool:
    """Return whether `inner` is `outer` or below it."""
    return inner.resolve().is_relative_to(outer.resolve())

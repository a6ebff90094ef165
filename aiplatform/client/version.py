"""Version of the client, compared with that of the platform."""

from __future__ import annotations

import time

from aiplatform import __version__
from aiplatform.client import config, output

HEADER = "x-aip-version"  # of the responses of the API
SILENCE_S = 86_400  # between two notes


def series(version: str) -> str:
    """Return major and minor version: clients and platforms of one series work together."""
    return ".".join(version.split(".")[:2])


def note(platform_version: str | None, url: str) -> None:
    """Say once a day that client and platform have different versions."""
    if not platform_version or series(platform_version) == series(__version__):
        return
    mark = config.folder() / "version-note"
    try:
        if mark.exists() and time.time() - mark.stat().st_mtime < SILENCE_S:
            return
        config.folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch()
    except OSError:
        pass  # then it is said again
    output.say(
        f"This is aip {__version__}, the platform is {output.clean(platform_version)}. "
        f"Update with: pip install --upgrade {url}/client/"
    )

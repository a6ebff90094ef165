"""What people install in a container: kept on the machine's disk, mounted where Python and PATH find it.

The image belongs to nobody who runs in it, and what is written elsewhere in a container goes with it. So each job that
keeps something has a folder of its own (its box) at `/opt/packages/N`, where N counts the images that were saved on top
of one another: what those brought lies in the image itself, at lower numbers, and is found after the job's own.
"""

from __future__ import annotations

import os
from typing import Any

from workers.images.models import Image

TOP = "/opt/packages"
SAVED = "saved"  # among the facts of an image: how many were saved on top of one another, up to this one


def number(image: Image) -> int:
    """How many saved images an image consists of."""
    count = image.facts.get(SAVED, 0)
    return count if isinstance(count, int) else 0


def folder(image: Image) -> str:
    """Where a job in this image finds its own packages."""
    return f"{TOP}/{number(image)}"


def variables(image: Image, *, boxed: bool) -> dict[str, str]:
    """Variables that point Python and shells to the packages in the image; pip too, to those of a boxed job.

    What the image itself has in PATH and PYTHONPATH is known inside alone and comes after these, see
    `supervisor/container.py`. What pip is told is in `environments/start.py`.
    """
    folders = [f"{TOP}/{each}" for each in range(number(image) - (not boxed), -1, -1)]
    if not folders:
        return {}
    values = {
        "AIP_PATH": os.pathsep.join(f"{each}/bin" for each in folders),
        "AIP_PYTHONPATH": os.pathsep.join(f"{each}/site" for each in folders),
    }
    return values | _own(folders[0]) if boxed else values


def _own(folder: str) -> dict[str, str]:
    return {
        "AIP_PACKAGES": folder,
        "PYTHONUSERBASE": folder,
        "PIP_CONFIG_FILE": f"{folder}/pip.conf",
        "PIP_BREAK_SYSTEM_PACKAGES": "1",  # nothing of the system is touched: it belongs to another user
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def mount(image: Image, source: str) -> dict[str, Any]:
    """What a ticket says of it: the folder on the machine, and where it is inside."""
    return {"folder": source, "target": folder(image)}

"""What `up` and `prepare` say when the disk of the data folder is full; standard library only."""

from __future__ import annotations

import errno
import shutil

from aiplatform import env

FULL = {errno.ENOSPC, errno.EDQUOT}


def full_disk_text() -> str:
    """Name the folder, what is free there, and the two ways out."""
    try:
        free = f" ({shutil.disk_usage(env.DATA_ROOT).free >> 20} MiB free)"
    except OSError:
        free = ""
    return (
        f"The disk of {env.DATA_ROOT} is full{free}. Free space there, or set AIP_DATA_ROOT to a folder on another "
        "disk; then start again."
    )
